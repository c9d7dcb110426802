import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { RejectReason } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, Outcome, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { usedKobo } from '../../../support/usage.ts';

describe('an order that was placed', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  async function get(partner: TestPartner, id: string) {
    return (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body;
  }

  it('a cancelled order gives back what did not fill, and a late fill takes it again', async () => {
    const partner = await gateway.newPartner();
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-HALF' });
    await eventually(async () => assert.equal((await get(partner, placed.id)).filled_quantity, 50));
    const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.id}`, { key: partner.key });
    assert.equal(cancelled.status, 200, cancelled.text);
    assert.equal(await usedKobo(gateway, partner), '50000');
    await gateway.controls.fillOrder({ clientOrderId: placed.id, quantity: 20n }, callTimeout);
    await eventually(async () => assert.equal((await get(partner, placed.id)).filled_quantity, 70));
    const order = await get(partner, placed.id);
    assert.equal(order.state, 'cancelled');
    assert.equal(await usedKobo(gateway, partner), '70000');
    await eventually(async () => {
      const { body } = await gateway.rest('GET', '/v1/events', { key: partner.key });
      assert.deepEqual(
        body.data.map(({ type, data }: { type: string; data: { filled_quantity: number } }) => [
          type,
          data.filled_quantity,
        ]),
        [
          ['order.pending', 0],
          ['order.partially_filled', 50],
          ['order.cancelled', 50],
          ['order.cancelled', 70],
        ],
      );
    });
  });

  it('an order that lapses, and one the exchange gives up, end as such and give back', async () => {
    const partner = await gateway.newPartner();
    const { body: lapsing } = await gateway.place(partner, { symbol: 'SIM-LAPSE' });
    const { body: killed } = await gateway.place(partner, { symbol: 'SIM-KILLED' });
    await eventually(async () => assert.equal((await get(partner, lapsing.id)).state, 'expired'));
    await eventually(async () => assert.equal((await get(partner, killed.id)).state, 'rejected'));
    assert.equal(await usedKobo(gateway, partner), '0');
    const cancel = await gateway.rest('DELETE', `/v1/orders/${lapsing.id}`, { key: partner.key });
    assert.deepEqual([cancel.status, cancel.body.error.code], [409, 'order_not_cancelable']);
    assert.equal(cancel.body.error.message, 'The order is expired and can no longer be cancelled.');
  });

  it('an accepted order answered 201 is replayed with 200 even after the exchange gave it up', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    await gateway.controls.forceOutcome({ account: partner.account, outcome: Outcome.REST }, callTimeout);
    const placed = await gateway.place(partner, { symbol: 'SIM-REST' }, key);
    await gateway.controls.rejectOrder(
      { clientOrderId: placed.body.id, rejectReason: RejectReason.MARKET_CLOSED },
      callTimeout,
    );
    await eventually(async () => assert.equal((await get(partner, placed.body.id)).state, 'rejected'));
    const replay = await gateway.place(partner, { symbol: 'SIM-REST' }, key);
    assert.equal(replay.status, 200, replay.text);
    assert.equal(replay.body.state, 'rejected');
    assert.equal(replay.headers.get('idempotent-replayed'), 'true');
  });

  it('an order that the exchange proves it never took is refused, each time the same, and counts nothing', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const ids = new Set<string>();
    for (let turn = 0; turn < 2; turn += 1) {
      const { status, body, headers } = await gateway.place(partner, { symbol: 'SIM-UNSENT' }, key);
      assert.deepEqual([status, body.error.code], [503, 'order_not_sent']);
      const id = headers.get('location')?.split('/').at(-1) ?? '';
      assert.equal((await get(partner, id)).state, 'refused');
      ids.add(id);
    }
    assert.equal(ids.size, 1);
    const { body: limits } = await gateway.rest('GET', '/v1/limits', { key: partner.key });
    assert.equal(limits.orders_kobo_per_day.used, 0);
  });

  it('a cancel without a clear answer is unconfirmed, can be sent again, and a repeated one is not doubled', async () => {
    const partner = await gateway.newPartner();
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-REST' });
    await gateway.controls.injectFault(
      { call: Call.CANCEL_ORDER, account: partner.account, fault: WireFault.HANG },
      callTimeout,
    );
    const path = `/v1/orders/${placed.id}`;
    const both = await Promise.all([
      gateway.rest('DELETE', path, { key: partner.key }),
      gateway.rest('DELETE', path, { key: partner.key }),
    ]);
    for (const { status, body, headers } of both) {
      assert.deepEqual([status, body.error.code, headers.get('retry-after')], [503, 'cancel_unconfirmed', '5']);
    }
    const { messages } = await gateway.controls.listMessages({ clientOrderId: placed.id }, callTimeout);
    assert.equal(messages.filter(({ call }) => call === Call.CANCEL_ORDER).length, 1);
    const again = await gateway.rest('DELETE', path, { key: partner.key });
    assert.equal(again.status, 200, again.text);
    assert.equal(again.body.state, 'cancelled');
  });

  it('an order whose fate is unknown cannot be cancelled', async () => {
    const partner = await gateway.newPartner();
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-HANG' });
    const cancel = await gateway.rest('DELETE', `/v1/orders/${placed.id}`, { key: partner.key });
    assert.deepEqual([cancel.status, cancel.body.error.code], [409, 'order_not_cancelable']);
  });

  it('duplicated, swapped and missing reports change nothing in what an order comes to', async () => {
    const partner = await gateway.newPartner();
    await gateway.controls.disturbReports({ repeat: 3, swap: 2, omit: 2, breakStreams: true }, callTimeout);
    const placed = await Promise.all(
      Array.from({ length: 5 }, (_, count) => gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 100 + count })),
    );
    for (const { body } of placed) {
      await eventually(async () => assert.equal((await get(partner, body.id)).state, 'filled'), 20_000);
    }
    await eventually(async () => {
      const { body } = await gateway.rest('GET', '/v1/events?limit=100', { key: partner.key });
      assert.equal(body.data.length, 20); // pending, and one for each of three parts, of five orders
    });
  });

  it('a trade that is still on its way when a cancel is confirmed is not lost', async () => {
    const partner = await gateway.newPartner();
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-REST' });
    await gateway.controls.disturbReports({ omit: 1, swap: 1 }, callTimeout);
    await gateway.controls.fillOrder({ clientOrderId: placed.id, quantity: 40n }, callTimeout);
    const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.id}`, { key: partner.key });
    assert.equal(cancelled.status, 200, cancelled.text);
    assert.deepEqual([cancelled.body.state, cancelled.body.filled_quantity], ['cancelled', 40]);
    assert.equal(await usedKobo(gateway, partner), '40000');
    await eventually(async () => {
      const { body } = await gateway.rest('GET', '/v1/events', { key: partner.key });
      assert.deepEqual(
        body.data.map(({ type }: { type: string }) => type),
        ['order.pending', 'order.partially_filled', 'order.cancelled'],
      );
    });
  });

  it('cancels that race with fills end with what the exchange has', async () => {
    const partner = await gateway.newPartner();
    const placed = await Promise.all(
      Array.from({ length: 20 }, (_, count) => gateway.place(partner, { symbol: 'SIM-REST', quantity: 100 + count })),
    );
    await Promise.all(
      placed.map(async ({ body: { id } }, count) => {
        const fill = gateway.controls.fillOrder({ clientOrderId: id, quantity: BigInt(1 + count) }, callTimeout);
        const cancel = gateway.rest('DELETE', `/v1/orders/${id}`, { key: partner.key });
        await Promise.all([fill, cancel]);
      }),
    );
    for (const [count, { body }] of placed.entries()) {
      await eventually(async () => {
        const order = await get(partner, body.id);
        assert.deepEqual([order.state, order.filled_quantity], ['cancelled', 1 + count]);
      });
    }
  });

  it('a cancel that comes too late shows the order as the exchange has it, though its report was left out', async () => {
    const partner = await gateway.newPartner();
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-REST' });
    await gateway.controls.disturbReports({ omit: 1 }, callTimeout);
    await gateway.controls.fillOrder({ clientOrderId: placed.id }, callTimeout);
    const late = await gateway.rest('DELETE', `/v1/orders/${placed.id}`, { key: partner.key });
    assert.deepEqual([late.status, late.body.error.code], [409, 'order_not_cancelable']);
    assert.equal((await get(partner, placed.id)).state, 'filled');
  });

  it('a report left out with none behind it is noticed and fetched', async () => {
    const own = await startGateway();
    try {
      const partner = await own.newPartner();
      const { body: placed } = await own.place(partner, { symbol: 'SIM-REST' });
      await own.controls.disturbReports({ omit: 1 }, callTimeout);
      await own.controls.fillOrder({ clientOrderId: placed.id }, callTimeout);
      await eventually(async () => {
        const { body } = await own.rest('GET', `/v1/orders/${placed.id}`, { key: partner.key });
        assert.equal(body.state, 'filled');
      });
    } finally {
      await own.stop();
    }
  });

  it('a trade at a price that cannot be is a contradiction on the history, and stops nobody', async () => {
    const own = await startGateway();
    try {
      const partner = await own.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
      const market = { symbol: 'SIM-REST', type: 'market', price_kobo: null, quantity: 100_000 };
      const { body: poisoned } = await own.place(partner, market);
      await own.controls.fillOrder(
        { clientOrderId: poisoned.id, quantity: 99_000n, priceKobo: 9_000_000_000_000_000n },
        callTimeout,
      );
      const { body: next } = await own.place(partner, { symbol: 'SIM-FILL' });
      await eventually(async () => {
        const { body } = await own.rest('GET', `/v1/orders/${next.id}`, { key: partner.key });
        assert.equal(body.state, 'filled');
      });
      const history = await own.rest('GET', `/v1/orders/${poisoned.id}/history`, { key: partner.key });
      assert.equal(history.body.data.at(-1).kind, 'contradiction');
      assert.ok(own.logged.some((line) => line.includes('contradicts')));
    } finally {
      // A trade that cannot be is the exchange's alone.
      await own.stop(['exchange']);
    }
  });

  it("an order without a fence that the exchange never had is refused once the exchange's record of its day is complete", async () => {
    const own = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '500' });
    const admin = adminClient(own.app.adminPort);
    try {
      const partner = await own.newPartner();
      await own.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
      const { body: placed } = await own.place(partner, { symbol: 'SIM-HANG' });
      assert.equal(placed.state, 'uncertain');
      await admin.clock.advanceClock({ by: { seconds: BigInt(2 * 86_400) } }, admin.options);
      await eventually(async () => {
        const { body } = await own.rest('GET', `/v1/orders/${placed.id}`, { key: partner.key });
        assert.equal(body.state, 'refused');
      }, 40_000);
    } finally {
      admin.close();
      await own.stop();
    }
  });

  it('an order the exchange gives up after some of it traded ends, and gives back the rest', async () => {
    const partner = await gateway.newPartner();
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-HALF' });
    await eventually(async () => assert.equal((await get(partner, placed.id)).filled_quantity, 50));
    await gateway.controls.rejectOrder(
      { clientOrderId: placed.id, rejectReason: RejectReason.REJECTED_BY_EXCHANGE },
      callTimeout,
    );
    await eventually(async () => assert.equal((await get(partner, placed.id)).state, 'cancelled'));
    assert.equal(await usedKobo(gateway, partner), '50000');
  });
});
