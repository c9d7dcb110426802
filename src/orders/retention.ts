import type { Database } from '../db/database.ts';
import { underLease } from '../db/lease.ts';
import { type Statement, statement } from '../db/statement.ts';
import type { Clock } from '../lib/clock.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { keyKeptMs } from './changes.ts';

const positionName = 'order-key-retention';
const mostAtOnce = 500;
const betweenRoundsMs = 5_000;

/**
 * Sets idempotency keys free after 30 days. It passes each order once, in the order of their ids, which begin with the
 * clock; an order that is not final by then keeps its key, and loses it with the change that makes it final.
 */
export function keyRetention(database: Database, clock: Clock, holder: string): Worker {
  return underLease(database, positionName, holder, async ({ signal }) => {
    while (!signal.aborted) {
      const passed = await passOldOrders(database, clock.now() - keyKeptMs);
      if (passed < mostAtOnce) await pause(betweenRoundsMs, signal);
    }
  });
}

async function passOldOrders(database: Database, before: number): Promise<number> {
  const [row] = await database.read(statement('SELECT position FROM positions WHERE name = ?', positionName));
  const position = row === undefined ? '' : String(row.position);
  const orders = await database.read(
    statement(`SELECT id, created_at FROM orders WHERE id > ? ORDER BY id LIMIT ${mostAtOnce}`, position),
  );
  const ids: string[] = [];
  for (const order of orders) {
    if ((order.created_at as Date).getTime() >= before) break;
    ids.push(String(order.id));
  }
  const last = ids.at(-1);
  if (last === undefined) return 0;
  await database.transaction([], () => ({ writes: [freeKeys(ids), moveTo(last)], result: undefined }));
  return ids.length;
}

function freeKeys(ids: readonly string[]): Statement {
  return statement(
    `UPDATE orders SET idempotency_key = NULL WHERE id IN (?)
      AND state IN ('filled', 'rejected', 'refused', 'cancelled', 'expired')`,
    ids,
  );
}

function moveTo(position: string): Statement {
  return statement(
    'INSERT INTO positions (name, position) VALUES (?, ?) ON DUPLICATE KEY UPDATE position = VALUES(position)',
    positionName,
    position,
  );
}
