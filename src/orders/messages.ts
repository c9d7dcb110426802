import {
  type CreateOrderRequest,
  type EstimateOrderRequest,
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
import { enumWords } from '../lib/enums.ts';
import { divideToKoboDecimal } from '../lib/money.ts';
import { shownMessage } from '../lib/shown-message.ts';
import type { ShownOrder, StoredStep } from './table.ts';

export const stateWords = enumWords<typeof OrderState>(OrderStateSchema);
const sideWords = enumWords<typeof OrderSide>(OrderSideSchema);
const typeWords = enumWords<typeof OrderType>(OrderTypeSchema);
const timeInForceWords = enumWords<typeof TimeInForce>(TimeInForceSchema);

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
  const { filledQuantity, filledValueKobo } = order;
  const averageFillPriceKoboDecimal =
    filledQuantity === 0n ? undefined : divideToKoboDecimal(filledValueKobo, filledQuantity);
  return shownMessage(OrderSchema, order, { averageFillPriceKoboDecimal });
}

/** One step of an order's history as partners see it. */
export function toStepMessage(step: StoredStep): OrderStep {
  return shownMessage(OrderStepSchema, step, { sequence: BigInt(step.sequence) });
}
