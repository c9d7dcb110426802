import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Side } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';

const dayMs = 86_400_000;

interface Booked {
  readonly amount_kobo: number;
  readonly balance_kobo: number;
  readonly [member: string]: unknown;
}

describe('a partner', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  const get = ({ key }: TestPartner, path: string) => gateway.rest('GET', path, { key });
  const post = ({ key }: TestPartner, path: string, body: object) => gateway.rest('POST', path, { key, body });

  /** All transactions, page by page, newest first. */
  async function transactionsOf(partner: TestPartner, query = 'limit=100'): Promise<Booked[]> {
    const path = `/v1/accounts/${partner.account}/transactions?${query}`;
    const items: Booked[] = [];
    for (let cursor: string | null = null, more = true; more; ) {
      const answer = await get(partner, cursor === null ? path : `${path}&cursor=${cursor}`);
      assert.equal(answer.status, 200, answer.text);
      items.push(...answer.body.data);
      cursor = answer.body.next_cursor;
      more = answer.body.has_more;
    }
    return items;
  }

  const addTrades = ({ account }: TestPartner, count: number, side = Side.BUY, days = 0) =>
    gateway.controls.addTrades(
      {
        ...{ account, symbol: 'GTCO', side, quantity: 10n, priceKobo: 4_500n, count },
        executedAt: timestampFromMs(Date.now() - days * dayMs),
      },
      callTimeout,
    );

  async function untilFilled(partner: TestPartner, id: string): Promise<void> {
    await eventually(async () => assert.equal((await get(partner, `/v1/orders/${id}`)).body.state, 'filled'));
  }

  it('reads one account as it is in the list, and none of another partner', async () => {
    const partner = await gateway.newPartner();
    const other = await gateway.newPartner();
    const { body: list } = await get(partner, '/v1/accounts');
    const { status, body } = await get(partner, `/v1/accounts/${partner.account.toLowerCase()}`);
    assert.deepEqual([status, body], [200, list.data[0]]);
    for (const path of ['', '/status', '/transactions']) {
      const refused = await get(partner, `/v1/accounts/${other.account}${path}`);
      assert.deepEqual([refused.status, refused.body.error.code], [404, 'account_not_found']);
    }
  });

  it('sees what changed the money of an account, with the order, trade and allocation that did it', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 1_000_000n);
    const { body: allocation } = await gateway.allocate(partner, { amount_kobo: 500_000 });
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-FILL', quantity: 100, price_kobo: 1_000 });
    await untilFilled(partner, order.id);
    const [charge, buy, allocated, ...others] = await transactionsOf(partner);
    assert.deepEqual(others, []);
    const { body: trades } = await get(partner, `/v1/accounts/${partner.account}/trades`);
    const [trade] = trades.data;
    const today = lagosDay(Date.parse(trade.executed_at));
    const none = { contract_note: null, withdrawal: null, reverses: null };
    const bought = { symbol: 'SIM-FILL', order: order.id, trade: trade.id, allocation: null, ...none };
    assert.deepEqual(buy, {
      ...{ object: 'account_transaction', id: buy?.id, account: partner.account, type: 'buy' },
      ...{ amount_kobo: -100_000, balance_kobo: 400_000, quantity: 100, ...bought },
      ...{ date: today, settlement_date: trade.settlement_date, booked_at: buy?.booked_at },
    });
    assert.deepEqual(charge, {
      ...{ ...buy, id: charge?.id, type: 'charge', quantity: null, booked_at: charge?.booked_at },
      ...{ amount_kobo: charge?.amount_kobo, balance_kobo: 400_000 + Number(charge?.amount_kobo) },
    });
    assert.ok(Number(charge?.amount_kobo) < 0);
    assert.deepEqual(allocated, {
      ...{ object: 'account_transaction', id: allocated?.id, account: partner.account, type: 'allocation' },
      ...{ amount_kobo: 500_000, balance_kobo: 500_000, symbol: null, quantity: null, order: null, trade: null },
      ...{ ...none, allocation: allocation.id, date: today, settlement_date: today },
      booked_at: allocated?.booked_at,
    });
  });

  it('finds that the transactions add up, and with the balance of the day', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    await addTrades(partner, 3, Side.BUY, 4);
    await post(partner, '/v1/sandbox/funds', { account, cash_kobo: 900_000 });
    await addTrades(partner, 5);
    await addTrades(partner, 2, Side.SELL);
    const all = await transactionsOf(partner, 'limit=3');
    assert.equal(all.length, 21);
    for (const [at, newer] of all.entries()) {
      const older = all[at + 1]?.balance_kobo ?? 0;
      assert.equal(newer.balance_kobo - newer.amount_kobo, older);
    }
    const { body: balance } = await get(partner, `/v1/accounts/${account}/balance`);
    const today = lagosDay(Date.parse(balance.as_of));
    const ofToday = await transactionsOf(partner, `from=${today}`);
    const moved = ofToday.reduce((sum, { amount_kobo }) => sum + amount_kobo, 0);
    const [newest] = all;
    assert.ok(balance.opening_kobo < 0, 'trades of days ago were booked then');
    assert.equal(balance.opening_kobo + moved, newest?.balance_kobo);
    assert.equal(balance.settled_kobo + balance.unsettled_kobo, newest?.balance_kobo);
    assert.ok(balance.withdrawable_kobo < balance.settled_kobo, 'what was bought is not to be withdrawn');
    const charges = await transactionsOf(partner, 'type=charge&limit=4');
    assert.deepEqual(
      charges,
      all.filter(({ type }) => type === 'charge'),
    );
  });

  it('sees money, shares, trades and contract notes settle when it lets them', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    await post(partner, '/v1/sandbox/funds', { account, cash_kobo: 1_000_000 });
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-FILL', quantity: 100, price_kobo: 1_000 });
    await untilFilled(partner, order.id);
    const read = async () => {
      const [balance, positions, trades, [newest]] = await Promise.all([
        get(partner, `/v1/accounts/${account}/balance`),
        get(partner, `/v1/accounts/${account}/positions`),
        get(partner, `/v1/accounts/${account}/trades`),
        transactionsOf(partner),
      ]);
      return { balance: balance.body, position: positions.body.data[0], trade: trades.body.data[0], newest };
    };
    const before = await read();
    assert.ok(before.balance.unsettled_kobo < -100_000);
    assert.deepEqual([before.balance.settled_kobo, before.trade.settled], [1_000_000, false]);
    assert.deepEqual([before.position.settled_quantity, before.position.available_quantity], [0, 0]);
    const settled = await post(partner, '/v1/sandbox/settlement', { account });
    assert.deepEqual([settled.status, settled.body], [200, { object: 'sandbox_settlement', account }]);
    const afterwards = await read();
    const { balance, newest, trade } = afterwards;
    assert.deepEqual([balance.unsettled_kobo, trade.settled], [0, true]);
    assert.equal(balance.settled_kobo, 1_000_000 + before.balance.unsettled_kobo);
    assert.equal(balance.withdrawable_kobo, balance.settled_kobo);
    assert.deepEqual([afterwards.position.settled_quantity, afterwards.position.available_quantity], [100, 100]);
    const { body: notes } = await get(partner, `/v1/accounts/${account}/contract-notes`);
    assert.deepEqual(
      [newest?.contract_note, newest?.settlement_date],
      [notes.data[0].ticket, notes.data[0].transaction_date],
    );
  });

  it('is refused a range of more than 1,000 transactions, and lets a walk that began before go on', async () => {
    const partner = await gateway.newPartner();
    const path = `/v1/accounts/${partner.account}/transactions?limit=100`;
    await addTrades(partner, 500);
    const first = await get(partner, path);
    assert.deepEqual([first.status, first.body.has_more], [200, true], first.text);
    await addTrades(partner, 1);
    const refused = await get(partner, path);
    assert.deepEqual([refused.status, refused.body.error.param], [400, 'from']);
    const charges = await get(partner, `${path}&type=charge`);
    assert.equal(charges.status, 200, 'only the transactions of the type count');
    const next = await get(partner, `${path}&cursor=${first.body.next_cursor}`);
    assert.equal(next.status, 200, next.text);
    const [last] = first.body.data.slice(-1);
    assert.equal(next.body.data[0].balance_kobo, last.balance_kobo - last.amount_kobo, 'without a gap');
    const other = await get(partner, `${path}&type=charge&cursor=${first.body.next_cursor}`);
    assert.deepEqual([other.status, other.body.error.param], [400, 'cursor']);
  });

  it('sees what an account may do, and is refused what a restriction forbids', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    await gateway.fund(partner, 1_000_000n);
    const path = `/v1/accounts/${account}/status`;
    const { body: active } = await get(partner, path);
    assert.deepEqual(active, {
      ...{ object: 'account_status', account, state: 'active', restrictions: [] },
      ...{ chn: active.chn, as_of: active.as_of },
    });
    assert.match(active.chn, /^C\d{10}$/);
    const state = { account, state: 'restricted', code: 'kyc_expired', forbids: ['buy', 'fund'] };
    const set = await post(partner, '/v1/sandbox/accounts/state', state);
    assert.deepEqual([set.status, set.body], [200, { object: 'sandbox_account_state', ...state }]);
    const { body: restricted } = await get(partner, path);
    const [restriction] = restricted.restrictions;
    assert.match(restriction.since, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.deepEqual(
      [restricted.state, restricted.restrictions],
      ['restricted', [{ code: 'kyc_expired', forbids: ['buy', 'fund'], since: restriction.since }]],
    );
    const order = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.deepEqual([order.status, order.body.error.reject_reason], [422, 'rejected_by_exchange']);
    const allocation = await gateway.allocate(partner, {});
    assert.deepEqual([allocation.status, allocation.body.error.reject_reason], [422, 'account_restricted']);
    await post(partner, '/v1/sandbox/accounts/state', { account, state: 'closed' });
    assert.equal((await get(partner, path)).body.state, 'closed');
    await post(partner, '/v1/sandbox/accounts/state', { account, state: 'active' });
    assert.equal((await gateway.place(partner, { symbol: 'SIM-REST' })).status, 201);
  });

  it('is refused a state of an account that makes no sense, and one of an account of another partner', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    for (const [body, code, param] of [
      [{ account, state: 'restricted' }, 'missing_required_field', 'code'],
      [{ account, state: 'active', code: 'other' }, 'invalid_request', 'code'],
      [{ account, state: 'closed', forbids: ['buy'] }, 'invalid_request', 'forbids'],
      [{ account, state: 'restricted', code: 'other', forbids: ['buy', 'buy'] }, 'invalid_request', 'forbids'],
      [{ account: 'NOBODYS', state: 'active' }, 'unknown_account', 'account'],
    ] as const) {
      const answer = await post(partner, '/v1/sandbox/accounts/state', body);
      assert.deepEqual([answer.body.error?.code, answer.body.error?.param], [code, param], answer.text);
    }
    const settled = await post(partner, '/v1/sandbox/settlement', { account: 'NOBODYS' });
    assert.equal(settled.body.error.code, 'unknown_account');
  });
});

describe('a broker of an older version', () => {
  it('has neither transactions nor a status, is not asked for them, and its other reads work', async () => {
    const gateway = await startGateway();
    try {
      const partner = await gateway.newPartner();
      const changed = { honoursNotAfter: true, accountTransactions: false, accountStatus: false };
      await gateway.controls.setCapabilities(changed, callTimeout);
      await gateway.controls.getReads({}, callTimeout);
      for (const path of ['status', 'transactions']) {
        const url = `/v1/accounts/${partner.account}/${path}`;
        const refused = await gateway.rest('GET', url, { key: partner.key });
        assert.deepEqual([refused.status, refused.body.error.code], [403, 'feature_not_enabled']);
      }
      assert.equal((await gateway.controls.getReads({}, callTimeout)).most, 0, 'the broker was asked for a record');
      const balance = await gateway.rest('GET', `/v1/accounts/${partner.account}/balance`, { key: partner.key });
      assert.equal(balance.status, 200, balance.text);
      const back = { honoursNotAfter: true, accountTransactions: true, accountStatus: true };
      await gateway.controls.setCapabilities(back, callTimeout);
      const status = await gateway.rest('GET', `/v1/accounts/${partner.account}/status`, { key: partner.key });
      assert.equal(status.status, 200, status.text);
    } finally {
      await gateway.stop();
    }
  });
});
