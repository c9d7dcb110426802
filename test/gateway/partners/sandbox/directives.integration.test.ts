import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { ErrorAnswer, Marina } from '@marina/client';
import { ExchangeReportKind, Sandbox, SandboxOrderOutcome } from '../../../../src/gen/marina/gateway/v1/sandbox_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { apply } from '../../../support/applications.ts';
import { overRest } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { plain } from '../../../support/images.ts';

describe('a partner that steers the sandbox', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  async function steer(partner: TestPartner, path: string, body: unknown = {}) {
    const answer = await gateway.rest('POST', `/v1/sandbox${path}`, { key: partner.key, body });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  async function refusal(partner: TestPartner, path: string, body: unknown = {}): Promise<[number, string, unknown]> {
    const answer = await gateway.rest('POST', `/v1/sandbox${path}`, { key: partner.key, body });
    return [answer.status, answer.body.error?.code, answer.body.error?.param];
  }

  async function get(partner: TestPartner, path: string) {
    const answer = await gateway.rest('GET', path, { key: partner.key });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  /** Waits until an object is in a state, by its GET and as its last event. */
  async function untilState(partner: TestPartner, path: string, state: string) {
    return eventually(async () => {
      const object = await get(partner, path);
      assert.equal(object.state, state, 'its state');
      const { data: events } = await get(partner, '/v1/events?limit=100');
      const published = events.filter((event: { data: { id: string } }) => event.data.id === object.id);
      assert.deepEqual(published.at(-1)?.data, object, 'its last event');
      return object;
    });
  }

  const resting = { symbol: 'SIM-REST', quantity: 300, price_kobo: 1_000 };

  async function placed(partner: TestPartner): Promise<string> {
    const { status: code, body } = await gateway.place(partner, resting);
    assert.equal(code, 201);
    return body.id;
  }

  it('decides what becomes of the next order on an account, and of no other', async () => {
    const [one, two] = await Promise.all([gateway.newPartner(), gateway.newPartner()]);
    const directive = await steer(one, '/orders/next', {
      account: one.account.toLowerCase(),
      outcome: 'reject',
      reject_reason: 'market_closed',
    });
    assert.deepEqual(directive, { object: 'sandbox_directive', account: one.account, id: null, times: 1 });
    assert.equal((await gateway.place(two, resting)).status, 201, "another partner's order");
    const rejected = await gateway.place(one, resting);
    assert.deepEqual([rejected.status, rejected.body.error.reject_reason], [422, 'market_closed']);
    assert.equal((await gateway.place(one, resting)).status, 201, 'the order after it');
  });

  it('lets an order fill in parts, and only of the symbol it named', async () => {
    const partner = await gateway.newPartner();
    await steer(partner, '/orders/next', { account: partner.account, symbol: 'SIM-HALF', outcome: 'fill', parts: 3 });
    await placed(partner);
    const { body } = await gateway.place(partner, { ...resting, symbol: 'SIM-HALF' });
    const filled = await untilState(partner, `/v1/orders/${body.id}`, 'filled');
    assert.equal(filled.filled_quantity, 300);
    const { data: events } = await get(partner, '/v1/events?limit=100');
    const fills = events.filter((event: { data: { id: string; filled_quantity: number } }) => {
      return event.data.id === body.id && event.data.filled_quantity > 0;
    });
    assert.equal(fills.length, 3);
  });

  it('fills some shares at a price, hears it twice without any effect, and lets the rest expire', async () => {
    const partner = await gateway.newPartner();
    const id = await placed(partner);
    const report = await steer(partner, `/orders/${id}/fill`, { quantity: 100, price_kobo: 950 });
    assert.deepEqual(report, { object: 'sandbox_report', id, kind: 'trade', quantity: 100, price_kobo: 950 });
    const partly = await untilState(partner, `/v1/orders/${id}`, 'partially_filled');
    assert.deepEqual([partly.filled_quantity, partly.average_fill_price_kobo_decimal], [100, '950.0']);
    assert.deepEqual(await steer(partner, `/orders/${id}/repeat`), report);
    assert.equal((await steer(partner, `/orders/${id}/expire`)).kind, 'expired');
    const expired = await untilState(partner, `/v1/orders/${id}`, 'expired');
    assert.equal(expired.filled_quantity, 100);
    assert.deepEqual(await refusal(partner, `/orders/${id}/expire`), [409, 'order_not_cancelable', undefined]);
  });

  it('makes the exchange give an order up, and report a fill after a cancel', async () => {
    const partner = await gateway.newPartner();
    const [given, cancelled] = [await placed(partner), await placed(partner)];
    assert.equal(
      (await steer(partner, `/orders/${given}/reject`, { reject_reason: 'symbol_not_tradable' })).kind,
      'rejected',
    );
    const rejected = await untilState(partner, `/v1/orders/${given}`, 'rejected');
    assert.equal(rejected.reject_reason, 'symbol_not_tradable');
    await gateway.rest('DELETE', `/v1/orders/${cancelled}`, { key: partner.key });
    await untilState(partner, `/v1/orders/${cancelled}`, 'cancelled');
    await steer(partner, `/orders/${cancelled}/fill`, { quantity: 50 });
    await eventually(async () => {
      const { filled_quantity } = await get(partner, `/v1/orders/${cancelled}`);
      assert.equal(filled_quantity, 50, 'the late fill');
    });
  });

  it('loses an answer, and the order settles as the exchange has it', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    await steer(partner, '/faults', { call: 'submit_order', fault: 'lose_answer', account });
    await steer(partner, '/faults', { call: 'look_up_order', fault: 'unavailable_before', account, times: 2 });
    const { body } = await gateway.place(partner, resting);
    const settled = await eventually(async () => {
      const order = await get(partner, `/v1/orders/${body.id}`);
      assert.equal(order.state, 'pending', 'its state');
      return order;
    });
    assert.equal(settled.filled_quantity, 0);
  });

  it('meets one object with a fault by its id, and nothing of another', async () => {
    const partner = await gateway.newPartner();
    const [one, two] = [await placed(partner), await placed(partner)];
    assert.deepEqual(await steer(partner, '/faults', { call: 'cancel_order', fault: 'unavailable_before', id: one }), {
      object: 'sandbox_directive',
      account: null,
      id: one,
      times: 1,
    });
    const cancel = (id: string) => gateway.rest('DELETE', `/v1/orders/${id}`, { key: partner.key });
    assert.equal((await cancel(two)).status, 200);
    assert.equal((await cancel(one)).body.error.code, 'cancel_unconfirmed');
  });

  it('decides allocations, applications and their documents', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 100_000n);
    const { account } = partner;
    await steer(partner, '/allocations/next', { account, outcome: 'rejected', reject_reason: 'account_restricted' });
    const rejected = await gateway.allocate(partner, { account, amount_kobo: 1_000 });
    assert.equal(rejected.body.error.code, 'allocation_rejected');
    assert.equal((await gateway.allocate(partner, { account, amount_kobo: 1_000 })).status, 201);

    const [opened, declined] = [(await apply(gateway, partner)).body.id, (await apply(gateway, partner)).body.id];
    await steer(partner, `/applications/${opened}/documents/next`, { type: 'signature', outcome: 'refused' });
    const signature = {
      key: partner.key,
      id: opened,
      type: 'signature',
      file: await plain(320, 240).jpeg().toBuffer(),
    };
    const send = overRest(gateway.app.restPort);
    assert.equal((await send(signature)).outcome, 'document_rejected');
    assert.equal((await send(signature)).outcome, 'delivered');
    const decision = await steer(partner, `/applications/${opened}/decide`, { outcome: 'open' });
    const application = await untilState(partner, `/v1/applications/${opened}`, 'opened');
    assert.equal(application.account, decision.account);
    await steer(partner, `/applications/${declined}/decide`, { outcome: 'decline' });
    const over = await untilState(partner, `/v1/applications/${declined}`, 'rejected');
    assert.equal(over.reject_reason, 'declined_by_broker');
    assert.deepEqual(await refusal(partner, `/applications/${declined}/decide`, { outcome: 'open' }), [
      400,
      'invalid_request',
      undefined,
    ]);
  });

  it('decides what becomes of the next withdrawals, and decides those that the broker holds', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    const withdraw = (destination: string) =>
      gateway.withdraw(partner, { account, amount_kobo: 1_000_000, destination });
    const path = (id: string) => `/withdrawals/${id}/decide`;
    await steer(partner, '/withdrawals/next', { account, outcome: 'reject', reject_reason: 'no_bank_account' });
    const hold = { account: account.toLowerCase(), outcome: 'hold', times: 3 };
    const directive = await steer(partner, '/withdrawals/next', hold);
    assert.deepEqual(directive, { object: 'sandbox_directive', account, id: null, times: 3 });
    const { status: code, body: refused } = await withdraw('bank_account');
    assert.deepEqual(
      [code, refused.error.code, refused.error.reject_reason],
      [422, 'withdrawal_rejected', 'no_bank_account'],
    );

    const held = [
      (await withdraw('wallet')).body,
      (await withdraw('bank_account')).body,
      (await withdraw('wallet')).body,
    ];
    assert.deepEqual(new Set(held.map(({ state }) => state)), new Set(['processing']));
    assert.equal((await withdraw('wallet')).body.state, 'completed', 'the withdrawal after them');
    const [toWallet, toBank, declined] = held.map(({ id }) => id);
    const paid = { object: 'sandbox_withdrawal_decision', id: toWallet, decision: 'paid' };
    assert.deepEqual(await refusal(partner, path(toBank), { decision: 'returned' }), [
      400,
      'invalid_request',
      undefined,
    ]);
    assert.deepEqual(await steer(partner, path(toWallet), { decision: 'paid' }), paid);
    await steer(partner, path(toBank), { decision: 'paid' });
    await steer(partner, path(declined), { decision: 'rejected', reject_reason: 'account_restricted' });
    await untilState(partner, `/v1/withdrawals/${toWallet}`, 'completed');
    await untilState(partner, `/v1/withdrawals/${toBank}`, 'completed');
    const rejected = await untilState(partner, `/v1/withdrawals/${declined}`, 'rejected');
    assert.equal(rejected.reject_reason, 'account_restricted');
    assert.equal((await get(partner, '/v1/wallet')).withdrawn_kobo, 2_000_000);

    assert.deepEqual(await refusal(partner, path(toWallet), { decision: 'returned' }), [
      400,
      'invalid_request',
      undefined,
    ]);
    await steer(partner, path(toBank), { decision: 'returned' });
    await untilState(partner, `/v1/withdrawals/${toBank}`, 'returned');
  });

  it('loses the answer to a withdrawal, which settles as the broker has it', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    await steer(partner, '/faults', { call: 'submit_withdrawal', fault: 'unavailable_before', account });
    await steer(partner, '/faults', { call: 'look_up_withdrawal', fault: 'unavailable_before', account, times: 2 });
    const withdrawal = { account, amount_kobo: 1_000, destination: 'wallet' };
    const { body } = await gateway.withdraw(partner, withdrawal);
    assert.equal(body.state, 'uncertain');
    await steer(partner, '/faults', { call: 'look_up_withdrawal', fault: 'hang', id: body.id });
    assert.equal((await gateway.withdraw(partner, withdrawal)).body.error.code, 'similar_withdrawal_unresolved');
    await untilState(partner, `/v1/withdrawals/${body.id}`, 'refused');

    await steer(partner, '/faults', { call: 'submit_withdrawal', fault: 'lose_answer', account });
    const { body: lost } = await gateway.withdraw(partner, withdrawal);
    await untilState(partner, `/v1/withdrawals/${lost.id}`, 'completed');
  });

  it("finds nothing of another partner's, and steers none of it", async () => {
    const [owner, other] = await Promise.all([gateway.newPartner(), gateway.newPartner()]);
    const id = await placed(owner);
    const application = (await apply(gateway, owner)).body.id;
    const { account } = owner;
    for (const path of ['fill', 'expire', 'reject', 'repeat']) {
      assert.deepEqual(await refusal(other, `/orders/${id}/${path}`), [404, 'order_not_found', undefined], path);
    }
    for (const [path, body] of [
      ['decide', { outcome: 'open' }],
      ['documents/next', { outcome: 'refused' }],
    ] as const) {
      const found = await refusal(other, `/applications/${application}/${path}`, body);
      assert.deepEqual(found, [404, 'application_not_found', undefined], path);
    }
    const unknown = [422, 'unknown_account', 'account'];
    assert.deepEqual(await refusal(other, '/orders/next', { account, outcome: 'reject' }), unknown);
    assert.deepEqual(await refusal(other, '/allocations/next', { account, outcome: 'rejected' }), unknown);
    assert.deepEqual(await refusal(other, '/withdrawals/next', { account, outcome: 'hold' }), unknown);
    const withdrawal = { account, amount_kobo: 1_000, destination: 'bank_account' };
    const { body: withdrawn } = await gateway.withdraw(owner, withdrawal);
    const decided = await refusal(other, `/withdrawals/${withdrawn.id}/decide`, { decision: 'paid' });
    assert.deepEqual(decided, [404, 'withdrawal_not_found', undefined]);
    const fault = { call: 'cancel_order', fault: 'unavailable_before' };
    assert.deepEqual(await refusal(other, '/faults', { ...fault, account }), unknown);
    assert.deepEqual(await refusal(other, '/faults', { ...fault, id }), [404, 'not_found', undefined]);
    assert.deepEqual(await refusal(other, '/faults', fault), [400, 'missing_required_field', 'account']);
    const byId = { call: 'send_document', fault: 'hang', account: other.account };
    assert.deepEqual(await refusal(other, '/faults', byId), [400, 'missing_required_field', 'id']);
    assert.equal((await gateway.rest('DELETE', `/v1/orders/${id}`, { key: owner.key })).status, 200);
  });

  it('is told when the exchange cannot do what it asks', async () => {
    const partner = await gateway.newPartner();
    const id = await placed(partner);
    const [code, error] = await refusal(partner, `/orders/${id}/fill`, { quantity: 301 });
    assert.deepEqual([code, error], [400, 'invalid_request']);
    assert.deepEqual((await refusal(partner, `/orders/${id}/fill`, { price_kobo: 1_005 })).slice(0, 2), [
      400,
      'invalid_request',
    ]);
    const { filled_quantity } = await get(partner, `/v1/orders/${id}`);
    assert.equal(filled_quantity, 0);
  });

  it('does the same over gRPC', async () => {
    const partner = await gateway.newPartner();
    const client = createGrpcClient(Sandbox, `127.0.0.1:${gateway.app.grpcPort}`);
    try {
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${partner.key}`);
      const options = { ...callTimeout, metadata };
      await client.forceOrder({ account: partner.account, outcome: SandboxOrderOutcome.REST }, options);
      const { body } = await gateway.place(partner, { symbol: 'SIM-FILL', quantity: 100 });
      const { kind, quantity } = await client.fillOrder({ id: body.id, quantity: 40n }, options);
      assert.deepEqual([kind, quantity], [ExchangeReportKind.TRADE, 40n]);
      await untilState(partner, `/v1/orders/${body.id}`, 'partially_filled');
      const nobodys = client.expireOrder({ id: 'ord_abcdefghijklmnopqrst' }, options);
      await assert.rejects(nobodys, (error: ServiceError) => error.code === status.NOT_FOUND);
    } finally {
      client.close();
    }
  });
});

describe('a partner that steers the sandbox while its exchange is away', () => {
  it('is not told that nothing was done, so no client repeats by itself what would be done twice', async () => {
    const gateway = await startGateway();
    try {
      const partner = await gateway.newPartner();
      const { body: order } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 300, price_kobo: 1_000 });
      await gateway.stopBroker();
      const answer = await gateway.rest('POST', `/v1/sandbox/orders/${order.id}/fill`, { key: partner.key, body: {} });
      assert.deepEqual([answer.status, answer.body.error.code], [503, 'service_unavailable']);
      assert.match(answer.body.error.message, /may have been done/);
      const marina = new Marina({ baseUrl: `http://127.0.0.1:${gateway.app.restPort}`, key: partner.key });
      await assert.rejects(marina.fillOrder({ id: order.id }), (error: unknown) => {
        assert.ok(error instanceof ErrorAnswer);
        assert.deepEqual([error.call.attempts, error.call.isOutcomeUnknown], [1, true]);
        return true;
      });
    } finally {
      await gateway.stop();
    }
  });
});
