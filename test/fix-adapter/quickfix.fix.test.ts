/** The adapter against an engine that others wrote: an exchange's gateway made of QuickFIX, with its data dictionaries. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { CancelOutcome, OrderType, ReportKind, Side, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, order, soon, startAdapterProcess, TestAdapter } from '../support/fix/adapter.ts';
import { type Acceptor, field, startAcceptor, whyNoAcceptor } from '../support/quickfix.ts';
import type { TestDatabase } from '../support/servers.ts';

const skip = (await whyNoAcceptor()) ?? false;
const hasCode = (code: status) => (error: { code?: number }) => error.code === code;
const names = { sender: 'EXCHANGE', target: 'MARINA', username: 'marina', password: 'secret-word' };
const settings = {
  MARINA_FIX_USERNAME: 'marina',
  MARINA_FIX_PASSWORD: 'secret-word',
  MARINA_FIX_MASS_STATUS: 'true',
  MARINA_FIX_HEARTBEAT_SECONDS: '1',
  MARINA_FIX_ORDER_FIELDS: '453=1|448=FIRM|447=D|452=1',
};

/** The complaints of an engine. */
function complaints(acceptor: Acceptor): readonly string[] {
  return acceptor.messages().flatMap(({ direction, message }) => {
    const isReject = direction === 'out' && ['3', 'j'].includes(field(message, 35) ?? '');
    return isReject ? [message.replaceAll('\u0001', '|')] : [];
  });
}

for (const version of ['FIXT.1.1', 'FIX.4.4'] as const) {
  describe(`the FIX adapter with QuickFIX, in ${version}`, { skip }, () => {
    let database: TestDatabase;
    let acceptor: Acceptor;
    let fix: TestAdapter;
    before(async () => {
      database = await createFixDatabase();
      acceptor = await startAcceptor({ version, ...names });
      await acceptor.onOrder({ as: 'rest' });
      fix = await TestAdapter.start({
        ...settings,
        MARINA_FIX_VERSION: version,
        MARINA_FIX_DATABASE_URL: database.url,
        MARINA_FIX_ADDRESS: `127.0.0.1:${acceptor.port}`,
      });
      await fix.active();
    });
    beforeEach(async () => {
      await acceptor.forgetRules();
      await acceptor.onOrder({ as: 'rest' });
      await eventually(() => assert.ok(fix.adapter.isUp), 30_000);
    });
    after(async () => {
      await fix.stop();
      await acceptor.kill();
      await database.drop();
    });

    const kindsOf = async (id: string) => {
      const { reports } = await fix.orders.lookUpOrder({ clientOrderId: id }, soon);
      return reports.map(({ kind }) => ReportKind[kind]).join(' ');
    };

    /** The findings about an order that an operator was shown. */
    const findingsOf = (id: string) =>
      fix.logged.flatMap((line) => {
        const { msg, what, orderId } = JSON.parse(line);
        return msg === 'the exchange says what needs a person' && orderId === id ? [String(what)] : [];
      });

    it('sends what its dictionary allows, for every kind of order', async () => {
      const market = { type: OrderType.MARKET, priceKobo: undefined };
      const kinds = [
        {},
        { side: Side.SELL },
        market,
        { timeInForce: TimeInForce.GTC },
        { timeInForce: TimeInForce.IOC },
        { timeInForce: TimeInForce.FOK, ...market },
      ];
      for (const more of kinds) {
        const one = order(more);
        const { report } = await fix.orders.submitOrder(one, soon);
        assert.equal(report?.kind, ReportKind.ACCEPTED);
        await fix.orders.lookUpOrder(one, soon);
        await fix.orders.cancelOrder(one, soon).catch(() => {});
      }
      assert.deepEqual(complaints(acceptor), []);
    });

    it('fills an order in parts, exactly', async () => {
      const one = order();
      await fix.orders.submitOrder(one, soon);
      await acceptor.fill(one.clientOrderId, { quantity: 40, price: '250.50' });
      await acceptor.fill(one.clientOrderId, { quantity: 60, price: '250.45' });
      await eventually(async () => assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE TRADE'));
      const { reports } = await fix.orders.lookUpOrder(one, soon);
      assert.deepEqual(
        reports.slice(1).map(({ quantity, priceKobo }) => [quantity, priceKobo]),
        [
          [40n, 25_050n],
          [60n, 25_045n],
        ],
      );
    });

    it('reports a rejection, a closed market, an expiry and a cancel by the exchange', async () => {
      await acceptor.onOrder({ as: 'reject', reason: 1 });
      const rejected = await fix.orders.submitOrder(order(), soon);
      await acceptor.onOrder({ as: 'rest' });
      assert.equal(rejected.report?.kind, ReportKind.REJECTED);
      const [expired, cancelled] = [order(), order()];
      await fix.orders.submitOrder(expired, soon);
      await fix.orders.submitOrder(cancelled, soon);
      await acceptor.expire(expired.clientOrderId);
      await acceptor.cancel(cancelled.clientOrderId);
      await eventually(async () => {
        assert.equal(await kindsOf(expired.clientOrderId), 'ACCEPTED EXPIRED');
        assert.equal(await kindsOf(cancelled.clientOrderId), 'ACCEPTED CANCELLED');
      });
      assert.equal((await fix.orders.cancelOrder(expired, soon)).outcome, CancelOutcome.TOO_LATE);
    });

    it('cancels, also where the exchange says first that it is pending, and receives a late trade', async () => {
      await acceptor.onCancel({ as: 'pendingThenCancel', afterMs: 50 });
      const one = order();
      await fix.orders.submitOrder(one, soon);
      assert.equal((await fix.orders.cancelOrder(one, soon)).outcome, CancelOutcome.CANCELLED);
      await acceptor.fill(one.clientOrderId, { quantity: 10, price: '250.00' });
      await eventually(async () => assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED CANCELLED TRADE'));
    });

    it('counts an execution that comes again once, however it comes', async () => {
      const one = order();
      await fix.orders.submitOrder(one, soon);
      const execId = await acceptor.fill(one.clientOrderId, { quantity: 40, price: '250.50' });
      for (const as of ['again', 'possResend', 'possDup'] as const) await acceptor.repeat(execId, as);
      await acceptor.fill(one.clientOrderId, { quantity: 60, price: '250.50' });
      await eventually(async () => assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE TRADE'));
    });

    it('shows an operator what no report can express', async () => {
      const one = order();
      await fix.orders.submitOrder(one, soon);
      const execId = await acceptor.fill(one.clientOrderId, { quantity: 40, price: '250.50' });
      await acceptor.cancelTrade(one.clientOrderId, execId);
      await acceptor.reportUnknown({ clOrdId: 'somebody-else' });
      await eventually(() => {
        const found = fix.logged.filter((line) => line.includes('the exchange says what needs a person')).join('\n');
        assert.match(found, /trade_cancelled/);
        assert.match(found, /unknown_order/);
      });
      assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE');
    });

    it('shows a trade that was corrected, and an order that was changed and not one that was restated as it is', async () => {
      const one = order({ timeInForce: TimeInForce.GTC });
      await fix.orders.submitOrder(one, soon);
      await acceptor.restate(one.clientOrderId, { reason: 1 });
      const execId = await acceptor.fill(one.clientOrderId, { quantity: 40, price: '250.50' });
      await acceptor.correctTrade(one.clientOrderId, { execId, quantity: 40, price: '250.40' });
      await acceptor.restate(one.clientOrderId, { quantity: 90 });
      const found = await eventually(() => {
        const about = findingsOf(one.clientOrderId);
        assert.ok(about.length >= 2, about.join());
        return about;
      });
      assert.deepEqual(found, ['trade_corrected', 'restated']);
      assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE');
    });

    it('reports an order that is done for the day as expired, unless it is good till cancelled', async () => {
      const [day, gtc] = [order(), order({ timeInForce: TimeInForce.GTC })];
      for (const one of [day, gtc]) {
        await fix.orders.submitOrder(one, soon);
        await acceptor.doneForDay(one.clientOrderId);
      }
      await eventually(async () => assert.equal(await kindsOf(day.clientOrderId), 'ACCEPTED EXPIRED'));
      assert.equal(await kindsOf(gtc.clientOrderId), 'ACCEPTED');
    });

    it('asks about all orders when messages were passed over, and finds trades missing', async () => {
      const one = order();
      await fix.orders.submitOrder(one, soon);
      const massStatus = () =>
        acceptor.messages().filter(({ direction, message }) => direction === 'in' && field(message, 35) === 'AF');
      const before = massStatus().length;
      await acceptor.skipOutgoing(2);
      await acceptor.fill(one.clientOrderId, { quantity: 10, price: '250.50' });
      await eventually(() => assert.ok(massStatus().length > before), 20_000);
      assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE');
    });

    it('goes on behind garbage, and comes back from wrong numbers and from Logons that are refused', async () => {
      await acceptor.sendBytes('8=FIX garbage\u00019=5\u0001');
      const one = order({ timeInForce: TimeInForce.GTC });
      await fix.orders.submitOrder(one, soon);
      // It expects numbers that have not come: each Logon that it refuses takes one.
      await acceptor.expectIncoming(2);
      await assert.rejects(fix.orders.submitOrder(order(), soon));
      await eventually(() => assert.ok(fix.adapter.isUp), 40_000);
      for (const as of ['logout', 'disconnect', 'silent'] as const) {
        await acceptor.onLogon({ as, text: 'not now' });
        await acceptor.disconnect();
        await eventually(() => assert.equal(fix.adapter.isUp, false));
        await assert.rejects(fix.orders.submitOrder(order(), soon), hasCode(status.FAILED_PRECONDITION));
        await acceptor.onLogon({ as: 'accept' });
        await eventually(() => assert.ok(fix.adapter.isUp), 60_000);
      }
      await acceptor.fill(one.clientOrderId, { quantity: 100, price: '250.50' });
      await eventually(async () => assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE'));
    });

    it('knows what became of an order that was read, and whose answer was lost with the connection', async () => {
      const one = order();
      await acceptor.onNext({ type: 'D', action: 'disconnectAfter' });
      const { report } = await fix.orders.submitOrder(one, { timeoutMs: 20_000 });
      assert.equal(report?.kind, ReportKind.ACCEPTED);
      assert.equal(acceptor.receivedOrders().get(one.clientOrderId), 1);
    });

    it('proves that an order was not taken which was lost with the connection', async () => {
      const one = order({ notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 30), nanos: 0 } });
      await acceptor.onNext({ type: 'D', action: 'disconnectBefore' });
      await assert.rejects(fix.orders.submitOrder(one, { timeoutMs: 25_000 }), hasCode(status.FAILED_PRECONDITION));
      assert.equal((await fix.orders.lookUpOrder(one, soon)).found, false);
      assert.deepEqual(
        (await acceptor.orders()).filter(({ clOrdId }) => clOrdId === one.clientOrderId),
        [],
      );
      assert.equal(acceptor.receivedOrders().get(one.clientOrderId), 1, 'it was written once');
    });

    it('rejects an order that the exchange rejects by its session or its application', async () => {
      for (const action of ['sessionReject', 'businessReject'] as const) {
        await acceptor.onNext({ type: 'D', action });
        const { report } = await fix.orders.submitOrder(order(), soon);
        assert.equal(report?.kind, ReportKind.REJECTED, action);
      }
    });

    it('receives everything again behind a gap of the exchange, and fills its own', async () => {
      const one = order();
      await fix.orders.submitOrder(one, soon);
      await acceptor.skipOutgoing(3);
      await acceptor.fill(one.clientOrderId, { quantity: 100, price: '250.50' });
      await eventually(async () => assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE'));
      // It thinks that it has not read some messages.
      await acceptor.expectIncoming(-2);
      const two = order({ notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 30), nanos: 0 } });
      // Whether it takes an order out of such a gap is its affair; it is asked, and sent nothing twice.
      const answer = await fix.orders
        .submitOrder(two, { timeoutMs: 25_000 })
        .catch((error: { code: number }) => error.code);
      const isTaken = (await acceptor.orders()).some(({ clOrdId }) => clOrdId === two.clientOrderId);
      assert.equal(typeof answer === 'number' ? answer : 0, isTaken ? 0 : status.FAILED_PRECONDITION);
      assert.equal(acceptor.receivedOrders().get(two.clientOrderId), 1);
    });

    it('goes on after the exchange was killed, with all that happened meanwhile', async () => {
      const one = order({ timeInForce: TimeInForce.GTC });
      await fix.orders.submitOrder(one, soon);
      await acceptor.kill();
      await eventually(() => assert.equal(fix.adapter.isUp, false));
      await assert.rejects(fix.orders.submitOrder(order(), soon), hasCode(status.FAILED_PRECONDITION));
      await acceptor.start();
      await acceptor.onOrder({ as: 'rest' });
      await eventually(() => assert.ok(fix.adapter.isUp), 40_000);
      await acceptor.fill(one.clientOrderId, { quantity: 100, price: '250.50' });
      await eventually(async () => assert.equal(await kindsOf(one.clientOrderId), 'ACCEPTED TRADE'));
    });

    it('gives up a frozen exchange, and asks what became of the order', async () => {
      const one = order({ notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 40), nanos: 0 } });
      await acceptor.onNext({ type: 'D', action: 'freeze' });
      const answer = fix.orders.submitOrder(one, { timeoutMs: 35_000 }).catch((error: { code: number }) => error.code);
      await eventually(() => assert.equal(fix.adapter.isUp, false), 20_000);
      await acceptor.thaw();
      const settled = await answer;
      const isTaken = (await acceptor.orders()).some(({ clOrdId }) => clOrdId === one.clientOrderId);
      assert.equal(typeof settled === 'number', !isTaken);
      assert.ok((acceptor.receivedOrders().get(one.clientOrderId) ?? 0) <= 1);
    });

    it('has sent no order twice in all of this, and its reports have no gap', async () => {
      assert.deepEqual([...new Set(acceptor.receivedOrders().values())], [1]);
      const numbers: bigint[] = [];
      for await (const { reports, lastNumber } of fix.orders.streamReports({ afterNumber: 0n }, soon)) {
        numbers.push(...reports.map(({ number }) => number));
        if (BigInt(numbers.length) >= lastNumber) break;
      }
      assert.deepEqual(
        numbers,
        numbers.map((_, at) => BigInt(at + 1)),
      );
    });
  });
}

describe('orders to QuickFIX while adapters are killed', { skip }, () => {
  it('are each sent at most once, and all that the exchange did is reported once', async () => {
    const database = await createFixDatabase();
    const acceptor = await startAcceptor(names);
    await acceptor.onOrder({ as: 'fill' });
    const variables = {
      ...settings,
      MARINA_FIX_DATABASE_URL: database.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${acceptor.port}`,
    };
    const sent: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const adapter = await startAdapterProcess(variables);
      const { orders } = await adapter.active();
      await eventually(() => orders.submitOrder(order(), soon), 40_000);
      const placing = Array.from({ length: 60 }, async () => {
        const one = order();
        sent.push(one.clientOrderId);
        await orders.submitOrder(one, { timeoutMs: 3_000 }).catch(() => {});
      });
      const before = acceptor.receivedOrders().size;
      await eventually(() => assert.ok(acceptor.receivedOrders().size >= before + 1 + round * 10));
      await adapter.kept.kill();
      await Promise.all(placing);
      orders.close();
    }
    const last = await startAdapterProcess(variables);
    const { orders } = await last.active();
    const book = new Map((await acceptor.orders()).map((one) => [one.clOrdId, one]));
    for (const id of sent) {
      const { found, reports } = await eventually(() => orders.lookUpOrder({ clientOrderId: id }, soon), 60_000);
      assert.equal(found, book.has(id), id);
      const traded = reports.reduce((sum, { quantity }) => sum + quantity, 0n);
      assert.equal(traded, BigInt(book.get(id)?.filled ?? 0), id);
    }
    const times = acceptor.receivedOrders();
    assert.ok([...times.values()].every((count) => count === 1));
    assert.ok(times.size > 10, 'orders reached the exchange');
    orders.close();
    await last.kept.stop();
    await acceptor.kill();
    await database.drop();
  });
});
