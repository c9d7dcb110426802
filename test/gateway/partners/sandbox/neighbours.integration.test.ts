import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { exchangeOrder, fails, newOrder, soon, startTestSimulator } from '../../../simulator/fixture.ts';
import { apply } from '../../../support/applications.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';

const resting = { symbol: 'SIM-REST', quantity: 10, price_kobo: 1_000 };

describe('partners of one sandbox', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway?.stop());

  const steer = ({ key }: TestPartner, path: string, body: unknown) =>
    gateway.rest('POST', `/v1/sandbox${path}`, { key, body });

  function repeated<T>(count: number, work: (at: number) => Promise<T>): Promise<T[]> {
    return Promise.all(Array.from({ length: count }, (_, at) => work(at)));
  }

  it('a partner that has as many directives as may wait is refused a further one, and another partner is not', async () => {
    const [greedy, other] = [await gateway.newPartner(), await gateway.newPartner()];
    const { account } = greedy;
    const { body: application } = await apply(gateway, greedy);
    const directives = [
      () => steer(greedy, '/orders/next', { account, outcome: 'fill' }),
      () => steer(greedy, '/faults', { account, call: 'cancel_order', fault: 'hang' }),
      () => steer(greedy, '/allocations/next', { account, outcome: 'rejected' }),
      () => steer(greedy, '/withdrawals/next', { account, outcome: 'hold' }),
      () => steer(greedy, `/applications/${application.id}/documents/next`, { outcome: 'refused' }),
    ];
    const given = await repeated(200, (at) => directives[at % 5]?.() ?? assert.fail());
    for (const { status, text } of given) assert.equal(status, 200, text);
    for (const directive of directives) {
      const { status, body, headers } = await directive();
      assert.deepEqual([status, body.error.code, body.error.type], [422, 'limit_exceeded', 'limit_error']);
      assert.match(body.error.message, /200 of a partner.*24 hours/);
      assert.equal(headers.get('retry-after'), null);
    }
    assert.equal((await steer(other, '/orders/next', { account: other.account, outcome: 'fill' })).status, 200);
    // One that is used up makes room for another.
    assert.equal((await gateway.place(greedy, resting)).status, 201);
    assert.equal((await directives[0]?.())?.status, 200);
  });

  it('resets of one partner meet its own requests only, with many of every kind at once', async () => {
    const [breaker, other] = [await gateway.newPartner(), await gateway.newPartner()];
    await gateway.fund(breaker, 100_000_000n);
    await gateway.fund(other, 100_000_000n);
    const { account } = other;
    await steer(other, '/faults', { account, call: 'submit_order', fault: 'late_answer', delay_ms: 500, times: 20 });
    await steer(other, '/faults', {
      account,
      call: 'submit_allocation',
      fault: 'late_answer',
      delay_ms: 500,
      times: 5,
    });
    for (const [call, fault] of [
      ['submit_order', 'reset_before'],
      ['submit_order', 'reset_after'],
      ['look_up_order', 'reset_before'],
      ['cancel_order', 'reset_after'],
      ['submit_allocation', 'reset_after'],
      ['look_up_allocation', 'reset_before'],
      ['submit_withdrawal', 'reset_after'],
      ['look_up_withdrawal', 'reset_before'],
    ]) {
      assert.equal((await steer(breaker, '/faults', { account: breaker.account, call, fault, times: 10 })).status, 200);
    }
    const broken = repeated(30, async (at) => {
      const symbol = at % 2 === 0 ? 'SIM-RESET' : 'SIM-RESETAFTER';
      const { body } = await gateway.place(breaker, { ...resting, symbol, quantity: 10 + at });
      await gateway.allocate(breaker, { amount_kobo: 999_008 + (at % 2) + 1_000_000 * at });
      await gateway.withdraw(breaker, { amount_kobo: 998_015 + (at % 2) + 1_000_000 * at });
      await apply(gateway, breaker, { last_name: symbol });
      await gateway.rest('DELETE', `/v1/orders/${body.id}`, { key: breaker.key });
    });
    const orders = await repeated(40, (at) => gateway.place(other, { ...resting, quantity: 10 + at }));
    const allocations = await repeated(20, (at) => gateway.allocate(other, { amount_kobo: 1_000 + at }));
    const withdrawals = await repeated(20, (at) => gateway.withdraw(other, { amount_kobo: 1_000 + at }));
    const applications = await repeated(10, () => apply(gateway, other));
    for (const { status, body } of orders) assert.deepEqual([status, body.state], [201, 'pending']);
    for (const { status, body } of allocations) assert.deepEqual([status, body.state], [201, 'booked']);
    for (const { status, body } of withdrawals) assert.deepEqual([status, body.state], [201, 'completed']);
    for (const { status, body } of applications) assert.deepEqual([status, body.state], [201, 'documents_required']);
    await broken;
    for (const { body } of orders) {
      const history = await gateway.rest('GET', `/v1/orders/${body.id}/history`, { key: other.key });
      assert.ok(!history.text.includes('uncertain'), history.text);
    }
  });

  it('a reset is still a reset to the partner that asked for it: uncertain at once, and then as the exchange has it', async () => {
    const partner = await gateway.newPartner();
    const [lost, taken] = await Promise.all([
      gateway.place(partner, { ...resting, symbol: 'SIM-RESET' }),
      gateway.place(partner, { ...resting, symbol: 'SIM-RESETAFTER' }),
    ]);
    assert.deepEqual([lost.status, lost.body.state], [201, 'uncertain']);
    await eventually(async () => {
      const { body } = await gateway.rest('GET', `/v1/orders/${taken.body.id}`, { key: partner.key });
      assert.equal(body.state, 'pending');
    });
  });
});

const simulator = await startTestSimulator();

describe('a fault that waits', () => {
  const late = { call: Call.SUBMIT_ORDER, fault: WireFault.LATE_RECEIPT, delayMs: 60_000, account: 'ACC1' } as const;

  it('keeps at most 200 calls of a partner to be taken later, and those of another partner as well', async () => {
    const { controls, orders } = simulator;
    await controls.injectFault({ ...late, times: 201, partner: 'par_1' }, soon);
    const calls = Array.from({ length: 201 }, () => orders.submitOrder(newOrder(), { timeoutMs: 3_000 }));
    for (const call of await Promise.allSettled(calls)) assert.equal(call.status, 'rejected');
    await controls.injectFault({ ...late, delayMs: 300, partner: 'par_1' }, soon);
    const [refused, accepted] = [newOrder(), newOrder()];
    await assert.rejects(orders.submitOrder(refused, { timeoutMs: 1_000 }));
    await controls.injectFault({ ...late, delayMs: 300, partner: 'par_2' }, soon);
    await orders.submitOrder(accepted, soon);
    assert.equal(await exchangeOrder(simulator, refused.clientOrderId), undefined);
    assert.notEqual(await exchangeOrder(simulator, accepted.clientOrderId), undefined);
  });

  it("a partner's fault never makes a query hang, because the queries of all partners share a few slots", async () => {
    const { controls, orders } = simulator;
    const order = newOrder();
    await orders.submitOrder(order, soon);
    for (const [fault, delayMs] of [
      [WireFault.HANG, 0],
      [WireFault.LOSE_ANSWER, 0],
      [WireFault.LATE_ANSWER, 60_000],
      [WireFault.LATE_RECEIPT, 60_000],
    ] as const) {
      const query = { call: Call.LOOK_UP_ORDER, fault, delayMs, account: 'ACC1' };
      await controls.injectFault({ ...query, partner: 'par_3' }, soon);
      const [asked] = await Promise.allSettled([orders.lookUpOrder(order, { timeoutMs: 5_000 })]);
      const isAnswered = delayMs > 0;
      assert.equal(asked.status, isAnswered ? 'fulfilled' : 'rejected', WireFault[fault]);
      if (asked.status === 'rejected') assert.equal(asked.reason.code, status.UNAVAILABLE, WireFault[fault]);
      await controls.injectFault(query, soon);
      await assert.rejects(orders.lookUpOrder(order, { timeoutMs: 300 }), fails(status.DEADLINE_EXCEEDED));
    }
  });
});
