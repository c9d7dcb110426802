/** What convinces beside the rule of evidence: whose order it is, at which price it trades, and what the exchange counts. */
import type { FindingKind, FixEnd, FixOrder } from '../store/table.ts';
import { tags } from '../wire/tags.ts';
import { statusesOfEnd } from './evidence.ts';
import { type Execution, type Message, wholeOf } from './execution.ts';

/** A trade this many times above or below what is known of the price is a mistake of units, not a price. */
const mostTimes = 10n;

const sides = { buy: '1', sell: '2' } as const;

export interface WeighContext {
  /** A price in kobo; undefined if it is none. */
  readonly toKobo: (text: string) => bigint | undefined;
  /** Whether a text is the average price of so many shares that cost so many kobo, as far as its digits go. */
  readonly isAverage: (text: string, valueKobo: bigint, quantity: bigint) => boolean;
  /** The exchange's name of a symbol. */
  readonly symbolOf: (symbol: string) => string;
  /** The reason of a message that rejects an order, as partners are given it. */
  readonly reasonOf: (message: Message) => string;
}

/** The shares that the exchange should count: those that were reported, less what it took back. */
export function countOf({ filled, adjusted }: Pick<FixOrder, 'filled' | 'adjusted'>): bigint {
  return filled + adjusted;
}

/** Whether a report is about another order than ours, by what it says of side, symbol and account. */
export function isOfAnother(order: FixOrder, message: Message, { symbolOf }: WeighContext): boolean {
  const differs = (tag: number, value: string) => (message.get(tag) ?? value) !== value;
  return (
    differs(tags.Side, sides[order.side]) ||
    differs(tags.Symbol, symbolOf(order.symbol)) ||
    differs(tags.Account, order.account)
  );
}

/** Whether the exchange's quantity or limit differs from the order's. */
export function hasOtherTerms(order: FixOrder, message: Message, { toKobo }: WeighContext): boolean {
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
  if (known !== null && (price > known * mostTimes || price * mostTimes < known)) return 'price_implausible';
  if (priceKobo === null) return undefined;
  return (side === 'buy' ? price > priceKobo : price < priceKobo) ? 'worse_than_limit' : undefined;
}

/** What is wrong with the exchange's counts after a trade, if something is. `order` has the trade. */
export function wrongCounts(order: FixOrder, execution: Execution): FindingKind | undefined {
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
export function endWithTrade(order: FixOrder, execution: Execution): 'cancelled' | 'expired' | undefined {
  const { cumQty, leavesQty, ordStatus } = execution;
  const count = countOf(order);
  if (leavesQty !== 0n || cumQty !== count || count >= order.quantity) return undefined;
  return ordStatus === '4' ? 'cancelled' : ordStatus === 'C' ? 'expired' : undefined;
}

/**
 * Why the end of an order does not convince. Undefined: it does. FIX demands CumQty of each report. LeavesQty of an end is 0, or
 * what did not trade.
 */
export function wrongEnd(order: FixOrder, end: FixEnd, execution: Execution): FindingKind | undefined {
  const { cumQty, leavesQty, ordStatus } = execution;
  const count = countOf(order);
  if (cumQty === undefined || !statusesOfEnd[end].includes(ordStatus)) return 'end_unproven';
  if (leavesQty !== undefined && leavesQty !== 0n && leavesQty !== order.quantity - cumQty) return 'end_unproven';
  if (cumQty > count) return 'trades_missing';
  return cumQty < count ? 'counted_twice' : undefined;
}

/** Whether the exchange states another average price than the trades that it reported have. 0 is none. */
export function hasOtherAverage(order: FixOrder, message: Message, { isAverage }: WeighContext): boolean {
  const text = message.get(tags.AvgPx);
  if (text === undefined || /^[0.]*$/.test(text) || order.filled === 0n) return false;
  return !isAverage(text, order.filledValueKobo, order.filled);
}
