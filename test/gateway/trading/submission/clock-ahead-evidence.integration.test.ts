import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Metrics } from '../../../../src/gateway/edge/metrics.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { BrokerClock } from '../../../../src/gateway/trading/broker/clock.ts';
import { Change } from '../../../../src/gateway/trading/submission/change.ts';
import { ClockWatch } from '../../../../src/gateway/trading/submission/clock-watch.ts';
import { Recorder } from '../../../../src/gateway/trading/submission/record.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';
import { ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { openSettling, type Settling } from '../../../support/settling.ts';

const minuteMs = 60_000;

describe('a report about an order', () => {
  let settling: Settling;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());

  /** Returns the knowledge of a replica with a right clock after a report that the broker's right clock states. */
  async function knownAfter(storedAheadMs: number, reportAheadMs: number) {
    const { database, clock, ids, log, order: kind } = settling;
    const brokerClock = new BrokerClock(2_000);
    const broker = { id: firstBroker, clock: brokerClock, orders: { honoursNotAfter: async () => true } };
    const watch = new ClockWatch(broker, database, { offsetMs: 0 }, log);
    const gate = new StartGate();
    gate.open();
    const parts = { database, clock, ids, gate, log, metrics: new Metrics(), relay: { notify: () => {} } };
    const recorder = new Recorder({ ...parts, clocks: watch });
    const now = clock.now();
    const createdAt = now + storedAheadMs;
    const order = await settling.storeOrder({ partnerId: await settling.newPartner(), state: 'pending', createdAt });
    const report = create(ReportSchema, {
      ...{ number: 1n, clientOrderId: order.id, exchangeOrderId: 'X1', kind: ReportKind.TRADE },
      ...{ at: timestampFromMs(now + reportAheadMs), quantity: 1n, priceKobo: 1_000n },
    });
    await recorder.change(kind, order.partnerId, order.id, (row) => new Change(kind, row, now).reports([report]));
    return watch.known;
  }

  it("says nothing against the broker's clock if the replica that stored the order was a quarter of an hour ahead", async () => {
    assert.notEqual(await knownAfter(15 * minuteMs, 0), 'apart');
  });

  it("shows that the broker's clock is behind if the order was stored before", async () => {
    assert.equal(await knownAfter(-1_000, -minuteMs), 'apart');
  });
});
