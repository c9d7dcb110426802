import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AccountStatus,
  CancelOutcome,
  InstrumentKind,
  OrderType,
  RejectReason,
  ReportKind,
  Side,
  TimeInForce,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, Outcome } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { magicSymbols } from '../../src/simulator/magic.ts';
import { listings } from '../../src/simulator/market/instruments.ts';
import { eventually } from '../support/eventually.ts';
import {
  account,
  exchangeOrder,
  fails,
  messagesOf,
  newOrder,
  reportsOf,
  soon,
  startTestSimulator,
  untilReports,
} from './fixture.ts';

const { ACCEPTED, CANCELLED, EXPIRED, REJECTED, TRADE } = ReportKind;
const simulator = await startTestSimulator();
const { orders, controls } = simulator;

describe('an order at the simulated exchange', () => {
  it('is accepted, fills at its price and is found by look-up', async () => {
    const order = newOrder({ symbol: 'SIM-PARTS', quantity: 10n });
    const { report } = await orders.submitOrder(order, soon);
    assert.equal(report?.kind, ACCEPTED);
    assert.notEqual(report.exchangeOrderId, '');
    const reports = await untilReports(simulator, order.clientOrderId, [ACCEPTED, TRADE, TRADE, TRADE]);
    assert.deepEqual(
      reports.slice(1).map((each) => [each.quantity, each.priceKobo]),
      [
        [3n, 1_000n],
        [3n, 1_000n],
        [4n, 1_000n],
      ],
    );
    const held = await exchangeOrder(simulator, order.clientOrderId);
    assert.equal(held?.filledQuantity, 10n);
    assert.equal(held.endedBy, TRADE);
    const later = await orders.lookUpOrder(
      { clientOrderId: order.clientOrderId, afterNumber: reports[1]?.number ?? 0n },
      soon,
    );
    assert.deepEqual(later.reports, reports.slice(2));
  });

  it('an order of a real symbol fills when it crosses the quoted price, never through its limit, and rests when it does not', async () => {
    const { instrument } = await orders.getTradingContext({ account, symbol: 'UBA' }, soon);
    assert.ok(instrument);
    const crossing = newOrder({ symbol: 'UBA', priceKobo: instrument.upperPriceKobo, quantity: 1_000n });
    await orders.submitOrder(crossing, soon);
    const resting = newOrder({ symbol: 'UBA', priceKobo: instrument.lowerPriceKobo });
    await orders.submitOrder(resting, soon);
    const market = newOrder({ symbol: 'UBA', type: OrderType.MARKET, side: Side.SELL });
    await orders.submitOrder(market, soon);
    for (const { clientOrderId, quantity } of [crossing, market]) {
      await eventually(async () =>
        assert.equal((await exchangeOrder(simulator, clientOrderId))?.filledQuantity, quantity),
      );
      const trades = (await reportsOf(simulator, clientOrderId)).filter((each) => each.kind === TRADE);
      assert.ok(trades.length >= 1 && trades.length <= 4);
      assert.ok(trades.every((each) => each.priceKobo <= instrument.upperPriceKobo));
    }
    assert.equal((await exchangeOrder(simulator, resting.clientOrderId))?.endedBy, ReportKind.UNSPECIFIED);
  });

  it('an order that is immediate or cancel, or fill or kill, never waits', async () => {
    const { instrument } = await orders.getTradingContext({ account, symbol: 'UBA' }, soon);
    for (const timeInForce of [TimeInForce.IOC, TimeInForce.FOK]) {
      const away = newOrder({ symbol: 'UBA', timeInForce, priceKobo: instrument?.lowerPriceKobo });
      await orders.submitOrder(away, soon);
      assert.deepEqual(
        (await reportsOf(simulator, away.clientOrderId)).map((each) => each.kind),
        [ACCEPTED, EXPIRED],
      );
      for (let count = 0; count < 20; count += 1) {
        const crossing = newOrder({ symbol: 'UBA', timeInForce, priceKobo: instrument?.upperPriceKobo });
        await orders.submitOrder(crossing, soon);
        const held = await exchangeOrder(simulator, crossing.clientOrderId);
        assert.ok(held !== undefined && [TRADE, EXPIRED].includes(held.endedBy));
        assert.equal(held.endedBy === TRADE, held.filledQuantity === 10n);
        if (timeInForce === TimeInForce.FOK) assert.ok([0n, 10n].includes(held.filledQuantity));
      }
    }
  });

  it('is rejected by rule, with a numbered report a look-up finds', async () => {
    await controls.setAccount({ account: 'LOCKED', status: AccountStatus.SETTLEMENT_LOCKOUT }, soon);
    await controls.setInstrument({ instrument: { symbol: 'WEMABANK' }, halted: true }, soon);
    const cases = [
      [{ account: 'NOBODY' }, RejectReason.ACCOUNT_NOT_AT_BROKER],
      [{ account: 'LOCKED' }, RejectReason.SETTLEMENT_LOCKOUT],
      [{ symbol: 'NOSUCH' }, RejectReason.UNKNOWN_SYMBOL],
      [{ symbol: 'WEMABANK', priceKobo: 1_530n }, RejectReason.SYMBOL_NOT_TRADABLE],
      [{ symbol: 'NEWGOLD', type: OrderType.MARKET }, RejectReason.LIMIT_ORDERS_ETF_ONLY],
      [{ priceKobo: 1_105n }, RejectReason.PRICE_OUTSIDE_BAND],
      [{ priceKobo: 895n }, RejectReason.PRICE_OUTSIDE_BAND],
      [{ priceKobo: 1_001n }, RejectReason.PRICE_OFF_TICK],
    ] as const;
    for (const [fields, reason] of cases) {
      const order = newOrder(fields);
      const { report } = await orders.submitOrder(order, soon);
      assert.equal(report?.kind, REJECTED);
      assert.equal(report.rejectReason, reason, JSON.stringify(Object.values(fields).map(String)));
      assert.equal(report.exchangeOrderId, '');
      assert.deepEqual(await reportsOf(simulator, order.clientOrderId), [report]);
    }
    for (const priceKobo of [900n, 1_100n]) {
      assert.equal((await orders.submitOrder(newOrder({ priceKobo }), soon)).report?.kind, ACCEPTED);
    }
  });

  it('an order that makes no sense is an invalid argument, is on the record and is not taken', async () => {
    for (const fields of [{ quantity: 0n }, { quantity: 2n ** 60n }, { priceKobo: undefined }, { side: 0 }]) {
      const order = newOrder(fields);
      await assert.rejects(orders.submitOrder(order, soon), fails(status.INVALID_ARGUMENT));
      assert.equal((await messagesOf(simulator, order.clientOrderId))[0]?.taken, false);
      assert.equal((await orders.lookUpOrder({ clientOrderId: order.clientOrderId }, soon)).found, false);
    }
  });

  it('is taken once when it comes twice, also at the same time', async () => {
    const order = newOrder();
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => orders.submitOrder(order, soon)));
    assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1);
    for (const result of results) {
      if (result.status === 'rejected') fails(status.ALREADY_EXISTS)(result.reason);
    }
    await assert.rejects(orders.submitOrder(order, soon), fails(status.ALREADY_EXISTS));
    assert.equal((await exchangeOrder(simulator, order.clientOrderId))?.timesReceived, 21);
    assert.equal((await reportsOf(simulator, order.clientOrderId)).length, 1);
    const messages = (await messagesOf(simulator, order.clientOrderId)).filter(
      (message) => message.call === Call.SUBMIT_ORDER,
    );
    assert.equal(messages.filter((message) => message.taken).length, 1);
  });

  it('is not taken after its time, unless the broker cannot do that', async () => {
    const late = () => newOrder({ notAfter: timestampFromMs(Date.now() - 1_000) });
    const first = late();
    await assert.rejects(orders.submitOrder(first, soon), fails(status.FAILED_PRECONDITION));
    assert.equal((await orders.lookUpOrder({ clientOrderId: first.clientOrderId }, soon)).found, false);
    assert.equal((await orders.getCapabilities({}, soon)).honoursNotAfter, true);
    await controls.setCapabilities({ honoursNotAfter: false }, soon);
    assert.equal((await orders.getCapabilities({}, soon)).honoursNotAfter, false);
    assert.equal((await orders.submitOrder(late(), soon)).report?.kind, ACCEPTED);
    await controls.setCapabilities({ honoursNotAfter: true }, soon);
    await assert.rejects(orders.submitOrder(late(), soon), fails(status.FAILED_PRECONDITION));
    const inTime = newOrder({ notAfter: timestampFromMs(Date.now() + 60_000) });
    assert.equal((await orders.submitOrder(inTime, soon)).report?.kind, ACCEPTED);
  });

  it('an order refused as too late is never taken, also after a restart and with a fresh time', async () => {
    const refused = newOrder({ notAfter: timestampFromMs(Date.now() - 1_000) });
    await assert.rejects(orders.submitOrder(refused, soon), fails(status.FAILED_PRECONDITION));
    const again = { ...refused, notAfter: timestampFromMs(Date.now() + 60_000) };
    await assert.rejects(orders.submitOrder(again, soon), fails(status.ALREADY_EXISTS));
    const restarted = await simulator.restart();
    await assert.rejects(restarted.orders.submitOrder(again, soon), fails(status.ALREADY_EXISTS));
    assert.equal((await restarted.orders.lookUpOrder({ clientOrderId: refused.clientOrderId }, soon)).found, false);
  });

  it('is cancelled while it is open; again gives the same report, and too late says so', async () => {
    const order = newOrder({ symbol: 'SIM-HALF' });
    await orders.submitOrder(order, soon);
    await untilReports(simulator, order.clientOrderId, [ACCEPTED, TRADE]);
    const cancelled = await orders.cancelOrder(order, soon);
    assert.equal(cancelled.outcome, CancelOutcome.CANCELLED);
    assert.equal(cancelled.report?.kind, CANCELLED);
    const again = await orders.cancelOrder(order, soon);
    assert.deepEqual([again.outcome, again.report], [cancelled.outcome, cancelled.report]);
    const filled = newOrder({ symbol: 'SIM-FILL' });
    await orders.submitOrder(filled, soon);
    const late = await orders.cancelOrder(filled, soon);
    assert.equal(late.outcome, CancelOutcome.TOO_LATE);
    assert.equal(late.report, undefined);
    await assert.rejects(orders.cancelOrder({ clientOrderId: 'nobody' }, soon), fails(status.NOT_FOUND));
  });
});

describe('magic symbols', () => {
  it('are listed last, and all is well with them before an order is sent', async () => {
    const { instruments } = await controls.listInstruments({}, soon);
    const symbols = instruments.map((each) => each.symbol);
    assert.deepEqual(
      symbols.slice(-magicSymbols.length),
      magicSymbols.map((each) => each.symbol),
    );
    assert.equal(symbols.length, listings.length + magicSymbols.length);
    for (const { symbol } of magicSymbols) {
      const context = await orders.getTradingContext({ account, symbol }, soon);
      assert.equal(context.accountStatus, AccountStatus.ACTIVE);
      assert.equal(context.instrument?.lowerPriceKobo, 900n);
      assert.equal(context.instrument.upperPriceKobo, 1_100n);
      assert.equal(context.instrument.lastPriceKobo, 1_000n);
    }
  });

  it('symbols that reject do so with their reason', async () => {
    const rejecting = magicSymbols.filter((each) => each.outcome === Outcome.REJECT);
    assert.equal(new Set(rejecting.map((each) => each.rejectReason)).size, 8);
    for (const { symbol, rejectReason } of rejecting) {
      const { report } = await orders.submitOrder(newOrder({ symbol }), soon);
      assert.equal(report?.kind, REJECTED, symbol);
      assert.equal(report.rejectReason, rejectReason, symbol);
    }
  });

  it('symbols that accept then do what they say', async () => {
    const cases = [
      ['SIM-FILL', [ACCEPTED, TRADE], TRADE],
      ['SIM-PARTS', [ACCEPTED, TRADE, TRADE, TRADE], TRADE],
      ['SIM-HALF', [ACCEPTED, TRADE], ReportKind.UNSPECIFIED],
      ['SIM-LAPSE', [ACCEPTED, EXPIRED], EXPIRED],
      ['SIM-KILLED', [ACCEPTED, REJECTED], REJECTED],
      ['SIM-REST', [ACCEPTED], ReportKind.UNSPECIFIED],
    ] as const;
    for (const [symbol, kinds, endedBy] of cases) {
      const order = newOrder({ symbol, type: OrderType.MARKET, side: Side.SELL });
      await orders.submitOrder(order, soon);
      const reports = await untilReports(simulator, order.clientOrderId, kinds);
      assert.equal((await exchangeOrder(simulator, order.clientOrderId))?.endedBy, endedBy, symbol);
      for (const trade of reports.filter((each) => each.kind === TRADE)) assert.equal(trade.priceKobo, 1_000n);
    }
  });
});

describe('controls of orders', () => {
  it('a forced outcome meets the next submissions that match, in the order given', async () => {
    const { instrument } = await orders.getTradingContext({ account, symbol: 'GTCO' }, soon);
    const priceKobo = instrument?.lowerPriceKobo ?? 0n;
    const force = { account, symbol: 'GTCO', times: 1, rejectReason: RejectReason.MARKET_CLOSED };
    await controls.forceOutcome({ ...force, outcome: Outcome.REJECT }, soon);
    await controls.forceOutcome({ ...force, outcome: Outcome.FILL, parts: 2 }, soon);
    const submit = async () => {
      const order = newOrder({ symbol: 'GTCO', priceKobo });
      const { report } = await orders.submitOrder(order, soon);
      return { id: order.clientOrderId, report };
    };
    assert.equal((await submit()).report?.rejectReason, RejectReason.MARKET_CLOSED);
    const filled = await submit();
    const reports = await untilReports(simulator, filled.id, [ACCEPTED, TRADE, TRADE]);
    assert.ok(reports.slice(1).every((each) => each.priceKobo === priceKobo && each.quantity === 5n));
    await controls.forceOutcome({ ...force, outcome: Outcome.REJECT }, soon);
    await controls.clearDirectives({}, soon);
    assert.equal((await submit()).report?.kind, ACCEPTED);
  });

  it('a fill can come late, but never beyond what was ordered or through the limit', async () => {
    const order = newOrder({ quantity: 10n });
    const { clientOrderId } = order;
    await orders.submitOrder(order, soon);
    const first = await controls.fillOrder({ clientOrderId, quantity: 4n, priceKobo: 995n }, soon);
    assert.equal(first.report?.priceKobo, 995n);
    await orders.cancelOrder(order, soon);
    await assert.rejects(controls.fillOrder({ clientOrderId, quantity: 7n }, soon), fails(status.INVALID_ARGUMENT));
    await assert.rejects(
      controls.fillOrder({ clientOrderId, quantity: 1n, priceKobo: 1_005n }, soon),
      fails(status.INVALID_ARGUMENT),
    );
    const late = await controls.fillOrder({ clientOrderId }, soon);
    assert.equal(late.report?.quantity, 6n);
    assert.equal(late.report.priceKobo, 1_000n);
    await assert.rejects(controls.fillOrder({ clientOrderId }, soon), fails(status.INVALID_ARGUMENT));
    await assert.rejects(controls.fillOrder({ clientOrderId: 'nobody' }, soon), fails(status.NOT_FOUND));
    const held = await exchangeOrder(simulator, clientOrderId);
    assert.equal(held?.endedBy, CANCELLED);
    assert.equal(held.filledQuantity, 10n);
  });

  it('an open order can be expired or given up, a final one not', async () => {
    const [expiring, rejected] = [newOrder(), newOrder()];
    await orders.submitOrder(expiring, soon);
    await orders.submitOrder(rejected, soon);
    assert.equal((await controls.expireOrder(expiring, soon)).report?.kind, EXPIRED);
    const rejection = { clientOrderId: rejected.clientOrderId, rejectReason: RejectReason.MARKET_CLOSED };
    assert.equal((await controls.rejectOrder(rejection, soon)).report?.rejectReason, RejectReason.MARKET_CLOSED);
    await assert.rejects(controls.expireOrder(expiring, soon), fails(status.FAILED_PRECONDITION));
    await assert.rejects(controls.rejectOrder(expiring, soon), fails(status.FAILED_PRECONDITION));
    await assert.rejects(controls.expireOrder({ clientOrderId: 'nobody' }, soon), fails(status.NOT_FOUND));
  });

  it('an instrument can be made, and its price, band and halt changed', async () => {
    const context = async () => (await orders.getTradingContext({ account, symbol: 'NEWCO' }, soon)).instrument;
    assert.equal(await context(), undefined);
    await controls.setInstrument({ instrument: { symbol: 'NEWCO', name: 'New Co', lastPriceKobo: 2_000n } }, soon);
    const made = await context();
    assert.deepEqual(
      [made?.name, made?.kind, made?.lowerPriceKobo, made?.upperPriceKobo, made?.lastPriceKobo],
      ['New Co', InstrumentKind.EQUITY, 1_800n, 2_200n, 2_000n],
    );
    await controls.setInstrument({ instrument: { symbol: 'NEWCO', upperPriceKobo: 3_000n } }, soon);
    assert.equal((await context())?.upperPriceKobo, 3_000n);
    assert.equal((await context())?.lastPriceKobo, 2_000n);
    const order = newOrder({ symbol: 'NEWCO', type: OrderType.MARKET });
    await orders.submitOrder(order, soon);
    const symbols = (await controls.listInstruments({}, soon)).instruments.map((each) => each.symbol);
    assert.ok(symbols.indexOf('NEWCO') < symbols.indexOf('SIM-FUNDS'));
  });
});

describe('an estimate', () => {
  it('gives every charge exactly, and the price a market order is expected to get', async () => {
    const limit = { account, symbol: 'SIM-REST', side: Side.BUY, quantity: 10_000n, type: OrderType.LIMIT };
    const bought = await orders.estimateOrder({ ...limit, priceKobo: 1_000n }, soon);
    assert.equal(bought.amountKobo, 10_000_000n);
    assert.equal(bought.totalKoboDecimal, '10185775.0');
    const sold = await orders.estimateOrder({ ...limit, side: Side.SELL, type: OrderType.MARKET }, soon);
    assert.equal(sold.priceKobo, 1_000n);
    assert.equal(sold.totalKoboDecimal, '9781975.0');
    await assert.rejects(
      orders.estimateOrder({ ...limit, symbol: 'NOSUCH', priceKobo: 1n }, soon),
      fails(status.NOT_FOUND),
    );
  });
});
