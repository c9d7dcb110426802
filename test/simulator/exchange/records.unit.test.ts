import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { Records } from '../../../src/simulator/exchange/records.ts';
import { maxPage } from '../../../src/simulator/store/pages.ts';
import { orderRequest, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const { ACCEPTED, TRADE, CANCELLED } = ReportKind;

async function start() {
  const broker = await SimulatedBroker.start();
  const order = (id: string, kinds: readonly ReportKind[], account = 'A1') =>
    broker.change({ orders: [id] }, (unit) => {
      const found = unit.order(id) ?? unit.addOrder(orderRequest({ clientOrderId: id, account }), true);
      for (const kind of kinds) unit.report(found, kind, { quantity: 1 });
    });
  const message = (call: Call, clientOrderId: string, account = 'A1', taken = true) =>
    broker.change({}, (unit) => {
      const about = { requestId: 'req', traceParent: 'trace', receivedAtMs: wednesday };
      return unit.message({ call, clientOrderId, account, taken, ...about });
    });
  return { broker, records: new Records(broker.database.asDatabase), order, message };
}

describe('the records of the simulated exchange', () => {
  it('a look-up has the reports of its order alone, above the number', async () => {
    const { records, order } = await start();
    await order('ord_1', [ACCEPTED]);
    await order('ord_2', [ACCEPTED, TRADE]);
    await order('ord_1', [TRADE, CANCELLED]);
    const numbers = async (id: string, after: number) => {
      const { found, records: reports, hasMore } = await records.reportsOf(id, after);
      return [found, reports.map(({ number }) => number), hasMore];
    };
    assert.deepEqual(await numbers('ord_1', 0), [true, [1, 4, 5], false]);
    assert.deepEqual(await numbers('ord_1', 1), [true, [4, 5], false]);
    assert.deepEqual(await numbers('ord_1', 5), [true, [], false]);
    assert.deepEqual(await numbers('ord_9', 0), [false, [], false]);
  });

  it('a look-up has 1,000 reports, and says whether there are more', async () => {
    const { records, order } = await start();
    await order(
      'ord_1',
      Array.from({ length: maxPage }, () => TRADE),
    );
    const { records: all, hasMore } = await records.reportsOf('ord_1', 0);
    assert.deepEqual([all.length, hasMore], [maxPage, false]);
    await order('ord_1', [TRADE]);
    const more = await records.reportsOf('ord_1', 0);
    assert.deepEqual([more.records.length, more.hasMore, more.records.at(-1)?.number], [maxPage, true, maxPage]);
  });

  it('reports for a stream are those behind a number up to the last that may be seen', async () => {
    const { records, order } = await start();
    await order('ord_1', [ACCEPTED, TRADE, TRADE, TRADE, CANCELLED]);
    const numbers = async (after: number, last: number, limit: number) =>
      (await records.reportsAfter(after, last, limit)).map(({ number }) => number);
    assert.deepEqual(await numbers(0, 5, 10), [1, 2, 3, 4, 5]);
    assert.deepEqual(await numbers(2, 4, 10), [3, 4]);
    assert.deepEqual(await numbers(1, 5, 2), [2, 3]);
    assert.deepEqual(await numbers(5, 5, 2), []);
  });

  it('an order’s cancellation, last report and account are its own', async () => {
    const { records, order } = await start();
    await order('ord_1', [ACCEPTED, CANCELLED, TRADE]);
    await order('ord_2', [ACCEPTED], 'A2');
    assert.deepEqual((await records.cancellationOf('ord_1'))?.number, 2);
    assert.equal(await records.cancellationOf('ord_2'), undefined);
    assert.equal((await records.lastReportOf('ord_1'))?.number, 3);
    assert.equal(await records.lastReportOf('ord_9'), undefined);
    assert.deepEqual([await records.accountOf('ord_2'), await records.accountOf('ord_9')], ['A2', '']);
  });

  it('received messages are by number, of one order if it is named, 1,000 at most', async () => {
    const { broker, records, message } = await start();
    await message(Call.SUBMIT_ORDER, 'ord_1', 'A1', false);
    await message(Call.LOOK_UP_ORDER, 'ord_2');
    await message(Call.CANCEL_ORDER, 'ord_1');
    assert.deepEqual(await records.messages(0, 'ord_2'), {
      messages: [
        {
          ...{ number: 2n, call: Call.LOOK_UP_ORDER, clientOrderId: 'ord_2', account: 'A1', taken: true },
          ...{ requestId: 'req', traceparent: 'trace', receivedAt: timestampFromMs(wednesday) },
        },
      ],
      hasMore: false,
    });
    const numbers = async (after: number, id: string) =>
      (await records.messages(after, id)).messages.map(({ number }) => number);
    assert.deepEqual(
      [await numbers(0, 'ord_1'), await numbers(1, 'ord_1'), await numbers(1, '')],
      [[1n, 3n], [3n], [2n, 3n]],
    );
    assert.equal((await records.messages(0, 'ord_1')).messages[0]?.taken, false);
    await broker.change({}, (unit) => {
      const about = { account: '', taken: true, requestId: '', traceParent: '', receivedAtMs: 0 };
      for (let at = 3; at < maxPage; at += 1) unit.message({ call: Call.CANCEL_ORDER, clientOrderId: '', ...about });
    });
    assert.equal((await records.messages(0, '')).hasMore, false);
    const rest = await records.messages(1, '');
    assert.deepEqual([rest.messages.length, rest.hasMore], [maxPage - 1, false]);
    await message(Call.CANCEL_ORDER, '');
    const { messages, hasMore } = await records.messages(0, '');
    assert.deepEqual([messages.length, hasMore], [maxPage, true]);
  });

  it('submissions have their notes, behind a number', async () => {
    const { broker, records } = await start();
    await broker.change({}, (unit) => {
      for (const id of ['ord_1', 'ord_2', 'ord_3']) unit.submitted(id, Buffer.from(`note of ${id}`));
    });
    assert.deepEqual(await records.submissions(1, 1), [
      { number: 2n, clientId: 'ord_2', note: Buffer.from('note of ord_2') },
    ]);
    assert.equal((await records.submissions(1, 10)).length, 2);
  });

  it('the exchange’s orders are in the order in which they came, each with how often it was submitted', async () => {
    const { records, order, message } = await start();
    await order('ord_2', [ACCEPTED], 'A2');
    await order('ord_1', [ACCEPTED]);
    for (let times = 0; times < 3; times += 1) await message(Call.SUBMIT_ORDER, 'ord_2', 'A2');
    await message(Call.LOOK_UP_ORDER, 'ord_2', 'A2');
    assert.deepEqual(await records.orders(0, 'ord_2'), {
      orders: [
        {
          ...{ sequence: 1n, clientOrderId: 'ord_2', exchangeOrderId: 'NGX000000000001', account: 'A2' },
          ...{ symbol: 'SIM-REST', quantity: 100n, filledQuantity: 0n, endedBy: 0, timesReceived: 3 },
        },
      ],
      hasMore: false,
    });
    const ids = async (after: number) =>
      (await records.orders(after, '')).orders.map(({ clientOrderId }) => clientOrderId);
    assert.deepEqual([await ids(0), await ids(1), await ids(2)], [['ord_2', 'ord_1'], ['ord_1'], []]);
    assert.equal((await records.orders(0, '')).orders[1]?.timesReceived, 0);
    assert.equal((await records.orders(1, 'ord_2')).orders.length, 0);
  });

  it('an order in the list has what is filled and how it ended', async () => {
    const { broker, records, order } = await start();
    await order('ord_1', [ACCEPTED]);
    await broker.change({ orders: ['ord_1'] }, (unit) => {
      const found = unit.order('ord_1');
      assert.ok(found);
      found.filled = 40;
      found.endedBy = CANCELLED;
      unit.changedOrders.add(found);
    });
    const [stored] = (await records.orders(0, '')).orders;
    assert.deepEqual([stored?.filledQuantity, stored?.endedBy], [40n, CANCELLED]);
  });
});
