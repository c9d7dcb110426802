import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { appendEvents } from '../../../src/gateway/delivery/events/outbox.ts';
import { IdMaker } from '../../../src/gateway/edge/ids.ts';
import { noFact } from '../../../src/gateway/store/facts.ts';
import { toOrderMessage } from '../../../src/gateway/trading/orders/table.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { plainOrder } from '../../support/plain-order.ts';

const hourMs = 3_600_000;

describe('a replica whose clock is an hour ahead', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  /** Commits an event as that replica does. */
  async function commitEvent({ id: partnerId }: TestPartner): Promise<void> {
    const ahead = Date.now() + hourMs;
    const ids = new IdMaker({ now: () => ahead });
    const origin = { partnerId, requestId: null, traceParent: null };
    const order = {
      ...plainOrder,
      id: ids.object('ord'),
      state: 'pending',
      createdAt: ahead,
      updatedAt: ahead,
    } as const;
    const data = { case: 'order' as const, value: toOrderMessage(order) };
    const event = { type: 'order.pending', occurredAt: ahead, origin, data };
    await gateway.database.inPartnerTransaction(partnerId, {
      touches: [],
      fact: noFact,
      decide: (_, partner) => ({ writes: appendEvents(partner, [event], ids, ahead), result: undefined }),
    });
  }

  it('does not hold back its events, nor those after them', async () => {
    const partner = await gateway.newPartner();
    await commitEvent(partner);
    const { status, text } = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.equal(status, 201, text);
    await eventually(async () => {
      const { body } = await gateway.rest('GET', '/v1/events', { key: partner.key });
      const versions = body.data.map(({ version }: { version: number }) => version);
      assert.deepEqual(versions, [1, 2], 'an event waits for the clock');
    }, 5_000);
  });
});
