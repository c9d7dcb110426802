import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { createConnection } from 'mysql2/promise';
import { Accounts, type ContractNote, MarketSession, type Trade } from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import {
  AccountStatus,
  OrderType,
  RejectReason,
  ReportKind,
  Side,
  TimeInForce,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { roundKoboDecimal } from '../../src/kit/money.ts';
import { seededRandom } from '../../src/simulator/random.ts';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { SimulatorDatabase } from '../../src/simulator/store/database.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase } from '../support/servers.ts';
import {
  account,
  connect,
  exchangeOrder,
  fails,
  newOrder,
  reportsOf,
  soon,
  startTestSimulator,
  untilReports,
} from './fixture.ts';

const { ACCEPTED, EXPIRED, TRADE } = ReportKind;
const cashKobo = 1_000_000_000_000n;

/** A simulator with the broker's records of accounts, and what tests do with its days. */
async function startMarket() {
  const simulator = await startTestSimulator();
  const accounts = createGrpcClient(Accounts, `127.0.0.1:${simulator.port}`);
  after(() => accounts.close());
  const { orders, controls } = simulator;
  const instrumentOf = async (symbol: string) => {
    const { instrument } = await orders.getTradingContext({ account, symbol }, soon);
    assert.ok(instrument);
    return instrument;
  };
  /** Moves the clock to so long after the next day's trading begins. */
  const nextDay = async (plusMs = 3_600_000) => {
    const { nextDayAt } = await controls.getDay({}, soon);
    assert.ok(nextDayAt);
    await controls.setClock({ offsetMs: BigInt(timestampMs(nextDayAt) + plusMs - Date.now()) }, soon);
  };
  const everything = async <Item>(page: (after: Item | undefined) => Promise<{ items: Item[]; hasMore: boolean }>) => {
    const all: Item[] = [];
    for (let more = true; more; ) {
      const { items, hasMore } = await page(all.at(-1));
      all.push(...items);
      more = hasMore;
    }
    return all;
  };
  const range = { fromDate: '2020-01-01', toDate: '2099-12-31', limit: 100 };
  const tradesOf = (of: string) =>
    everything<Trade>(async (last) => {
      const place = last && { id: last.id, ...(last.executedAt === undefined ? {} : { executedAt: last.executedAt }) };
      const { trades, hasMore } = await accounts.listTrades(
        { ...range, account: of, ...(place === undefined ? {} : { after: place }) },
        soon,
      );
      return { items: trades, hasMore };
    });
  const notesOf = (of: string) =>
    everything<ContractNote>(async (last) => {
      const place = last && { tradeDate: last.tradeDate, ticket: last.ticket };
      const { notes, hasMore } = await accounts.listContractNotes(
        { ...range, account: of, ...(place === undefined ? {} : { after: place }) },
        soon,
      );
      return { items: notes, hasMore };
    });
  const balanceOf = async (of: string) => {
    const { $typeName: _, ...balance } = await accounts.getBalance({ account: of }, soon);
    return balance;
  };
  const open = async (code: string) => {
    await controls.setAccount({ account: code, status: AccountStatus.ACTIVE }, soon);
    await controls.setCash({ account: code, cashKobo }, soon);
    return code;
  };
  return { ...simulator, accounts, instrumentOf, nextDay, tradesOf, notesOf, balanceOf, open };
}

type Market = Awaited<ReturnType<typeof startMarket>>;

const sum = <Item>(items: readonly Item[], of: (item: Item) => bigint) =>
  items.reduce((all, each) => all + of(each), 0n);

describe('what an order comes to', () => {
  it('is the same in estimate, trades, contract notes and balance, and moves through settlement', async () => {
    const market = await startMarket();
    const { orders, controls } = market;
    const owner = await market.open('EXACT');
    const { upperPriceKobo } = await market.instrumentOf('UBA');
    const limit = { symbol: 'UBA', account: owner, quantity: 2_500n, type: OrderType.LIMIT };
    for (const symbol of ['SIM-PARTS', 'UBA']) {
      const priceKobo = symbol === 'UBA' ? upperPriceKobo : 1_000n;
      const order = newOrder({ ...limit, symbol, priceKobo });
      await orders.submitOrder(order, soon);
      await eventually(async () => assert.equal((await exchangeOrder(market, order.clientOrderId))?.endedBy, TRADE));
    }
    const trades = await market.tradesOf(owner);
    const before = await market.balanceOf(owner);
    assert.equal(before.openingKobo, 0n, 'what is booked today is not there when the day begins');
    assert.equal(before.availableKobo, cashKobo - before.pendingDebitsKobo);
    assert.deepEqual(await market.notesOf(owner), [], 'nothing is settled yet');
    await controls.settle({ account: owner }, soon);
    const notes = await market.notesOf(owner);
    assert.equal(notes.length, trades.length);
    const ofParts = notes.filter(({ symbol }) => symbol === 'SIM-PARTS');
    assert.equal(ofParts.length, 3);
    const estimate = await orders.estimateOrder(
      { ...limit, symbol: 'SIM-PARTS', side: Side.BUY, priceKobo: 1_000n },
      soon,
    );
    assert.equal(
      sum(ofParts, (note) => note.considerationKobo),
      roundKoboDecimal(estimate.totalKoboDecimal, 'up'),
    );
    assert.equal(
      sum(ofParts, (note) => note.otherFeesKobo),
      400n,
      'one alert for one order',
    );
    const cost = sum(notes, (note) => note.considerationKobo);
    assert.equal(before.pendingDebitsKobo, cost);
    const settled = await market.balanceOf(owner);
    assert.deepEqual([settled.openingKobo, settled.pendingDebitsKobo], [0n, 0n], 'a settlement books nothing');
    assert.deepEqual([settled.settledKobo, settled.unsettledKobo], [cashKobo - cost, 0n]);
    assert.equal(settled.availableKobo, cashKobo - cost);
    const sale = newOrder({ ...limit, side: Side.SELL, symbol: 'SIM-FILL', priceKobo: 1_000n });
    await orders.submitOrder(sale, soon);
    await untilReports(market, sale.clientOrderId, [ACCEPTED, TRADE]);
    assert.equal((await market.balanceOf(owner)).availableKobo, settled.availableKobo, 'proceeds come when it settles');
    await controls.settle({}, soon);
    const brought = await orders.estimateOrder(
      { ...limit, symbol: 'SIM-FILL', side: Side.SELL, priceKobo: 1_000n },
      soon,
    );
    const after = await market.balanceOf(owner);
    assert.equal(after.availableKobo - settled.availableKobo, roundKoboDecimal(brought.totalKoboDecimal, 'down'));
  });

  it('leaves no kobo and no share unaccounted for over a month of random trading', async () => {
    const market = await startMarket();
    const { controls } = market;
    await controls.setHours({ keepsHours: true }, soon);
    const owners = await Promise.all(['MONTH1', 'MONTH2', 'MONTH3'].map((code) => market.open(code)));
    const random = seededRandom('a month');
    for (let day = 0; day < 22; day += 1) {
      await market.nextDay();
      await Promise.all(owners.flatMap((owner) => [1, 2, 3].map(() => tradeAtRandom(market, owner, random))));
    }
    await market.nextDay();
    await eventually(async () => {
      const { orders: held } = await controls.listExchangeOrders({}, soon);
      assert.ok(held.length === 198 && held.every(({ endedBy }) => endedBy !== ReportKind.UNSPECIFIED));
    });
    await controls.settle({}, soon);
    const { orders: held } = await controls.listExchangeOrders({}, soon);
    let [traded, charged, left] = [0n, 0n, 0n];
    for (const owner of owners) {
      const [trades, notes] = [await market.tradesOf(owner), await market.notesOf(owner)];
      assert.equal(trades.length, notes.length);
      assert.ok(trades.length > 10, `${trades.length} trades`);
      for (const { clientOrderId, filledQuantity } of held.filter((each) => each.account === owner)) {
        const parts = trades.filter((each) => each.clientOrderId === clientOrderId);
        assert.equal(
          sum(parts, (each) => each.quantity),
          filledQuantity,
        );
      }
      const signed = (each: { side: Side }, kobo: bigint) => (each.side === Side.BUY ? -kobo : kobo);
      const { settledKobo, unsettledKobo, pendingDebitsKobo, availableKobo } = await market.balanceOf(owner);
      assert.equal(settledKobo, cashKobo + sum(notes, (each) => signed(each, each.considerationKobo)));
      assert.deepEqual([unsettledKobo, pendingDebitsKobo, availableKobo], [0n, 0n, settledKobo]);
      const { positions } = await market.accounts.listPositions({ account: owner, limit: 100 }, soon);
      for (const symbol of new Set(trades.map((each) => each.symbol))) {
        const shares = -sum(
          trades.filter((each) => each.symbol === symbol),
          (each) => signed(each, each.quantity),
        );
        const position = positions.find((each) => each.symbol === symbol);
        assert.equal(position?.quantity ?? 0n, shares > 0n ? shares : 0n, `${owner} ${symbol}`);
      }
      traded += sum(trades, (each) => signed(each, each.amountKobo));
      charged += sum(notes, (each) => each.commissionKobo + each.statutoryFeesKobo + each.otherFeesKobo);
      left += availableKobo;
    }
    assert.equal(left, cashKobo * 3n + traded - charged, 'what is gone was paid for shares or charged');
  });
});

/** An order at random: any side, near the market or without a limit, for the day, at once or all at once. */
async function tradeAtRandom(market: Market, owner: string, random: ReturnType<typeof seededRandom>): Promise<void> {
  const symbol = ['UBA', 'GTCO', 'ZENITHBANK'][random.whole(0, 2)] ?? 'UBA';
  const isMarket = random.next() < 0.3;
  const away = BigInt(random.whole(-3, 3) * 10);
  const { lastPriceKobo, lowerPriceKobo, upperPriceKobo } = await market.instrumentOf(symbol);
  const near = lastPriceKobo - (lastPriceKobo % 10n) + away;
  const isWithin = near >= lowerPriceKobo && near <= upperPriceKobo;
  const { report } = await market.orders.submitOrder(
    newOrder({
      account: owner,
      symbol,
      side: random.next() < 0.6 ? Side.BUY : Side.SELL,
      quantity: BigInt(random.whole(1, 60_000)),
      timeInForce: [TimeInForce.DAY, TimeInForce.IOC, TimeInForce.FOK][random.whole(0, 2)] ?? TimeInForce.DAY,
      type: isMarket ? OrderType.MARKET : OrderType.LIMIT,
      priceKobo: isMarket ? undefined : isWithin ? near : lastPriceKobo,
    }),
    soon,
  );
  assert.equal(report?.kind, ACCEPTED);
}

describe('the market', async () => {
  const market = await startMarket();
  const { orders, controls } = market;
  const symbol = 'GTCO';
  const waiting = async (fields: Parameters<typeof newOrder>[0] = {}) =>
    newOrder({ symbol, priceKobo: (await market.instrumentOf(symbol)).lowerPriceKobo, ...fields });
  const submitted = async (fields: Parameters<typeof newOrder>[0] = {}) => {
    const order = await waiting(fields);
    const { report } = await orders.submitOrder(order, soon);
    return { ...order, report };
  };

  it('is closed, paused, halted and opened by an operator; magic symbols go on', async () => {
    const day = await submitted();
    const lasting = await submitted({ timeInForce: TimeInForce.GTC });
    await controls.setSession({ session: MarketSession.CLOSED }, soon);
    assert.equal((await market.accounts.getMarket({}, soon)).session, MarketSession.CLOSED);
    await untilReports(market, day.clientOrderId, [ACCEPTED, EXPIRED]);
    assert.equal((await submitted()).report?.rejectReason, RejectReason.MARKET_CLOSED);
    assert.equal((await orders.submitOrder(newOrder(), soon)).report?.kind, ACCEPTED);
    await controls.setSession({ session: MarketSession.HALTED }, soon);
    assert.equal((await submitted()).report?.rejectReason, RejectReason.MARKET_CLOSED);
    await controls.setSession({ session: MarketSession.PAUSED }, soon);
    const { upperPriceKobo } = await market.instrumentOf(symbol);
    const collected = await submitted({ priceKobo: upperPriceKobo });
    assert.equal(collected.report?.kind, ACCEPTED);
    assert.equal((await reportsOf(market, collected.clientOrderId)).length, 1);
    await controls.setSession({ session: MarketSession.UNSPECIFIED }, soon);
    await untilReports(market, collected.clientOrderId, [ACCEPTED, TRADE]);
    assert.equal((await exchangeOrder(market, lasting.clientOrderId))?.endedBy, ReportKind.UNSPECIFIED);
    await orders.cancelOrder(lasting, soon);
  });

  it('halts one symbol: what waits goes on waiting, what comes is rejected', async () => {
    const order = await submitted();
    await controls.haltSymbol({ symbol, halted: true }, soon);
    await controls.movePrice({ symbol, basisPoints: -2_000 }, soon);
    assert.equal((await submitted()).report?.rejectReason, RejectReason.SYMBOL_NOT_TRADABLE);
    assert.equal((await exchangeOrder(market, order.clientOrderId))?.filledQuantity, 0n);
    await controls.haltSymbol({ symbol, halted: false }, soon);
    await eventually(async () => assert.equal((await exchangeOrder(market, order.clientOrderId))?.endedBy, TRADE));
    await controls.movePrice({ symbol, basisPoints: 0 }, soon);
    await assert.rejects(controls.haltSymbol({ symbol: 'NOSUCH', halted: true }, soon), fails(status.NOT_FOUND));
    await assert.rejects(controls.movePrice({ symbol: 'SIM-REST', basisPoints: 1 }, soon), fails(status.NOT_FOUND));
    await assert.rejects(controls.movePrice({ basisPoints: 2_001 }, soon), fails(status.INVALID_ARGUMENT));
  });

  it('keeps the hours when told to, and says when it opens and closes', async () => {
    await controls.setHours({ keepsHours: true }, soon);
    await market.nextDay(-15 * 60_000);
    const early = await market.accounts.getMarket({}, soon);
    assert.equal(early.session, MarketSession.PAUSED);
    const collected = await submitted({ priceKobo: (await market.instrumentOf(symbol)).upperPriceKobo });
    assert.equal((await reportsOf(market, collected.clientOrderId)).length, 1);
    assert.ok(early.nextOpenAt);
    await controls.setClock({ offsetMs: BigInt(timestampMs(early.nextOpenAt) + 60_000 - Date.now()) }, soon);
    const { today, tradingDay, market: session, keepsHours } = await controls.getDay({}, soon);
    assert.deepEqual([tradingDay, keepsHours, session?.session], [true, true, MarketSession.OPEN]);
    assert.ok(session?.nextCloseAt !== undefined && today !== '');
    await untilReports(market, collected.clientOrderId, [ACCEPTED, TRADE]);
    const day = await submitted();
    const untilClose = timestampMs(session.nextCloseAt) - Date.now();
    await controls.setClock({ offsetMs: BigInt(untilClose + 1_000) }, soon);
    await untilReports(market, day.clientOrderId, [ACCEPTED, EXPIRED]);
    assert.equal((await submitted()).report?.rejectReason, RejectReason.MARKET_CLOSED);
    assert.equal((await market.accounts.getMarket({}, soon)).session, MarketSession.CLOSED);
    await controls.setHours({ keepsHours: false }, soon);
    assert.equal((await submitted()).report?.kind, ACCEPTED);
  });

  it('lets an operator fill some of an order that waits in a book, and follows it', async () => {
    const order = await submitted({ quantity: 100n, timeInForce: TimeInForce.GTC });
    const { clientOrderId } = order;
    await controls.fillOrder({ clientOrderId, quantity: 40n }, soon);
    await controls.movePrice({ symbol, basisPoints: -2_000 }, soon);
    await eventually(async () => assert.equal((await exchangeOrder(market, clientOrderId))?.endedBy, TRADE));
    assert.equal((await exchangeOrder(market, clientOrderId))?.filledQuantity, 100n);
    const parts = (await reportsOf(market, clientOrderId)).filter(({ kind }) => kind === TRADE);
    assert.equal(
      sum(parts, ({ quantity }) => quantity),
      100n,
    );
    await controls.movePrice({ symbol, basisPoints: 0 }, soon);
  });

  it('repeats a report in the stream, and drops every connection but the operator’s', async () => {
    const order = newOrder({ symbol: 'SIM-FILL' });
    await orders.submitOrder(order, soon);
    const reports = await untilReports(market, order.clientOrderId, [ACCEPTED, TRADE]);
    const last = reports.at(-1)?.number ?? 0n;
    const seen: bigint[] = [];
    const stream = orders.streamReports({ afterNumber: last - 1n });
    let broken: unknown;
    const reading = (async () => {
      for await (const message of stream) seen.push(...message.reports.map(({ number }) => number));
    })().catch((error: unknown) => {
      broken = error;
    });
    await eventually(() => assert.deepEqual(seen, [last]));
    const { report } = await controls.repeatReport(order, soon);
    assert.equal(report?.number, last);
    await eventually(() => assert.deepEqual(seen, [last, last]));
    await assert.rejects(controls.repeatReport({ clientOrderId: 'nobody' }, soon), fails(status.NOT_FOUND));
    const { connections } = await controls.dropSession({}, soon);
    assert.ok(connections >= 1, `${connections} connections`);
    await reading;
    assert.ok(broken !== undefined, 'the stream ended');
    await eventually(async () => assert.equal((await orders.getCapabilities({}, soon)).honoursNotAfter, true));
  });

  it('goes on with what waits in the books after a restart, in the order it came', async () => {
    const { lowerPriceKobo } = await market.instrumentOf(symbol);
    const fields = { priceKobo: lowerPriceKobo, quantity: 20_000n, timeInForce: TimeInForce.GTC };
    const first = await submitted(fields);
    const second = await submitted(fields);
    const restarted = await market.restart();
    await restarted.controls.movePrice({ symbol, basisPoints: -2_000 }, soon);
    await eventually(async () => {
      assert.equal((await exchangeOrder(restarted, first.clientOrderId))?.endedBy, TRADE);
    });
    const sale = newOrder({ symbol, side: Side.SELL, priceKobo: lowerPriceKobo, quantity: 10n });
    await restarted.orders.submitOrder(sale, soon);
    await eventually(async () => assert.equal((await exchangeOrder(restarted, second.clientOrderId))?.endedBy, TRADE));
    const trades = async (id: string) => (await reportsOf(restarted, id)).filter(({ kind }) => kind === TRADE);
    const numbers = async (id: string) => (await trades(id)).map(({ number }) => Number(number));
    assert.ok(Math.max(...(await numbers(first.clientOrderId))) < Math.min(...(await numbers(second.clientOrderId))));
  });
});

describe('a record from before the market had books', () => {
  it('goes on, with the columns it lacked', async () => {
    const database = await createTestDatabase();
    after(() => database.drop());
    await (await SimulatorDatabase.open(database.url)).close();
    const connection = await createConnection(database.url);
    await connection.query('ALTER TABLE orders DROP KEY by_book, DROP in_book, DROP traded_on, DROP traded_kobo');
    await connection.query('ALTER TABLE instruments DROP pinned');
    await connection.end();
    const simulator = await startSimulator({ databaseUrl: database.url, port: 0 });
    after(() => simulator.close());
    const clients = connect(simulator.port);
    const { orders, controls } = clients;
    await controls.setAccount({ account, status: AccountStatus.ACTIVE }, soon);
    const order = newOrder({ symbol: 'UBA', type: OrderType.MARKET });
    await orders.submitOrder(order, soon);
    await untilReports(clients, order.clientOrderId, [ACCEPTED, TRADE]);
  });
});
