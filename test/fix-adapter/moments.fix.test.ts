import assert from 'node:assert/strict';
import { messageTypes } from '../../src/fix-adapter/wire/tags.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { CancelOutcome, ReportKind } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../support/eventually.ts';
import { describeMomentsOf } from '../support/fault/moments/scenario.ts';
import { WatchedAdapter } from '../support/fault/moments/watched-adapter.ts';
import { soon } from '../support/fix/adapter.ts';

/** The orders of a day, with the reports that each must have in the end. */
type Day = Map<string, readonly ReportKind[]>;

const { ACCEPTED, TRADE, CANCELLED, EXPIRED } = ReportKind;
/** An adapter without a new moment for this time is at rest. */
const quietMs = 500;

await describeMomentsOf<WatchedAdapter, Day>({
  name: 'a day of the FIX adapter',
  // The log of messages is written from time to time, and may lose lines.
  only: /^(?!commit insert fix_messages)/,
  start: () => WatchedAdapter.start(),
  async prepare(watched) {
    // The day begins with a Logon.
    await watched.restart();
    return new Map();
  },
  async run(watched, day) {
    const { exchange } = watched;
    const filled = await watched.place();
    day.set(filled, [ACCEPTED, TRADE, TRADE]);
    exchange.fill(filled, 40, '250.50');
    exchange.fill(filled, 60, '250.50');
    const cancelled = await watched.place();
    day.set(cancelled, [ACCEPTED, CANCELLED]);
    const { outcome } = await eventually(
      async () => (await watched.orders()).cancelOrder({ clientOrderId: cancelled }, soon),
      40_000,
    );
    assert.equal(outcome, CancelOutcome.CANCELLED);
    const expired = await watched.place();
    day.set(expired, [ACCEPTED, EXPIRED]);
    exchange.end(expired, 'C');
    exchange.send(messageTypes.Logout);
  },
  async rest(watched, day) {
    for (const [clientOrderId, kinds] of day) {
      await eventually(async () => {
        const { reports } = await (await watched.orders()).lookUpOrder({ clientOrderId }, soon);
        assert.equal(reports.length, kinds.length, `reports of ${clientOrderId}`);
      }, 40_000);
    }
    let [last, since] = [-1, performance.now()];
    await eventually(async () => {
      await watched.orders();
      const { moments } = await watched.seen();
      if (moments.length !== last) [last, since] = [moments.length, performance.now()];
      assert.ok(performance.now() - since >= quietMs, 'the adapter still works');
      assert.ok(watched.exchange.isConnected, 'the adapter logs on again');
    }, 30_000);
  },
  async check(watched, day) {
    const orders = await watched.orders();
    for (const [id, times] of watched.exchange.arrivals) assert.equal(times, 1, `${id} was sent once`);
    for (const [clientOrderId, expected] of day) {
      const { found, reports } = await watched.lookUp(clientOrderId);
      assert.ok(found);
      assert.deepEqual(
        reports.map(({ kind }) => kind),
        expected,
      );
      const traded = reports.reduce((sum, { quantity }) => sum + quantity, 0n);
      assert.equal(
        traded,
        BigInt(watched.exchange.book.get(clientOrderId)?.filled ?? 0),
        'each trade is reported once',
      );
    }
    let next = 1n;
    for await (const { reports, lastNumber } of orders.streamReports({ afterNumber: 0n }, soon)) {
      for (const { number } of reports) {
        assert.equal(number, next, 'the numbers of reports are dense');
        next += 1n;
      }
      if (next > lastNumber) break;
    }
    const findings = await watched.database.read(statement('SELECT what, order_id FROM fix_findings'));
    assert.deepEqual(findings, [], 'nothing is left for a person to find out');
  },
});
