/** Evidence beside the rule of evidence: whose order it is, at which price it trades, and the exchange's counts. */

import type { Unmatched } from '../store/marks.ts';
import type { Executed } from '../store/store.ts';
import type { FindingKind, FixEnd, FixOrder } from '../store/table.ts';
import { tags } from '../wire/tags.ts';
import { statusesOfEnd, typesOfUnknown } from './evidence.ts';
import { type ExchangeMessage, type ExecutionReport, wholeOf } from './execution.ts';
import { orderIdOfName } from './names.ts';

/** A trade this many times above or below what is known of the price is a mistake of units, not a price. */
const maxTimes = 10n;

const sides = { buy: '1', sell: '2' } as const;

/** The units of every trade: Currency (15), PriceType (423) a share, QtyType (854) of single shares. */
const units: Readonly<Record<number, string>> = { [tags.Currency]: 'NGN', [tags.PriceType]: '2', [tags.QtyType]: '0' };

export interface WeighContext {
  /** A price in kobo; undefined if it is none. */
  readonly toKobo: (text: string) => bigint | undefined;
  /** Whether a text is the average price of so many shares that cost so many kobo, as far as its digits go. */
  readonly isAverage: (text: string, valueKobo: bigint, quantity: bigint) => boolean;
  /** The exchange's name of a symbol. */
  readonly symbolOf: (symbol: string) => string;
  /** The reason of a message that rejects an order, as partners are given it. */
  readonly reasonOf: (message: ExchangeMessage) => string;
}

/** The shares that the exchange should count: those that were reported, less what it took back. */
export function countOf({ filled, adjusted }: Pick<FixOrder, 'filled' | 'adjusted'>): bigint {
  return filled + adjusted;
}

/** Whether a report is about another order than ours, by what it says of side, symbol and account. */
export function isOfAnother(order: FixOrder, message: ExchangeMessage, { symbolOf }: WeighContext): boolean {
  const differs = (tag: number, value: string) => (message.get(tag) ?? value) !== value;
  return (
    differs(tags.Side, sides[order.side]) ||
    differs(tags.Symbol, symbolOf(order.symbol)) ||
    differs(tags.Account, order.account)
  );
}

/** A placeholder in a field that an exchange must fill, of an order that it does not have. */
const placeholder = /^(?:NONE|UNKNOWN|\[?N\/A\]?|0+(?:\.0*)?)$/i;
/** The fields that say which order it is. */
const naming: ReadonlySet<number> = new Set([
  ...[tags.ClOrdID, tags.OrigClOrdID, tags.OrderID, tags.Account, tags.Symbol, tags.Side, tags.OrderQty, tags.Price],
]);
/** OrdStatus (39): rejected, which also stands for an order that the exchange does not have. */
const rejected = '8';
/** Counts and prices of an order that traded or has shares left. */
const countTags = [tags.CumQty, tags.LeavesQty, tags.LastQty, tags.AvgPx];

/**
 * Whether an answer that the exchange does not have an order shows that it has one: by an ExecType of something that happened,
 * shares that traded or are left, or an OrderID of its own.
 */
export function showsOrder(
  { exchangeOrderId, clOrdId }: FixOrder,
  message: ExchangeMessage,
  execution: ExecutionReport,
): boolean {
  const id = withoutPlaceholders(message).get(tags.OrderID);
  const isNamed = id !== undefined && id !== exchangeOrderId && id !== clOrdId;
  const isCounted = countTags.some((tag) => !/^[0.]*$/.test(message.get(tag) ?? ''));
  return isNamed || isCounted || !typesOfUnknown.has(execution.execType);
}

/** CxlRejReason (102): the exchange does not know the order. */
export const cancelOfUnknown = '1';

/** Whether the refusal of a cancel shows that the exchange has the order: by its reason, its OrdStatus or an OrderID of its own. */
export function acknowledgesInCancelReject({ exchangeOrderId, clOrdId }: FixOrder, message: ExchangeMessage): boolean {
  const id = withoutPlaceholders(message).get(tags.OrderID);
  const isNamed = id !== undefined && id !== exchangeOrderId && id !== clOrdId;
  const isKnown = (message.get(tags.OrdStatus) ?? rejected) !== rejected;
  return isNamed || isKnown || message.get(tags.CxlRejReason) !== cancelOfUnknown;
}

/**
 * Which orders in doubt a report may be about that names none of ours, as under a ClOrdID that was cut: any order. One in a mass
 * status, which lists all orders of a firm, may only be about those of its account and side: an exchange may have changed the rest.
 * None if it says that there is no order.
 */
export function traitsOf(message: ExchangeMessage): readonly Unmatched[] {
  const isNone = message.get(tags.OrdStatus) === rejected && typesOfUnknown.has(message.get(tags.ExecType) ?? '');
  if (isNone) return [];
  return message.get(tags.MassStatusReqID) === undefined ? [{}] : [statedTraits(message)];
}

/** Reads the traits of its order that a report states beside the name. */
export function statedTraits(message: ExchangeMessage): Unmatched {
  const said = withoutPlaceholders(message);
  const account = said.get(tags.Account);
  const side = Object.entries(sides).find(([, code]) => code === said.get(tags.Side))?.[0];
  return {
    ...(account === undefined ? {} : { account }),
    ...(side === undefined ? {} : { side: side as FixOrder['side'] }),
  };
}

/** Finds the trait that contradicts an answer that the exchange does not have an order. Undefined: nothing does. */
export function contradictsUnknown(
  order: FixOrder,
  message: ExchangeMessage,
  execution: ExecutionReport,
  context: WeighContext,
): FindingKind | undefined {
  const said = withoutPlaceholders(message);
  const names = [said.get(tags.ClOrdID), said.get(tags.OrigClOrdID)];
  const isNamedOtherwise = names.some((name) => name !== undefined && orderIdOfName(name) !== order.id);
  if (isNamedOtherwise || isOfAnother(order, said, context) || hasOtherTerms(order, said, context)) {
    return 'identity_differs';
  }
  return showsOrder(order, message, execution) ? 'status_rejected' : undefined;
}

/** A message without the fields that name an order by nothing. */
function withoutPlaceholders(message: ExchangeMessage): ExchangeMessage {
  const get = (tag: number) => {
    const value = message.get(tag);
    return value !== undefined && naming.has(tag) && placeholder.test(value) ? undefined : value;
  };
  return { type: message.type, get };
}

/** Whether a trade is in other units than shares, naira and a price a share, which nobody can book. */
export function hasOtherUnits(message: ExchangeMessage): boolean {
  return Object.entries(units).some(([tag, unit]) => (message.get(Number(tag)) ?? unit) !== unit);
}

/** Whether a count was that of the trades at some time. A trade that came without its count may have had any. */
export function wasCount(count: bigint, executed: ReadonlyMap<string, Executed>): boolean {
  if (count === 0n) return true;
  const trades = [...executed.values()].filter(({ kind }) => kind !== 'accepted');
  return trades.some(({ counted }) => counted === null || counted === count);
}

/** Whether the exchange's quantity or limit differs from the order's. */
export function hasOtherTerms(order: FixOrder, message: ExchangeMessage, { toKobo }: WeighContext): boolean {
  const quantity = message.get(tags.OrderQty);
  const price = message.get(tags.Price);
  const isOtherQuantity = quantity !== undefined && wholeOf(quantity) !== order.quantity;
  // A market order may have any price there, such as 0.
  const isOtherPrice = price !== undefined && order.priceKobo !== null && toKobo(price) !== order.priceKobo;
  return isOtherQuantity || isOtherPrice;
}

/** Why a trade's price does not convince. Undefined: it does. */
export function wrongPrice(
  { side, priceKobo, referenceKobo }: FixOrder,
  price: bigint,
): 'worse_than_limit' | 'price_implausible' | undefined {
  const known = priceKobo ?? referenceKobo;
  if (known !== null && (price > known * maxTimes || price * maxTimes < known)) return 'price_implausible';
  if (priceKobo === null) return undefined;
  return (side === 'buy' ? price > priceKobo : price < priceKobo) ? 'worse_than_limit' : undefined;
}

/** Returns the finding about the exchange's counts after a trade, if they are wrong. `order` has the trade. */
export function wrongCounts(order: FixOrder, execution: ExecutionReport): FindingKind | undefined {
  const { cumQty, leavesQty, ordStatus } = execution;
  const count = countOf(order);
  if (count > order.quantity) return 'overfilled';
  if (cumQty !== undefined && cumQty > count) return 'trades_missing';
  if (cumQty !== undefined && cumQty < count) return 'counted_twice';
  const isOver = ordStatus === '2' || leavesQty === 0n;
  if (isOver && count < order.quantity) return 'counts_disagree';
  if (leavesQty !== undefined && leavesQty !== 0n && leavesQty !== order.quantity - count) return 'counts_disagree';
  return undefined;
}

/** The end of an order that the message of a trade states too, as some do of what is immediate or cancelled. `order` has the trade. */
export function endWithTrade(order: FixOrder, execution: ExecutionReport): 'cancelled' | 'expired' | undefined {
  const { cumQty, leavesQty, ordStatus } = execution;
  const count = countOf(order);
  if (leavesQty !== 0n || cumQty !== count || count >= order.quantity) return undefined;
  return ordStatus === '4' ? 'cancelled' : ordStatus === 'C' ? 'expired' : undefined;
}

/**
 * Why the end of an order does not convince. Undefined: it does. FIX demands CumQty of each report. LeavesQty of an end is 0, or
 * what did not trade.
 */
export function wrongEnd(order: FixOrder, end: FixEnd, execution: ExecutionReport): FindingKind | undefined {
  const { cumQty, leavesQty, ordStatus } = execution;
  const count = countOf(order);
  if (cumQty === undefined || !statusesOfEnd[end].includes(ordStatus)) return 'end_unproven';
  if (leavesQty !== undefined && leavesQty !== 0n && leavesQty !== order.quantity - cumQty) return 'end_unproven';
  if (cumQty > count) return 'trades_missing';
  return cumQty < count ? 'counted_twice' : undefined;
}

/** Whether the exchange states another average price than the trades that it reported have. 0 is none. */
export function hasOtherAverage(order: FixOrder, message: ExchangeMessage, { isAverage }: WeighContext): boolean {
  const text = message.get(tags.AvgPx);
  if (text === undefined || /^[0.]*$/.test(text) || order.filled === 0n) return false;
  return !isAverage(text, order.filledValueKobo, order.filled);
}
