import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MarketSession } from '../../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { linkAccount } from '../../../../src/sandbox/provision.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';

const dayMs = 86_400_000;
const daysAgo = (days: number) => Date.now() - days * dayMs;

describe('the records of an account', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  const get = ({ key }: TestPartner, path: string) => gateway.rest('GET', path, { key });

  const addTrades = ({ account }: TestPartner, count: number, days = 3, stepMs = 0, symbol = 'GTCO') =>
    gateway.controls.addTrades(
      {
        account,
        symbol,
        side: Side.BUY,
        quantity: 10n,
        priceKobo: 4_500n,
        executedAt: timestampFromMs(daysAgo(days)),
        stepMs,
        count,
      },
      callTimeout,
    );

  /** All items of a list, page by page, with something done between the first two pages. */
  async function walk(partner: TestPartner, path: string, between?: () => Promise<unknown>) {
    const items: Record<string, unknown>[] = [];
    for (let cursor: string | null = null, more = true; more; ) {
      const answer = await get(partner, cursor === null ? path : `${path}&cursor=${cursor}`);
      assert.equal(answer.status, 200, answer.text);
      if (cursor === null) await between?.();
      assert.equal(answer.body.next_cursor === null, !answer.body.has_more);
      items.push(...answer.body.data);
      cursor = answer.body.next_cursor;
      more = answer.body.has_more;
    }
    return items;
  }

  it('lists the accounts of the partner alone, newest first, page by page', async () => {
    const partner = await gateway.newPartner({ accounts: 5 });
    await gateway.newPartner({ accounts: 2 });
    const all = await walk(partner, '/v1/accounts?limit=2', () =>
      linkAccount(gateway.database, { partnerId: partner.id, account: `${partner.account}X` }),
    );
    assert.deepEqual(all.map(({ account }) => account).sort(), [...partner.accounts].sort());
    const { body } = await get(partner, '/v1/accounts?limit=1');
    assert.deepEqual(body.data, [
      { object: 'account', account: `${partner.account}X`, application: null, created_at: body.data[0].created_at },
    ]);
    assert.match(body.data[0].created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  it('shows the balance as the broker has it, whether the account is written in upper or lower case', async () => {
    const partner = await gateway.newPartner();
    await gateway.controls.setCash({ account: partner.account, cashKobo: -250n }, callTimeout);
    const { status, text, body } = await get(partner, `/v1/accounts/${partner.account.toLowerCase()}/balance`);
    assert.equal(status, 200, text);
    assert.match(body.as_of, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(
      text,
      `{"object":"balance","account":"${partner.account}","currency":"NGN","opening_kobo":0,"pending_debits_kobo":0,"available_kobo":-250,"settled_kobo":-250,"unsettled_kobo":0,"withdrawable_kobo":0,"as_of":"${body.as_of}"}`,
    );
  });

  it('shows what an order of the partner came to: trade, position and what is to be paid', async () => {
    const partner = await gateway.newPartner();
    await gateway.controls.setCash({ account: partner.account, cashKobo: 10_000_000n }, callTimeout);
    const placed = await gateway.place(partner, { symbol: 'SIM-FILL', quantity: 100, price_kobo: 1000 });
    assert.equal(placed.status, 201, placed.text);
    const path = `/v1/accounts/${partner.account}`;
    const trades = await eventually(async () => {
      const { body } = await get(partner, `${path}/trades`);
      assert.equal(body.data.length, 1);
      return body;
    });
    const [trade] = trades.data;
    assert.deepEqual(trade, {
      object: 'trade',
      id: trade.id,
      order: placed.body.id,
      account: partner.account,
      symbol: 'SIM-FILL',
      side: 'buy',
      quantity: 100,
      price_kobo: trade.price_kobo,
      amount_kobo: 100 * trade.price_kobo,
      trade_date: lagosDay(Date.parse(trade.executed_at)),
      executed_at: trade.executed_at,
      settlement_date: trade.settlement_date,
      settled: false,
    });
    assert.ok(trade.settlement_date > trade.trade_date);
    const { body: positions } = await get(partner, `${path}/positions`);
    assert.deepEqual(positions.data, [
      {
        object: 'position',
        account: partner.account,
        symbol: 'SIM-FILL',
        name: positions.data[0].name,
        quantity: 100,
        average_cost_kobo_decimal: `${trade.price_kobo}.0`,
        price_kobo: positions.data[0].price_kobo,
        market_value_kobo: 100 * positions.data[0].price_kobo,
        settled_quantity: 0,
        available_quantity: 0,
      },
    ]);
    const { body: balance } = await get(partner, `${path}/balance`);
    assert.ok(balance.pending_debits_kobo > trade.amount_kobo, 'the charges are to be paid too');
    assert.equal(balance.available_kobo, 10_000_000 - balance.pending_debits_kobo);
    assert.deepEqual((await get(partner, `${path}/contract-notes`)).body.data, [], 'nothing is settled yet');
  });

  it('shows a settled trade as a contract note that adds up', async () => {
    const partner = await gateway.newPartner();
    await addTrades(partner, 1, 10);
    const { body } = await get(partner, `/v1/accounts/${partner.account}/contract-notes`);
    const [note] = body.data;
    assert.deepEqual(note, {
      object: 'contract_note',
      ticket: note.ticket,
      symbol: 'GTCO',
      name: note.name,
      side: 'buy',
      quantity: 10,
      price_kobo: 4_500,
      amount_kobo: 45_000,
      commission_kobo: 608,
      statutory_fees_kobo: 227,
      other_fees_kobo: 400,
      consideration_kobo: 45_000 + 608 + 227 + 400,
      trade_date: lagosDay(daysAgo(10)),
      transaction_date: note.transaction_date,
    });
    assert.ok(note.transaction_date > note.trade_date);
    const { body: balance } = await get(partner, `/v1/accounts/${partner.account}/balance`);
    assert.equal(balance.opening_kobo, -note.consideration_kobo);
    assert.equal(balance.pending_debits_kobo, 0);
  });

  it('pages positions to the end, by symbol, while more come', async () => {
    const partner = await gateway.newPartner();
    const symbols = ['ACCESSCORP', 'DANGCEM', 'GTCO', 'MTNN', 'ZENITHBANK'];
    for (const symbol of symbols) await addTrades(partner, 1, 3, 0, symbol);
    const path = `/v1/accounts/${partner.account}/positions?limit=2`;
    const items = await walk(partner, path, async () => {
      await addTrades(partner, 1, 3, 0, 'NESTLE');
      await addTrades(partner, 1, 3, 0, 'ACCESSCORP');
    });
    // One that comes behind the place that was reached is on a later page; none comes twice.
    assert.deepEqual(
      items.map(({ symbol }) => symbol),
      [...symbols, 'NESTLE'].sort(),
    );
  });

  for (const list of ['trades', 'contract-notes']) {
    it(`pages ${list} to the end, newest first, while more come`, async () => {
      const partner = await gateway.newPartner();
      await addTrades(partner, 30, 8);
      await addTrades(partner, 30, 9, 1_000);
      const path = `/v1/accounts/${partner.account}/${list}?limit=7`;
      const items = await walk(partner, path, () => addTrades(partner, 3, 7));
      const ids = items.map(({ id, ticket }) => String(id ?? ticket));
      assert.equal(ids.length, 60);
      assert.equal(new Set(ids).size, 60);
      const places = items.map((each) => `${each.executed_at ?? each.trade_date} ${each.id ?? each.ticket}`);
      assert.deepEqual(places, [...places].sort().reverse());
    });

    it(`answers 1,000 ${list} in a range, refuses 1,001, and lets a walk that began before go on`, async () => {
      const partner = await gateway.newPartner();
      await addTrades(partner, 1_000, 9);
      const path = `/v1/accounts/${partner.account}/${list}`;
      const passes = await get(partner, `${path}?limit=100`);
      assert.deepEqual([passes.status, passes.body.data.length, passes.body.has_more], [200, 100, true]);
      await addTrades(partner, 1, 9);
      const refused = await get(partner, path);
      assert.deepEqual(
        [refused.status, refused.body.error.code, refused.body.error.param],
        [400, 'invalid_request', 'from'],
      );
      const next = await get(partner, `${path}?limit=100&cursor=${passes.body.next_cursor}`);
      assert.deepEqual([next.status, next.body.data.length, next.body.has_more], [200, 100, true]);
      const later = await get(partner, `${path}?from=${lagosDay(daysAgo(8))}`);
      assert.deepEqual([later.status, later.body.data], [200, []]);
    });

    it(`takes ${list} from 30 days before the last day unless told otherwise, both days included`, async () => {
      const partner = await gateway.newPartner();
      const path = `/v1/accounts/${partner.account}/${list}`;
      for (const days of [60, 31, 30, 5]) await addTrades(partner, 1, days);
      const dates = async (query: string) =>
        (await get(partner, `${path}${query}`)).body.data.map((each: { trade_date: string }) => each.trade_date);
      const on = (days: number) => lagosDay(daysAgo(days));
      assert.deepEqual(await dates(''), [on(5), on(30)]);
      assert.deepEqual(await dates(`?to=${on(30)}`), [on(30), on(31), on(60)]);
      assert.deepEqual(await dates(`?from=${on(31)}&to=${on(30)}`), [on(30), on(31)]);
    });

    it(`refuses ${list} of days that cannot be, and cursors of another list or range`, async () => {
      const partner = await gateway.newPartner();
      await addTrades(partner, 3, 9);
      const path = `/v1/accounts/${partner.account}/${list}`;
      const tomorrow = lagosDay(daysAgo(-1));
      const { body } = await get(partner, `${path}?limit=1`);
      const other = list === 'trades' ? 'contract-notes' : 'trades';
      for (const [query, param] of [
        ['?from=', 'from'],
        ['?from=yesterday', 'from'],
        ['?from=2026-02-30', 'from'],
        ['?from=2026-13-01&to=2026-99-99', 'from'],
        ['?from=2026-1-1', 'from'],
        [`?from=${tomorrow}`, 'from'],
        ['?from=2026-01-03&to=2026-01-02', 'from'],
        [`?from=${lagosDay(daysAgo(1))}&to=2026-02-30`, 'to'],
        ['?to=2026-06-31', 'to'],
        [`?to=${tomorrow}`, 'to'],
        ['?limit=0', 'limit'],
        ['?limit=101', 'limit'],
        ['?symbol=GTCO', 'symbol'],
        ['?from=2026-01-01&from=2026-01-01', 'from'],
        ['?cursor=x', 'cursor'],
        [`?from=${lagosDay(daysAgo(20))}&cursor=${body.next_cursor}`, 'cursor'],
      ] as const) {
        const answer = await get(partner, path + query);
        assert.deepEqual([query, answer.status, answer.body.error?.param], [query, 400, param]);
      }
      const foreign = await get(partner, `/v1/accounts/${partner.account}/${other}?cursor=${body.next_cursor}`);
      assert.deepEqual([foreign.status, foreign.body.error.param], [400, 'cursor']);
    });
  }

  it('are of no account that is not the partner’s, does not exist or cannot be', async () => {
    const partner = await gateway.newPartner();
    const other = await gateway.newPartner();
    const blind = await gateway.newPartner({ scopes: [Scope.TRADE] });
    for (const read of ['balance', 'positions', 'trades', 'contract-notes']) {
      for (const account of [other.account, 'NOSUCHACCOUNT', 'A'.repeat(65), 'A-B', 'A%20B', 'Ä']) {
        const answer = await get(partner, `/v1/accounts/${encodeURI(account).replaceAll('%25', '%')}/${read}`);
        assert.deepEqual([account, answer.status, answer.body.error?.code], [account, 404, 'account_not_found']);
      }
      const refused = await get(blind, `/v1/accounts/${blind.account}/${read}`);
      assert.equal(refused.body.error.code, 'insufficient_scope');
    }
    await linkAccount(gateway.database, { partnerId: partner.id, account: `${partner.account}GONE` });
    const gone = await get(partner, `/v1/accounts/${partner.account}GONE/balance`);
    assert.deepEqual([gone.status, gone.body.error.code], [422, 'account_not_at_broker']);
    assert.equal((await get(partner, `/v1/accounts/${partner.account}/balance?limit=1`)).body.error.param, 'limit');
  });

  it('come with the reference lists, whole and without parameters', async () => {
    const partner = await gateway.newPartner();
    const { body: states } = await get(partner, '/v1/reference/states');
    assert.deepEqual([states.object, states.has_more, states.next_cursor], ['list', false, null]);
    assert.equal(states.data.length, 37);
    assert.equal(states.data[0].object, 'state');
    const state = states.data.find(({ name }: { name: string }) => name === 'Lagos');
    const { body: lgas } = await get(partner, `/v1/reference/states/${state.code.toLowerCase()}/lgas`);
    assert.deepEqual([lgas.object, lgas.has_more, lgas.next_cursor, lgas.data.length], ['list', false, null, 20]);
    assert.deepEqual(Object.keys(lgas.data[0]), ['object', 'code', 'name']);
    assert.equal(lgas.data[0].object, 'bank');
    for (const path of ['/v1/reference/states?limit=1', `/v1/reference/states/${state.code}/lgas?limit=1`]) {
      assert.deepEqual((await get(partner, path)).body.error.param, 'limit');
    }
    for (const code of ['NOWHERE', 'A'.repeat(33), 'A_B']) {
      const answer = await get(partner, `/v1/reference/states/${code}/lgas`);
      assert.deepEqual([code, answer.status, answer.body.error.code], [code, 404, 'not_found']);
    }
  });
});

describe('the session of the exchange', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  it('is shown as the broker says it', async () => {
    const { key } = await gateway.newPartner();
    const market = () => gateway.rest('GET', '/v1/market', { key });
    assert.equal(
      (await market()).text,
      '{"object":"market","session":"open","next_open_at":null,"next_close_at":null,"trading_paused":false}',
    );
    const nextOpenAt = timestampFromMs(Date.UTC(2030, 0, 2, 9));
    const nextCloseAt = timestampFromMs(Date.UTC(2030, 0, 2, 13, 30));
    for (const session of [MarketSession.CLOSED, MarketSession.PAUSED, MarketSession.HALTED]) {
      await gateway.controls.setMarket({ market: { session, nextOpenAt, nextCloseAt } }, callTimeout);
      assert.deepEqual((await market()).body, {
        object: 'market',
        session: MarketSession[session]?.toLowerCase(),
        next_open_at: '2030-01-02T09:00:00Z',
        next_close_at: '2030-01-02T13:30:00Z',
        trading_paused: false,
      });
    }
  });
});
