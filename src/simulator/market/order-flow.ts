import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { type Random, seededRandom } from '../random.ts';
import type { Band } from './book.ts';
import { onTickBelow, tickKobo } from './prices.ts';

/** An order of somebody who is no customer of the broker. */
export interface SyntheticOrder {
  readonly side: Side;
  readonly limitKobo: number;
  readonly quantity: number;
}

/** A stock as the order flow sees it at a moment. */
export interface Quoted extends Band {
  readonly symbol: string;
  readonly quoteKobo: number;
}

/** How many prices the market maker quotes on each side, and how many orders at each. */
const levels = 5;
const maxOrdersAtLevel = 3;
/** The value of an order in kobo: from ₦50,000 to ₦3,000,000. */
const orderWorthKobo = { least: 5_000_000, most: 300_000_000 };
/** One step of the maker's prices is the price divided by this. */
const stepsInPrice = 2_000;
/** The probability that a visitor trades in a beat. */
const visitorChance = 0.5;
/** Orders drawn by a large one have at least a tenth of it, so that it fills in tens of trades and not in thousands. */
const drawnPart = 10;

/** The synthetic orders of one beat of the market: the same for the same seed, stock and beat. */
export class OrderFlow {
  readonly #random: Random;
  readonly #stepKobo: number;

  constructor(
    seed: number,
    private readonly quoted: Quoted,
    beat: number,
  ) {
    this.#random = seededRandom(seed, 'street', quoted.symbol, beat);
    this.#stepKobo = stepOf(quoted.quoteKobo);
  }

  /** The market maker's orders around the quoted price, best first. */
  maker(drawnBySellers: number, drawnByBuyers: number): SyntheticOrder[] {
    const orders: SyntheticOrder[] = [];
    for (let level = 0; level < levels; level += 1) {
      for (const side of [Side.SELL, Side.BUY]) {
        const limitKobo = makerPrice(this.quoted, side, level);
        if (limitKobo === undefined) continue;
        const drawn = side === Side.SELL ? drawnByBuyers : drawnBySellers;
        for (let count = this.#random.whole(1, maxOrdersAtLevel); count > 0; count -= 1) {
          orders.push({ side, limitKobo, quantity: this.#quantity(limitKobo, drawn) });
        }
      }
    }
    return orders;
  }

  /** A visitor in some beats, who trades with waiting orders within two steps of the quoted price and leaves. */
  visitor(drawnBySellers: number, drawnByBuyers: number): SyntheticOrder | undefined {
    if (this.#random.next() >= visitorChance) return undefined;
    const side = this.#random.next() < 0.5 ? Side.BUY : Side.SELL;
    const reach = this.#random.whole(1, 2) * this.#stepKobo * (side === Side.BUY ? 1 : -1);
    const { lowerKobo, upperKobo, quoteKobo } = this.quoted;
    const limitKobo = Math.min(upperKobo, Math.max(lowerKobo, onTickBelow(quoteKobo + reach)));
    return { side, limitKobo, quantity: this.#quantity(limitKobo, side === Side.BUY ? drawnBySellers : drawnByBuyers) };
  }

  #quantity(priceKobo: number, drawn: number): number {
    const { least, most } = orderWorthKobo;
    // Squared, so that small orders are common and large ones rare.
    const worth = least + (most - least) * this.#random.next() ** 2;
    return Math.max(1, Math.floor(worth / priceKobo), Math.ceil(drawn / drawnPart));
  }
}

/** The maker's price on a side, `level` steps away; undefined outside the day's band. It sells at the quoted price. */
export function makerPrice({ quoteKobo, lowerKobo, upperKobo }: Quoted, side: Side, level = 0): number | undefined {
  const step = stepOf(quoteKobo);
  const price = side === Side.SELL ? quoteKobo + level * step : onTickBelow(quoteKobo - (level + 1) * step);
  const onTick = onTickBelow(price);
  return onTick >= Math.max(1, lowerKobo) && onTick <= upperKobo ? onTick : undefined;
}

function stepOf(quoteKobo: number): number {
  const tick = tickKobo(quoteKobo);
  return Math.max(tick, Math.round(quoteKobo / stepsInPrice / tick) * tick);
}
