import {
  binary,
  insertRows,
  instant,
  milliseconds,
  outOfRange,
  type SqlRow,
  type SqlValue,
  type Statement,
  statement,
  toBigInt,
} from '../db/statement.ts';
import {
  OrderSideSchema,
  OrderStateSchema,
  type OrderStepKind,
  OrderTypeSchema,
  TimeInForceSchema,
} from '../gen/marina/gateway/v1/orders_pb.ts';
import type { EnumName } from '../lib/enums.ts';
import {
  hasKnownName,
  mustBeLookedAt,
  type SubmissionFields,
  submissionColumns,
  toSubmissionFields,
  toSubmissionRow,
} from '../submission/row-store.ts';
import type { OrderFacts, OrderStateWord } from './rules.ts';

/** What partners see of an order. Instants are milliseconds since the epoch. */
export interface ShownOrder {
  readonly id: string;
  readonly state: OrderStateWord;
  readonly account: string;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly type: 'limit' | 'market';
  readonly timeInForce: 'day' | 'gtc' | 'ioc' | 'fok';
  readonly quantity: bigint;
  readonly priceKobo: bigint | null;
  readonly filledQuantity: bigint;
  readonly filledValueKobo: bigint;
  readonly exchangeOrderId: string | null;
  readonly reason: string | null;
  readonly rejectReason: string | null;
  readonly clientReference: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly filledAt: number | null;
}

/** An order as stored. Instants marked real are not business time. */
export interface StoredOrder extends ShownOrder, OrderFacts, SubmissionFields {
  /** The Lagos day the order counts for, as YYYY-MM-DD. */
  readonly countedDay: string;
  /** Real: until when a cancel is under way, or when it was found to be unclear; null: nothing is unclear of one. */
  readonly cancelUntil: number | null;
  /** The number of the last report that a version passed over because it did not know the order. */
  readonly missedReport: bigint;
}

/** One step of an order's history, as stored. */
export interface StoredStep {
  readonly kind: EnumName<typeof OrderStepKind>;
  readonly at: number;
  readonly state: OrderStateWord;
  readonly detail: string;
  readonly reportNumber?: bigint;
  readonly quantity?: bigint;
  readonly priceKobo?: bigint;
  /** When the exchange says that it happened. */
  readonly upstreamAt?: number;
}

/** What partners see of an order. A read of these alone is a good deal cheaper than one of all. */
const shownColumns = [
  'id',
  'state',
  'account',
  'symbol',
  'side',
  'type',
  'time_in_force',
  'quantity',
  'price_kobo',
  'filled_quantity',
  'filled_value_kobo',
  'exchange_order_id',
  'reason',
  'reject_reason',
  'client_reference',
  'created_at',
  'updated_at',
  'filled_at',
] as const;

const allColumns = [
  ...shownColumns,
  ...submissionColumns,
  'counted_day',
  'counted_price_kobo',
  'last_report',
  'cancel_until',
  'missed_report',
] as const;

/** The columns of an order as partners see it. */
export const shown = shownColumns.join(', ');
const all = allColumns.join(', ');

export function insertOrder(order: StoredOrder): Statement {
  const row = toRow(order);
  return insertRows('orders', allColumns, [allColumns.map((column) => row[column])]);
}

function toRow(order: StoredOrder): Record<(typeof allColumns)[number], SqlValue> {
  return {
    id: order.id,
    state: order.state,
    account: order.account,
    symbol: order.symbol,
    side: order.side,
    type: order.type,
    time_in_force: order.timeInForce,
    quantity: order.quantity,
    price_kobo: order.priceKobo,
    filled_quantity: order.filledQuantity,
    filled_value_kobo: order.filledValueKobo,
    exchange_order_id: order.exchangeOrderId,
    reason: order.reason,
    reject_reason: order.rejectReason,
    client_reference: binary(order.clientReference),
    created_at: new Date(order.createdAt),
    updated_at: new Date(order.updatedAt),
    filled_at: instant(order.filledAt),
    ...toSubmissionRow(order),
    counted_day: order.countedDay,
    counted_price_kobo: order.countedPriceKobo,
    last_report: order.lastReport,
    cancel_until: instant(order.cancelUntil),
    missed_report: order.missedReport,
  };
}

/** What can change of an order: its column, its field, and how that becomes a value. */
const changing: readonly [column: string, field: keyof StoredOrder, toValue: (field: never) => SqlValue][] = [
  ['state', 'state', String],
  ['filled_quantity', 'filledQuantity', itself],
  ['filled_value_kobo', 'filledValueKobo', itself],
  ['exchange_order_id', 'exchangeOrderId', itself],
  ['reason', 'reason', itself],
  ['reject_reason', 'rejectReason', itself],
  ['updated_at', 'updatedAt', instant],
  ['filled_at', 'filledAt', instant],
  ['idempotency_key', 'idempotencyKey', binary],
  ['first_answer', 'firstAnswer', itself],
  ['last_report', 'lastReport', itself],
  ['check_at', 'checkAt', instant],
  ['checks', 'checks', itself],
  ['missing_since', 'missingSince', instant],
  ['cancel_until', 'cancelUntil', instant],
  ['missed_report', 'missedReport', itself],
];

function itself(value: SqlValue): SqlValue {
  return value;
}

/** Saves what changed of an order that was read under the partner's lock. */
export function updateOrder(before: StoredOrder, after: StoredOrder): Statement {
  return update(before, after, { sql: '?', values: [after.steps] });
}

/**
 * The same for an order that was not read. Fails, because its count of steps cannot be null, where the order is not as
 * before: everything that comes to an order makes a step of its history or is counted as a check.
 */
export function updateOrderAssumed(before: StoredOrder, after: StoredOrder): Statement {
  const { state, steps, checks } = before;
  return update(before, after, {
    sql: 'IF(state = ? AND steps = ? AND checks = ?, ?, NULL)',
    values: [state, steps, checks, after.steps],
  });
}

/** The steps are set first: what stands after them in the statement is set when they are compared. */
function update(before: StoredOrder, after: StoredOrder, steps: Statement): Statement {
  const changed = changing.filter(([, field]) => before[field] !== after[field]);
  const sets = changed.map(([column]) => `, ${column} = ?`).join('');
  return statement(
    `UPDATE orders SET steps = ${steps.sql}${sets} WHERE partner_id = ? AND id = ?`,
    ...steps.values,
    ...changed.map(([, field, toValue]) => toValue(after[field] as never)),
    before.partnerId,
    before.id,
  );
}

/** Appends steps to an order's history, after the `before` it has. */
export function insertSteps(order: StoredOrder, before: number, steps: readonly StoredStep[]): Statement {
  return insertRows(
    'order_steps',
    [
      'partner_id',
      'order_id',
      'sequence',
      'kind',
      'at',
      'state',
      'detail',
      'report_number',
      'quantity',
      'price_kobo',
      'upstream_at',
    ],
    steps.map((step, index) => [
      order.partnerId,
      order.id,
      before + index + 1,
      step.kind,
      new Date(step.at),
      step.state,
      step.detail.slice(0, 300),
      step.reportNumber ?? null,
      step.quantity ?? null,
      step.priceKobo ?? null,
      step.upstreamAt === undefined ? null : new Date(step.upstreamAt),
    ]),
  );
}

/** Notes that a cancel of an order is under way or unclear, or that nothing is unclear of one any more. */
export function saveOpenCancel({ partnerId, id, cancelUntil }: StoredOrder, now: number): Statement {
  if (cancelUntil === null) {
    return statement('DELETE FROM open_cancels WHERE partner_id = ? AND order_id = ?', partnerId, id);
  }
  return statement(
    `INSERT INTO open_cancels (partner_id, order_id, sent_at) VALUES (?, ?, ?)
      ON DUPLICATE KEY UPDATE sent_at = sent_at`,
    partnerId,
    id,
    new Date(now),
  );
}

export function findOrder(partnerId: string, id: string): Statement {
  return statement(`SELECT ${all} FROM orders WHERE partner_id = ? AND id = ?`, partnerId, id);
}

export function findOrders(partnerId: string, ids: readonly string[]): Statement {
  return statement(`SELECT ${all} FROM orders WHERE partner_id = ? AND id IN (?)`, partnerId, ids);
}

export function findOrderByKey(partnerId: string, idempotencyKey: string): Statement {
  return statement(
    `SELECT ${all} FROM orders WHERE partner_id = ? AND idempotency_key = ?`,
    partnerId,
    Buffer.from(idempotencyKey),
  );
}

/** The partners of some orders, for reports that name orders only. */
export function findPartnersOfOrders(ids: readonly string[]): Statement {
  return statement(
    `SELECT id, partner_id, last_report FROM orders WHERE id IN (${ids.map(() => '?').join(', ')})`,
    ...ids,
  );
}

/**
 * Orders alike that may or may not be at the exchange. `now` is real time. In a state of another version an order is one of
 * them while the reconciler must look at it.
 */
export function findSimilarUnsettled(partnerId: string, order: Omit<ShownOrder, 'id'>, now: number): Statement {
  return selectSimilarUnsettled('id', partnerId, order, now);
}

/** Fails where there are any. */
export function refuseSimilarUnsettled(partnerId: string, order: Omit<ShownOrder, 'id'>, now: number): Statement {
  return selectSimilarUnsettled(outOfRange, partnerId, order, now);
}

const isSettled = hasKnownName('state', OrderStateSchema, ['sending', 'uncertain']);

/** The index is named because the server looks at all of them first, which takes it longer than the rest. */
function selectSimilarUnsettled(
  what: string,
  partnerId: string,
  order: Omit<ShownOrder, 'id'>,
  now: number,
): Statement {
  return statement(
    `SELECT ${what} FROM orders FORCE INDEX (orders_state) WHERE partner_id = ? AND NOT ${isSettled}
      AND account = ? AND symbol = ? AND side = ? AND type = ? AND quantity = ? AND price_kobo <=> ?
      AND (state = 'uncertain' OR check_at <= ? OR (state <> 'sending' AND check_at IS NOT NULL)) LIMIT 1`,
    partnerId,
    order.account,
    order.symbol,
    order.side,
    order.type,
    order.quantity,
    order.priceKobo,
    new Date(now),
  );
}

const isKnown = [
  hasKnownName('state', OrderStateSchema),
  hasKnownName('side', OrderSideSchema),
  hasKnownName('type', OrderTypeSchema),
  hasKnownName('time_in_force', TimeInForceSchema),
].join(' AND ');

/** Orders the reconciler must look at, longest due first. `now` is real time. */
export function findDueOrders(now: number, most: number): Statement {
  const { sql, values } = mustBeLookedAt(now);
  return statement(`SELECT ${all} FROM orders WHERE ${sql} AND ${isKnown} ORDER BY check_at LIMIT ${most}`, ...values);
}

/** Which orders a list shows. */
export interface OrderFilters {
  readonly state?: string;
  readonly account?: string;
  readonly symbol?: string;
  readonly clientReference?: string;
  readonly updatedSince?: number;
}

/** A page of a partner's orders, newest first, after the one with the given id. */
export function listOrders(
  partnerId: string,
  filters: OrderFilters,
  beforeId: string | undefined,
  most: number,
): Statement {
  const conditions: [string, SqlValue | undefined][] = [
    ['state = ?', filters.state],
    ['account = ?', filters.account],
    ['symbol = ?', filters.symbol],
    ['client_reference = ?', binary(filters.clientReference ?? null) ?? undefined],
    ['updated_at >= ?', filters.updatedSince === undefined ? undefined : new Date(filters.updatedSince)],
    ['id < ?', beforeId],
  ];
  const used = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
  return statement(
    `SELECT ${shown} FROM orders WHERE ${['partner_id = ?', ...used.map(([sql]) => sql)].join(' AND ')}
      ORDER BY id DESC LIMIT ${most}`,
    partnerId,
    ...used.map(([, value]) => value),
  );
}

/** A page of an order's history, oldest first. */
export function listSteps(partnerId: string, orderId: string, after: number, most: number): Statement {
  return statement(
    `SELECT * FROM order_steps WHERE partner_id = ? AND order_id = ? AND sequence > ? ORDER BY sequence LIMIT ${most}`,
    partnerId,
    orderId,
    after,
  );
}

export function toShownOrder(row: SqlRow): ShownOrder {
  return {
    id: row.id as string,
    state: row.state as OrderStateWord,
    account: row.account as string,
    symbol: row.symbol as string,
    side: row.side as ShownOrder['side'],
    type: row.type as ShownOrder['type'],
    timeInForce: row.time_in_force as ShownOrder['timeInForce'],
    quantity: toBigInt(row.quantity),
    priceKobo: row.price_kobo === null ? null : toBigInt(row.price_kobo),
    filledQuantity: toBigInt(row.filled_quantity),
    filledValueKobo: toBigInt(row.filled_value_kobo),
    exchangeOrderId: row.exchange_order_id as string | null,
    reason: row.reason as string | null,
    rejectReason: row.reject_reason as string | null,
    clientReference: row.client_reference === null ? null : String(row.client_reference),
    createdAt: (row.created_at as Date).getTime(),
    updatedAt: (row.updated_at as Date).getTime(),
    filledAt: milliseconds(row.filled_at),
  };
}

export function toStoredOrder(row: SqlRow): StoredOrder {
  return {
    ...toShownOrder(row),
    ...toSubmissionFields(row),
    countedDay: String(row.counted_day),
    countedPriceKobo: toBigInt(row.counted_price_kobo),
    lastReport: toBigInt(row.last_report),
    cancelUntil: milliseconds(row.cancel_until),
    missedReport: toBigInt(row.missed_report),
  };
}
