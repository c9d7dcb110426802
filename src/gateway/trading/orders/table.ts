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
} from '../../../gen/marina/gateway/v1/orders_pb.ts';
import { divideToKoboDecimal } from '../../../kit/money.ts';
import { type Statement, statement } from '../../store/statement.ts';
import {
  count,
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
} from '../../store/table.ts';
import { shownMessage } from '../shown-message.ts';
import { defineSubmissions, historyIn, stepColumns } from '../submission/table.ts';
import { shownRejectReason } from './rules.ts';

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
  columns: {
    ...stepColumns,
    orderId: text(24),
    /** The trade. In a step that changes an earlier trade, what that one counts with from then on; 0: the exchange took it back. */
    quantity: optional(whole()),
    priceKobo: optional(whole()),
    /** The step with the trade that this step changes or repeats; null: it is no such step. */
    tradeSequence: optional(count()),
    /** How far a step with a trade changed the order's filled quantity and value; null in steps of earlier versions. */
    filledChange: optional(whole()),
    valueChangeKobo: optional(whole()),
  },
  primary: ['partnerId', 'orderId', 'sequence'],
});

export type StoredStep = RowOf<typeof orderSteps>;

export const orderHistory = historyIn(orderSteps, 'orderId', (step) => ({
  quantity: step.quantity ?? null,
  priceKobo: step.priceKobo ?? null,
  tradeSequence: step.tradeSequence ?? null,
  filledChange: step.filledChange ?? null,
  valueChangeKobo: step.valueChangeKobo ?? null,
}));

const tradeStep = orderSteps.only(
  ...(['sequence', 'kind', 'state', 'upstreamAt', 'at', 'quantity', 'priceKobo'] as const),
  ...(['tradeSequence', 'filledChange', 'valueChangeKobo'] as const),
);

/** The most steps with trades that are read of one order. */
export const maxTradeSteps = 10_000;

/** Reads the steps of an order that have a trade, oldest first: at most one more than `maxTradeSteps`. */
export function findTradeSteps(partnerId: string, orderId: string): Statement {
  const tail = statement(`AND quantity IS NOT NULL ORDER BY sequence LIMIT ${maxTradeSteps + 1}`);
  return orderSteps.find({ partnerId, orderId }, tradeStep, tail);
}

export const toTradeStep = tradeStep.read;

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
  const rejectReason = shownRejectReason(order);
  return shownMessage(OrderSchema, order, { averageFillPriceKoboDecimal, rejectReason });
}

/** One step of an order's history as partners see it. */
export function toStepMessage(step: StoredStep): OrderStep {
  const { sequence, tradeSequence } = step;
  const numbers = {
    sequence: BigInt(sequence),
    tradeSequence: tradeSequence === null ? null : BigInt(tradeSequence),
  };
  return shownMessage(OrderStepSchema, step, numbers);
}
