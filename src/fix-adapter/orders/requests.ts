import type { FixCancel, FixOrder } from '../store/table.ts';
import type { RenderFields } from '../template/render.ts';
import type { Field } from '../wire/message.ts';
import { tags } from '../wire/tags.ts';
import { utcTimestamp } from '../wire/times.ts';

/** The parts of a message that the exchange needs beyond the order: agreed with it once. */
export interface OrderStyle {
  /** The exchange's names of our symbols; absent: the same. */
  readonly symbols: ReadonlyMap<string, string>;
  /** The fields of the template, such as the firm's parties. Throws `MissingValue` if one has no value for the order. */
  readonly more: RenderFields;
  /** How many characters the exchange takes in a ClOrdID. */
  readonly nameLength: number;
  /** Kobo as the exchange writes a price. */
  readonly toPrice: (kobo: bigint) => string;
}

const sides = { buy: '1', sell: '2' } as const;
const types = { market: '1', limit: '2' } as const;
const timesInForce = { day: '0', gtc: '1', ioc: '3', fok: '4' } as const;

/** HandlInst (21): automated, no broker intervenes. */
const automatic = '1';
/** MassStatusReqType (585): all orders. */
const allOrders = '7';

/** The body of a NewOrderSingle. */
export function newOrder(order: Omit<FixOrder, 'number' | 'startedAt'>, style: OrderStyle, now: number): Field[] {
  return [
    [tags.ClOrdID, order.clOrdId],
    ...style.more('order', order),
    [tags.Account, order.account],
    [tags.HandlInst, automatic],
    ...about(order, style),
    [tags.TransactTime, utcTimestamp(now)],
    [tags.OrderQty, order.quantity.toString()],
    [tags.OrdType, types[order.type]],
    ...(order.priceKobo === null ? [] : [[tags.Price, style.toPrice(order.priceKobo)] as const]),
    [tags.TimeInForce, timesInForce[order.timeInForce]],
  ];
}

/** The body of an OrderCancelRequest. */
export function cancelRequest(cancel: Pick<FixCancel, 'id'>, order: FixOrder, style: OrderStyle, now: number): Field[] {
  return [
    [tags.OrigClOrdID, order.clOrdId],
    ...exchangeId(order),
    [tags.ClOrdID, cancel.id],
    ...style.more('cancel', order),
    [tags.Account, order.account],
    ...about(order, style),
    [tags.TransactTime, utcTimestamp(now)],
    [tags.OrderQty, order.quantity.toString()],
  ];
}

/** The body of an OrderStatusRequest. */
export function statusRequest(id: string, order: FixOrder, style: OrderStyle): Field[] {
  return [
    ...exchangeId(order),
    [tags.ClOrdID, order.clOrdId],
    ...style.more('status', order),
    [tags.OrdStatusReqID, id],
    [tags.Account, order.account],
    ...about(order, style),
  ];
}

/** The body of an OrderMassStatusRequest for all orders. */
export function massStatusRequest(id: string): Field[] {
  return [
    [tags.MassStatusReqID, id],
    [tags.MassStatusReqType, allOrders],
  ];
}

function about(order: Pick<FixOrder, 'symbol' | 'side'>, style: OrderStyle): Field[] {
  return [
    [tags.Symbol, style.symbols.get(order.symbol) ?? order.symbol],
    [tags.Side, sides[order.side]],
  ];
}

function exchangeId({ exchangeOrderId }: FixOrder): Field[] {
  return exchangeOrderId === '' ? [] : [[tags.OrderID, exchangeOrderId]];
}
