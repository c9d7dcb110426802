import { type Statement, statement } from '../db/statement.ts';
import { day, defineTable, exactText, instant, optional, type RowOf, type ShownBy, text, whole } from '../db/table.ts';
import {
  OrderSideSchema,
  OrderStateSchema,
  OrderTypeSchema,
  TimeInForceSchema,
} from '../gen/marina/gateway/v1/orders_pb.ts';
import { hasKnownName, historyIn, stepColumns, submissionColumns, submissionIndexes } from '../submission/table.ts';
import type { OrderStateName } from './rules.ts';

const { indexes, unique } = submissionIndexes('orders');

/** Orders. Instants marked real are not business time; amounts are in kobo. */
export const orders = defineTable({
  name: 'orders',
  columns: {
    ...submissionColumns,
    state: text<OrderStateName>(20),
    account: text(64),
    symbol: text(20),
    side: text<'buy' | 'sell'>(4),
    type: text<'limit' | 'market'>(8),
    timeInForce: text<'day' | 'gtc' | 'ioc' | 'fok'>(4),
    quantity: whole(),
    priceKobo: optional(whole()),
    filledQuantity: whole(),
    /** The sum of quantity times price over the trades. */
    filledValueKobo: whole(),
    exchangeOrderId: optional(text(64)),
    clientReference: optional(exactText(64)),
    filledAt: optional(instant()),
    /** The Lagos day the order counts for. */
    countedDay: day(),
    /** The price of one share the order counts with against its day's limit; frozen when it was placed. */
    countedPriceKobo: whole(),
    /** The number of the last report applied. */
    lastReport: whole(),
    /** The number of the last report that a version passed over because it did not know the order. */
    missedReport: whole(),
    /** Real: until when a cancel is under way, or when its outcome was found to be unknown; null: none is open. */
    cancelUntil: optional(instant()),
  },
  primary: ['partnerId', 'id'],
  indexes: {
    ...indexes,
    orders_state: ['partnerId', 'state', 'id'],
    orders_account: ['partnerId', 'account', 'id'],
    orders_symbol: ['partnerId', 'symbol', 'id'],
    orders_client_reference: ['partnerId', 'clientReference', 'id'],
    orders_updated_at: ['partnerId', 'updatedAt', 'id'],
  },
  unique,
});

export type StoredOrder = RowOf<typeof orders>;

/** What partners see of an order. */
export const shownOrder = orders.only(
  ...(['id', 'state', 'account', 'symbol', 'side', 'type', 'timeInForce', 'quantity', 'priceKobo'] as const),
  ...(['filledQuantity', 'filledValueKobo', 'exchangeOrderId', 'reason', 'rejectReason'] as const),
  ...(['clientReference', 'createdAt', 'updatedAt', 'filledAt'] as const),
);
export type ShownOrder = ShownBy<typeof shownOrder>;

/** What a note to the broker keeps of an order. */
export const notedOrder = [
  ...(['account', 'symbol', 'side', 'type', 'timeInForce', 'quantity', 'priceKobo', 'clientReference'] as const),
  ...(['createdAt', 'countedDay', 'countedPriceKobo', 'notAfter'] as const),
];

/** The history of orders. */
export const orderSteps = defineTable({
  name: 'order_steps',
  columns: { ...stepColumns, orderId: text(24), quantity: optional(whole()), priceKobo: optional(whole()) },
  primary: ['partnerId', 'orderId', 'sequence'],
});

export type StoredStep = RowOf<typeof orderSteps>;

export const orderHistory = historyIn(orderSteps, 'orderId', ({ quantity = null, priceKobo = null }) => ({
  quantity,
  priceKobo,
}));

/** Cancels that are under way, and those whose outcome is unknown. */
export const openCancels = defineTable({
  name: 'open_cancels',
  columns: { partnerId: text(24), orderId: text(24), sentAt: instant() },
  primary: ['partnerId', 'orderId'],
});

/** A condition that is true for orders that this version knows. */
export const isKnownOrderSql = [
  hasKnownName('state', OrderStateSchema),
  hasKnownName('side', OrderSideSchema),
  hasKnownName('type', OrderTypeSchema),
  hasKnownName('time_in_force', TimeInForceSchema),
].join(' AND ');

const isSettled = hasKnownName('state', OrderStateSchema, ['sending', 'uncertain']);

/**
 * Finds an order alike that may or may not be at the exchange. `now` is real time. An order in a state of another version
 * counts while the reconciler must look at it. The index is named because the server looks at all of them first, which
 * takes it longer than the rest.
 */
export function findSimilarUnsettled(
  { partnerId, account, symbol, side, type, quantity, priceKobo }: StoredOrder,
  now: number,
): Statement {
  const alike = orders.where({ partnerId, account, symbol, side, type, quantity, priceKobo });
  return statement(
    `SELECT 1 FROM orders FORCE INDEX (orders_state) WHERE ${alike.sql} AND NOT ${isSettled}
      AND (state = 'uncertain' OR check_at <= ? OR (state <> 'sending' AND check_at IS NOT NULL)) LIMIT 1`,
    ...alike.values,
    new Date(now),
  );
}
