import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';
import { patient } from '../../../support/patience.ts';

/** Longer than a list of instruments is used. */
const stalenessMs = patient(15_000);

interface Listed {
  readonly symbol: string;
  readonly kind: string;
  readonly board: string;
  readonly lot_size: number;
  readonly tick_sizes: readonly { readonly from_price_kobo: number; readonly tick_size_kobo: number }[];
  readonly lower_price_kobo: number;
  readonly upper_price_kobo: number;
  readonly last_price_kobo: number;
  readonly trading_status: string;
}

describe('the instruments', () => {
  let gateway: TestGateway;
  let key: string;
  before(async () => {
    gateway = await startGateway();
    ({ key } = await gateway.newPartner());
  });
  after(() => gateway.stop());

  const get = async (path: string) => (await gateway.rest('GET', path, { key })).body;

  async function all(query = ''): Promise<Listed[]> {
    const found: Listed[] = [];
    for (let cursor = ''; ; ) {
      const page = await get(`/v1/instruments?limit=17${query}${cursor}`);
      assert.ok(page.data.length === 17 || !page.has_more);
      found.push(...page.data);
      if (!page.has_more) return found;
      cursor = `&cursor=${page.next_cursor}`;
    }
  }

  it('are listed by symbol over pages, each once, with the members the contract names', async () => {
    const found = await all();
    const symbols = found.map(({ symbol }) => symbol);
    assert.deepEqual(symbols, [...new Set(symbols)].sort());
    assert.ok(symbols.includes('ZENITHBANK') && symbols.includes('SIM-REST'));
    const { last_price_kobo: last, ...fund } = found.find(({ symbol }) => symbol === 'SIM-ETFONLY') ?? assert.fail();
    assert.equal(last, 1_000);
    assert.deepEqual(fund, {
      object: 'instrument',
      symbol: 'SIM-ETFONLY',
      name: 'Magic: Rejected: a fund takes limit orders only.',
      kind: 'etf',
      board: 'etf',
      lot_size: 1,
      tick_sizes: [{ from_price_kobo: 500, tick_size_kobo: 5 }],
      lower_price_kobo: 900,
      upper_price_kobo: 1_100,
      trading_status: 'trading',
    });
  });

  it('state the tick of every price of the day', async () => {
    for (const each of await all()) {
      const { tick_sizes: ticks, lower_price_kobo: lower, upper_price_kobo: upper } = each;
      assert.ok(ticks[0] !== undefined && ticks[0].from_price_kobo <= lower, each.symbol);
      for (const price of [lower, upper]) {
        const tick = ticks.findLast(({ from_price_kobo: from }) => from <= price);
        assert.equal(price % (tick?.tick_size_kobo ?? 0), 0, `${each.symbol} at ${price}`);
      }
    }
  });

  it('are filtered by kind, board and the beginning of the symbol', async () => {
    const symbolsOf = async (query: string) => (await all(query)).map(({ symbol }) => symbol);
    assert.deepEqual(await symbolsOf('&symbol_prefix=zen'), ['ZENITHBANK']);
    assert.deepEqual(await symbolsOf('&symbol_prefix=ZENX'), []);
    const premium = await all('&board=premium');
    assert.ok(premium.length > 0 && premium.every(({ board, kind }) => board === 'premium' && kind === 'equity'));
    const funds = await all('&kind=etf');
    assert.ok(funds.length > 0 && funds.every(({ kind }) => kind === 'etf'));
    assert.deepEqual(await symbolsOf('&kind=etf&board=main'), []);
  });

  it('refuse a cursor of other filters', async () => {
    const { next_cursor: cursor } = await get('/v1/instruments?limit=1');
    const answer = await get(`/v1/instruments?limit=1&kind=etf&cursor=${cursor}`);
    assert.deepEqual([answer.error.code, answer.error.param], ['invalid_request', 'cursor']);
  });

  it('are found by symbol in any case, and an unknown or malformed symbol is not_found', async () => {
    assert.equal((await get('/v1/instruments/sim-fill')).symbol, 'SIM-FILL');
    for (const symbol of ['NOTHING', 'A_B', 'A'.repeat(21)]) {
      assert.equal((await get(`/v1/instruments/${symbol}`)).error.code, 'not_found', symbol);
    }
    assert.match((await get('/v1/instruments/NOTHING')).error.message, /no instrument with this symbol/);
  });

  it('give the prices with which an order is taken, and those beside them with which it is rejected', async () => {
    const partner = await gateway.newPartner();
    const found: Listed = await get('/v1/instruments/SIM-REST');
    const { lower_price_kobo: lower, upper_price_kobo: upper } = found;
    const tick = found.tick_sizes[0]?.tick_size_kobo ?? 0;
    for (const [price, state] of [
      [lower, 'pending'],
      [upper, 'pending'],
      [lower - tick, 'rejected'],
      [upper + tick, 'rejected'],
      [lower + 1, 'rejected'],
    ] as const) {
      const { status } = await gateway.place(partner, { symbol: 'SIM-REST', price_kobo: price });
      assert.equal(status, state === 'pending' ? 201 : 422, `at ${price}`);
    }
  });

  it('follow the exchange within seconds, and say why one does not trade', async () => {
    const twoTicks = { symbol: 'TWOTICKS', name: 'Two Ticks Plc', lastPriceKobo: 500n };
    await gateway.controls.setInstrument({ instrument: twoTicks, halted: true }, callTimeout);
    await eventually(async () => {
      const { lower_price_kobo: lower, upper_price_kobo: upper, ...found } = await get('/v1/instruments/twoticks');
      assert.deepEqual([lower, upper, found.trading_status], [450, 550, 'instrument_halted']);
      const ticks = [
        { from_price_kobo: 0, tick_size_kobo: 1 },
        { from_price_kobo: 500, tick_size_kobo: 5 },
      ];
      assert.deepEqual(found.tick_sizes, ticks, 'the tick changes within the band');
    }, stalenessMs);
    assert.equal((await get('/v1/instruments/UBA')).trading_status, 'trading');
  });

  it('are answered from the last read for a few seconds, also when the broker is away, and then no more', async () => {
    await get('/v1/instruments');
    const fault = WireFault.UNAVAILABLE_BEFORE;
    await gateway.controls.injectFault({ call: Call.LIST_INSTRUMENTS, fault, times: 10_000 }, callTimeout);
    const other = await gateway.newPartner();
    const began = performance.now();
    const answer = await gateway.rest('GET', '/v1/instruments/UBA', { key: other.key });
    // On a machine as slow as that, the list may have been too old.
    if (performance.now() - began < 2_000) assert.equal(answer.status, 200, 'another partner is answered too');
    await eventually(async () => {
      assert.equal((await get('/v1/instruments/UBA')).error?.code, 'exchange_unavailable');
    }, stalenessMs);
    await gateway.controls.clearDirectives({}, callTimeout);
    assert.equal((await get('/v1/instruments/UBA')).symbol, 'UBA', 'a failed read is not remembered');
  });

  it('delay an estimate by a second at most while the broker does not answer for them', async () => {
    const own = await startGateway({ MARINA_RECORDS_TIMEOUT_MS: `${Math.min(patient(5_000), 20_000)}` });
    try {
      const { key: ownKey, account } = await own.newPartner();
      const hangs = { call: Call.LIST_INSTRUMENTS, fault: WireFault.HANG, times: 100 };
      await own.controls.injectFault(hangs, callTimeout);
      const body = { account, side: 'buy', symbol: 'SIM-REST', quantity: 1, type: 'limit', price_kobo: 1_000 };
      const asked = Array.from({ length: 3 }, () => own.rest('POST', '/v1/orders/estimate', { key: ownKey, body }));
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      assert.deepEqual(statuses, [200, 200, 200]);
      const { value } = await scrape(own.app.opsPort);
      assert.equal(value('marina_broker_reads', { state: 'under_way' }), 1, 'the list is still being read');
    } finally {
      await own.stop();
    }
  });
});

describe('the calendar of the exchange', () => {
  let gateway: TestGateway;
  let key: string;
  before(async () => {
    gateway = await startGateway();
    ({ key } = await gateway.newPartner());
  });
  after(() => gateway.stop());

  const get = async (query = '') => (await gateway.rest('GET', `/v1/market/calendar${query}`, { key })).body;

  it('has the hours, holidays and settlement of the days asked for, over pages without a gap', async () => {
    const days: unknown[] = [];
    for (let cursor = ''; ; ) {
      const page = await get(`?from=2026-12-24&to=2026-12-29&limit=4${cursor}`);
      days.push(...page.data);
      if (!page.has_more) break;
      cursor = `&cursor=${page.next_cursor}`;
    }
    const closed = { opens_at: null, closes_at: null, settlement_date: null };
    const trading = (date: string, settlement: string) => ({
      object: 'market_day',
      date,
      kind: 'trading_day',
      name: null,
      opens_at: `${date}T09:00:00Z`,
      closes_at: `${date}T13:30:00Z`,
      settlement_date: settlement,
    });
    assert.deepEqual(days, [
      trading('2026-12-24', '2026-12-29'),
      { object: 'market_day', date: '2026-12-25', kind: 'holiday', name: 'Christmas Day', ...closed },
      { object: 'market_day', date: '2026-12-26', kind: 'weekend', name: null, ...closed },
      { object: 'market_day', date: '2026-12-27', kind: 'weekend', name: null, ...closed },
      { object: 'market_day', date: '2026-12-28', kind: 'holiday', name: 'Boxing Day', ...closed },
      trading('2026-12-29', '2026-12-30'),
    ]);
  });

  it('is the same whether the simulated exchange keeps its hours or is always open', async () => {
    const days = async () => (await get('?from=2026-09-28&to=2026-10-04')).data;
    const { body: market } = await gateway.rest('GET', '/v1/market', { key });
    assert.deepEqual([market.session, market.next_close_at], ['open', null], 'it is always open');
    const alwaysOpen = await days();
    assert.equal(alwaysOpen[3].name, 'Independence Day');
    await gateway.controls.setHours({ keepsHours: true }, callTimeout);
    assert.deepEqual(await days(), alwaysOpen);
    await gateway.controls.setHours({ keepsHours: false }, callTimeout);
  });

  it('the session of the exchange is read again after a read that failed', async () => {
    await gateway.controls.injectFault({ call: Call.GET_MARKET, fault: WireFault.UNAVAILABLE_BEFORE }, callTimeout);
    const read = async () => (await gateway.rest('GET', '/v1/market', { key })).status;
    assert.deepEqual([await read(), await read()], [503, 200]);
  });

  it('begins today and lasts a month unless other days are asked for', async () => {
    const before = lagosDay(Date.now());
    const { data, has_more } = await get('?limit=100');
    assert.ok([before, lagosDay(Date.now())].includes(data[0].date));
    assert.deepEqual([data.length, has_more], [31, false]);
  });

  it('refuses days that are none, in the wrong order, or too many', async () => {
    for (const [query, param] of [
      ['?from=2026-02-30', 'from'],
      ['?from=2026-01-01&to=2026-02-30', 'to'],
      ['?from=2026-01-02&to=2026-01-01', 'from'],
      ['?to=2020-01-01', 'to'],
      ['?from=2026-01-01&to=2027-01-02', 'to'],
    ] as const) {
      const { error } = await get(query);
      assert.deepEqual([query, error?.code, error?.param], [query, 'invalid_request', param]);
    }
    assert.equal((await get('?from=2026-01-01&to=2027-01-01&limit=1')).has_more, true, '366 days pass');
  });

  it('ends where the broker knows no more', async () => {
    const known = await get('?from=2199-12-30&to=2200-01-10');
    assert.deepEqual([known.data.length, known.has_more, known.next_cursor], [2, false, null]);
    for (const query of ['?from=0000-01-01', '?from=9999-12-31&to=9999-12-31']) {
      const { data, has_more } = await get(query);
      assert.deepEqual([query, data, has_more], [query, [], false]);
    }
  });

  it('is read while trading is paused', async () => {
    const admin = adminClient(gateway.app.adminPort);
    await admin.trading.pauseTrading({ reason: 'test' }, admin.options);
    assert.equal((await get()).object, 'list');
    await admin.trading.resumeTrading({ reason: 'test' }, admin.options);
    admin.close();
  });
});
