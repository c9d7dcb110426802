import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { lagosDay } from '../../../../../src/kit/clock.ts';
import { apply } from '../../../../support/applications.ts';
import { eventually } from '../../../../support/eventually.ts';
import type { TestGateway, TestPartner } from '../../../../support/gateway.ts';
import { type Found, TestOperator } from '../../../../support/operator.ts';

describe('an operator who has only what the partner knows', () => {
  let operator: TestOperator;
  let gateway: TestGateway;
  let partner: TestPartner;
  let other: TestPartner;
  before(async () => {
    operator = await TestOperator.start();
    gateway = operator.gateway;
    [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
    await gateway.fund(partner, 10_000_000n);
  });
  after(() => operator.stop());

  const findOrders = async (request: JsonObject): Promise<Found[]> =>
    (await operator.call('Diagnostics.FindOrders', request)).orders;
  const idsOf = (found: readonly Found[]) => found.map(({ order }) => order.id);

  it('is told why the order of a reference was rejected, and where its events are', async () => {
    await gateway.place(other, { symbol: 'SIM-REJECT', client_reference: 'invoice 7' });
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-REJECT', client_reference: 'invoice 7' });
    const id = placed.error === undefined ? placed.id : undefined;
    const found = await eventually(async () => {
      const orders = await findOrders({ partner_id: partner.id, client_reference: 'invoice 7' });
      assert.ok(orders[0]?.events.length >= 1 && orders[0].events.every((event: Found) => event.in_feed));
      return orders;
    });
    assert.equal(found.length, 1, "the other partner's order is not found");
    const [{ partner_id, order, events }] = found as [Found];
    assert.deepEqual(
      [partner_id, order.state, order.client_reference],
      [partner.id, 'ORDER_STATE_REJECTED', 'invoice 7'],
    );
    assert.match(order.reject_reason, /^ORDER_REJECT_REASON_/);
    assert.ok(order.reason.length > 10, order.reason);
    assert.deepEqual([order.account, order.symbol, order.quantity], [partner.account, 'SIM-REJECT', '100']);
    if (id !== undefined) assert.equal(order.id, id);
    const feed = await gateway.rest('GET', '/v1/events?limit=100', { key: partner.key });
    const [event] = feed.body.data.filter(({ data }: Found) => data.id === order.id);
    assert.deepEqual([events[0].id, events[0].type], [event.id, 'order.rejected']);
  });

  it('finds an order by any of what is known of it, and no order that differs in one', async () => {
    const key = 'the key of a lost answer';
    const given = { symbol: 'SIM-REST', client_reference: 'a', quantity: 3 };
    const { body: order } = await gateway.place(partner, given, key);
    await gateway.place(partner, { symbol: 'SIM-REST', client_reference: 'b', quantity: 4 });
    const { body } = await gateway.rest('GET', `/v1/orders/${order.id}`, { key: partner.key });
    const today = lagosDay(Date.parse(body.created_at));
    const known = {
      exchange_order_id: body.exchange_order_id,
      client_reference: 'a',
      idempotency_key: key,
      account: partner.account.toLowerCase(),
      symbol: 'sim-rest',
      state: 'ORDER_STATE_PENDING',
      day: today,
    };
    for (const [name, value] of Object.entries(known)) {
      const found = await findOrders({ partner_id: partner.id, [name]: value, client_reference: 'a' });
      assert.deepEqual(idsOf(found), [order.id], name);
    }
    assert.deepEqual(idsOf(await findOrders({ partner_id: partner.id, ...known })), [order.id], 'all together');
    assert.deepEqual(idsOf(await findOrders({ exchange_order_id: body.exchange_order_id })), [order.id], 'no partner');
    const wrong = {
      ...{ exchange_order_id: 'none', client_reference: 'A', idempotency_key: 'another', account: 'NONE' },
      ...{ symbol: 'SIM-FILL', state: 'ORDER_STATE_FILLED', day: '2020-01-01' },
    };
    for (const [name, value] of Object.entries(wrong)) {
      assert.deepEqual(await findOrders({ partner_id: partner.id, ...known, [name]: value }), [], name);
    }
    assert.deepEqual(await findOrders({ partner_id: other.id, idempotency_key: key }), [], 'another partner');
  });

  it('sees all that a key made on a day, and nothing that another key made', async () => {
    const { key, secret } = await operator.call('Keys.CreateKey', {
      partner_id: partner.id,
      scopes: ['SCOPE_TRADE', 'SCOPE_FUND', 'SCOPE_WITHDRAW'],
    });
    const leaked = { id: key.id as string, key: secret as string };
    const thief = { ...partner, key: leaked.key };
    const byLeaked = await gateway.place(thief, { symbol: 'SIM-REST', client_reference: 'thief' });
    const byOwn = await gateway.place(partner, { symbol: 'SIM-REST', client_reference: 'owner', quantity: 7 });
    const { body: allocation } = await gateway.allocate(thief, { amount_kobo: 1_000 });
    const { body: withdrawal } = await gateway.withdraw(thief, { destination: 'bank_account' });
    await gateway.withdraw(partner, { destination: 'bank_account' });
    const day = lagosDay(Date.parse(allocation.created_at));
    const madeBy = { partner_id: partner.id, day, key_id: leaked.id };
    const [order] = await findOrders(madeBy);
    assert.deepEqual([order?.order.id, order?.key_id], [byLeaked.body.id, leaked.id]);
    assert.equal((await findOrders(madeBy)).length, 1);
    const { allocations } = await operator.call('Diagnostics.FindAllocations', madeBy);
    assert.deepEqual(
      allocations.map((found: Found) => found.allocation.id),
      [allocation.id],
    );
    const { withdrawals } = await operator.call('Diagnostics.FindWithdrawals', madeBy);
    assert.deepEqual(
      withdrawals.map((found: Found) => found.withdrawal.id),
      [withdrawal.id],
    );
    assert.deepEqual((await operator.call('Diagnostics.FindApplications', madeBy)).applications, []);
    const [own] = await findOrders({ partner_id: partner.id, client_reference: 'owner' });
    assert.equal(own?.order.id, byOwn.body.id);
    assert.equal(own?.key_id, partner.keyId);
    for (const lacking of ['day', 'partner_id']) {
      const refused = await operator.refused('Diagnostics.FindOrders', {
        ...madeBy,
        [lacking]: '',
        exchange_order_id: 'x',
      });
      assert.equal(refused.code, status.INVALID_ARGUMENT, lacking);
    }
  });

  it('is shown all orders of a reference, newest first, in pages', async () => {
    const placed: string[] = [];
    for (let quantity = 1; quantity <= 5; quantity += 1) {
      const { body } = await gateway.place(other, { symbol: 'SIM-REST', client_reference: 'often', quantity });
      placed.unshift(body.id);
    }
    const request = { partner_id: other.id, client_reference: 'often', limit: 2 };
    const pages: string[][] = [];
    for (let cursor = ''; ; ) {
      const page = await operator.call('Diagnostics.FindOrders', { ...request, cursor });
      pages.push(idsOf(page.orders));
      cursor = page.next_cursor;
      if (cursor === '') break;
    }
    assert.deepEqual(pages, [placed.slice(0, 2), placed.slice(2, 4), placed.slice(4)]);
    const { next_cursor: cursor } = await operator.call('Diagnostics.FindOrders', request);
    const misused = await operator.refused('Diagnostics.FindOrders', { ...request, client_reference: 'b', cursor });
    assert.equal(misused.code, status.INVALID_ARGUMENT);
  });

  it('sees of each allocation of a reference what it took from the wallet and gave back', async () => {
    const { body: booked } = await gateway.allocate(partner, { amount_kobo: 1_000, client_reference: 'pay' });
    const { body: refused } = await gateway.allocate(partner, { amount_kobo: 999_002, client_reference: 'pay' });
    assert.equal(booked.state, 'booked', JSON.stringify(booked));
    const { allocations } = await eventually(async () => {
      const found = await operator.call('Diagnostics.FindAllocations', {
        partner_id: partner.id,
        client_reference: 'pay',
      });
      assert.ok(
        found.allocations.every(({ transfers }: Found) => transfers.length === 2),
        JSON.stringify(found),
      );
      return found;
    });
    const taken = allocations.map(({ allocation, transfers }: Found) => [
      allocation.amount_kobo,
      transfers.map(({ type, amount_kobo }: Found) => `${type.replace('WALLET_TRANSFER_TYPE_', '')} ${amount_kobo}`),
    ]);
    assert.deepEqual(taken, [
      ['999002', ['RESERVE 999002', 'RETURN 999002']],
      ['1000', ['RESERVE 1000', 'POST 1000']],
    ]);
    assert.equal(refused.error?.code ?? refused.state, refused.error === undefined ? 'rejected' : refused.error.code);
    const [{ allocation }] = allocations.slice(-1);
    const byBroker = await operator.call('Diagnostics.FindAllocations', {
      broker_reference: allocation.broker_reference,
    });
    assert.deepEqual(
      byBroker.allocations.map((one: Found) => one.allocation.id),
      [booked.id],
    );
  });

  it('finds an application by its state, its account and the key that made it, without personal data', async () => {
    const { body: application } = await apply(gateway, partner, { first_name: 'Chukwuemeka' });
    const { applications } = await operator.call('Diagnostics.FindApplications', { partner_id: partner.id });
    assert.equal(applications[0].application.id, application.id);
    assert.ok(!JSON.stringify(applications).includes('Chukwuemeka'));
    const { reference, state } = applications[0].application;
    for (const request of [{ partner_id: partner.id, state }, { reference }] as JsonObject[]) {
      const found = await operator.call('Diagnostics.FindApplications', request);
      assert.deepEqual(
        found.applications.map((one: Found) => one.application.id),
        [application.id],
        JSON.stringify(request),
      );
    }
    const none = { partner_id: partner.id, account: 'NONE' };
    assert.deepEqual((await operator.call('Diagnostics.FindApplications', none)).applications, []);
  });

  it('is refused a search that names nobody, somebody unknown, or what is none', async () => {
    const refusals: [JsonObject, status, string][] = [
      [{}, status.INVALID_ARGUMENT, 'partner_id'],
      [{ client_reference: 'a' }, status.INVALID_ARGUMENT, 'partner_id'],
      [{ exchange_order_id: 'a', idempotency_key: 'b' }, status.INVALID_ARGUMENT, 'partner_id'],
      [{ partner_id: 'par_22222222222222222222' }, status.NOT_FOUND, ''],
      [{ partner_id: partner.id, day: '2026-02-30' }, status.INVALID_ARGUMENT, 'day'],
      [{ partner_id: partner.id, day: 'today' }, status.INVALID_ARGUMENT, 'day'],
      [{ partner_id: partner.id, limit: 101 }, status.INVALID_ARGUMENT, 'limit'],
      [{ partner_id: partner.id, cursor: 'AAAA' }, status.INVALID_ARGUMENT, 'cursor'],
      [{ partner_id: partner.id, state: 99 }, status.INVALID_ARGUMENT, 'state'],
    ];
    for (const [request, code, param] of refusals) {
      const refused = await operator.refused('Diagnostics.FindOrders', request);
      assert.equal(refused.code, code, JSON.stringify(request));
      assert.ok(refused.message.includes(param), refused.message);
    }
  });

  it('sees the object in its timeline and in the list of unsettled ones', async () => {
    const { body: order } = await gateway.place(other, { symbol: 'SIM-HANG', client_reference: 'hanging' });
    const timeline = await operator.call('Diagnostics.GetTimeline', { id: order.id });
    assert.deepEqual([timeline.order.client_reference, timeline.order.symbol], ['hanging', 'SIM-HANG']);
    const { objects } = await operator.call('Diagnostics.ListUnsettled', { partner_id: other.id });
    assert.deepEqual([objects[0].order.id, objects[0].order.client_reference], [order.id, 'hanging']);
    assert.equal((await operator.call('Diagnostics.GetTimeline', { id: other.id })).order, undefined);
  });
});
