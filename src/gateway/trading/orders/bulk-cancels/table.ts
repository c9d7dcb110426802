import { type OrderSide, OrderSideSchema } from '../../../../gen/marina/gateway/v1/orders_pb.ts';
import { type Statement, statement } from '../../../store/statement.ts';
import { count, defineTable, enumName, instant, optional, type RowOf, shortened, text } from '../../../store/table.ts';
import type { CancelResult } from './rules.ts';

/** Jobs that cancel open orders. A counter changes in the transaction that changes the result of an order. */
export const bulkCancels = defineTable({
  name: 'bulk_cancels',
  columns: {
    id: text(24),
    /** The filters; null: each value. */
    partnerId: optional(text(24)),
    account: optional(text(64)),
    symbol: optional(text(20)),
    side: optional(enumName<typeof OrderSide>(OrderSideSchema, 4)),
    keyId: optional(text(24)),
    reason: text(200),
    startedBy: text(64),
    /** The request that began it. */
    requestId: text(36),
    createdAt: instant(),
    /** Real: when it ends, whatever is left. */
    giveUpAt: instant(),
    matched: count(),
    cancelled: count(),
    notCancelable: count(),
    unconfirmed: count(),
    /** Explains a wait of the whole job; null: it does not wait. */
    waitsFor: optional(text(200)),
    /** Business time at which a counter changed last. */
    updatedAt: instant(),
    /** Null while it runs. */
    endedAt: optional(instant()),
    /** Null if no operator stopped it. */
    endedBy: optional(text(64)),
    /** Null if it came to its end. */
    endReason: optional(text(200)),
  },
  primary: ['id'],
  indexes: { bulk_cancels_ended_at: ['endedAt', 'id'] },
});

export type BulkCancel = RowOf<typeof bulkCancels>;

/** The orders of jobs. A row changes only under the lock of its partner. */
export const bulkCancelOrders = defineTable({
  name: 'bulk_cancel_orders',
  columns: {
    partnerId: text(24),
    bulkCancelId: text(24),
    orderId: text(24),
    /** Null: none yet. */
    result: optional(text<CancelResult>(16)),
    /** Explains the result or the wait. */
    detail: optional(shortened(200)),
    /** Real: when the job stored its cancel. A job stores one of each order. */
    sentAt: optional(instant()),
    /** Real: when the job turns to it next; null: it is done with it. */
    dueAt: optional(instant()),
  },
  primary: ['partnerId', 'bulkCancelId', 'orderId'],
  indexes: {
    bulk_cancel_orders_due_at: ['bulkCancelId', 'dueAt', 'orderId'],
    bulk_cancel_orders_result: ['bulkCancelId', 'result', 'orderId'],
  },
});

export type BulkCancelOrder = RowOf<typeof bulkCancelOrders>;

/** The most jobs that run at once. */
export const maxRunning = 20;

/** A page of the running jobs or of those that have ended, the newest first. */
export function listBulkCancels(ended: boolean, beforeId: string, most: number): Statement {
  const [index, state] = ended ? ['PRIMARY', 'NOT NULL'] : ['bulk_cancels_ended_at', 'NULL'];
  const from = `SELECT ${bulkCancels.all.list} FROM bulk_cancels FORCE INDEX (${index}) WHERE ended_at IS ${state}`;
  return statement(`${from} AND (? = '' OR id < ?) ORDER BY id DESC LIMIT ${most}`, beforeId, beforeId);
}

/** A page of a job's orders that have one result, or none. */
export function listOrdersOf(id: string, result: CancelResult | null, afterId: string, most: number): Statement {
  return statement(
    `SELECT ${bulkCancelOrders.all.list} FROM bulk_cancel_orders FORCE INDEX (bulk_cancel_orders_result)
      WHERE bulk_cancel_id = ? AND result <=> ? AND order_id > ? ORDER BY order_id LIMIT ${most}`,
    ...[id, result, afterId],
  );
}

/** The orders of a job that are due at an instant of real time, the longest due first. Orders of some partners are left out. */
export function findDue(id: string, realNow: number, without: readonly string[], most: number): Statement {
  return statement(
    `SELECT ${bulkCancelOrders.all.list} FROM bulk_cancel_orders FORCE INDEX (bulk_cancel_orders_due_at)
      WHERE bulk_cancel_id = ? AND due_at <= ? AND partner_id NOT IN (?) ORDER BY due_at, order_id LIMIT ${most}`,
    ...[id, new Date(realNow), ['', ...without]],
  );
}

/** Finds a row while the job is not done with all of its orders. */
export function findUndone(id: string): Statement {
  return statement(
    `SELECT order_id FROM bulk_cancel_orders FORCE INDEX (bulk_cancel_orders_due_at)
      WHERE bulk_cancel_id = ? AND due_at IS NOT NULL LIMIT 1`,
    id,
  );
}

/** Counts the running jobs and the orders that they have left, and finds when a counter changed last in the job that rests longest. */
export const countRunning: Statement = statement(
  `SELECT COUNT(*) AS jobs, COALESCE(SUM(matched - cancelled - not_cancelable - unconfirmed), 0) AS orders_left,
      MIN(updated_at) AS oldest FROM bulk_cancels FORCE INDEX (bulk_cancels_ended_at) WHERE ended_at IS NULL`,
);

/** Changes a job's order, and the counters of its job. The partner's lock must be held. `now` is business time. */
export function changeOrder(
  before: BulkCancelOrder,
  change: Partial<Pick<BulkCancelOrder, 'result' | 'detail' | 'sentAt' | 'dueAt'>>,
  now: number,
): Statement[] {
  const after = { ...before, ...change };
  const writes = bulkCancelOrders.update(before, after);
  if (before.result === after.result) return writes;
  const added = (result: CancelResult) => Number(after.result === result) - Number(before.result === result);
  const counted = statement(
    `UPDATE bulk_cancels SET cancelled = cancelled + ?, not_cancelable = not_cancelable + ?,
      unconfirmed = unconfirmed + ?, updated_at = ? WHERE id = ?`,
    ...[added('cancelled'), added('not_cancelable'), added('unconfirmed'), new Date(now), before.bulkCancelId],
  );
  return [...writes, counted];
}

/** Saves what the running jobs wait for, if it changed. */
export function saveWait(waitsFor: string | null): Statement {
  return statement(
    'UPDATE bulk_cancels SET waits_for = ? WHERE ended_at IS NULL AND NOT (waits_for <=> ?)',
    ...[waitsFor, waitsFor],
  );
}

/** Ends a job that runs. `now` is business time. */
export function endJob(id: string, endReason: string | null, now: number): Statement {
  return statement(
    'UPDATE bulk_cancels SET ended_at = ?, end_reason = ?, waits_for = NULL WHERE id = ? AND ended_at IS NULL',
    ...[new Date(now), endReason, id],
  );
}
