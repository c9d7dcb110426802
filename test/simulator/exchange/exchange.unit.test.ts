import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MarketSession } from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import {
  AccountStatus,
  InstrumentKind,
  OrderType,
  RejectReason,
  ReportKind,
  Side,
  TimeInForce,
} from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { nextLagosMidnight } from '../../../src/kit/clock.ts';
import {
  advanceIfOpen,
  advanceMarket,
  type Changed,
  end,
  fill,
  isOpen,
  submit,
} from '../../../src/simulator/exchange/exchange.ts';
import type { Behaviour } from '../../../src/simulator/magic.ts';
import type { InstrumentState, Order, OrderRequest } from '../../../src/simulator/model.ts';
import { orders } from '../../../src/simulator/store/tables.ts';
import { dayMs, orderRequest, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const fillDelay = { min: 200, max: 300 };
const funds = { startCashKobo: 1_000_000n, sharesElsewhere: 50n };

class Exchange {
  constructor(readonly broker: SimulatedBroker) {}

  static async start(settings?: typeof funds): Promise<Exchange> {
    const exchange = new Exchange(await SimulatedBroker.start(settings));
    await exchange.broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
    return exchange;
  }

  submit(changes: Partial<OrderRequest> = {}, notAfterMs?: number) {
    const request = orderRequest(changes);
    const { directives } = this.broker;
    return this.broker.change({ orders: [request.clientOrderId] }, (unit) =>
      submit(unit, request, notAfterMs, { fillDelay, directives }),
    );
  }

  /** Submits with one set outcome. */
  submitSet(behaviour: Behaviour, changes: Partial<OrderRequest> = {}) {
    this.broker.directives.addOutcome({ account: 'A1', symbol: '', behaviour }, 1);
    return this.submit({ symbol: 'UBA', ...changes });
  }

  fill(quantity: number, priceKobo: number, id = 'ord_1'): Promise<Changed> {
    return this.broker.change({ orders: [id] }, (unit) => fill(unit, id, quantity, priceKobo));
  }

  end(kind: ReportKind.CANCELLED | ReportKind.EXPIRED | ReportKind.REJECTED, reason?: RejectReason): Promise<Changed> {
    return this.broker.change({ orders: ['ord_1'] }, (unit) => end(unit, 'ord_1', kind, reason));
  }

  advance(id = 'ord_1'): Promise<number | null> {
    return this.broker.change({ orders: [id] }, (unit) => advanceIfOpen(unit, id));
  }

  /** An order as it is stored. */
  order(id = 'ord_1'): Order {
    const row = this.broker.database.rows('orders').find((each) => each.client_order_id === id);
    assert.ok(row, `${id} is not stored`);
    return orders.fromRow(row as never);
  }

  /** The stored reports about an order: its kind, with the quantity and price of a trade. */
  reports(id = 'ord_1'): string[] {
    const own = this.broker.database.rows('reports').filter((each) => each.client_order_id === id);
    return own.map(({ kind, quantity, price_kobo: price, reject_reason: reason }) => {
      const trade = kind === ReportKind.TRADE ? ` ${quantity} at ${price}` : '';
      const why = reason === 0 ? '' : ` ${RejectReason[Number(reason)]}`;
      return `${ReportKind[Number(kind)]}${trade}${why}`;
    });
  }

  instrument(changes: Partial<InstrumentState>): Promise<void> {
    const base = {
      ...{ symbol: 'OWN', name: 'Own Plc', kind: InstrumentKind.EQUITY, lowerKobo: 900, upperKobo: 1_100 },
      ...{ quoteKobo: 1_000, lastKobo: 1_000, halted: false, pinned: true, position: 500 },
    };
    return this.broker.change({}, (unit) => unit.setInstrument({ ...base, ...changes }));
  }
}

describe('the submission of an order to the simulated exchange', () => {
  it('an order is taken once, and a copy with other terms changes nothing', async () => {
    const exchange = await Exchange.start();
    const first = await exchange.submit();
    assert.equal(first.outcome, 'taken');
    assert.deepEqual(await exchange.submit({ quantity: 5 }), { outcome: 'seen_before' });
    // The copy is known before its time is judged.
    assert.deepEqual(await exchange.submit({}, wednesday - 1), { outcome: 'seen_before' });
    assert.equal(exchange.order().quantity, 100);
    assert.deepEqual(exchange.reports(), ['ACCEPTED']);
  });

  it('an order is taken until its not_after, and a later one uses up no number and no directive', async () => {
    const exchange = await Exchange.start();
    exchange.broker.directives.addOutcome({ account: '', symbol: '', behaviour: { outcome: Outcome.REJECT } }, 1);
    assert.deepEqual(await exchange.submit({}, wednesday - 1), { outcome: 'too_late' });
    assert.equal(exchange.broker.database.rows('orders').length, 0);
    assert.equal((await exchange.submit({}, wednesday)).outcome, 'taken');
    assert.deepEqual(exchange.reports(), ['REJECTED REJECTED_BY_EXCHANGE']);
    assert.equal((await exchange.submit({ clientOrderId: 'ord_2' }, wednesday + 1)).outcome, 'taken');
    assert.deepEqual([exchange.order().sequence, exchange.order('ord_2').sequence], [1, 2]);
  });

  it('an accepted order has an id of the exchange, and only a day order ends with its day', async () => {
    const exchange = await Exchange.start();
    await exchange.submit();
    for (const [at, timeInForce] of [TimeInForce.GTC, TimeInForce.DAY].entries()) {
      await exchange.submit({ clientOrderId: `ord_${at + 2}`, timeInForce });
    }
    assert.deepEqual(
      ['ord_1', 'ord_2', 'ord_3'].map((id) => exchange.order(id).expiresAtMs),
      [nextLagosMidnight(wednesday), null, nextLagosMidnight(wednesday)],
    );
    const { account, symbol, side, type, quantity, priceKobo, exchangeOrderId, endedBy } = exchange.order();
    assert.deepEqual(
      [account, symbol, side, type, quantity, priceKobo],
      ['A1', 'SIM-REST', Side.BUY, OrderType.LIMIT, 100, 1_000],
    );
    assert.deepEqual([exchangeOrderId, endedBy], ['NGX000000000001', ReportKind.UNSPECIFIED]);
  });

  it('a rejected order is final, has no id of the exchange, and its report has the reason', async () => {
    const exchange = await Exchange.start();
    const { REJECT } = Outcome;
    const cases: [Partial<OrderRequest>, Behaviour | undefined, RejectReason][] = [
      [{ account: 'A2' }, undefined, RejectReason.ACCOUNT_NOT_AT_BROKER],
      [{ symbol: 'SIM-FUNDS' }, undefined, RejectReason.INSUFFICIENT_FUNDS],
      [{ symbol: 'NONE' }, undefined, RejectReason.UNKNOWN_SYMBOL],
      [{ priceKobo: 1_101 }, undefined, RejectReason.PRICE_OUTSIDE_BAND],
      [{ account: 'A2', symbol: 'SIM-FUNDS' }, undefined, RejectReason.ACCOUNT_NOT_AT_BROKER],
      [{}, { outcome: REJECT, rejectReason: RejectReason.MARKET_CLOSED }, RejectReason.MARKET_CLOSED],
      [{ symbol: 'SIM-FUNDS' }, { outcome: REJECT }, RejectReason.REJECTED_BY_EXCHANGE],
      [
        { symbol: 'NONE', type: OrderType.MARKET, priceKobo: null },
        { outcome: Outcome.REST },
        RejectReason.UNKNOWN_SYMBOL,
      ],
    ];
    for (const [at, [changes, behaviour, reason]] of cases.entries()) {
      const clientOrderId = `ord_${at}`;
      if (behaviour !== undefined) exchange.broker.directives.addOutcome({ account: '', symbol: '', behaviour }, 1);
      const result = await exchange.submit({ ...changes, clientOrderId });
      assert.deepEqual(
        result.outcome === 'taken' && [result.result.kind, result.result.rejectReason, result.result.exchangeOrderId],
        [ReportKind.REJECTED, reason, ''],
        JSON.stringify(changes),
      );
      assert.deepEqual(
        [exchange.order(clientOrderId).endedBy, exchange.order(clientOrderId).expiresAtMs],
        [ReportKind.REJECTED, null],
      );
    }
  });

  it('a directive overrides the exchange’s rules, and an unspecified one leaves them', async () => {
    const exchange = await Exchange.start();
    const { REST, UNSPECIFIED } = Outcome;
    const outcomes: string[] = [];
    for (const [outcome, changes] of [
      [REST, { account: 'A1', symbol: 'NONE' }],
      [REST, { priceKobo: 5_000_000 }],
      [UNSPECIFIED, { symbol: 'NONE' }],
      [UNSPECIFIED, { symbol: 'SIM-FUNDS' }],
    ] as const) {
      const clientOrderId = `ord_${outcomes.length}`;
      await exchange.submitSet({ outcome }, { clientOrderId, ...changes });
      outcomes.push(exchange.reports(clientOrderId).join());
    }
    assert.deepEqual(outcomes, ['ACCEPTED', 'ACCEPTED', 'REJECTED UNKNOWN_SYMBOL', 'REJECTED INSUFFICIENT_FUNDS']);
  });

  it('a closed market rejects listed stocks, and trades magic symbols', async () => {
    const exchange = await Exchange.start();
    exchange.broker.world.venue.forced = MarketSession.CLOSED;
    await exchange.submit({ symbol: 'SIM-FILL' });
    await exchange.submit({ clientOrderId: 'ord_2', symbol: 'UBA', type: OrderType.MARKET, priceKobo: null });
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'TRADE 100 at 1000']);
    assert.deepEqual(exchange.reports('ord_2'), ['REJECTED MARKET_CLOSED']);
  });

  it('an order that its account cannot pay is rejected, and magic symbols need no money', async () => {
    const exchange = await Exchange.start(funds);
    await exchange.instrument({});
    const cases: [string, Partial<OrderRequest>, string][] = [
      ['ord_1', { symbol: 'OWN', quantity: 2_000 }, 'REJECTED INSUFFICIENT_FUNDS'],
      ['ord_2', { symbol: 'SIM-REST', quantity: 2_000 }, 'ACCEPTED'],
      ['ord_3', { symbol: 'OWN', side: Side.SELL, quantity: 51, priceKobo: 1_100 }, 'REJECTED INSUFFICIENT_FUNDS'],
      ['ord_4', { symbol: 'OWN', side: Side.SELL, quantity: 50, priceKobo: 1_100 }, 'ACCEPTED'],
    ];
    for (const [clientOrderId, changes, expected] of cases) {
      await exchange.submit({ clientOrderId, ...changes });
      assert.equal(exchange.reports(clientOrderId)[0], expected, clientOrderId);
    }
  });
});

describe('the plan of an order with a set outcome', () => {
  it('each fill comes at its time, not a millisecond before, and the next is planned from then', async () => {
    const exchange = await Exchange.start();
    await exchange.submitSet({ outcome: Outcome.FILL, parts: 3, delayMs: 1_000 });
    assert.deepEqual([exchange.reports(), exchange.order().planAtMs], [['ACCEPTED'], wednesday + 1_000]);
    exchange.broker.passTime(999);
    assert.equal(await exchange.advance(), wednesday + 1_000);
    assert.deepEqual(exchange.reports(), ['ACCEPTED']);
    exchange.broker.passTime(1);
    assert.equal(await exchange.advance(), wednesday + 2_000);
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'TRADE 33 at 1000']);
    exchange.broker.passTime(1_500);
    assert.equal(await exchange.advance(), wednesday + 3_500);
    exchange.broker.passTime(1_000);
    assert.equal(await exchange.advance(), null);
    assert.deepEqual(exchange.reports().slice(1), ['TRADE 33 at 1000', 'TRADE 33 at 1000', 'TRADE 34 at 1000']);
    const { filled, endedBy, plan, planAtMs, expiresAtMs } = exchange.order();
    assert.deepEqual([filled, endedBy, plan, planAtMs, expiresAtMs], [100, ReportKind.TRADE, [], null, null]);
  });

  it('the plan follows real time, also if business time has been moved', async () => {
    const exchange = await Exchange.start();
    await exchange.submitSet({ outcome: Outcome.FILL, delayMs: 1_000 });
    exchange.broker.nowMs += dayMs;
    await exchange.advance();
    assert.deepEqual(exchange.reports(), ['ACCEPTED']);
    exchange.broker.realNowMs += 1_000;
    await exchange.advance();
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'TRADE 100 at 1000']);
  });

  it('a fill without a delay of its own comes after one of the usual delays', async () => {
    const exchange = await Exchange.start();
    await exchange.submitSet({ outcome: Outcome.FILL });
    const delay = (exchange.order().planAtMs ?? 0) - wednesday;
    assert.ok(delay >= fillDelay.min && delay <= fillDelay.max, String(delay));
  });

  it('a set outcome ends an order as it says', async () => {
    const exchange = await Exchange.start();
    const { EXPIRE, ACCEPT_THEN_REJECT, FILL_HALF, REST, FILL } = Outcome;
    const cases: [Behaviour, Partial<OrderRequest>, string[], ReportKind][] = [
      [{ outcome: EXPIRE }, {}, ['EXPIRED'], ReportKind.EXPIRED],
      [
        { outcome: ACCEPT_THEN_REJECT, rejectReason: RejectReason.SYMBOL_NOT_TRADABLE },
        {},
        ['REJECTED SYMBOL_NOT_TRADABLE'],
        ReportKind.REJECTED,
      ],
      [{ outcome: FILL_HALF }, { quantity: 5 }, ['TRADE 2 at 1000'], ReportKind.UNSPECIFIED],
      [
        { outcome: FILL_HALF },
        { quantity: 5, timeInForce: TimeInForce.IOC },
        ['TRADE 2 at 1000', 'EXPIRED'],
        ReportKind.EXPIRED,
      ],
      [{ outcome: REST }, { timeInForce: TimeInForce.FOK }, ['EXPIRED'], ReportKind.EXPIRED],
      [{ outcome: REST }, {}, [], ReportKind.UNSPECIFIED],
      [
        { outcome: FILL },
        { symbol: 'SIM-REST', type: OrderType.MARKET, priceKobo: null },
        ['TRADE 100 at 1000'],
        ReportKind.TRADE,
      ],
      [{ outcome: FILL }, { symbol: 'NONE' }, ['TRADE 100 at 1000'], ReportKind.TRADE],
    ];
    for (const [at, [behaviour, changes, expected, endedBy]] of cases.entries()) {
      const clientOrderId = `ord_${at}`;
      await exchange.submitSet({ ...behaviour, delayMs: 0 }, { ...changes, clientOrderId });
      assert.deepEqual(exchange.reports(clientOrderId), ['ACCEPTED', ...expected], String(at));
      assert.equal(exchange.order(clientOrderId).endedBy, endedBy, String(at));
      assert.equal(isOpen(exchange.order(clientOrderId)), endedBy === ReportKind.UNSPECIFIED);
    }
  });

  it('a plan trades no more than is left after a fill by hand', async () => {
    const exchange = await Exchange.start();
    await exchange.submitSet({ outcome: Outcome.FILL, parts: 2, delayMs: 1_000 });
    await exchange.fill(80, 0);
    exchange.broker.passTime(1_000);
    assert.equal(await exchange.advance(), null);
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'TRADE 80 at 1000', 'TRADE 20 at 1000']);
  });

  it('a cancelled order’s plan is gone, and an unknown order has none', async () => {
    const exchange = await Exchange.start();
    await exchange.submitSet({ outcome: Outcome.FILL, delayMs: 1_000 });
    await exchange.end(ReportKind.CANCELLED);
    exchange.broker.passTime(1_000);
    assert.equal(await exchange.advance(), null);
    assert.deepEqual([exchange.reports(), exchange.order().plan], [['ACCEPTED', 'CANCELLED'], []]);
    assert.equal(await exchange.advance('ord_9'), null);
  });
});

describe('a fill by a control', () => {
  it('a fill takes as much as is left, at the order’s own price unless another is given', async () => {
    const exchange = await Exchange.start();
    await exchange.submit();
    assert.deepEqual(await exchange.fill(1, 0, 'ord_9'), { outcome: 'unknown' });
    assert.deepEqual(await exchange.fill(101, 0), { outcome: 'too_many' });
    assert.equal((await exchange.fill(60, 990)).outcome, 'reported');
    assert.deepEqual(await exchange.fill(41, 0), { outcome: 'too_many' });
    assert.equal((await exchange.fill(0, 0)).outcome, 'reported');
    assert.deepEqual(await exchange.fill(0, 0), { outcome: 'too_many' });
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'TRADE 60 at 990', 'TRADE 40 at 1000']);
    assert.deepEqual([exchange.order().filled, exchange.order().endedBy], [100, ReportKind.TRADE]);
  });

  it('no fill goes through the limit of a buy or of a sale', async () => {
    const exchange = await Exchange.start();
    await exchange.submit();
    await exchange.submit({ clientOrderId: 'ord_2', side: Side.SELL });
    const through = { outcome: 'through_limit' };
    assert.deepEqual(await exchange.fill(1, 1_001), through);
    assert.deepEqual(await exchange.fill(1, 999, 'ord_2'), through);
    assert.equal((await exchange.fill(1, 1_000)).outcome, 'reported');
    assert.equal((await exchange.fill(1, 1_000, 'ord_2')).outcome, 'reported');
    assert.equal((await exchange.fill(1, 1, 'ord_1')).outcome, 'reported');
    assert.equal((await exchange.fill(1, 9_999, 'ord_2')).outcome, 'reported');
  });

  it('an order without a limit trades at any price, at the last one if none is given, and not without one', async () => {
    const exchange = await Exchange.start();
    const market = { type: OrderType.MARKET, priceKobo: null };
    await exchange.instrument({ lastKobo: 1_050 });
    await exchange.submitSet({ outcome: Outcome.REST }, { symbol: 'OWN', ...market });
    assert.equal((await exchange.fill(1, 777)).outcome, 'reported');
    assert.equal((await exchange.fill(1, 0)).outcome, 'reported');
    assert.deepEqual(exchange.reports().slice(1), ['TRADE 1 at 777', 'TRADE 1 at 777']);
    exchange.broker.world.instruments.delete('OWN');
    assert.deepEqual(await exchange.fill(1, 0), { outcome: 'no_price' });
  });

  it('a late fill is reported and does not open a cancelled order again', async () => {
    const exchange = await Exchange.start();
    await exchange.submit();
    await exchange.end(ReportKind.CANCELLED);
    await exchange.fill(40, 0);
    await exchange.fill(60, 0);
    assert.equal(exchange.order().endedBy, ReportKind.CANCELLED);
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'CANCELLED', 'TRADE 40 at 1000', 'TRADE 60 at 1000']);
  });

  it('a trade is booked as a deal at the time of its report, under the stock’s name', async () => {
    const exchange = await Exchange.start();
    await exchange.submit({ symbol: 'SIM-REST' });
    exchange.broker.passTime(5_000);
    await exchange.fill(7, 990);
    const [report] = exchange.broker.database.rows('reports').slice(-1);
    const [deal, ...others] = exchange.broker.database.rows('deals');
    assert.equal(others.length, 0);
    assert.deepEqual(
      [deal?.account, deal?.client_order_id, deal?.symbol, deal?.name, deal?.side, deal?.quantity, deal?.price_kobo],
      ['A1', 'ord_1', 'SIM-REST', 'Magic: Accepted; never trades.', Side.BUY, 7, 990],
    );
    assert.deepEqual([deal?.executed_at_ms, report?.at_ms], [wednesday + 5_000, wednesday + 5_000]);
  });

  it('the last price follows a trade where the price does not move by itself', async () => {
    const exchange = await Exchange.start();
    await exchange.instrument({});
    await exchange.submitSet({ outcome: Outcome.REST }, { symbol: 'OWN' });
    await exchange.fill(1, 950);
    assert.equal(exchange.broker.world.instrument('OWN')?.lastKobo, 950);
    assert.equal(exchange.broker.database.rows('instruments').find(({ symbol }) => symbol === 'OWN')?.last_kobo, 950);
    const before = exchange.broker.world.instruments.get('UBA');
    await exchange.submitSet({ outcome: Outcome.REST }, { clientOrderId: 'ord_2', symbol: 'UBA' });
    await exchange.fill(1, 950, 'ord_2');
    assert.deepEqual(exchange.broker.world.instruments.get('UBA'), before);
    await exchange.instrument({ ...before, pinned: true });
    await exchange.fill(1, 940, 'ord_2');
    assert.equal(exchange.broker.world.instruments.get('UBA')?.lastKobo, 940);
  });
});

describe('the end of an order', () => {
  it('an order ends once, with a report of the kind and the reason that were asked for', async () => {
    const exchange = await Exchange.start();
    assert.deepEqual(await exchange.end(ReportKind.CANCELLED), { outcome: 'unknown' });
    await exchange.submit();
    const ended = await exchange.end(ReportKind.REJECTED, RejectReason.MARKET_CLOSED);
    assert.equal(ended.outcome === 'reported' && ended.report.number, 2);
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'REJECTED MARKET_CLOSED']);
    for (const kind of [ReportKind.CANCELLED, ReportKind.EXPIRED, ReportKind.REJECTED] as const) {
      assert.deepEqual(await exchange.end(kind), { outcome: 'final' });
    }
    assert.deepEqual([exchange.order().endedBy, exchange.order().expiresAtMs], [ReportKind.REJECTED, null]);
  });

  it('an order in a book leaves it when it is filled or cancelled, and what it may cost is free again', async () => {
    const exchange = await Exchange.start(funds);
    await exchange.instrument({});
    const { world } = exchange.broker;
    for (const [at, close] of [
      () => exchange.end(ReportKind.CANCELLED),
      () => exchange.fill(0, 0, 'ord_2'),
    ].entries()) {
      const id = `ord_${at + 1}`;
      await exchange.submit({ clientOrderId: id, symbol: 'OWN', priceKobo: 905 });
      const waits = world.engine.order(id);
      assert.ok(waits?.inBook, id);
      assert.ok(world.funds.promisedKobo('A1') >= 90_500n, id);
      assert.equal(exchange.order(id).inBook, true);
      await close();
      assert.equal(world.engine.order(id), undefined, id);
      assert.equal(world.funds.promisedKobo('A1'), 0n, id);
      assert.equal(exchange.order(id).inBook, false);
    }
  });

  it('an order that trades in part promises only the cost of the rest', async () => {
    const exchange = await Exchange.start(funds);
    await exchange.instrument({});
    await exchange.submit({ symbol: 'OWN', priceKobo: 905 });
    const whole = exchange.broker.world.funds.promisedKobo('A1');
    await exchange.fill(60, 0);
    const rest = exchange.broker.world.funds.promisedKobo('A1');
    assert.ok(rest > 36_000n && rest < whole / 2n, `${rest} of ${whole}`);
  });

  it('a day order in a book expires when the market comes to the end of its day', async () => {
    const exchange = await Exchange.start();
    await exchange.instrument({});
    await exchange.submit({ symbol: 'OWN', priceKobo: 905 });
    await exchange.submit({ clientOrderId: 'ord_2', symbol: 'OWN', priceKobo: 905, timeInForce: TimeInForce.GTC });
    exchange.broker.passTime(dayMs);
    await exchange.broker.change({ orders: ['ord_1', 'ord_2'] }, (unit) => advanceMarket(unit));
    assert.deepEqual(exchange.reports(), ['ACCEPTED', 'EXPIRED']);
    assert.equal(exchange.order().endedBy, ReportKind.EXPIRED);
    assert.deepEqual(
      [exchange.reports('ord_2'), exchange.order('ord_2').endedBy],
      [['ACCEPTED'], ReportKind.UNSPECIFIED],
    );
  });

  it('proceeds that have settled directly are paid out before an order can use them', async () => {
    const exchange = await Exchange.start({ startCashKobo: 0n, sharesElsewhere: 1_000n });
    await exchange.instrument({});
    await exchange.broker.change({}, (unit) => unit.clearing.directSales.setOn(true));
    await exchange.submitSet({ outcome: Outcome.FILL, delayMs: 0 }, { symbol: 'OWN', side: Side.SELL, quantity: 500 });
    exchange.broker.passTime(5 * dayMs);
    await exchange.submit({ clientOrderId: 'ord_2', symbol: 'OWN', priceKobo: 905 });
    assert.deepEqual(exchange.reports('ord_2'), ['REJECTED INSUFFICIENT_FUNDS']);
    assert.equal(exchange.broker.database.rows('direct_sales').length, 0);
  });
});
