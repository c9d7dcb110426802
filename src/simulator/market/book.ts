import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { auctionPrice } from './auction.ts';
import { type Interest, Ladder } from './ladder.ts';

export interface BookTrade<T extends Interest> {
  readonly buy: T;
  readonly sell: T;
  readonly quantity: number;
  readonly priceKobo: number;
}

/** Called for each trade, before the next one. */
export type OnExecution<T extends Interest> = (execution: BookTrade<T>) => void;

/** The day's price band. */
export interface Band {
  readonly lowerKobo: number;
  readonly upperKobo: number;
}

/** The treatment of the unfilled part: it waits, it is dropped, or nothing trades unless all does. */
export type Remainder = 'rests' | 'lapses' | 'all_or_nothing';

/**
 * The orders for one stock. They trade by price, then by time, at the price of the order that was there first. Nothing
 * trades through a limit or outside the day's band.
 */
export class Book<T extends Interest> {
  readonly #buys = new Ladder(Side.BUY);
  readonly #sells = new Ladder(Side.SELL);
  /** All waiting orders in the order of arrival, with the price at which each waits. */
  readonly #waiting = new Map<number, { readonly interest: T; readonly atKobo: number | null | 'asleep' }>();

  constructor(private band: Band) {}

  get size(): number {
    return this.#waiting.size;
  }

  /** All waiting orders, in the order of arrival. */
  *interests(): Iterable<T> {
    for (const { interest } of this.#waiting.values()) yield interest;
  }

  /** The waiting order with an id. */
  get(id: number): T | undefined {
    return this.#waiting.get(id)?.interest;
  }

  /** The order of a side that trades first, and the side's best price. */
  first(side: Side): T | undefined {
    return this.#ladder(side).first as T | undefined;
  }

  bestPrice(side: Side): number | undefined {
    return this.#ladder(side).bestPrice;
  }

  /** Trades as much of an order as possible now. The rest stays on it, and waits here if it rests. */
  enter(interest: T, remainder: Remainder, onExecution: OnExecution<T>): void {
    const limit = this.#priceOf(interest);
    const others = this.#ladder(opposite(interest.side));
    if (limit !== 'asleep') {
      const enough = remainder !== 'all_or_nothing' || others.depth(limit, interest.left) === interest.left;
      if (enough) this.#match(interest, limit, others, onExecution);
    }
    if (remainder === 'rests' && interest.left > 0) this.rest(interest);
  }

  /** Lets an order wait without trading. */
  rest(interest: T): void {
    const atKobo = this.#priceOf(interest);
    this.#waiting.set(interest.id, { interest, atKobo });
    if (atKobo !== 'asleep') this.#ladder(interest.side).add(interest, atKobo);
  }

  /** Removes an order. */
  remove(id: number): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    const { interest, atKobo } = waiting;
    if (atKobo !== 'asleep') this.#ladder(interest.side).remove(id, atKobo);
  }

  /**
   * Sets another day's band. An order willing to trade beyond it trades at its edge. An order that no price within can
   * fill sleeps until a day that can. All keep their time priority.
   */
  setBand(band: Band): void {
    if (band.lowerKobo === this.band.lowerKobo && band.upperKobo === this.band.upperKobo) return;
    this.band = band;
    const interests = [...this.interests()];
    this.#waiting.clear();
    this.#buys.clear();
    this.#sells.clear();
    for (const interest of interests) this.rest(interest);
  }

  /** Trades the collected orders at the auction's price, see `auctionPrice`. */
  auction(referenceKobo: number, onExecution: OnExecution<T>): void {
    const priceKobo = auctionPrice(this.#buys.depthByPrice(), this.#sells.depthByPrice(), referenceKobo);
    if (priceKobo === undefined) return;
    for (;;) {
      const [buy, sell] = [this.first(Side.BUY), this.first(Side.SELL)];
      if (buy === undefined || sell === undefined) return;
      const [bid, offer] = [this.#priceOf(buy), this.#priceOf(sell)];
      if (bid === 'asleep' || offer === 'asleep') return;
      if ((bid !== null && bid < priceKobo) || (offer !== null && offer > priceKobo)) return;
      this.#execute(buy, sell, priceKobo, onExecution);
    }
  }

  #match(interest: T, limit: number | null, others: Ladder, onExecution: OnExecution<T>): void {
    while (interest.left > 0) {
      const other = others.first as T | undefined;
      if (other === undefined) return;
      const price = this.#tradePrice(limit, other, others);
      if (price === undefined) return;
      if (interest.side === Side.BUY) this.#execute(interest, other, price, onExecution);
      else this.#execute(other, interest, price, onExecution);
    }
  }

  /**
   * The waiting order's price. For a waiting market order it is its side's best price or the new order's, whichever is
   * better for the new order.
   */
  #tradePrice(limit: number | null, other: T, others: Ladder): number | undefined {
    const price = this.#waiting.get(other.id)?.atKobo;
    if (price === undefined || price === 'asleep') return undefined;
    if (price === null) {
      const nextTo = others.bestPrice;
      if (limit === null || nextTo === undefined) return limit ?? nextTo;
      return others.isBetter(nextTo, limit) ? nextTo : limit;
    }
    return limit !== null && others.isBetter(limit, price) ? undefined : price;
  }

  #execute(buy: T, sell: T, priceKobo: number, onExecution: OnExecution<T>): void {
    const quantity = Math.min(buy.left, sell.left);
    buy.left -= quantity;
    sell.left -= quantity;
    if (buy.left === 0) this.remove(buy.id);
    if (sell.left === 0) this.remove(sell.id);
    onExecution({ buy, sell, quantity, priceKobo });
  }

  /** The price at which an order waits or trades, moved to the band's edge if it is beyond; null for any price. */
  #priceOf({ side, limitKobo }: T): number | null | 'asleep' {
    if (limitKobo === null) return null;
    const { lowerKobo, upperKobo } = this.band;
    if (side === Side.BUY) return limitKobo < lowerKobo ? 'asleep' : Math.min(limitKobo, upperKobo);
    return limitKobo > upperKobo ? 'asleep' : Math.max(limitKobo, lowerKobo);
  }

  #ladder(side: Side): Ladder {
    return side === Side.BUY ? this.#buys : this.#sells;
  }
}

export function opposite(side: Side): Side {
  return side === Side.BUY ? Side.SELL : Side.BUY;
}
