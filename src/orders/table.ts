import type { Statement } from '../db/statement.ts';
import {
  day,
  defineTable,
  enumName,
  exactText,
  instant,
  optional,
  type RowOf,
  type ShownBy,
  text,
  whole,
} from '../db/table.ts';
import {
  type Order,
  OrderSchema,
  type OrderSide,
  OrderSideSchema,
  type OrderState,
  OrderStateSchema,
  type OrderStep,
  OrderStepSchema,
  type OrderType,
  OrderTypeSchema,
  type TimeInForce,
  TimeInForceSchema,
} from '../gen/marina/gateway/v1/orders_pb.ts';
import { divideToKoboDecimal } from '../lib/money.ts';
import { shownMessage } from '../lib/shown-message.ts';
import {
  defineSubmissions,
  findSimilarUnsettled,
  historyIn,
  type SimilarTo,
  stepColumns,
} from '../submission/table.ts';

/** Orders. Instants marked real are not business time; amounts are in kobo. */
export const orders = defineSubmissions(
  'orders',
  {
    state: enumName<typeof OrderState>(OrderStateSchema, 20),
    account: text(64),
    symbol: text(20),
    side: enumName<typeof OrderSide>(OrderSideSchema, 4),
    type: enumName<typeof OrderType>(OrderTypeSchema, 8),
    timeInForce: enumName<typeof TimeInForce>(TimeInForceSchema, 4),
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
  {
    // For lists, which name those of their filters.
    orders_state: ['partnerId', 'state', 'id'],
    orders_account: ['partnerId', 'account', 'id'],
    orders_symbol: ['partnerId', 'symbol', 'id'],
    orders_symbol_state: ['partnerId', 'symbol', 'state', 'id'],
    orders_client_reference: ['partnerId', 'clientReference', 'id'],
    orders_updated_at: ['partnerId', 'updatedAt', 'id'],
    orders_counted_day: ['partnerId', 'countedDay', 'updatedAt', 'id'],
    // For operators.
    orders_exchange_order_id: ['exchangeOrderId', 'id'],
  },
);

export type StoredOrder = RowOf<typeof orders>;

/** The fields of an order that partners see. */
export const shownOrder = orders.only(
  ...(['id', 'state', 'account', 'symbol', 'side', 'type', 'timeInForce', 'quantity', 'priceKobo'] as const),
  ...(['filledQuantity', 'filledValueKobo', 'exchangeOrderId', 'reason', 'rejectReason'] as const),
  ...(['clientReference', 'createdAt', 'updatedAt', 'filledAt'] as const),
);
export type ShownOrder = ShownBy<typeof shownOrder>;

/** The fields of an order in its note to the broker. */
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

/** The order as partners see it, in answers and in events alike. */
export function toOrderMessage(order: ShownOrder): Order {
  const { filledQuantity, filledValueKobo } = order;
  const averageFillPriceKoboDecimal =
    filledQuantity === 0n ? undefined : divideToKoboDecimal(filledValueKobo, filledQuantity);
  return shownMessage(OrderSchema, order, { averageFillPriceKoboDecimal });
}

/** One step of an order's history as partners see it. */
export function toStepMessage(step: StoredStep): OrderStep {
  return shownMessage(OrderStepSchema, step, { sequence: BigInt(step.sequence) });
}

/** The earlier orders that a new one is held back by while they are not settled. */
export function similarOrders(order: StoredOrder): SimilarTo<StoredOrder> {
  const { partnerId, account, symbol, side, type, quantity, priceKobo } = order;
  const alike = { partnerId, account, symbol, side, type, quantity, priceKobo };
  // Named because the server would weigh all indexes first, which takes longer than the query.
  return { table: orders, alike, hint: 'FORCE INDEX (orders_state)' };
}

/** Finds an order alike that may or may not be at the exchange. `now` is real time. */
export function findSimilarOrder(order: StoredOrder, now: number): Statement {
  return findSimilarUnsettled(similarOrders(order), now);
}
