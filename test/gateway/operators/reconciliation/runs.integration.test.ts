import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { RunProgress } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import type { Difference } from '../../../../src/gateway/operators/reconciliation/rules.ts';
import { startRun } from '../../../../src/gateway/operators/reconciliation/run-store.ts';
import { Runner } from '../../../../src/gateway/operators/reconciliation/runner.ts';
import {
  type RunStep,
  reconciliationItems,
  reconciliationRuns,
  type StoredItem,
  type StoredRun,
} from '../../../../src/gateway/operators/reconciliation/table.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { StatementError } from '../../../../src/gateway/trading/broker/statements.ts';
import { SystemClock } from '../../../../src/kit/clock.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { withDatabase } from '../../../support/database.ts';
import { unqueued } from '../../../support/reconciliation.ts';

const day = '2026-03-02';
const now = Date.UTC(2026, 2, 3, 6);
/** More records of a statement than are removed at once. */
const recordCount = 2_100;

describe('the runs of a day', () => {
  let database: Database;
  withDatabase(async (opened) => {
    database = opened;
    await database.write(statement('CREATE TABLE noted (note VARCHAR(40) NOT NULL)'));
  });
  beforeEach(async () => {
    for (const table of ['reconciliation_runs', 'reconciliation_items', 'leases', 'noted']) {
      await database.write(statement(`DELETE FROM ${table}`));
    }
  });

  async function newest(): Promise<StoredRun> {
    const query = statement('SELECT * FROM reconciliation_runs ORDER BY number DESC LIMIT 1');
    const [row] = await database.read(query);
    return reconciliationRuns.all.read(row ?? assert.fail('there is no run'));
  }

  async function count(table: string): Promise<number> {
    const [row] = await database.read(statement(`SELECT COUNT(*) AS count FROM ${table}`));
    return Number(row?.count);
  }

  async function change(changes: Partial<StoredRun>): Promise<StoredRun> {
    const run = await newest();
    for (const write of reconciliationRuns.update(run, { ...run, ...changes })) await database.write(write);
    return newest();
  }

  it('runs have a note of each operator who starts one or goes on with it, and none of a call that does nothing', async () => {
    const ask = (note: string, onlyFirst = false) =>
      startRun(database, { day }, { startedBy: note, now, onlyFirst }, [
        statement('INSERT INTO noted (note) VALUES (?)', note),
      ]);
    const notes = async () => (await database.read(statement('SELECT note FROM noted'))).map(({ note }) => note).sort();
    assert.equal((await ask('a starts one'))?.number, 1);
    assert.deepEqual(await notes(), ['a starts one']);
    assert.equal((await ask('b goes on with it'))?.number, 1);
    await change({ state: 'failed', endedAt: now, nextAt: now + 600_000 });
    const again = await ask('c does not wait');
    assert.deepEqual([again?.number, again?.nextAt, (await newest()).nextAt], [1, now, now]);
    assert.equal(await ask('d asks for the first one only', true), undefined);
    await change({ state: 'complete', endedAt: now, nextAt: null });
    assert.equal(await ask('e asks for the first one only', true), undefined);
    assert.equal((await ask('f starts the next one'))?.number, 2);
    assert.deepEqual(await notes(), ['a starts one', 'b goes on with it', 'c does not wait', 'f starts the next one']);
  });

  /** A run that has come to a step, with the records of a whole statement, and the lease for it. */
  async function comeTo(step: RunStep): Promise<StoredRun> {
    await startRun(database, { day }, { startedBy: null, now });
    await database.write(
      statement("INSERT INTO leases (name, holder, fence, expires_at) VALUES ('job', 'a', 1, NOW(3) + INTERVAL 1 DAY)"),
    );
    const record: StoredItem = {
      ...{ day, objectId: '', section: 'order' as never, itemId: '', account: 'A', symbol: 'X', side: 'buy' },
      ...{ state: 'filled', quantity: 1n, amountKobo: null, otherKobo: null, reference: '', at: now },
    };
    const records = Array.from({ length: recordCount }, (_, at) => ({ ...record, objectId: `ord_${at}` }));
    await database.write(reconciliationItems.insert(...records));
    return change({ step, state: 'running', tries: 1, periodFrom: now - 86_400_000, periodTo: now });
  }

  /** Goes on with a run whose comparison fails, in a process that dies after so many transactions. Answers whether it died. */
  async function failAndDie(run: StoredRun, transactions: number): Promise<boolean> {
    const dying = new AbortController();
    let made = 0;
    const own: Pick<Database, 'transaction' | 'read' | 'readAll'> = {
      read: (query) => database.read(query),
      readAll: () => Promise.reject(new Error('the comparison is broken')),
      async transaction(reads, decide) {
        if (dying.signal.aborted) throw new Error('the process is dead');
        const result = await database.transaction(reads, decide);
        made += 1;
        if (made === transactions) dying.abort();
        return result;
      },
    };
    const statements = new Proxy(
      {},
      { get: () => () => Promise.reject(new StatementError('unreadable' as never, 'x')) },
    );
    const runner = new Runner({
      ...{ database: own as Database, clock: new SystemClock(), log: createLogger({ name: 'test', level: 'silent' }) },
      ...{
        broker: { id: 'a', statements } as never,
        reads: unqueued,
        isShared: false,
        mostRecords: 10_000,
        ended: () => {},
      },
    });
    const lease = { name: 'job', fence: 1n, signal: dying.signal, isHeld: () => !dying.signal.aborted };
    await runner.run(run, lease).catch((error: unknown) => assert.ok(dying.signal.aborted, String(error)));
    return dying.signal.aborted;
  }

  it('runs keep their position until all breaks of a piece are saved, however many there are', async () => {
    await database.write(statement('DELETE FROM leases'));
    for (const found of [1, 100, 101, 250]) {
      for (const table of ['reconciliation_runs', 'reconciliation_breaks', 'reconciliation_items', 'leases']) {
        await database.write(statement(`DELETE FROM ${table}`));
      }
      const positions: string[] = [];
      const own: Pick<Database, 'transaction' | 'readAll'> = {
        readAll: (queries) => database.readAll(queries),
        async transaction(reads, decide) {
          const result = await database.transaction(reads, decide);
          positions.push(`${(await newest()).position} ${await count('reconciliation_breaks')}`);
          return result;
        },
      };
      const lease = { name: 'job', fence: 1n, signal: new AbortController().signal, isHeld: () => true };
      const progress = new RunProgress(own as Database, lease, () => now, await comeTo('statement'));
      const differences = Array.from(
        { length: found },
        (_, at): Difference => ({
          ...{ kind: 'order_missing', partnerId: 'par_1', objectId: `ord_${at}`, account: 'A', symbol: 'X' },
          ...{ ours: 'filled', brokers: '', isUnsettled: false, subject: '' },
        }),
      );
      await progress.saveFound({ position: 'behind' }, differences);
      const full = Array.from({ length: Math.ceil(found / 100) - 1 }, (_, at) => ` ${100 * (at + 1)}`);
      assert.deepEqual(positions, [...full, `behind ${found}`]);
    }
  });

  for (const step of ['fetch', 'statement'] as const) {
    it(`runs begin again if the process dies at any moment of a try that fails at the step ${step}`, async () => {
      for (let transactions = 1; ; transactions += 1) {
        for (const table of ['reconciliation_runs', 'reconciliation_items', 'leases']) {
          await database.write(statement(`DELETE FROM ${table}`));
        }
        const isDead = await failAndDie(await comeTo(step), transactions);
        const run = await newest();
        const left = await count('reconciliation_items');
        const isWhole = left === recordCount && run.step === step;
        const said = `died after transaction ${transactions}: at ${run.step} with ${left} records`;
        assert.ok(isWhole || run.step === 'clear' || (run.step === 'end' && left === 0), said);
        if (isDead) continue;
        assert.deepEqual([run.state, run.step, left], ['failed', 'end', 0]);
        assert.ok(transactions > 3, 'records are removed some at a time');
        break;
      }
    });
  }
});
