import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ServiceError, status } from '@grpc/grpc-js';
import { type SqlValue, statement } from '../../../src/gateway/store/statement.ts';
import { ReconcileOutcome } from '../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { OrderRejectReason, OrderSide, OrderState, OrderType } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../support/admin.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { scrape } from '../../support/metrics.ts';
import { connectCall, grpcClients } from '../../support/protocols.ts';

describe('an order that a newer version stored with names this version does not know', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  let grpc: ReturnType<typeof grpcClients>;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway();
    grpc = grpcClients(gateway);
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    grpc.close();
    admin.close();
    // Rows are changed here as another version does, without events.
    await gateway.stop(['objects', 'usage']);
  });

  let quantity = 0;

  /** Places an order unlike all others and returns its id. */
  async function place(partner: TestPartner, order: Record<string, unknown>): Promise<string> {
    quantity += 1;
    const placed = await gateway.place(partner, { quantity, ...order });
    assert.equal(placed.status, 201, placed.text);
    return placed.body.id;
  }

  /** Writes columns of an order as a newer version would. */
  async function store(id: string, columns: Record<string, SqlValue>): Promise<void> {
    const sets = Object.keys(columns).map((column) => `${column} = ?`);
    const sql = `UPDATE orders SET ${sets.join(', ')} WHERE id = ?`;
    await gateway.database.write(statement(sql, ...Object.values(columns), id));
  }

  async function stored(id: string) {
    const [row] = await gateway.database.read(statement('SELECT * FROM orders WHERE id = ?', id));
    assert.ok(row !== undefined);
    return row;
  }

  async function get({ key }: TestPartner, id: string) {
    const answer = await gateway.rest('GET', `/v1/orders/${id}`, { key });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  const inState = (partner: TestPartner, id: string, state: string) =>
    eventually(async () => {
      const order = await get(partner, id);
      assert.equal(order.state, state);
      return order;
    });

  async function messages(call: Call, id: string) {
    const { messages: all } = await gateway.controls.listMessages({}, callTimeout);
    return all.filter((message) => message.call === call && message.clientOrderId === id);
  }

  it('is shown with the stored names over REST and as unspecified over gRPC and Connect, and so is its page', async () => {
    const partner = await gateway.newPartner();
    const [plain, held, refusedByRule] = [
      await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }),
      await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }),
      await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }),
    ];
    await store(held, { state: 'on_hold', side: 'shrt', type: 'stop', time_in_force: 'gtd' });
    await store(refusedByRule, { state: 'rejected', reject_reason: 'price_collar' });
    const names = { state: 'on_hold', side: 'shrt', type: 'stop', time_in_force: 'gtd' };
    const partial = (order: Record<string, unknown>) =>
      Object.fromEntries(Object.keys(names).map((name) => [name, order[name]]));
    assert.deepEqual(partial(await get(partner, held)), names);
    assert.equal((await get(partner, refusedByRule)).reject_reason, 'price_collar');
    const list = await gateway.rest('GET', '/v1/orders', { key: partner.key });
    assert.equal(list.status, 200, list.text);
    assert.deepEqual(
      list.body.data.map(({ id, state }: { id: string; state: string }) => [id, state]),
      [
        [refusedByRule, 'rejected'],
        [held, 'on_hold'],
        [plain, 'pending'],
      ],
    );

    const { data } = await grpc.orders.listOrders({}, grpc.as(partner));
    assert.deepEqual(
      data.map(({ state }) => state),
      [OrderState.REJECTED, OrderState.UNSPECIFIED, OrderState.PENDING],
    );
    assert.equal(data[0]?.rejectReason, OrderRejectReason.UNSPECIFIED);
    const one = await grpc.orders.getOrder({ id: held }, grpc.as(partner));
    assert.deepEqual([one.side, one.type], [OrderSide.UNSPECIFIED, OrderType.UNSPECIFIED]);

    const overConnect = await connectCall(gateway, partner, 'Orders/ListOrders', {});
    assert.equal(overConnect.status, 200, JSON.stringify(overConnect.body));
    assert.deepEqual(
      overConnect.body.data.map(({ state }: { state: string }) => state),
      ['ORDER_STATE_REJECTED', 'ORDER_STATE_UNSPECIFIED', 'ORDER_STATE_PENDING'],
    );
    assert.equal(overConnect.body.data[0].rejectReason, 'ORDER_REJECT_REASON_UNSPECIFIED');

    const filtered = await gateway.rest('GET', '/v1/orders?state=pending', { key: partner.key });
    assert.deepEqual(
      filtered.body.data.map(({ id }: { id: string }) => id),
      [plain],
    );
    const lines = gateway.logged.filter((line) => line.includes('"name":"on_hold"'));
    assert.equal(lines.length, 1, 'a name is logged once');
  });

  it('shows a history with steps of another version', async () => {
    const partner = await gateway.newPartner();
    const id = await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' });
    const sql = `UPDATE order_steps SET kind = 'amended', state = 'on_hold' WHERE order_id = ? AND sequence = 1`;
    await gateway.database.write(statement(sql, id));
    const history = await gateway.rest('GET', `/v1/orders/${id}/history`, { key: partner.key });
    assert.equal(history.status, 200, history.text);
    assert.deepEqual([history.body.data[0].kind, history.body.data[0].state], ['amended', 'on_hold']);
    const { data } = await grpc.orders.getOrderHistory({ id }, grpc.as(partner));
    assert.deepEqual([data[0]?.kind, data[0]?.state], [0, 0]);
    const overConnect = await connectCall(gateway, partner, 'Orders/GetOrderHistory', { id });
    assert.equal(overConnect.body.data[0].kind, 'ORDER_STEP_KIND_UNSPECIFIED');
  });

  for (const [what, columns] of [
    ['in an unknown state', { state: 'on_hold' }],
    ['of an unknown type', { type: 'stop' }],
  ] as const) {
    it(`${what} is not cancelled: nothing is sent, and the answer says so over every protocol`, async () => {
      const partner = await gateway.newPartner();
      const id = await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' });
      await store(id, columns);
      const before = await stored(id);
      const answer = await gateway.rest('DELETE', `/v1/orders/${id}`, { key: partner.key });
      assert.deepEqual([answer.status, answer.body.error.code], [409, 'order_not_cancelable'], answer.text);
      await assert.rejects(
        grpc.orders.cancelOrder({ id }, grpc.as(partner)),
        ({ code, details }: ServiceError) => code !== status.INTERNAL && details.includes('cannot be cancelled now'),
      );
      const overConnect = await connectCall(gateway, partner, 'Orders/CancelOrder', { id });
      assert.match(overConnect.body.message, /cannot be cancelled now/);
      assert.deepEqual(await messages(Call.CANCEL_ORDER, id), []);
      assert.deepEqual(await stored(id), before);
    });
  }

  it('misses no trade: reports pass it over, others go on, and a version that knows it looks up what it missed', async () => {
    const partner = await gateway.newPartner();
    const held = await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 90 });
    const other = await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 91 });
    await store(held, { state: 'on_hold' });
    const before = await stored(held);
    await gateway.controls.fillOrder({ clientOrderId: held, quantity: 40n }, callTimeout);
    await gateway.controls.fillOrder({ clientOrderId: held, quantity: 50n }, callTimeout);
    await gateway.controls.fillOrder({ clientOrderId: other, quantity: 91n }, callTimeout);
    await inState(partner, other, 'filled');
    const passed = await eventually(async () => {
      const row = await stored(held);
      assert.ok(BigInt(String(row.missed_report)) > BigInt(String(row.last_report)));
      return row;
    });
    const bookkeeping = ['missed_report', 'check_at', 'checks'];
    const visible = (row: Record<string, unknown>) =>
      Object.entries(row).filter(([column]) => !bookkeeping.includes(column));
    assert.deepEqual(visible(passed), visible(before), 'what the newer version stored stays');
    const failures = gateway.logged.filter((line) => line.includes("a partner's objects cannot be changed"));
    assert.deepEqual(failures, [], 'its state is no failure');
    await eventually(async () => {
      const found = await scrape(gateway.app.opsPort);
      assert.ok(Number(found.value('marina_unsettled', { kind: 'order', state: 'other' })) >= 1);
    });

    // The newer version goes on with it: to it the state is one it knows.
    await store(held, { state: 'pending' });
    const filled = await inState(partner, held, 'filled');
    assert.equal(filled.filled_quantity, 90);
    await eventually(async () => {
      const feed = await gateway.rest('GET', '/v1/events?limit=100', { key: partner.key });
      const events = feed.body.data.filter(({ data }: { data: { id: string } }) => data.id === held);
      assert.deepEqual(
        events.map(({ type }: { type: string }) => type),
        ['order.pending', 'order.partially_filled', 'order.filled'],
      );
    });
    await eventually(async () => assert.equal((await stored(held)).check_at, null));
  });

  it('applies what comes while it is behind in the order of the numbers', async () => {
    const partner = await gateway.newPartner();
    const id = await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 92 });
    await store(id, { state: 'on_hold' });
    await gateway.controls.fillOrder({ clientOrderId: id, quantity: 2n }, callTimeout);
    await eventually(async () => {
      const row = await stored(id);
      assert.ok(BigInt(String(row.missed_report)) > BigInt(String(row.last_report)));
    });
    // This version knows it again, and the look-up is not due for long.
    await store(id, { state: 'pending', check_at: new Date(Date.now() + 200_000) });
    await gateway.controls.fillOrder({ clientOrderId: id, quantity: 90n }, callTimeout);
    const filled = await inState(partner, id, 'filled');
    assert.equal(filled.filled_quantity, 92);
  });

  it('is not reconciled, and keeps no other from being settled', async () => {
    const partner = await gateway.newPartner();
    const unclear = await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' });
    const due = new Date(Date.now() - 1_000);
    await store(unclear, { state: 'uncertain', type: 'stop', check_at: due });
    const before = await stored(unclear);
    const lost = await place(partner, { symbol: 'SIM-LOST' });
    await inState(partner, lost, 'pending');
    assert.deepEqual(await stored(unclear), before);
    const { objects } = await admin.diagnostics.reconcileNow({ objectId: unclear, reason: 'test' }, admin.options);
    assert.equal(objects[0]?.outcome, ReconcileOutcome.OTHER_VERSION);
    assert.deepEqual(await stored(unclear), before);
    const listed = await admin.diagnostics.listUnsettled({ partnerId: partner.id }, admin.options);
    assert.deepEqual(
      listed.objects.map(({ id, state }) => [id, state]),
      [[unclear, 'uncertain']],
    );
  });

  it('keeps its whole value in the day, and while it may be unclear no order alike is placed', async () => {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 200_000n } });
    const id = await place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 100 });
    await store(id, { state: 'on_hold', check_at: new Date(Date.now() + 600_000) });
    const again = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 100 });
    assert.deepEqual([again.status, again.body.error?.code], [409, 'similar_order_unresolved']);
    const limits = await gateway.rest('GET', '/v1/limits', { key: partner.key });
    assert.equal(limits.body.orders_kobo_per_day.used, 100_000);
    await store(id, { check_at: null });
    const placed = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 100 });
    assert.equal(placed.status, 201, 'nothing of it is unclear');
    const beyond = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 1 });
    assert.equal(beyond.body.error?.code, 'limit_exceeded');
  });

  it('answers a repeated request with the order as it is', async () => {
    const partner = await gateway.newPartner();
    const order = { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 93 };
    const first = await gateway.place(partner, order, 'a key');
    await store(first.body.id, { state: 'on_hold', first_answer: 'queued' });
    const again = await gateway.place(partner, order, 'a key');
    assert.deepEqual([again.status, again.body.id, again.body.state], [200, first.body.id, 'on_hold']);
    assert.equal((await messages(Call.SUBMIT_ORDER, first.body.id)).length, 1);
  });
});
