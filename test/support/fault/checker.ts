import assert from 'node:assert/strict';
import { statement } from '../../../src/gateway/store/statement.ts';
import { orders, type StoredOrder } from '../../../src/gateway/trading/orders/table.ts';
import { Call, type ExchangeOrder, type ReceivedMessage } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { exchangeOrders } from '../brokers-record.ts';
import { type Cluster, callTimeout, type GatewayProcess, type Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';

interface FeedEvent {
  readonly type: string;
  readonly version: number;
  // biome-ignore lint/suspicious/noExplicitAny: compared whole with what the order's GET returns.
  readonly data: any;
}

/**
 * Waits until everything has come to rest, then holds the gateway's rows, the exchange's record and the feed against
 * each other. Throws on anything that must never be. The exchange goes on trading what rests there: what was looked at
 * while something changed is looked at again.
 */
export async function checkEverything(
  cluster: Cluster,
  gateway: GatewayProcess,
  partners: readonly Partner[],
  boundMs = 30_000,
): Promise<void> {
  const end = performance.now() + boundMs;
  for (;;) {
    const before = await whatChanges(cluster);
    await eventually(() => atRest(cluster), boundMs);
    try {
      return await checkAtRest(cluster, gateway, partners);
    } catch (error) {
      if (performance.now() > end || before === (await whatChanges(cluster))) throw error;
    }
  }
}

/** Differs when anything that is compared has changed: the exchange's fills, and the partners' versions. */
async function whatChanges(cluster: Cluster): Promise<string> {
  const versions = await cluster.database.read(statement('SELECT id, version FROM partners ORDER BY id'));
  const exchange = await exchangeOrders(cluster.controls);
  return JSON.stringify([versions, exchange.map((order) => [order.clientOrderId, order.filledQuantity])], (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

async function checkAtRest(cluster: Cluster, gateway: GatewayProcess, partners: readonly Partner[]): Promise<void> {
  const [orders, messages] = [await storedOrders(cluster), await allMessages(cluster)];
  const exchange = new Map((await exchangeOrders(cluster.controls)).map((order) => [order.clientOrderId, order]));
  checkSends(orders, messages, Number(cluster.gatewayVariables.MARINA_SUBMIT_TIMEOUT_MS));
  for (const id of exchange.keys()) assert.ok(orders.has(id), `the exchange has ${id}, which is not stored here`);
  for (const order of orders.values()) checkAgainstExchange(order, exchange.get(order.id));
  for (const partner of partners) await checkFeed(cluster, gateway, partner, orders);
  await checkUsage(cluster, orders);
}

/** Nothing unclear, no event on its way, every report applied. */
async function atRest(cluster: Cluster): Promise<void> {
  const { database } = cluster;
  const unclear = await database.read(
    statement(`SELECT id, state FROM orders WHERE state IN ('sending', 'uncertain')`),
  );
  assert.deepEqual(unclear, [], 'orders are still unclear');
  const outbox = await database.read(statement('SELECT partner_id, version FROM outbox'));
  assert.deepEqual(outbox, [], 'events are still on their way');
  const exchange = await exchangeOrders(cluster.controls);
  const orders = await storedOrders(cluster);
  for (const order of exchange) {
    assert.equal(
      orders.get(order.clientOrderId)?.filledQuantity,
      order.filledQuantity,
      `fills of ${order.clientOrderId}`,
    );
  }
}

/** The exchange saw each order at most once, and never before it was stored. */
function checkSends(
  orders: ReadonlyMap<string, StoredOrder>,
  messages: readonly ReceivedMessage[],
  submitTimeoutMs: number,
): void {
  const seen = new Set<string>();
  for (const message of messages) {
    if (message.call !== Call.SUBMIT_ORDER) continue;
    const order = orders.get(message.clientOrderId);
    assert.ok(order !== undefined, `${message.clientOrderId} was received and is not stored`);
    assert.ok(!seen.has(order.id), `${order.id} was received twice`);
    seen.add(order.id);
    const receivedAt = Number(message.receivedAt?.seconds ?? 0n) * 1_000 + (message.receivedAt?.nanos ?? 0) / 1e6;
    // not_after is real time, a fixed while after the moment of storing; created_at moves with the sandbox's clock.
    const storedAt = order.notAfter - submitTimeoutMs;
    assert.ok(storedAt <= receivedAt + 1, `${order.id} was received before it was stored`);
  }
}

function checkAgainstExchange(order: StoredOrder, exchange: ExchangeOrder | undefined): void {
  if (exchange === undefined) {
    assert.ok(['refused', 'rejected'].includes(order.state), `${order.id} is ${order.state} and not at the exchange`);
    return;
  }
  assert.notEqual(order.state, 'refused', `${order.id} is refused and lives at the exchange`);
  assert.equal(order.filledQuantity, exchange.filledQuantity, `${order.id} filled`);
  assert.equal(order.exchangeOrderId ?? '', exchange.exchangeOrderId);
}

/** Versions 1..n without a gap, each change once, and the last one equal to what GET returns. */
export async function checkFeed(
  cluster: Cluster,
  gateway: GatewayProcess,
  partner: Partner,
  orders: ReadonlyMap<string, StoredOrder>,
): Promise<void> {
  const events = await readFeed(gateway, partner);
  assert.deepEqual(
    events.map(({ version }) => version),
    events.map((_, index) => index + 1),
    'versions are dense',
  );
  const [row] = await cluster.database.read(statement('SELECT version FROM partners WHERE id = ?', partner.id));
  assert.equal(events.length, Number(row?.version), 'the feed has every version');
  const byOrder = new Map<string, FeedEvent[]>();
  for (const event of events) byOrder.set(event.data.id, [...(byOrder.get(event.data.id) ?? []), event]);
  for (const order of orders.values()) {
    if (order.partnerId !== partner.id) continue;
    const published = byOrder.get(order.id) ?? [];
    const marks = published.map(({ type, data }) => `${type} ${data.filled_quantity}`);
    assert.equal(new Set(marks).size, marks.length, `${order.id} has two events of one change: ${marks.join(', ')}`);
    const { body } = await gateway.request('GET', `/v1/orders/${order.id}`, { key: partner.key });
    assert.deepEqual(published.at(-1)?.data, body, `the last event of ${order.id} is what GET returns`);
    // A late fill of an order that was rejected contradicts its state, and counts all the same. The simulator never
    // trades more than was ordered, so every trade it reports counts.
    const trades = await cluster.database.read(
      statement(
        `SELECT quantity FROM order_steps WHERE partner_id = ? AND order_id = ? AND quantity > 0`,
        partner.id,
        order.id,
      ),
    );
    const filled = trades.reduce((sum, trade) => sum + BigInt(String(trade.quantity)), 0n);
    assert.equal(filled, order.filledQuantity, `the trades of ${order.id} add up`);
    const filledThen = published.map(({ data }) => data.filled_quantity as number);
    const fills = filledThen.filter((quantity, index) => quantity > (filledThen[index - 1] ?? 0)).length;
    assert.equal(fills, trades.length, `${order.id} has an event for each trade`);
  }
}

async function readFeed(gateway: GatewayProcess, partner: Partner): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await gateway.request('GET', `/v1/events?limit=100${cursor}`, { key: partner.key });
    assert.equal(status, 200);
    events.push(...body.data);
    if (!body.has_more) return events;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

/** Checks that the amount counted against each day is the sum of the orders, counted from scratch. */
export async function checkUsage(cluster: Cluster, orders: ReadonlyMap<string, StoredOrder>): Promise<void> {
  const expected = new Map<string, bigint>();
  for (const order of orders.values()) {
    const key = `${order.partnerId} ${order.countedDay}`;
    const shares =
      order.state === 'refused'
        ? 0n
        : ['rejected', 'cancelled', 'expired'].includes(order.state)
          ? order.filledQuantity
          : order.quantity;
    expected.set(key, (expected.get(key) ?? 0n) + shares * order.countedPriceKobo);
  }
  const rows = await cluster.database.read(statement(`SELECT * FROM usage_days WHERE kind = 'orders'`));
  const counted = new Map(rows.map((row) => [`${row.partner_id} ${row.day}`, BigInt(String(row.used_kobo))]));
  for (const [key, value] of expected) assert.equal(counted.get(key) ?? 0n, value, `the value counted for ${key}`);
}

export async function storedOrders(cluster: Cluster): Promise<Map<string, StoredOrder>> {
  const rows = await cluster.database.read(statement('SELECT * FROM orders ORDER BY id'));
  return new Map(rows.map((row) => [String(row.id), orders.all.read(row)]));
}

async function allMessages(cluster: Cluster): Promise<ReceivedMessage[]> {
  const all: ReceivedMessage[] = [];
  for (let afterNumber = 0n; ; ) {
    const { messages, hasMore } = await cluster.controls.listMessages({ afterNumber }, callTimeout);
    all.push(...messages);
    const last = messages.at(-1);
    if (!hasMore || last === undefined) return all;
    afterNumber = last.number;
  }
}
