import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { messageTypes, tags } from '../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { CancelOutcome, ReportKind } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';

const hasCode = (code: status) => (error: { code?: number }) => error.code === code;

describe('the FIX adapter', () => {
  let database: Awaited<ReturnType<typeof createFixDatabase>>;
  let exchange: Exchange;
  let fix: TestAdapter;
  const isUp = () => eventually(() => assert.ok(fix.adapter.isUp), 20_000);
  beforeEach(isUp);
  before(async () => {
    database = await createFixDatabase();
    exchange = await Exchange.start();
    fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: database.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_USERNAME: 'marina',
      MARINA_FIX_PASSWORD: 'correct horse',
    });
    await fix.active();
  });
  after(async () => {
    await fix.stop();
    await exchange.close();
    await database.drop();
  });

  it('sends an order as the exchange reads it, and answers its acceptance', async () => {
    const one = order();
    const { report, brokerTime } = await fix.orders.submitOrder(one, soon);
    assert.equal(report?.kind, ReportKind.ACCEPTED);
    assert.equal(report.clientOrderId, one.clientOrderId);
    assert.ok(brokerTime !== undefined);
    const sent = exchange.book.get(one.clientOrderId)?.order;
    assert.deepEqual(
      [tags.Account, tags.Symbol, tags.Side, tags.OrderQty, tags.OrdType, tags.Price, tags.TimeInForce].map((tag) =>
        sent?.get(tag),
      ),
      ['NG-0000001', 'MTNN', '1', '100', '2', '250.50', '0'],
    );
  });

  it('answers a rejection with its reason', async () => {
    exchange.treat = () => 'reject';
    const { report } = await fix.orders.submitOrder(order(), soon);
    assert.equal(report?.kind, ReportKind.REJECTED);
    exchange.treat = () => 'accept';
  });

  it('numbers trades, shows them in the stream and in a look-up, and counts each ExecID once', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const fields = exchange.fill(one.clientOrderId, 40, '250.5');
    exchange.send('8', ...fields);
    exchange.fill(one.clientOrderId, 60, '250.45');
    const { reports } = await eventually(async () => {
      const found = await fix.orders.lookUpOrder({ clientOrderId: one.clientOrderId }, soon);
      assert.equal(found.reports.length, 3);
      return found;
    });
    assert.deepEqual(
      reports.map(({ kind, quantity, priceKobo }) => [kind, quantity, priceKobo]),
      [
        [ReportKind.ACCEPTED, 0n, 0n],
        [ReportKind.TRADE, 40n, 25_050n],
        [ReportKind.TRADE, 60n, 25_045n],
      ],
    );
    const numbers: bigint[] = [];
    for await (const { reports } of fix.orders.streamReports({ afterNumber: 0n }, soon)) {
      numbers.push(...reports.map(({ number }) => number));
      if (numbers.at(-1) === reports.at(-1)?.number && numbers.length >= 5) break;
    }
    assert.deepEqual(
      numbers,
      numbers.map((_, at) => BigInt(at + 1)),
    );
  });

  it('never states a last number that it has not sent, however many reports there are', async () => {
    const one = order({ quantity: 700n });
    await fix.orders.submitOrder(one, soon);
    for (let count = 0; count < 700; count += 1) exchange.fill(one.clientOrderId, 1, '250.5');
    await eventually(async () => {
      const { reports } = await fix.orders.lookUpOrder({ clientOrderId: one.clientOrderId }, soon);
      assert.equal(reports.length, 701);
    });
    let last = 0n;
    let messages = 0;
    for await (const { reports, lastNumber } of fix.orders.streamReports({ afterNumber: 0n }, soon)) {
      messages += 1;
      last = reports.at(-1)?.number ?? last;
      assert.ok(lastNumber <= last, `message ${messages} states ${lastNumber} after report ${last}`);
      if (last > 700n && reports.length === 0) break;
    }
    assert.ok(messages > 2);
  });

  it('refuses an id that it has taken', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    await assert.rejects(fix.orders.submitOrder({ ...one, quantity: 5n }, soon), hasCode(status.ALREADY_EXISTS));
    assert.equal(exchange.arrivals.get(one.clientOrderId), 1);
  });

  it('knows an id that it has taken, also if a copy comes too late or while there is no session', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const late = { ...one, notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) - 1), nanos: 0 } };
    await assert.rejects(fix.orders.submitOrder(late, soon), hasCode(status.ALREADY_EXISTS));
    exchange.answersLogon = false;
    exchange.cut();
    await eventually(() => assert.equal(fix.adapter.isUp, false));
    await assert.rejects(fix.orders.submitOrder(one, soon), hasCode(status.ALREADY_EXISTS));
    exchange.answersLogon = true;
    exchange.cut();
    await isUp();
    assert.equal(exchange.arrivals.get(one.clientOrderId), 1);
  });

  it('takes no copy of an order that it has refused as never sent', async () => {
    const [early, late] = [order(), order()];
    const past = { ...late, notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) - 1), nanos: 0 } };
    await assert.rejects(fix.orders.submitOrder(past, soon), hasCode(status.FAILED_PRECONDITION));
    exchange.answersLogon = false;
    exchange.cut();
    await eventually(() => assert.equal(fix.adapter.isUp, false));
    await assert.rejects(fix.orders.submitOrder(early, soon), hasCode(status.FAILED_PRECONDITION));
    exchange.answersLogon = true;
    exchange.cut();
    await isUp();
    for (const copy of [early, late]) {
      await assert.rejects(fix.orders.submitOrder(copy, soon), hasCode(status.ALREADY_EXISTS));
      assert.equal((await fix.orders.lookUpOrder(copy, soon)).found, false);
      assert.equal(exchange.arrivals.has(copy.clientOrderId), false);
    }
  });

  it('receives every trade, also one with a long ExecID and a time that there is not, and goes on', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const { connections } = exchange;
    const about = exchange.fill(one.clientOrderId, 40, '250.5', false);
    const odd = new Map([
      [tags.ExecID, 'e'.repeat(300)],
      [tags.TransactTime, '00010101-00:00:00.000'],
    ] as readonly [number, string][]);
    const fields = about.map(([tag, value]) => [tag, odd.get(tag) ?? value] as const);
    exchange.send(messageTypes.ExecutionReport, ...fields);
    exchange.send(messageTypes.ExecutionReport, ...fields);
    // About an order that nobody has sent from here.
    exchange.send(
      messageTypes.ExecutionReport,
      ...fields.map(([tag, value]) => [tag, tag === tags.ClOrdID ? '~'.repeat(300) : value] as const),
    );
    exchange.fill(one.clientOrderId, 60, '250.5');
    await eventually(async () => {
      const { reports } = await fix.orders.lookUpOrder(one, soon);
      assert.deepEqual(
        reports.map(({ kind, quantity }) => [kind, quantity]),
        [
          [ReportKind.ACCEPTED, 0n],
          [ReportKind.TRADE, 40n],
          [ReportKind.TRADE, 60n],
        ],
      );
    });
    assert.equal(exchange.connections, connections, 'the session goes on');
  });

  it('takes no order whose id looks like that of a request to cancel', async () => {
    const one = order({ clientOrderId: 'ord_like.c1' });
    await assert.rejects(fix.orders.submitOrder(one, soon), hasCode(status.INVALID_ARGUMENT));
    assert.equal(exchange.arrivals.has(one.clientOrderId), false);
  });

  it('takes one of two orders with one id that come together', async () => {
    const one = order();
    const answers = await Promise.allSettled([fix.orders.submitOrder(one, soon), fix.orders.submitOrder(one, soon)]);
    assert.deepEqual(answers.map((answer) => answer.status).sort(), ['fulfilled', 'rejected']);
    assert.equal(exchange.arrivals.get(one.clientOrderId), 1);
  });

  it('cancels an order once, and says so again', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const first = await fix.orders.cancelOrder(one, soon);
    assert.equal(first.outcome, CancelOutcome.CANCELLED);
    const second = await fix.orders.cancelOrder(one, soon);
    assert.deepEqual(second.report, first.report);
    assert.equal(exchange.received.filter((message) => message.get(tags.OrigClOrdID) === one.clientOrderId).length, 1);
  });

  it('asks the exchange once for several cancels of an order that come together, and answers each', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const { connections } = exchange;
    const answers = await Promise.all(Array.from({ length: 30 }, () => fix.orders.cancelOrder(one, soon)));
    for (const { outcome, report } of answers) {
      assert.equal(outcome, CancelOutcome.CANCELLED);
      assert.deepEqual(report, answers[0]?.report);
    }
    assert.equal(exchange.received.filter((message) => message.get(tags.OrigClOrdID) === one.clientOrderId).length, 1);
    assert.equal(exchange.connections, connections, 'the session goes on');
  });

  it('says that a cancel is too late for an order that was filled', async () => {
    const one = order();
    exchange.treat = () => 'fill';
    await fix.orders.submitOrder(one, soon);
    exchange.treat = () => 'accept';
    await eventually(async () => {
      const { outcome } = await fix.orders.cancelOrder(one, soon);
      assert.equal(outcome, CancelOutcome.TOO_LATE);
    });
  });

  it('knows no order that it was not given', async () => {
    const { found } = await fix.orders.lookUpOrder({ clientOrderId: 'ord_nobody' }, soon);
    assert.equal(found, false);
    await assert.rejects(fix.orders.cancelOrder({ clientOrderId: 'ord_nobody' }, soon), hasCode(status.NOT_FOUND));
  });

  it('never sends an order whose time has run out', async () => {
    const one = order({ notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) - 1), nanos: 0 } });
    await assert.rejects(fix.orders.submitOrder(one, soon), hasCode(status.FAILED_PRECONDITION));
    assert.equal((await fix.orders.lookUpOrder(one, soon)).found, false);
    await fix.orders.submitOrder(order(), soon);
    assert.equal(exchange.arrivals.get(one.clientOrderId), undefined);
  });

  it('finds out what became of an order whose answer was lost, and sends it once', async () => {
    const one = order();
    exchange.treat = () => 'lose';
    // The answer comes over the next connection.
    const { report } = await fix.orders.submitOrder(one, soon);
    assert.equal(report?.kind, ReportKind.ACCEPTED);
    exchange.treat = () => 'accept';
    await eventually(async () => {
      const { found, reports } = await fix.orders.lookUpOrder(one, soon);
      assert.ok(found);
      assert.deepEqual(
        reports.map(({ kind }) => kind),
        [ReportKind.ACCEPTED],
      );
    }, 20_000);
    assert.equal(exchange.arrivals.get(one.clientOrderId), 1);
  });

  it('proves that an order was never taken which the exchange had not read when the connection broke', async () => {
    const one = order();
    exchange.treat = () => 'drop';
    await assert.rejects(fix.orders.submitOrder(one, soon), hasCode(status.FAILED_PRECONDITION));
    exchange.treat = () => 'accept';
    await eventually(async () => assert.equal((await fix.orders.lookUpOrder(one, soon)).found, false), 20_000);
    assert.equal(exchange.arrivals.get(one.clientOrderId) ?? 0, 0);
    await assert.rejects(fix.orders.submitOrder(one, soon), hasCode(status.ALREADY_EXISTS));
  });

  it('takes no answer for a proof while an order may be on its way through the exchange, over the next connection too', async () => {
    const one = order();
    exchange.treat = () => 'slow';
    const answer = fix.orders.submitOrder(one, soon);
    await eventually(() => assert.equal(exchange.arrivals.get(one.clientOrderId), 1));
    exchange.treat = () => 'accept';
    const { connections } = exchange;
    exchange.cut();
    await eventually(() => assert.ok(exchange.connections > connections && fix.adapter.isUp), 20_000);
    await assert.rejects(fix.orders.lookUpOrder(one, soon), hasCode(status.UNAVAILABLE));
    exchange.finish(one.clientOrderId);
    assert.equal((await answer).report?.kind, ReportKind.ACCEPTED);
    assert.equal((await fix.orders.lookUpOrder(one, soon)).found, true);
  });

  it('takes no question for a proof that was on its way when the exchange read the order', async () => {
    const one = order();
    exchange.treat = () => 'slow';
    const answer = fix.orders.submitOrder(one, soon);
    await eventually(() => assert.equal(exchange.arrivals.get(one.clientOrderId), 1));
    exchange.treat = () => 'accept';
    const asked = () => exchange.received.filter((message) => message.type === messageTypes.OrderStatusRequest).length;
    const before = asked();
    exchange.send(messageTypes.ResendRequest, [tags.BeginSeqNo, '1'], [tags.EndSeqNo, '0']);
    await eventually(() => assert.equal(asked(), before + 1));
    await assert.rejects(fix.orders.lookUpOrder(one, soon), hasCode(status.UNAVAILABLE));
    exchange.finish(one.clientOrderId);
    assert.equal((await answer).report?.kind, ReportKind.ACCEPTED);
  });

  it('fetches the trades that it missed while the connection was broken, each once', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    exchange.cut();
    exchange.fill(one.clientOrderId, 30, '250.00', false);
    exchange.sendIntoNothing(
      '8',
      ...exchange.report(one.clientOrderId, 'F', [
        [tags.LastQty, '30'],
        [tags.LastPx, '250.00'],
      ]),
    );
    await eventually(async () => {
      const { reports } = await fix.orders.lookUpOrder(one, soon);
      assert.deepEqual(
        reports.map(({ kind, quantity }) => [kind, quantity]),
        [
          [ReportKind.ACCEPTED, 0n],
          [ReportKind.TRADE, 30n],
        ],
      );
    }, 20_000);
  });

  it('refuses orders at once as never sent while there is no session', async () => {
    exchange.answersLogon = false;
    exchange.cut();
    await eventually(() => assert.equal(fix.adapter.isUp, false));
    const began = performance.now();
    await assert.rejects(fix.orders.submitOrder(order(), soon), hasCode(status.FAILED_PRECONDITION));
    assert.ok(performance.now() - began < 1_000);
    exchange.answersLogon = true;
    exchange.cut();
    await isUp();
  });

  it('the FIX adapter keeps its session, and asks again later, while the database cannot say which orders are in doubt', async () => {
    const owner = new Database(await connect({ url: database.ownerUrl, poolSize: 1 }), 'live', 1);
    const before = fix.logged.length;
    const later = () => fix.logged.slice(before).join('');
    try {
      await owner.write(statement('RENAME TABLE fix_orders TO fix_orders_away'));
      await eventually(() => assert.match(later(), /"worker":"doubts"/), 20_000);
    } finally {
      await owner.write(statement('RENAME TABLE fix_orders_away TO fix_orders'));
      await owner.close();
    }
    assert.equal((await fix.orders.submitOrder(order(), soon)).report?.kind, ReportKind.ACCEPTED);
    assert.ok(fix.adapter.isUp);
    assert.doesNotMatch(later(), /the session with the exchange ended|this process has the session no more/);
  });

  it('lists what was taken, with its note', async () => {
    const { submissions } = await fix.submissions
      .listSubmissions({ afterNumber: 0n, limit: 1_000 }, soon)
      .catch((error: { code: number }) => {
        assert.equal(error.code, status.UNAVAILABLE, 'without a back office nobody knows whether the list is whole');
        return { submissions: [] };
      });
    assert.deepEqual(submissions, []);
  });

  it('writes no account and no password into its log', () => {
    const text = fix.logged.join('\n');
    assert.ok(!text.includes('NG-0000001') && !text.includes('correct horse'));
  });
});
