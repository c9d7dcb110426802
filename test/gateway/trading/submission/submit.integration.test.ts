import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { AccountStatus } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { usedKobo } from '../../../support/usage.ts';

describe('placing orders', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  async function countOrders(partner: TestPartner): Promise<number> {
    const [row] = await gateway.database.read(
      statement('SELECT COUNT(*) AS count FROM orders WHERE partner_id = ?', partner.id),
    );
    return Number(row?.count);
  }

  async function submissions(partner: TestPartner): Promise<number> {
    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    return messages.filter(({ call, account }) => call === Call.SUBMIT_ORDER && account === partner.account).length;
  }

  async function get(partner: TestPartner, id: string) {
    return (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body;
  }

  it('twenty requests with one key at once lead to one order and one send', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => gateway.place(partner, { symbol: 'SIM-REST' }, key)),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(answers.filter(({ status }) => status === 200).length, 19);
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
    assert.equal(await countOrders(partner), 1);
    assert.equal(await submissions(partner), 1);
  });

  it('the same key with another order is refused, and case and defaults make no other order', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const first = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'day' }, key);
    const same = await gateway.place(partner, { symbol: 'sim-rest', account: partner.account.toLowerCase() }, key);
    assert.equal(same.status, 200);
    assert.equal(same.body.id, first.body.id);
    for (const change of [{ quantity: 101 }, { time_in_force: 'gtc' }, { client_reference: 'x' }, { side: 'sell' }]) {
      const other = await gateway.place(partner, { symbol: 'SIM-REST', ...change }, key);
      assert.equal(other.status, 409, JSON.stringify(change));
      assert.equal(other.body.error.code, 'duplicate_order');
      assert.equal(other.body.error.type, 'idempotency_error');
    }
    assert.equal(await countOrders(partner), 1);
  });

  it('one partner may use a key another partner used', async () => {
    const [one, two] = [await gateway.newPartner(), await gateway.newPartner()];
    const key = randomUUID();
    const first = await gateway.place(one, { symbol: 'SIM-REST' }, key);
    const second = await gateway.place(two, { symbol: 'SIM-REST' }, key);
    assert.equal(second.status, 201);
    assert.notEqual(second.body.id, first.body.id);
    assert.equal((await gateway.rest('GET', `/v1/orders/${first.body.id}`, { key: two.key })).status, 404);
    assert.equal((await gateway.rest('DELETE', `/v1/orders/${first.body.id}`, { key: two.key })).status, 404);
    assert.equal((await gateway.rest('GET', `/v1/orders/${first.body.id}/history`, { key: two.key })).status, 404);
  });

  const reasons: readonly [string, string][] = [
    ['SIM-FUNDS', 'insufficient_funds'],
    ['SIM-CLOSED', 'market_closed'],
    ['SIM-LOCKOUT', 'settlement_lockout'],
    ['SIM-ETFONLY', 'limit_orders_etf_only'],
    ['SIM-UNKNOWN', 'unknown_symbol'],
    ['SIM-HALTED', 'symbol_not_tradable'],
    ['SIM-NOACCOUNT', 'account_not_at_broker'],
    ['SIM-REJECT', 'rejected_by_exchange'],
  ];
  for (const [symbol, reason] of reasons) {
    it(`an exchange that rejects with ${reason} is quoted, the count given back, and the replay says it again`, async () => {
      const partner = await gateway.newPartner();
      const key = randomUUID();
      for (const tries of [1, 2]) {
        const answer = await gateway.place(partner, { symbol }, key);
        assert.equal(answer.status, 422, `try ${tries}: ${answer.text}`);
        assert.equal(answer.body.error.code, 'order_rejected');
        assert.equal(answer.body.error.type, 'order_error');
        assert.equal(answer.body.error.reject_reason, reason);
        const order = await get(partner, answer.headers.get('location')?.split('/').at(-1) ?? '');
        assert.equal(order.state, 'rejected');
        assert.equal(order.reject_reason, reason);
        assert.equal(typeof order.reason, 'string');
      }
      assert.equal(await submissions(partner), 1);
      assert.equal(await usedKobo(gateway, partner), '0');
    });
  }

  it('a refusal before anything is stored leaves the key free', async () => {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 100_000n } });
    const key = randomUUID();
    const tries: readonly [Record<string, unknown>, number, string][] = [
      [{ symbol: 'SIM-REST', account: 'NOBODYS' }, 422, 'unknown_account'],
      [{ symbol: 'NOSUCHSYMBOL' }, 422, 'unknown_symbol'],
      [{ symbol: 'SIM-REST', quantity: 101 }, 422, 'limit_exceeded'],
    ];
    for (const [order, status, code] of tries) {
      const answer = await gateway.place(partner, order, key);
      assert.equal(answer.status, status, answer.text);
      assert.equal(answer.body.error.code, code);
      assert.equal(answer.headers.get('location'), null);
    }
    assert.equal(await countOrders(partner), 0);
    assert.equal(await submissions(partner), 0);
    const placed = await gateway.place(partner, { symbol: 'SIM-REST' }, key);
    assert.equal(placed.status, 201, placed.text);
  });

  it('an account the broker does not have, or locks, takes no orders', async () => {
    const partner = await gateway.newPartner({ accounts: 2 });
    const [gone = '', locked = ''] = partner.accounts;
    await gateway.controls.setAccount({ account: gone, status: AccountStatus.NOT_AT_BROKER }, callTimeout);
    await gateway.controls.setAccount({ account: locked, status: AccountStatus.SETTLEMENT_LOCKOUT }, callTimeout);
    const first = await gateway.place(partner, { symbol: 'SIM-REST', account: gone });
    assert.deepEqual([first.status, first.body.error.code], [422, 'account_not_at_broker']);
    const second = await gateway.place(partner, { symbol: 'SIM-REST', account: locked });
    assert.deepEqual([second.status, second.body.error.code], [422, 'settlement_lockout']);
    assert.equal(await countOrders(partner), 0);
  });

  it('a broker that cannot be asked stores nothing', async () => {
    const partner = await gateway.newPartner();
    await gateway.controls.injectFault(
      { call: Call.GET_TRADING_CONTEXT, account: partner.account, fault: WireFault.HANG },
      callTimeout,
    );
    const answer = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'exchange_unavailable']);
    assert.equal(answer.headers.get('retry-after'), '5');
    assert.equal(await countOrders(partner), 0);
  });

  it('the day limit is exact when many orders race for its last kobo', async () => {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 1_000_000n } });
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => gateway.place(partner, { symbol: 'SIM-REST', quantity: 100 })),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 10);
    const refused = answers.filter(({ status }) => status !== 201);
    for (const { status, body } of refused) assert.deepEqual([status, body.error.code], [422, 'limit_exceeded']);
    assert.match(refused[0]?.body.error.message, /1000000 kobo are used, 0 remain/);
    assert.equal(await usedKobo(gateway, partner), '1000000');
  });

  it('a market order and a limit sale count at the upper price of the day, a limit purchase at its own', async () => {
    const partner = await gateway.newPartner();
    await gateway.place(partner, { symbol: 'SIM-REST', quantity: 10, price_kobo: 950 });
    assert.equal(await usedKobo(gateway, partner), '9500');
    await gateway.place(partner, { symbol: 'SIM-REST', quantity: 10, price_kobo: 950, side: 'sell' });
    assert.equal(await usedKobo(gateway, partner), '20500'); // 10 × 1,100
    await gateway.place(partner, { symbol: 'SIM-REST', quantity: 10, price_kobo: undefined, type: 'market' });
    assert.equal(await usedKobo(gateway, partner), '31500');
  });

  it('an order like one whose fate is unknown is refused until that one is settled', async () => {
    const partner = await gateway.newPartner();
    const first = await gateway.place(partner, { symbol: 'SIM-HANG' });
    assert.equal(first.body.state, 'uncertain');
    const key = randomUUID();
    const similar = await gateway.place(partner, { symbol: 'SIM-HANG' }, key);
    assert.deepEqual([similar.status, similar.body.error.code], [409, 'similar_order_unresolved']);
    assert.equal(similar.headers.get('retry-after'), '1');
    const replay = await gateway.rest('GET', `/v1/orders/${first.body.id}`, { key: partner.key });
    assert.equal(replay.body.state, 'uncertain');
    await eventually(async () => assert.equal((await get(partner, first.body.id)).state, 'refused'), 15_000);
    const again = await gateway.place(partner, { symbol: 'SIM-HANG' }, key);
    assert.equal(again.status, 201, again.text);
  });

  it('a market order like one whose fate is unknown is refused too', async () => {
    const partner = await gateway.newPartner();
    const market = { symbol: 'SIM-HANG', type: 'market', price_kobo: undefined };
    const first = await gateway.place(partner, market);
    assert.equal(first.body.state, 'uncertain', first.text);
    const similar = await gateway.place(partner, market);
    assert.deepEqual(
      [similar.status, similar.body.error?.code],
      [409, 'similar_order_unresolved'],
      `a second market order next to an uncertain one is answered ${similar.status}: ${similar.text}`,
    );
    assert.equal(await submissions(partner), 1);
  });

  it('the history tells each step, in order, page by page', async () => {
    const partner = await gateway.newPartner();
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-PARTS' });
    await eventually(async () => assert.equal((await get(partner, placed.id)).state, 'filled'));
    const steps: { kind: string; sequence: number }[] = [];
    for (let cursor = ''; ; ) {
      const page = await gateway.rest('GET', `/v1/orders/${placed.id}/history?limit=2${cursor}`, { key: partner.key });
      assert.equal(page.status, 200, page.text);
      steps.push(...page.body.data);
      if (!page.body.has_more) break;
      cursor = `&cursor=${page.body.next_cursor}`;
    }
    assert.deepEqual(
      steps.map(({ sequence }) => sequence),
      steps.map((_, index) => index + 1),
    );
    assert.deepEqual(steps.map(({ kind }) => kind).sort(), ['report', 'report', 'report', 'report', 'sent', 'stored']);
  });

  it('a list is newest first, pages to its end while orders are added, and its filters hold', async () => {
    const partner = await gateway.newPartner({ accounts: 2 });
    const [one = '', two = ''] = partner.accounts;
    const ids: string[] = [];
    for (let count = 0; count < 7; count += 1) {
      const account = count % 2 === 0 ? one : two;
      const answer = await gateway.place(partner, { symbol: 'SIM-REST', account, client_reference: `r${count % 3}` });
      ids.unshift(answer.body.id);
    }
    const list = async (query: string) => (await gateway.rest('GET', `/v1/orders${query}`, { key: partner.key })).body;
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const page = await list(`?limit=3${cursor}`);
      seen.push(...page.data.map(({ id }: { id: string }) => id));
      await gateway.place(partner, { symbol: 'SIM-REST' }); // Added meanwhile: the pages do not shift.
      if (!page.has_more) {
        assert.equal(page.next_cursor, null);
        break;
      }
      cursor = `&cursor=${page.next_cursor}`;
    }
    assert.deepEqual(seen, ids);
    assert.equal((await list(`?account=${two.toLowerCase()}`)).data.length, 3);
    assert.equal((await list('?client_reference=r1')).data.length, 2);
    assert.equal((await list('?symbol=sim-rest&limit=100')).data.length, 10);
    assert.equal((await list('?symbol=OTHER')).data.length, 0);
    assert.equal((await list('?state=pending&limit=100')).data.length, 10);
    assert.equal((await list('?state=filled')).data.length, 0);
    assert.equal((await list('?updated_since=2020-01-01T00:00:00Z&limit=100')).data.length, 10);
    assert.equal((await list('?updated_since=2100-01-01T00:00:00Z')).data.length, 0);
    const [newest = {}] = await gateway.database.read(
      statement('SELECT MAX(updated_at) AS at FROM orders WHERE partner_id = ?', partner.id),
    );
    const changedAt = (newest.at as Date).getTime(); // Partners see it to the second.
    const since = async (ms: number) => (await list(`?updated_since=${new Date(ms).toISOString()}`)).data.length;
    assert.notEqual(await since(changedAt), 0, 'an order is listed since the instant at which it changed');
    assert.equal(await since(changedAt + 1), 0, 'and not since 1 ms after it');
  });

  it('an estimate passes on every digit and stores nothing', async () => {
    const partner = await gateway.newPartner();
    const estimate = (order: Record<string, unknown>) =>
      gateway.rest('POST', '/v1/orders/estimate', {
        key: partner.key,
        body: {
          account: partner.account,
          side: 'buy',
          symbol: 'SIM-REST',
          quantity: 10_000,
          type: 'limit',
          price_kobo: 1000,
          ...order,
        },
      });
    const buy = await estimate({});
    assert.equal(buy.status, 200, buy.text);
    assert.equal(buy.body.object, 'order_estimate');
    assert.equal(buy.body.amount_kobo, 10_000_000);
    assert.equal(buy.body.total_kobo, 10_185_775); // ₦100,000 and charges of ₦1,857.75
    const sell = await estimate({ side: 'sell' });
    assert.equal(sell.body.total_kobo, 9_781_975); // ₦100,000 less charges of ₦2,180.25
    const market = await estimate({ type: 'market', price_kobo: null });
    assert.equal(market.status, 200, market.text);
    assert.equal(typeof market.body.price_kobo, 'number');
    const dear = { symbol: 'DEARCO', name: 'Dear Co', lastPriceKobo: 1_000_000_000n };
    await gateway.controls.setInstrument({ instrument: dear }, callTimeout);
    const huge = await estimate({ symbol: dear.symbol, quantity: 100_000_000, price_kobo: 1_000_000_000 });
    assert.match(huge.text, /"amount_kobo":100000000000000000,/);
    assert.equal(await countOrders(partner), 0);
    assert.equal(await usedKobo(gateway, partner), '0');
    const unknown = await estimate({ symbol: 'NOSUCH' });
    assert.deepEqual([unknown.status, unknown.body.error.code], [422, 'unknown_symbol']);
    await gateway.controls.injectFault(
      { call: Call.ESTIMATE_ORDER, account: partner.account, fault: WireFault.NONSENSE },
      callTimeout,
    );
    const nonsense = await estimate({});
    assert.deepEqual([nonsense.status, nonsense.body.error.code], [502, 'exchange_error']);
  });

  it('a pause stops new orders, and replays, cancels, estimates and reads go on', async () => {
    const own = await startGateway();
    const admin = adminClient(own.app.adminPort);
    try {
      const partner = await own.newPartner();
      const key = randomUUID();
      const placed = await own.place(partner, { symbol: 'SIM-REST' }, key);
      assert.deepEqual((await admin.trading.pauseTrading({ reason: 'test' }, admin.options)).changed, true);
      assert.deepEqual((await admin.trading.pauseTrading({ reason: 'test' }, admin.options)).changed, false);
      const paused = await own.place(partner, { symbol: 'SIM-REST' });
      assert.deepEqual([paused.status, paused.body.error.code], [503, 'trading_paused']);
      assert.equal(paused.headers.get('retry-after'), '30');
      assert.equal((await own.place(partner, { symbol: 'SIM-REST' }, key)).status, 200);
      const estimate = { account: partner.account, side: 'buy', symbol: 'SIM-REST', quantity: 1, type: 'market' };
      assert.equal((await own.rest('POST', '/v1/orders/estimate', { key: partner.key, body: estimate })).status, 200);
      assert.equal((await own.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key })).status, 200);
      await admin.trading.resumeTrading({ reason: 'test' }, admin.options);
      assert.equal((await own.place(partner, { symbol: 'SIM-REST' })).status, 201);
      const audit = await own.database.read(statement('SELECT operator, action FROM audit_entries ORDER BY id'));
      assert.deepEqual(
        audit.map(({ operator, action }) => [operator, action]),
        [
          ['tester', 'Trading.PauseTrading'],
          ['tester', 'Trading.ResumeTrading'],
        ],
      );
    } finally {
      admin.close();
      await own.stop();
    }
  });
});
