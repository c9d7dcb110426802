import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { DeliveryState } from '../../../src/gen/marina/admin/v1/webhooks_pb.ts';
import { adminClient } from '../../support/admin.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';

/** Every choice of some of these, from none to all. */
function choices<Item>(items: readonly Item[]): Item[][] {
  const all: Item[][] = [[]];
  for (const item of items) all.push(...all.map((chosen) => [...chosen, item]));
  return all;
}

describe('any filters of a list can be given together', () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  let partner: TestPartner;

  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
    partner = await gateway.newPartner();
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });

  /** Lists with each choice of filters, a page of one after the other, and expects both objects of each. */
  async function listed(path: string, filters: Record<string, string>, ids: readonly string[]): Promise<void> {
    for (const chosen of choices(Object.entries(filters))) {
      const query = new URLSearchParams([...chosen, ['limit', '1']]);
      const first = await gateway.rest('GET', `${path}?${query}`, { key: partner.key });
      assert.equal(first.status, 200, `${query}: ${first.text}`);
      query.set('cursor', first.body.next_cursor);
      const second = await gateway.rest('GET', `${path}?${query}`, { key: partner.key });
      assert.equal(second.status, 200, `${query}: ${second.text}`);
      const found = [...first.body.data, ...second.body.data].map(({ id }: { id: string }) => id);
      assert.deepEqual(found.sort(), [...ids].sort(), `${query}`);
    }
  }

  it('lists of orders take them', async () => {
    const order = { symbol: 'SIM-REST', client_reference: 'mine' };
    const ids: string[] = [];
    for (const quantity of [100, 200]) {
      const placed = await gateway.place(partner, { ...order, quantity });
      assert.equal(placed.status, 201, placed.text);
      ids.push(placed.body.id);
    }
    const since = '2020-01-01T00:00:00Z';
    await listed('/v1/orders', { ...order, account: partner.account, state: 'pending', updated_since: since }, ids);
  });

  it('lists of allocations take them', async () => {
    await gateway.fund(partner, 10_000n);
    const ids: string[] = [];
    for (const amount of [1_000, 2_000]) {
      const made = await gateway.allocate(partner, { amount_kobo: amount, client_reference: 'mine' });
      assert.equal(made.status, 201, made.text);
      ids.push(made.body.id);
    }
    const filters = { client_reference: 'mine', account: partner.account, updated_since: '2020-01-01T00:00:00Z' };
    await listed('/v1/allocations', { ...filters, state: 'booked' }, ids);
  });

  it('lists of withdrawals take each filter', async () => {
    const ids: string[] = [];
    for (const amount of [1_000, 2_000]) {
      const made = await gateway.withdraw(partner, { amount_kobo: amount, client_reference: 'mine' });
      assert.equal(made.status, 201, made.text);
      ids.push(made.body.id);
    }
    const filters = { client_reference: 'mine', account: partner.account, updated_since: '2020-01-01T00:00:00Z' };
    await listed('/v1/withdrawals', { ...filters, state: 'completed' }, ids);
  });

  it("operators' lists of deliveries take them", async () => {
    const call = { ...callTimeout, ...admin.options };
    const url = 'https://partner.invalid/';
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url }, call);
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 300 });
    const deliveries = await eventually(async () => {
      const answer = await admin.webhooks.listDeliveries({ partnerId: partner.id, objectId: body.id }, call);
      assert.ok(answer.deliveries.length > 0);
      return answer.deliveries;
    });
    const [{ eventId, version } = { eventId: '', version: 0n }] = deliveries;
    const filters = { eventId, objectId: body.id, state: DeliveryState.WAITING, beforeVersion: version + 1n };
    for (const chosen of choices(Object.entries(filters))) {
      const request = { partnerId: partner.id, ...Object.fromEntries(chosen) };
      const answer = await admin.webhooks.listDeliveries(request, call);
      assert.ok(
        answer.deliveries.some((delivery) => delivery.eventId === eventId),
        Object.keys(request).join(),
      );
    }
  });
});
