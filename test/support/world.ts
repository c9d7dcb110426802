import assert from 'node:assert/strict';
import { walkLedger } from '../../src/gateway/operators/calls/ledger.ts';
import type { Database } from '../../src/gateway/store/database.ts';
import { type SqlRow, type Statement, statement } from '../../src/gateway/store/statement.ts';
import { AllocationOutcome } from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import { WithdrawalReportKind } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import type { Controls } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import type { GrpcClient } from '../../src/kit/grpc-client.ts';
import { brokerAllocations, brokerWithdrawals, exchangeOrders } from './brokers-record.ts';
import { eventually } from './eventually.ts';
import { assertNothingInUse } from './metrics.ts';

/**
 * A gateway, its database and its broker must agree on this when a test ends:
 *
 * - `use`: nothing of the process is held: no request, stream, slot, file, connection, read of the broker or place in a queue.
 * - `outbox`: no event is on its way to webhooks.
 * - `feed`: the versions of each partner are dense, up to the partner's version.
 * - `objects`: the last event of each object tells its state; the steps of each order add up to what it has filled.
 * - `contradictions`: what contradicts an object's state is kept for operators with its step, once.
 * - `deliveries`: each event after an endpoint was registered is queued for it, once.
 * - `usage`: what counts against each day's limits is what orders and allocations add up to.
 * - `ledgers`: each ledger is proven, its wallet is what allocations, withdrawals, payments and corrections add up to, and no
 *   credit is reversed by more than its amount.
 * - `jobs`: the counters of each job that cancels orders are what its orders' results add up to.
 * - `exchange`: the broker has no order, allocation or withdrawal that is not stored, and the same fills and bookings.
 */
const parts = { use, outbox, feed, objects, contradictions, deliveries, usage, ledgers, jobs, exchange };
export type WorldPart = keyof typeof parts;
/** For a test at whose end nothing is left to look at. */
export const allParts = Object.keys(parts) as readonly WorldPart[];

/** Gateways at the end of a test, with their database and the simulator that is their broker. */
export interface World {
  readonly database: Database;
  readonly controls: GrpcClient<typeof Controls>;
  readonly gateways: readonly { readonly opsPort: number }[];
}

const boundMs = 10_000;

/** The parts that need a gateway that is still at work. */
export const partsAtWork: readonly WorldPart[] = ['use', 'outbox', 'deliveries', 'exchange'];

/** Checks that they agree. `left` are the parts that it leaves in disorder on purpose. */
export async function checkWorld(world: World, left: readonly WorldPart[] = []): Promise<void> {
  const names = allParts.filter((name) => !left.includes(name));
  for (const name of names) {
    // Work in the background may still be under way: a part that does not hold is looked at again.
    await eventually(() => parts[name](world), boundMs);
  }
}

async function use({ gateways }: World): Promise<void> {
  for (const { opsPort } of gateways) await assertNothingInUse(opsPort);
}

async function outbox({ database }: World): Promise<void> {
  const events = await database.read(statement('SELECT partner_id, version FROM outbox LIMIT 10'));
  assert.deepEqual(events, [], 'no event is on its way');
}

async function feed({ database }: World): Promise<void> {
  const [partners = [], events = [], skips = []] = await readAll(
    database,
    `SELECT id, version, COALESCE(purged_version, 0) AS purged FROM partners LEFT JOIN feed_purges ON partner_id = id`,
    'SELECT partner_id, version FROM feed_events ORDER BY partner_id, version',
    'SELECT partner_id, from_version, to_version FROM feed_skips',
  );
  const skipped = new Map(skips.map((row) => [`${row.partner_id} ${row.from_version}`, Number(row.to_version)]));
  for (const partner of partners) {
    let last = Number(partner.purged);
    // A database that was restored several times can have a gap right behind another.
    const pass = () => {
      for (let to: number | undefined = last; to !== undefined; to = skipped.get(`${partner.id} ${last}`)) last = to;
    };
    pass();
    for (const event of events.filter(({ partner_id }) => partner_id === partner.id)) {
      if (Number(event.version) <= Number(partner.purged)) continue;
      assert.equal(Number(event.version), last + 1, `the feed of ${partner.id} is dense`);
      last += 1;
      pass();
    }
    assert.equal(last, Number(partner.version), `the feed of ${partner.id} has every version`);
  }
}

/** The tables of objects that make events, and the states in which no event has told of an object yet. */
const objectTables = ['orders', 'allocations', 'applications', 'withdrawals'] as const;

async function objects({ database }: World): Promise<void> {
  for (const table of objectTables) {
    const rows = await database.read(
      statement(`SELECT o.*, (SELECT e.body FROM feed_events e
          WHERE e.partner_id = o.partner_id AND e.object_id = o.id ORDER BY e.version DESC LIMIT 1) AS last_event
        FROM ${table} o`),
    );
    for (const row of rows) {
      // An object that no event has told of, or whose events are all purged.
      if (row.last_event === null) continue;
      const { data } = JSON.parse(String(row.last_event));
      const told = [data.state, ...(table === 'orders' ? [data.filled_quantity] : [])];
      const stored = [row.state, ...(table === 'orders' ? [Number(row.filled_quantity)] : [])];
      assert.deepEqual(told, stored, `the last event of ${row.id} tells what is stored`);
    }
  }
  for (const table of objectTables) {
    const isBehind = table === 'allocations' ? '' : ' OR missed_report > last_report';
    // One that waits for its release was not sent.
    const isHeld = table === 'withdrawals' ? 'held_until IS NOT NULL' : 'FALSE';
    const settled = await database.read(
      statement(`SELECT id, state, check_at FROM ${table}
        WHERE (state IN ('sending', 'uncertain')${isBehind}) <> (check_at IS NOT NULL) AND NOT (${isHeld}) LIMIT 10`),
    );
    assert.deepEqual(settled, [], 'what is not settled, or lacks reports, is looked at again, and nothing else');
  }
  const sums = await database.read(
    statement(`SELECT o.id, o.filled_quantity AS filled, o.filled_value_kobo AS value,
        SUM(s.filled_change) AS trades, SUM(s.value_change_kobo) AS traded
      FROM orders o JOIN order_steps s ON s.partner_id = o.partner_id AND s.order_id = o.id
      GROUP BY o.partner_id, o.id HAVING SUM(s.filled_change) IS NOT NULL AND (filled <> trades OR value <> traded)`),
  );
  assert.deepEqual(sums, [], 'the trades of each order add up to what it has filled');
}

/** The archive removes the steps of applications and allocations, and leaves what contradicted them. */
async function contradictions({ database }: World): Promise<void> {
  const steps = (table: string, object: string, trade: string) =>
    `SELECT s.partner_id, s.${object} AS id, s.sequence FROM ${table} s LEFT JOIN contradictions c
       ON c.partner_id = s.partner_id AND c.object_id = s.${object} AND c.step = s.sequence
     WHERE s.kind = 'contradiction' AND NOT (c.detail <=> s.detail AND c.at <=> s.at AND c.state <=> s.state AND ${trade})`;
  const [untold = [], foreign = []] = await readAll(
    database,
    `${steps('order_steps', 'order_id', 'c.quantity <=> s.quantity AND c.price_kobo <=> s.price_kobo')}
     UNION ALL ${steps('object_steps', 'object_id', 'c.quantity IS NULL')}`,
    `SELECT c.partner_id, c.object_id, c.step, COUNT(*) AS count FROM contradictions c
       LEFT JOIN order_steps o ON o.partner_id = c.partner_id AND o.order_id = c.object_id AND o.sequence = c.step
       LEFT JOIN object_steps s ON s.partner_id = c.partner_id AND s.object_id = c.object_id AND s.sequence = c.step
     GROUP BY c.partner_id, c.object_id, c.step
     HAVING COUNT(*) > 1
       OR COALESCE(MAX(o.kind), MAX(s.kind), IF(c.object_id LIKE 'ord%', 'none', 'contradiction')) <> 'contradiction'`,
  );
  assert.deepEqual(untold, [], 'each contradiction in a history is kept for operators, with what its step says');
  assert.deepEqual(foreign, [], 'each that is kept has its step, once');
}

async function deliveries({ database }: World): Promise<void> {
  const [missing = [], foreign = []] = await readAll(
    database,
    `SELECT e.partner_id, e.version FROM webhook_endpoints w JOIN feed_events e ON e.partner_id = w.partner_id
       LEFT JOIN webhook_deliveries d ON d.partner_id = e.partner_id AND d.version = e.version
     WHERE e.version > w.after_version AND d.version IS NULL LIMIT 10`,
    `SELECT d.partner_id, d.version FROM webhook_deliveries d JOIN partners p ON p.id = d.partner_id
       LEFT JOIN feed_events e ON e.partner_id = d.partner_id AND e.version = d.version
       LEFT JOIN feed_purges g ON g.partner_id = d.partner_id
     WHERE d.version > p.version OR (e.id <> d.event_id)
       OR (e.id IS NULL AND d.version > COALESCE(g.purged_version, 0)) LIMIT 10`,
  );
  assert.deepEqual(missing, [], 'each event after an endpoint was registered is queued for it');
  assert.deepEqual(foreign, [], 'what is queued is an event of the feed');
}

async function jobs({ database }: World): Promise<void> {
  const wrong = await database.read(
    statement(`SELECT b.id, b.matched, b.cancelled, b.not_cancelable, b.unconfirmed, COUNT(*) AS orders
      FROM bulk_cancels b JOIN bulk_cancel_orders o ON o.bulk_cancel_id = b.id GROUP BY b.id
      HAVING b.matched <> orders OR b.cancelled <> SUM(o.result <=> 'cancelled')
        OR b.not_cancelable <> SUM(o.result <=> 'not_cancelable') OR b.unconfirmed <> SUM(o.result <=> 'unconfirmed')`),
  );
  assert.deepEqual(wrong, [], "the counters of each job are what its orders' results add up to");
}

async function usage({ database }: World): Promise<void> {
  const [counted = [], used = []] = await readAll(
    database,
    `SELECT partner_id, day, kind, SUM(kobo) AS kobo FROM (
       SELECT partner_id, counted_day AS day, 'orders' AS kind, counted_price_kobo * CASE
           WHEN state = 'refused' THEN 0
           WHEN state IN ('rejected', 'cancelled', 'expired') THEN filled_quantity
           ELSE quantity END AS kobo FROM orders
       UNION ALL
       SELECT partner_id, counted_day, 'allocations', amount_kobo FROM allocations
         WHERE state NOT IN ('refused', 'rejected')) AS one
     GROUP BY partner_id, day, kind HAVING SUM(kobo) <> 0`,
    'SELECT partner_id, day, kind, used_kobo AS kobo FROM usage_days WHERE used_kobo <> 0',
  );
  const byDay = (rows: readonly SqlRow[]) =>
    Object.fromEntries(
      rows.map((row) => [`${row.partner_id} ${row.day} ${row.kind}`, BigInt(String(row.kobo))]).sort(),
    );
  assert.deepEqual(byDay(used), byDay(counted), "what counts against each day's limits adds up");
}

async function ledgers({ database }: World): Promise<void> {
  const [partners = [], overReversed = [], wallets = []] = await readAll(
    database,
    'SELECT id FROM partners',
    `SELECT r.partner_id, r.reverses FROM wallet_transfers r LEFT JOIN wallet_transfers c
       ON c.partner_id = r.partner_id AND c.sequence = r.reverses AND c.type = 'credit'
     WHERE r.type = 'credit_r' GROUP BY r.partner_id, r.reverses
     HAVING COALESCE(MAX(c.amount_kobo), 0) < SUM(r.amount_kobo)`,
    `SELECT w.partner_id, w.available_kobo, w.reserved_kobo, w.posted_kobo, w.withdrawn_kobo,
       COALESCE((SELECT SUM(amount_kobo) FROM withdrawals d WHERE d.partner_id = w.partner_id
         AND d.state = 'completed' AND d.destination = 'wallet'), 0) AS withdrawn,
       COALESCE((SELECT SUM(amount_kobo) FROM allocations a WHERE a.partner_id = w.partner_id
         AND a.state IN ('sending', 'uncertain')), 0) AS reserved,
       COALESCE((SELECT SUM(amount_kobo) FROM allocations a WHERE a.partner_id = w.partner_id
         AND a.state = 'booked'), 0) AS posted,
       (SELECT COALESCE(SUM(CASE WHEN type IN ('credit', 'withdraw') THEN amount_kobo WHEN type IN ('debit', 'credit_r') THEN -amount_kobo
         ELSE 0 END), 0) FROM wallet_transfers t WHERE t.partner_id = w.partner_id) AS came_in
     FROM wallets w`,
  );
  assert.deepEqual(overReversed, [], 'each reversal is of a credit, and no credit is reversed by more than its amount');
  for (const { id } of partners) {
    const walk = await walkLedger(database, String(id), 0n);
    assert.deepEqual([walk?.complete, walk?.faults], [true, []], `the ledger of ${id} is proven`);
  }
  for (const wallet of wallets) {
    assert.deepEqual(
      [String(wallet.reserved_kobo), String(wallet.posted_kobo), String(wallet.withdrawn_kobo)],
      [String(wallet.reserved), String(wallet.posted), String(wallet.withdrawn)],
      `the wallet of ${wallet.partner_id} is what its allocations and withdrawals add up to`,
    );
    assert.ok(BigInt(String(wallet.available_kobo)) >= 0n, 'what is available is never negative');
    const sums = [wallet.available_kobo, wallet.reserved_kobo, wallet.posted_kobo].map((kobo) => BigInt(String(kobo)));
    const total = sums.reduce((sum, kobo) => sum + kobo, 0n);
    assert.equal(total, BigInt(String(wallet.came_in)), 'every kobo that came in and did not go out is in one place');
  }
}

async function exchange({ database, controls }: World): Promise<void> {
  const rows = await database.read(statement('SELECT id, state, filled_quantity FROM orders'));
  const stored = new Map(rows.map((row) => [String(row.id), row]));
  for (const order of await exchangeOrders(controls)) {
    const row = stored.get(order.clientOrderId);
    assert.ok(row !== undefined, `the exchange has ${order.clientOrderId}, which is not stored`);
    assert.ok(order.timesReceived <= 1, `${order.clientOrderId} was received once`);
    assert.notEqual(row.state, 'refused', `${order.clientOrderId} lives at the exchange and is refused here`);
    assert.equal(BigInt(String(row.filled_quantity)), order.filledQuantity, `fills of ${order.clientOrderId}`);
  }
  const allocations = await database.read(statement('SELECT id, state FROM allocations'));
  const states = new Map(allocations.map(({ id, state }) => [String(id), String(state)]));
  for (const [id, { record, timesReceived }] of await brokerAllocations(controls)) {
    assert.ok(states.has(id), `the broker has ${id}, which is not stored`);
    assert.ok(timesReceived <= 1, `${id} was received once`);
    const state = record?.outcome === AllocationOutcome.BOOKED ? 'booked' : 'rejected';
    assert.equal(states.get(id), state, `${id} is what the broker made of it`);
  }
  const withdrawals = await database.read(statement('SELECT id, state FROM withdrawals'));
  const stateOf = new Map(withdrawals.map(({ id, state }) => [String(id), String(state)]));
  for (const [id, { state, timesReceived }] of await brokerWithdrawals(controls)) {
    assert.ok(stateOf.has(id), `the broker has ${id}, which is not stored`);
    assert.ok(timesReceived <= 1, `${id} was received once`);
    assert.equal(stateOf.get(id), withdrawalStates[state], `${id} is what the broker made of it`);
  }
}

const withdrawalStates: Readonly<Record<WithdrawalReportKind, string>> = {
  [WithdrawalReportKind.UNSPECIFIED]: '',
  [WithdrawalReportKind.ACCEPTED]: 'processing',
  [WithdrawalReportKind.PAID]: 'completed',
  [WithdrawalReportKind.REJECTED]: 'rejected',
  [WithdrawalReportKind.RETURNED]: 'returned',
};

/** The rows of several statements, read in one transaction. */
async function readAll(database: Database, ...texts: readonly string[]): Promise<readonly SqlRow[][]> {
  const statements: Statement[] = texts.map((text) => statement(text));
  return (await database.readAll(statements)) as SqlRow[][];
}
