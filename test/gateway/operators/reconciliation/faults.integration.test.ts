import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { fetchStatement } from '../../../../src/gateway/operators/reconciliation/fetch.ts';
import { RunProgress } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import { startRun } from '../../../../src/gateway/operators/reconciliation/run-store.ts';
import { Runner } from '../../../../src/gateway/operators/reconciliation/runner.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { createGrpcBroker } from '../../../../src/gateway/trading/broker/grpc-broker.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { daysBefore, nextLagosMidnight } from '../../../../src/kit/clock.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import { Reconciling, unqueued } from '../../../support/reconciliation.ts';

const minuteMs = 60_000;

describe("a broker's statement that cannot be read", () => {
  let days: Reconciling;
  let partner: TestPartner;
  let day: string;
  before(async () => {
    days = await Reconciling.start({ MARINA_RECONCILIATION_MAX_RECORDS: '2000' });
    await days.toNextDay(9 * 60);
    partner = await days.gateway.newPartner();
    day = await days.today();
    const { body } = await days.gateway.place(partner, { symbol: 'SIM-FILL' });
    await eventually(async () => {
      const read = await days.gateway.rest('GET', `/v1/orders/${body.id}`, { key: partner.key });
      assert.equal(read.body.state, 'filled');
    });
  });
  // Orders of earlier days are made and changed here by rows alone.
  after(() => days.stop(['objects', 'usage']));

  const metric = async (line: RegExp) =>
    eventually(async () => {
      assert.match(await (await fetch(`http://127.0.0.1:${days.gateway.app.opsPort}/metrics`)).text(), line);
    });

  it('is tried again each ten minutes until the broker has closed the day', async () => {
    assert.deepEqual(await days.runs(day), [], 'the evening has not come');
    const now = await days.now();
    await days.advance(nextLagosMidnight(now) - now - 5 * 60 * minuteMs);
    const waiting = await days.untilRun(day, 'INCOMPLETE');
    assert.equal(waiting.tries, 1);
    assert.match(waiting.problem, /not closed the day/);
    await days.advance(11 * minuteMs);
    await eventually(async () => {
      const [run] = await days.runs(day);
      assert.deepEqual([run?.tries, run?.state], [2, 'RECONCILIATION_STATE_INCOMPLETE']);
    }, 20_000);
    assert.equal((await days.reconcile(day)).tries, 3, 'an operator need not wait');
    await days.toNextDay();
    const run = await days.untilRun(day, 'COMPLETE');
    assert.deepEqual([(await days.runs(day)).length, run.breaks, run.problem], [1, '0', '']);
    assert.deepEqual(await days.open(day), []);
  });

  it('is given up when a page repeats, or when it goes on for ever, and what was read is removed', async () => {
    for (const [lie, problem] of [
      ['ENDLESS_PAGE', /not in their order|same page again/],
      ['ENDLESS_ORDERS', /more than 2000 records/],
    ] as const) {
      await days.lie(lie, { day });
      const run = await days.reconcile(day);
      assert.equal(run.state, 'RECONCILIATION_STATE_FAILED');
      assert.match(run.problem, problem);
      await days.tellTheTruth();
      const rows = await days.gateway.database.read(statement('SELECT COUNT(*) AS count FROM reconciliation_items'));
      assert.equal(Number(rows[0]?.count), 0);
      assert.deepEqual(await days.open(day), []);
      assert.equal((await days.complete(day)).breaks, '0');
    }
    assert.ok(days.gateway.logged.some((line) => line.includes("could not be compared with the broker's statement")));
  });

  it('is tried again when the broker does not answer, or answers nonsense', async () => {
    for (const fault of [WireFault.UNAVAILABLE_BEFORE, WireFault.NONSENSE, WireFault.RESET_AFTER]) {
      await days.gateway.controls.injectFault({ call: Call.GET_STATEMENT, fault }, callTimeout);
      assert.equal((await days.reconcile(day)).state, 'RECONCILIATION_STATE_FAILED');
      await days.advance(11 * minuteMs);
      assert.equal((await days.untilRun(day, 'COMPLETE')).breaks, '0');
    }
  });

  it('raises no break and no alert when the broker gives none, and the gateway says so', async () => {
    await days.lie('NOT_OFFERED', { day });
    assert.equal((await days.reconcile(day)).state, 'RECONCILIATION_STATE_NOT_OFFERED');
    await metric(/^marina_reconciliation_not_offered 1$/m);
    await metric(/^marina_reconciliation_overdue_days 0$/m);
    const { reconciliation } = await days.operator.call('Diagnostics.GetStatus');
    assert.equal(reconciliation.is_offered, false);
    await days.tellTheTruth();
    await days.complete(day);
    await metric(/^marina_reconciliation_not_offered 0$/m);
  });

  it('says of an order whose outcome is unknown that the broker has it, and changes nothing', async () => {
    const { body } = await days.gateway.place(partner, { symbol: 'SIM-REST' });
    const today = await days.today();
    await days.toNextDay();
    await days.untilRun(today, 'COMPLETE');
    // As if its answer, its report and every look-up were lost.
    await days.gateway.database.write(
      statement(
        "UPDATE orders SET state = 'uncertain', check_at = '2100-01-01' WHERE partner_id = ? AND id = ?",
        partner.id,
        body.id,
      ),
    );
    assert.equal((await days.complete(today)).breaks, '1');
    const [found] = await days.open(today);
    assert.deepEqual(
      [found.kind, found.object_id, found.is_unsettled, found.ours],
      ['BREAK_KIND_ORDER_STATE', body.id, true, 'uncertain'],
    );
    const read = await days.gateway.rest('GET', `/v1/orders/${body.id}`, { key: partner.key });
    assert.equal(read.body.state, 'uncertain');
  });

  it('is waited for without an answer at most 20 s, is seen, and holds up no other day', async () => {
    const hanging = await days.today();
    await days.toNextDay();
    await days.untilRun(hanging, 'COMPLETE');
    const next = await days.today();
    await days.toNextDay();
    await days.untilRun(next, 'COMPLETE');
    await days.gateway.controls.injectFault({ call: Call.GET_STATEMENT, fault: WireFault.HANG }, callTimeout);
    const waiting = days.reconcile(hanging);
    await eventually(async () => {
      const [run] = await days.runs(hanging);
      assert.equal(run?.state, 'RECONCILIATION_STATE_RUNNING');
    });
    const compared = days.reconcile(next);
    await eventually(async () => {
      const [run] = await days.runs(hanging);
      assert.equal(run?.state, 'RECONCILIATION_STATE_FAILED');
      assert.match(run.problem, /^the broker did not answer: .*deadline/i);
    }, 40_000);
    await waiting;
    await compared;
    await days.untilRun(next, 'COMPLETE');
    await metric(/^marina_reconciliation_duration_seconds_count\{state="failed"\} [1-9]/m);
    await days.advance(11 * minuteMs);
    await days.untilRun(hanging, 'COMPLETE');
  });

  it('is asked about no day after today, and none before the gateway began', async () => {
    const refusal = async (wanted: string) =>
      (await days.operator.refused('Diagnostics.ReconcileDay', { day: wanted })).message;
    assert.match(await refusal(daysBefore(await days.today(), -1)), /after today/);
    assert.match(await refusal('2020-01-01'), /before the gateway's first/);
    assert.match(await refusal('2026-02-30'), /must be a day/);
  });

  it('does not keep other days from being compared when what a run has saved cannot be used', async () => {
    await days.complete(day);
    const [last] = await days.runs(day);
    const now = new Date(await days.now());
    await days.gateway.database.write(
      statement(
        `UPDATE reconciliation_runs SET state = 'running', step = 'objects', position = 'nonsense', next_at = ?
          WHERE day = ? AND number = ?`,
        ...[now, day, Number(last?.id.split('-').at(-1))],
      ),
    );
    const failed = await days.untilRun(day, 'FAILED');
    assert.match(failed.problem, /^the gateway could not compare it: .*JSON/);
    const today = await days.today();
    await days.lie('COMPLETE', { day: today });
    await days.complete(today);
    await days.tellTheTruth();
    assert.equal((await days.complete(day)).tries, failed.tries + 1, 'it is compared from its start');
  });

  it('waits while the database refuses something for one day, and others are compared', async () => {
    const next = await days.today();
    await days.gateway.place(partner, { symbol: 'SIM-FILL' });
    await days.toNextDay();
    await days.untilRun(next, 'COMPLETE');
    const other = daysBefore(next, 1);
    await days.lie('ORDER_EXTRA', { day: next, account: partner.account, symbol: 'SIM-REST' });
    await days.complete(next);
    const [found] = await days.open(next);
    const locking = await createConnection(days.gateway.databaseUrl);
    try {
      await locking.query('START TRANSACTION');
      await locking.query('SELECT id FROM reconciliation_breaks WHERE id = ? FOR UPDATE', [found.id]);
      const asked = days.reconcile(next);
      await eventually(async () => {
        const [run] = await days.runs(next);
        assert.equal(run?.state, 'RECONCILIATION_STATE_RUNNING');
        assert.match(run.problem, /^the gateway could not compare it: /);
      }, 60_000);
      await asked;
      await days.complete(other);
    } finally {
      await locking.query('ROLLBACK');
      await locking.end();
    }
    await days.advance(2 * minuteMs);
    const run = await days.untilRun(next, 'COMPLETE');
    assert.deepEqual([run.tries, run.breaks, run.problem], [1, '1', ''], 'it went on where it was');
    await days.tellTheTruth();
    await days.complete(next);
  });

  it('is given up when the day is a week old, and the days since then are compared', async () => {
    const fault = { call: Call.GET_STATEMENT, fault: WireFault.UNAVAILABLE_BEFORE };
    const first = await days.today();
    await days.gateway.controls.injectFault({ ...fault, times: 100_000 }, callTimeout);
    await days.toNextDay();
    const failed = await days.untilRun(first, 'FAILED');
    await metric(/^marina_reconciliation_overdue_days [1-9]/m);
    await metric(/^marina_reconciliation_overdue_seconds [1-9]/m);
    await days.advance(9 * 24 * 60 * minuteMs);
    await eventually(async () => {
      const [run] = await days.runs(first);
      assert.equal(run?.tries, failed.tries + 1);
      const givenUp = days.gateway.logged.map((line) => JSON.parse(line)).find(({ isGivenUp }) => isGivenUp === true);
      assert.equal(givenUp?.day, first);
    }, 20_000);
    await days.tellTheTruth();
    await days.advance(11 * minuteMs);
    await metric(/^marina_reconciliation_overdue_days 0$/m);
    await metric(/^marina_reconciliation_overdue_seconds 0$/m);
    const [last] = await days.runs(first);
    assert.deepEqual([last?.state, last?.tries], ['RECONCILIATION_STATE_FAILED', failed.tries + 1]);
    assert.equal((await days.complete(first)).breaks, '0', 'an operator can still ask');
  });
});

describe('several gateways that compare days', () => {
  let days: Reconciling;
  let partner: TestPartner;
  before(async () => {
    days = await Reconciling.start();
    await days.toNextDay(9 * 60);
    partner = await days.gateway.newPartner();
  });
  // Orders of earlier days are made and changed here by rows alone.
  after(() => days.stop(['objects', 'usage']));
  const silent = createLogger({ name: 'marina', level: 'silent' });

  it('compare each day once, catch up on the days that all missed, and answer for each other', async () => {
    const others = await Promise.all([1, 2].map(() => startApp(readConfig({ ...days.gateway.variables }), silent)));
    try {
      await days.gateway.place(partner, { symbol: 'SIM-FILL' });
      const first = await days.today();
      await days.advance(10 * 24 * 60 * minuteMs);
      const last = daysBefore(await days.today(), 1);
      await days.untilRun(last, 'COMPLETE');
      await eventually(async () => {
        const { reconciliation } = await days.operator.call('Diagnostics.GetStatus');
        assert.deepEqual([reconciliation.days_overdue, reconciliation.last_complete_day], [0, last]);
      }, 20_000);
      const compared = (await days.runs('')).map(({ day }) => day);
      assert.equal(new Set(compared).size, compared.length, 'each once');
      assert.ok(!compared.includes(first), 'longer ago than a week');
      assert.equal(compared.filter((day) => day <= last && day > daysBefore(last, 7)).length, 7);
    } finally {
      await Promise.all(others.map((other) => other.stop()));
    }
  });

  it('go on where another was killed, and no piece counts twice', async () => {
    const { gateway } = days;
    const day = await days.today();
    for (let at = 0; at < 12; at += 1) await gateway.place(partner, { symbol: 'SIM-FILL', quantity: 1 + at });
    await days.toNextDay();
    await days.untilRun(day, 'COMPLETE');
    await days.lie('ORDER_EXTRA', { day, account: partner.account, symbol: 'SIM-FILL' });
    const whole = await days.complete(day);
    // From here on this process does the work, with a holder's fence that grows each time it is "killed".
    const { database } = gateway;
    const clock = { now: () => now, realNow: () => Date.now() };
    const now = await days.now();
    await days.gateway.app.stop();
    const address = `127.0.0.1:${gateway.simulatorPort}`;
    const deadlines = { submitTimeoutMs: 5_000, readTimeoutMs: 5_000, clockSkewMs: 2_000 };
    const broker = createGrpcBroker(firstBroker, { address, backOfficeAddress: address, ...deadlines });
    try {
      const begun = await startRun(database, { day }, { startedBy: null, now });
      assert.ok(begun !== undefined);
      let fence = 0n;
      const takeLease = async () => {
        fence += 1_000n;
        const change = "UPDATE leases SET holder = 'test', fence = ? WHERE name = 'reconciliation'";
        await database.write(statement(change, fence));
      };
      const read = async () => {
        const [row] = await database.read(statement('SELECT * FROM reconciliation_runs WHERE next_at IS NOT NULL'));
        const { reconciliationRuns } = await import('../../../../src/gateway/operators/reconciliation/table.ts');
        return row && reconciliationRuns.all.read(row);
      };
      let kills = 0;
      for (let run = await read(); run !== undefined; run = await read()) {
        await takeLease();
        // It is killed after its next write: as its process ends, its lease goes to another.
        const killed = new AbortController();
        const lease = { name: 'reconciliation', fence, signal: killed.signal, isHeld: () => true };
        const real = database.transaction.bind(database);
        let writes = 0;
        const dying = new Proxy(database, {
          get: (target, name) => {
            if (name !== 'transaction') return Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name);
            return async (...given: Parameters<typeof real>) => {
              const result = await real(...given);
              writes += 1;
              if (writes === 3) {
                kills += 1;
                killed.abort();
              }
              return result;
            };
          },
        });
        const runner = new Runner({
          ...{
            database: dying,
            clock,
            log: silent,
            broker,
            reads: unqueued,
            isShared: false,
            mostRecords: 10_000,
          },
          ended: () => undefined,
        });
        await runner.run(run, lease);
        assert.ok(kills < 100);
      }
      assert.ok(kills >= 5, `it was killed ${kills} times`);
      const [row] = await database.read(
        statement('SELECT * FROM reconciliation_runs WHERE day = ? ORDER BY number DESC LIMIT 1', day),
      );
      assert.deepEqual(
        [row?.state, String(row?.records), String(row?.breaks)],
        ['complete', String(whole.records), '1'],
      );
      const breaks = await database.read(statement('SELECT id, run FROM reconciliation_breaks WHERE day = ?', day));
      assert.deepEqual(
        breaks.map(({ run }) => run),
        [row?.number],
        'one break, which the last run found again',
      );
      // Who lost the lease can write nothing.
      const stale = {
        name: 'reconciliation',
        fence: fence - 1n,
        signal: new AbortController().signal,
        isHeld: () => true,
      };
      const late = new RunProgress(database, stale, () => now, { ...begun, step: 'fetch', position: '' });
      await assert.rejects(fetchStatement(late, broker, 10_000), /another process/);
    } finally {
      broker.close();
    }
  });
});
