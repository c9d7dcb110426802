import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';

describe('orders', { concurrency: true }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  async function order(partner: TestPartner, id: string) {
    const answer = await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key });
    assert.equal(answer.status, 200);
    return answer.body;
  }

  async function eventsOf(partner: TestPartner, id: string): Promise<string[]> {
    const answer = await gateway.rest('GET', '/v1/events?limit=100', { key: partner.key });
    assert.equal(answer.status, 200);
    return answer.body.data
      .filter((event: { data: { id: string } }) => event.data.id === id)
      .map((event: { type: string }) => event.type);
  }

  function received(clientOrderId: string) {
    return gateway.controls.listMessages({ clientOrderId }, callTimeout);
  }

  it('an order is accepted, fills in parts, and every change is in the feed', async () => {
    const partner = await gateway.newPartner();
    const placed = await gateway.place(partner, { symbol: 'sim-parts', client_reference: 'a ref' });
    assert.equal(placed.status, 201, placed.text);
    assert.equal(placed.headers.get('location'), `/v1/orders/${placed.body.id}`);
    assert.match(placed.body.id, /^ord_[a-z2-7]{20}$/);
    await eventually(async () => assert.equal((await order(partner, placed.body.id)).state, 'filled'));
    await eventually(async () =>
      assert.deepEqual(await eventsOf(partner, placed.body.id), [
        'order.pending',
        'order.partially_filled',
        'order.partially_filled',
        'order.filled',
      ]),
    );
    const filled = await order(partner, placed.body.id);
    assert.equal(filled.filled_quantity, 100);
    assert.equal(filled.symbol, 'SIM-PARTS');
    assert.equal(filled.average_fill_price_kobo_decimal, '1000.0');
    assert.equal(filled.client_reference, 'a ref');
  });

  it('the same key again returns the first order and sends nothing', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const first = await gateway.place(partner, { symbol: 'SIM-REST' }, key);
    const second = await gateway.place(partner, { symbol: 'SIM-REST' }, key);
    assert.equal(first.status, 201, first.text);
    assert.equal(second.status, 200);
    assert.equal(second.headers.get('idempotent-replayed'), 'true');
    assert.equal(second.body.id, first.body.id);
    assert.equal((await received(first.body.id)).messages.length, 1);
  });

  it('an order whose answer is lost becomes uncertain or better, and is settled without a second send', async () => {
    const partner = await gateway.newPartner();
    const placed = await gateway.place(partner, { symbol: 'SIM-LOST' });
    assert.equal(placed.status, 201, placed.text);
    await eventually(async () => assert.equal((await order(partner, placed.body.id)).state, 'pending'));
    const { messages } = await received(placed.body.id);
    assert.equal(messages.filter(({ call }) => call === Call.SUBMIT_ORDER).length, 1);
  });

  it('an order the exchange never took is refused in the end', async () => {
    const partner = await gateway.newPartner();
    const placed = await gateway.place(partner, { symbol: 'SIM-HANG' });
    assert.equal(placed.status, 201, placed.text);
    assert.equal(placed.body.state, 'uncertain');
    await eventually(async () => assert.equal((await order(partner, placed.body.id)).state, 'refused'), 15_000);
    await eventually(async () =>
      assert.deepEqual(await eventsOf(partner, placed.body.id), ['order.uncertain', 'order.refused']),
    );
  });

  it('a rejection is answered with its reason, and again on a replay', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const placed = await gateway.place(partner, { symbol: 'SIM-FUNDS' }, key);
    assert.equal(placed.status, 422, placed.text);
    assert.equal(placed.body.error.code, 'order_rejected');
    assert.equal(placed.body.error.reject_reason, 'insufficient_funds');
    const inWords = 'The exchange rejected the order. The account has too little money, or too few shares.';
    assert.equal(placed.body.error.message, inWords);
    const id = placed.headers.get('location')?.split('/').at(-1) ?? '';
    const again = await gateway.place(partner, { symbol: 'SIM-FUNDS' }, key);
    assert.deepEqual([again.status, again.body.error], [422, placed.body.error]);
    assert.equal((await order(partner, id)).reject_reason, 'insufficient_funds');
  });

  it('a cancel is confirmed, and a second one returns the cancelled order', async () => {
    const partner = await gateway.newPartner();
    const placed = await gateway.place(partner, { symbol: 'SIM-REST' });
    const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
    assert.equal(cancelled.status, 200, cancelled.text);
    assert.equal(cancelled.body.state, 'cancelled');
    const again = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
    assert.equal(again.status, 200);
    assert.equal((await received(placed.body.id)).messages.filter(({ call }) => call === Call.CANCEL_ORDER).length, 1);
  });
});
