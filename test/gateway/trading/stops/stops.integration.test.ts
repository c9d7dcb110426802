import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { type AddStopRequestSchema, StopAction } from '../../../../src/gen/marina/admin/v1/trading_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply, goodApplication } from '../../../support/applications.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy, type Link } from '../../../support/fault-proxy.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';

const silent = createLogger({ name: 'test', level: 'silent' });
const { BUY, SELL, FUND, WITHDRAW, APPLY } = StopAction;
const everyAction = [BUY, SELL, FUND, WITHDRAW, APPLY];

describe('stops', () => {
  let gateway: TestGateway;
  let other: App;
  /** Between the other replica and the database. */
  let proxy: FaultProxy;
  let admin: ReturnType<typeof adminClient>;
  let partner: TestPartner;
  let neighbour: TestPartner;
  before(async () => {
    gateway = await startGateway();
    proxy = await FaultProxy.start(gateway.databaseUrl);
    const variables = { ...gateway.variables, MARINA_DATABASE_URL: proxy.through(gateway.databaseUrl) };
    other = await startApp(readConfig(variables), silent);
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await other.stop();
    await proxy.close();
    await gateway.stop();
  });
  beforeEach(async () => {
    [partner, neighbour] = [await gateway.newPartner({ accounts: 2 }), await gateway.newPartner()];
    for (const one of [partner, neighbour]) await gateway.fund(one, 1_000_000n);
  });
  afterEach(async () => {
    const { stops } = await admin.trading.listStops({}, admin.options);
    for (const { id } of stops) await admin.trading.endStop({ id, reason: 'the test is over' }, admin.options);
  });

  function begin(
    target: MessageInitShape<typeof AddStopRequestSchema>,
    actions: readonly StopAction[],
    endsAt?: number,
  ) {
    const end = endsAt === undefined ? {} : { endsAt: timestampFromMs(endsAt) };
    const request = { ...target, actions: [...actions], reason: 'a leaked key', ...end };
    return admin.trading.addStop(request, admin.options);
  }

  /** A request that starts each action, of an account. */
  const starts: Record<string, (of: TestPartner, account?: string) => ReturnType<TestGateway['rest']>> = {
    buy: (of, account = of.account) => gateway.place(of, { account, symbol: 'SIM-REST' }),
    sell: (of, account = of.account) => gateway.place(of, { account, symbol: 'SIM-REST', side: 'sell' }),
    fund: (of, account = of.account) => gateway.allocate(of, { account }),
    withdraw: (of, account = of.account) => gateway.withdraw(of, { account }),
    apply: (of) => apply(gateway, of),
  };

  /** The actions that a partner can start now; each that it cannot was refused, and nothing was stored. */
  async function possible(of: TestPartner, account?: string): Promise<string[]> {
    const found: string[] = [];
    for (const [name, start] of Object.entries(starts)) {
      const stored = await countStored(of);
      const answer = await start(of, account);
      if (answer.status === 201) found.push(name);
      else {
        assert.deepEqual([answer.status, answer.body.error.code], [503, 'trading_paused'], answer.text);
        assert.equal(answer.headers.get('retry-after'), '30');
        assert.match(answer.body.error.message, / are stopped\. Cancels, estimates and reads still work\.$/);
        assert.equal(await countStored(of), stored);
      }
    }
    return found;
  }

  async function countStored({ id }: TestPartner): Promise<number> {
    const tables = ['orders', 'allocations', 'withdrawals', 'applications'];
    const counts = tables.map((name) => statement(`SELECT COUNT(*) AS count FROM ${name} WHERE partner_id = ?`, id));
    return (await gateway.database.readAll(counts)).reduce((sum, [row]) => sum + Number(row?.count), 0);
  }

  it('a stop of a partner forbids exactly its actions to that partner', async () => {
    const { changed, stop } = await begin({ partnerId: partner.id }, [SELL, WITHDRAW]);
    assert.equal(changed, true);
    assert.match(stop?.id ?? '', /^stp_/);
    assert.deepEqual(await possible(partner), ['buy', 'fund', 'apply']);
    assert.deepEqual(await possible(neighbour), Object.keys(starts));
  });

  it('a stop of an account forbids them to that account alone', async () => {
    const [first = '', second = ''] = partner.accounts;
    await begin({ account: first }, [BUY, SELL, FUND, WITHDRAW]);
    assert.deepEqual(await possible(partner, first), ['apply']);
    assert.deepEqual(await possible(partner, second), Object.keys(starts));
  });

  it('a stop of a symbol that the broker does not list is in force, and its answer warns that it may be mistyped', async () => {
    const mistyped = await begin({ symbol: 'SIM-RESTT' }, [BUY]);
    assert.deepEqual([mistyped.changed, mistyped.stop?.inForce], [true, true]);
    assert.equal(mistyped.warning, 'the broker lists no instrument SIM-RESTT: compare the symbol');
    assert.equal((await begin({ symbol: 'SIM-RESTT' }, [BUY])).warning, mistyped.warning, 'it says so again');
    assert.equal((await begin({ symbol: 'SIM-FILL' }, [BUY])).warning, '');
    await gateway.controls.injectFault({ call: Call.LIST_INSTRUMENTS, fault: WireFault.HANG, times: 5 }, callTimeout);
    const unanswered = await begin({ symbol: 'SIM-RESTTT' }, [BUY]);
    assert.deepEqual([unanswered.changed, unanswered.warning], [true, ''], 'the broker did not say');
    await gateway.controls.clearDirectives({}, callTimeout);
  });

  it('a stop of a symbol forbids its orders to all partners, and cancels and estimates go on', async () => {
    const placed = await gateway.place(partner, { symbol: 'SIM-REST' });
    await begin({ symbol: 'SIM-REST' }, [BUY, SELL]);
    for (const of of [partner, neighbour]) assert.deepEqual(await possible(of), ['fund', 'withdraw', 'apply']);
    const order = { account: partner.account, symbol: 'SIM-FILL', side: 'buy', type: 'limit', quantity: 1 };
    assert.equal((await gateway.place(partner, { ...order, price_kobo: 1_000 })).status, 201);
    const estimate = await gateway.rest('POST', '/v1/orders/estimate', {
      key: partner.key,
      body: { ...order, symbol: 'SIM-REST', price_kobo: 1_000 },
    });
    assert.equal(estimate.status, 200, estimate.text);
    const cancel = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
    assert.equal(cancel.status, 200, cancel.text);
  });

  it('a stop of everything forbids to all, and a key that was used is answered as before', async () => {
    const first = await gateway.withdraw(partner, {}, 'mine');
    await begin({ everything: true }, everyAction);
    for (const of of [partner, neighbour]) assert.deepEqual(await possible(of), []);
    const again = await gateway.withdraw(partner, {}, 'mine');
    assert.deepEqual([again.status, again.body.id], [200, first.body.id]);
    const { tradingPaused } = (await gateway.rest('GET', '/v1/market', { key: partner.key })).body;
    assert.notEqual(tradingPaused, true);
  });

  it('a stop ends when somebody ends it, once, and both are in the audit', async () => {
    const target = { partnerId: partner.id };
    const { stop } = await begin(target, everyAction);
    const id = stop?.id ?? '';
    const again = await begin(target, [...everyAction].reverse());
    assert.deepEqual([again.changed, again.stop?.id], [false, id], 'the same stop was begun twice');
    assert.deepEqual(await possible(partner), []);
    const ended = await admin.trading.endStop({ id, reason: 'the key is revoked' }, admin.options);
    assert.deepEqual([ended.changed, ended.stop?.inForce, ended.stop?.endReason], [true, false, 'the key is revoked']);
    assert.deepEqual(await possible(partner), Object.keys(starts));
    const twice = await admin.trading.endStop({ id, reason: 'again' }, admin.options);
    assert.deepEqual([twice.changed, twice.stop?.endReason], [false, 'the key is revoked']);
    const audited = await gateway.database.read(
      statement('SELECT action, operator, partner_id, detail FROM audit_entries WHERE subject = ? ORDER BY id', id),
    );
    assert.deepEqual(
      audited.map(({ action, partner_id }) => [action, partner_id]),
      [
        ['Trading.AddStop', partner.id],
        ['Trading.EndStop', partner.id],
      ],
    );
    assert.match(String(audited[0]?.detail), /a leaked key/);
  });

  it('a stop ends by itself at its time, and the next stop puts it among the ended ones', async () => {
    const target = { partnerId: partner.id };
    const { stop } = await begin(target, everyAction, Date.now() + 60_000);
    assert.deepEqual(await possible(partner), []);
    await admin.clock.advanceClock({ by: { seconds: 60n, nanos: 0 } }, admin.options);
    assert.deepEqual(await possible(partner), Object.keys(starts));
    const open = await admin.trading.listStops({}, admin.options);
    assert.deepEqual(
      open.stops.map(({ id, inForce }) => [id, inForce]),
      [[stop?.id, false]],
    );
    const again = await begin(target, everyAction);
    assert.deepEqual(
      [again.changed, again.stop?.id === stop?.id],
      [true, false],
      'the ended one does not stand for it',
    );
    assert.deepEqual(await possible(partner), []);
    const { stops } = await admin.trading.listStops({ ended: true, limit: 1 }, admin.options);
    assert.deepEqual([stops[0]?.id, stops[0]?.endedBy, stops[0]?.endedAt], [stop?.id, '', stop?.endsAt]);
  });

  it('a stop is obeyed by a replica that has not heard of it', async () => {
    await gateway.place(partner, { symbol: 'SIM-REST' });
    const elsewhere = adminClient(other.adminPort);
    try {
      const target = { account: partner.account };
      await elsewhere.trading.addStop({ ...target, actions: [BUY], reason: 'test' }, elsewhere.options);
      const answer = await gateway.place(partner, { symbol: 'SIM-REST' });
      assert.deepEqual([answer.status, answer.body.error.code], [503, 'trading_paused'], answer.text);
    } finally {
      elsewhere.close();
    }
  });

  it('the version of the stops is another one when a stop begins and when it ends, so that no replica goes by what it knew', async () => {
    const version = async () => {
      const [row] = await gateway.database.read(statement('SELECT stops_version FROM environment WHERE id = 1'));
      return BigInt(String(row?.stops_version));
    };
    const before = await version();
    const { stop } = await begin({ account: partner.account }, [BUY]);
    assert.equal(await version(), before + 1n);
    await admin.trading.endStop({ id: stop?.id ?? '', reason: 'test' }, admin.options);
    assert.equal(await version(), before + 2n);
  });

  it('a stop keeps from being sent what was stored a moment before', async () => {
    const post = (path: string, body: object) =>
      fetch(`http://127.0.0.1:${other.restPort}${path}`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${partner.key}`, 'content-type': 'application/json' },
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify(body),
      });
    let held: Link | undefined;
    proxy.onBytes = (link, direction, bytes) => {
      if (direction !== 'toServer' || !bytes.includes('INSERT INTO withdrawals (') || !bytes.includes('COMMIT')) return;
      held = link;
      link.set('toClient', { hold: true });
    };
    const body = { account: partner.account, amount_kobo: 700, destination: 'wallet' };
    const starting = post('/v1/withdrawals', body);
    const link = await eventually(() => held ?? assert.fail('nothing was stored yet'));
    proxy.onBytes = undefined;
    await begin({ account: partner.account }, [WITHDRAW]);
    await eventually(async () => assert.equal((await scrape(other.opsPort)).value('marina_stops_open'), 1));
    link.set('toClient', {});
    const answer = await starting;
    const { error } = (await answer.json()) as { error: { code: string } };
    assert.deepEqual([answer.status, error.code], [503, 'withdrawal_not_sent']);
    const kept = await gateway.rest('GET', answer.headers.get('location') ?? '', { key: partner.key });
    assert.equal(kept.body.state, 'refused');
    assert.match(kept.body.reason, /^It was stopped before it was sent/);
    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    const sent = messages.filter(
      ({ call, clientOrderId }) => call === Call.SUBMIT_WITHDRAWAL && clientOrderId === kept.body.id,
    );
    assert.deepEqual(sent, []);
  });

  it('a stop holds through a restart of the gateway', async () => {
    await begin({ partnerId: partner.id }, [APPLY]);
    const again = await startApp(readConfig(gateway.variables), silent);
    try {
      const answer = await fetch(`http://127.0.0.1:${again.restPort}/v1/applications`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${partner.key}`, 'content-type': 'application/json' },
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify(goodApplication),
      });
      assert.equal(answer.status, 503);
    } finally {
      await again.stop();
    }
  });

  describe('a stop is refused', () => {
    const refusals: [string, () => Parameters<typeof begin>, status, string][] = [
      ['without a target', () => [{}, [BUY]], status.INVALID_ARGUMENT, 'partner_id'],
      [
        'of a partner and a symbol',
        () => [{ partnerId: partner.id, symbol: 'GTCO' }, [BUY]],
        status.INVALID_ARGUMENT,
        'partner_id',
      ],
      ['without actions', () => [{ everything: true }, []], status.INVALID_ARGUMENT, 'actions'],
      ['with an action twice', () => [{ everything: true }, [BUY, BUY]], status.INVALID_ARGUMENT, 'actions'],
      ['with no action', () => [{ everything: true }, [0]], status.INVALID_ARGUMENT, 'actions'],
      [
        'of applications of an account',
        () => [{ account: partner.account }, [APPLY]],
        status.INVALID_ARGUMENT,
        'actions',
      ],
      ['of withdrawals of a symbol', () => [{ symbol: 'GTCO' }, [WITHDRAW]], status.INVALID_ARGUMENT, 'actions'],
      ['of a symbol in small letters', () => [{ symbol: 'gtco' }, [BUY]], status.INVALID_ARGUMENT, 'symbol'],
      ['that ends now', () => [{ symbol: 'GTCO' }, [BUY], Date.now()], status.INVALID_ARGUMENT, 'ends_at'],
      [
        'that ends in 401 days',
        () => [{ symbol: 'GTCO' }, [BUY], Date.now() + 402 * 86_400_000],
        status.INVALID_ARGUMENT,
        'ends_at',
      ],
      [
        'of a partner that does not exist',
        () => [{ partnerId: `par_${'a'.repeat(20)}` }, [BUY]],
        status.NOT_FOUND,
        'partner',
      ],
      ['of an account that no partner has', () => [{ account: 'NOBODY' }, [BUY]], status.NOT_FOUND, 'account'],
    ];
    for (const [which, request, code, says] of refusals) {
      it(`if it is ${which}`, async () => {
        await assert.rejects(begin(...request()), (error: { code: status; message: string }) => {
          assert.deepEqual([error.code, error.message.includes(says)], [code, true], error.message);
          return true;
        });
        assert.deepEqual((await admin.trading.listStops({}, admin.options)).stops, []);
      });
    }

    it('a stop is refused if 100 of the same operator are in force, or 200 in all', async () => {
      for (const from of [0, 100]) {
        for (let count = from; count < from + 100; count += 1) await begin({ symbol: `S${count}` }, [BUY]);
        for (const name of ['TESTER', 'another']) {
          // Names that differ in capitals only are one person's.
          await assert.rejects(begin({ symbol: 'S200' }, [BUY]), { code: status.RESOURCE_EXHAUSTED });
          await gateway.database.write(statement('UPDATE stops SET started_by = ?', name));
        }
      }
      await assert.rejects(begin({ symbol: 'S200' }, [BUY]), { code: status.RESOURCE_EXHAUSTED });
      const page = await admin.trading.listStops({ limit: 150 }, admin.options);
      const rest = await admin.trading.listStops({ limit: 150, beforeId: page.stops.at(-1)?.id ?? '' }, admin.options);
      assert.deepEqual([page.hasMore, rest.stops.length, rest.hasMore], [true, 50, false]);
    });
  });
});
