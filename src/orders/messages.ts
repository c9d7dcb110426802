import { create } from '@bufbuild/protobuf';
import {
  type CreateOrderRequest,
  type EstimateOrderRequest,
  type Order,
  type OrderRejectReason,
  OrderRejectReasonSchema,
  OrderSchema,
  type OrderSide,
  OrderSideSchema,
  type OrderState,
  OrderStateSchema,
  type OrderStep,
  type OrderStepKind,
  OrderStepKindSchema,
  OrderStepSchema,
  type OrderType,
  OrderTypeSchema,
  type TimeInForce,
  TimeInForceSchema,
} from '../gen/marina/gateway/v1/orders_pb.ts';
import { enumWords, withStoredNames } from '../lib/enums.ts';
import { divideToKoboDecimal } from '../lib/money.ts';
import { toSecond } from '../lib/timestamps.ts';
import type { ShownOrder, StoredStep } from './table.ts';

export const stateWords = enumWords<typeof OrderState>(OrderStateSchema);
const sideWords = enumWords<typeof OrderSide>(OrderSideSchema);
const typeWords = enumWords<typeof OrderType>(OrderTypeSchema);
const timeInForceWords = enumWords<typeof TimeInForce>(TimeInForceSchema);
const rejectReasonWords = enumWords<typeof OrderRejectReason>(OrderRejectReasonSchema);
const stepWords = enumWords<typeof OrderStepKind>(OrderStepKindSchema);

/** An order a partner wants, in our own words. */
export type WantedOrder = Pick<
  ShownOrder,
  'account' | 'symbol' | 'side' | 'quantity' | 'type' | 'timeInForce' | 'priceKobo' | 'clientReference'
>;

/** Reads a request whose field rules were checked. What those rules promise and is not there is an error of ours. */
export function toWantedOrder(request: CreateOrderRequest | EstimateOrderRequest): WantedOrder {
  return {
    account: present(request.account),
    symbol: present(request.symbol),
    side: sideWords.word(present(request.side)),
    quantity: present(request.quantity),
    type: typeWords.word(present(request.type)),
    timeInForce: timeInForceWords.word(present(request.timeInForce)),
    priceKobo: request.priceKobo ?? null,
    clientReference: request.clientReference ?? null,
  };
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a field that the rules require is missing');
  return value;
}

/** Whether this version knows what an order is and where it stands. One it does not know it shows, and leaves alone. */
export function isKnownOrder({ state, side, type, timeInForce }: ShownOrder): boolean {
  return (
    stateWords.knows(state) && sideWords.knows(side) && typeWords.knows(type) && timeInForceWords.knows(timeInForce)
  );
}

/** The order as partners see it, in answers and in events alike. */
export function toOrderMessage(order: ShownOrder): Order {
  const { state, side, type, timeInForce, rejectReason } = order;
  const message = create(OrderSchema, {
    id: order.id,
    state: stateWords.value(state),
    account: order.account,
    symbol: order.symbol,
    side: sideWords.value(side),
    quantity: order.quantity,
    type: typeWords.value(type),
    timeInForce: timeInForceWords.value(timeInForce),
    priceKobo: order.priceKobo ?? undefined,
    filledQuantity: order.filledQuantity,
    exchangeOrderId: order.exchangeOrderId ?? undefined,
    reason: order.reason ?? undefined,
    rejectReason: rejectReason === null ? undefined : rejectReasonWords.value(rejectReason),
    createdAt: toSecond(order.createdAt),
    updatedAt: toSecond(order.updatedAt),
    filledAt: order.filledAt === null ? undefined : toSecond(order.filledAt),
    averageFillPriceKoboDecimal:
      order.filledQuantity === 0n ? undefined : divideToKoboDecimal(order.filledValueKobo, order.filledQuantity),
    clientReference: order.clientReference ?? undefined,
  });
  return withStoredNames(message, { state, side, type, timeInForce, rejectReason });
}

/** One step of an order's history as partners see it. */
export function toStepMessage(step: StoredStep): OrderStep {
  const { kind, state, sequence, at, detail, reportNumber, quantity, priceKobo } = step;
  const message = create(OrderStepSchema, {
    sequence: BigInt(sequence),
    kind: stepWords.value(kind),
    at: toSecond(at),
    state: stateWords.value(state as ShownOrder['state']),
    detail,
    reportNumber: reportNumber ?? undefined,
    quantity: quantity ?? undefined,
    priceKobo: priceKobo ?? undefined,
  });
  return withStoredNames(message, { kind, state });
}
