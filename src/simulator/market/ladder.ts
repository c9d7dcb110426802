import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';

/** An order in a book, with its unfilled quantity. */
export interface Interest {
  readonly id: number;
  readonly side: Side;
  /** Null: any price. */
  readonly limitKobo: number | null;
  left: number;
}

/** One side of a book, by price and then by time. Market orders come first. */
export class Ladder {
  readonly #anyPrice = new Map<number, Interest>();
  readonly #levels = new Map<number, Map<number, Interest>>();
  /** The prices of the levels, best first. */
  readonly #prices: number[] = [];

  constructor(readonly side: Side) {}

  get isEmpty(): boolean {
    return this.#anyPrice.size === 0 && this.#prices.length === 0;
  }

  /** The best price with waiting orders. */
  get bestPrice(): number | undefined {
    return this.#prices[0];
  }

  /** The order that trades first. */
  get first(): Interest | undefined {
    for (const interest of this.#anyPrice.values()) return interest;
    const [best] = this.#prices;
    if (best === undefined) return undefined;
    for (const interest of this.#levels.get(best)?.values() ?? []) return interest;
    return undefined;
  }

  /** Adds an order behind those at its price. */
  add(interest: Interest, priceKobo: number | null): void {
    if (priceKobo === null) {
      this.#anyPrice.set(interest.id, interest);
      return;
    }
    const level = this.#levels.get(priceKobo);
    if (level !== undefined) {
      level.set(interest.id, interest);
      return;
    }
    this.#levels.set(priceKobo, new Map([[interest.id, interest]]));
    this.#prices.splice(this.#indexOf(priceKobo), 0, priceKobo);
  }

  remove(id: number, priceKobo: number | null): void {
    if (priceKobo === null) {
      this.#anyPrice.delete(id);
      return;
    }
    const level = this.#levels.get(priceKobo);
    if (level === undefined) return;
    level.delete(id);
    if (level.size > 0) return;
    this.#levels.delete(priceKobo);
    this.#prices.splice(this.#indexOf(priceKobo), 1);
  }

  clear(): void {
    this.#anyPrice.clear();
    this.#levels.clear();
    this.#prices.length = 0;
  }

  /** Whether a price is better than another for an order against this side. */
  isBetter(one: number, other: number): boolean {
    return this.side === Side.BUY ? one > other : one < other;
  }

  /** The shares that wait at a limit or better, counted up to `most`. */
  depth(limitKobo: number | null, most: number): number {
    let found = 0;
    for (const { left } of this.#anyPrice.values()) found += left;
    for (const price of this.#prices) {
      if (found >= most || (limitKobo !== null && this.isBetter(limitKobo, price))) break;
      for (const { left } of this.#levels.get(price)?.values() ?? []) found += left;
    }
    return Math.min(found, most);
  }

  /** The waiting shares by price, best first. Market orders come first, with null. */
  depthByPrice(): { priceKobo: number | null; shares: number }[] {
    const sum = (interests: Iterable<Interest>) => [...interests].reduce((shares, { left }) => shares + left, 0);
    return [
      { priceKobo: null, shares: sum(this.#anyPrice.values()) },
      ...this.#prices.map((priceKobo) => ({ priceKobo, shares: sum(this.#levels.get(priceKobo)?.values() ?? []) })),
    ];
  }

  /** The index of a price, or where to insert it. */
  #indexOf(priceKobo: number): number {
    let [low, high] = [0, this.#prices.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.isBetter(this.#prices[middle] ?? 0, priceKobo)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
