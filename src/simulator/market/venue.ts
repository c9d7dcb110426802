import { MarketSession } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { InstrumentKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { MarketCalendar } from './calendar.ts';
import { alwaysOpen, exchangeHours, type MarketHours } from './hours.ts';
import { type Listing, listings } from './instruments.ts';
import { dailyBand, onTickBelow } from './prices.ts';
import { walkFactor } from './walk.ts';

/** The time between the market's moves, for which the order flow's quotes stand. */
export const beatMs = 1_000;
/** The index halt: a move from the previous close in basis points, and its length. It occurs at most once a day. */
const breakerBasisPoints = 500;
const breakerMs = 30 * 60_000;
const whole = 10_000;

/** The exchange's phase. Collecting: it accepts orders and trades nothing. */
export type Phase = 'continuous' | 'collecting' | 'halted' | 'closed';

export interface TradingSession extends Omit<MarketHours, 'phase'> {
  readonly phase: Phase;
  /** The end of an index halt. */
  readonly haltedUntilMs?: number;
}

/** A stock's price now, and the day's band. */
export interface Price {
  readonly quoteKobo: number;
  readonly lowerKobo: number;
  readonly upperKobo: number;
}

/** The exchange's session and prices. Both follow from seed and time, and from an operator's decisions. */
export class Venue {
  /** Whether it keeps the hours of the Nigerian Exchange; otherwise it is always open. */
  keepsHours = false;
  /** The operator's session, which overrides the hours. */
  forced = MarketSession.UNSPECIFIED;
  readonly #closes = new Map<string, { readonly day: number; readonly closeKobo: number }>();
  /** An operator's moves of stocks today, in basis points. In memory only: a restart gives tests a fresh start. */
  #moves = { day: 0, bySymbol: new Map<string, number>() };
  #index = { beat: 0, change: 0 };
  #broken = { day: -1, untilMs: 0 };

  constructor(
    readonly seed: number,
    readonly calendar: MarketCalendar,
  ) {}

  /** The exchange's session at a time. */
  session(nowMs: number): TradingSession {
    const hours = this.#hours(nowMs);
    const phase = this.#phase(hours, nowMs);
    return phase === 'halted' && this.#broken.untilMs > nowMs
      ? { ...hours, phase, haltedUntilMs: this.#broken.untilMs }
      : { ...hours, phase };
  }

  /** A listed stock's price at a time: its walk, within the day's band. */
  price(listing: Listing, nowMs: number): Price {
    const { time } = this.#hours(nowMs);
    return this.#priceAt(listing, time, Math.floor(time), nowMs);
  }

  /** The price at the close of a past day, within that day's band. */
  closingPrice(listing: Listing, day: number, nowMs: number): Price {
    return this.#priceAt(listing, day + 1, day, nowMs);
  }

  /** Moves a stock until the day ends, within its band. */
  move(symbol: string, basisPoints: number, nowMs: number): void {
    const day = Math.floor(this.#hours(nowMs).time);
    if (this.#moves.day !== day) this.#moves = { day, bySymbol: new Map() };
    this.#moves.bySymbol.set(symbol, basisPoints);
    this.#index = { beat: 0, change: 0 };
  }

  /** The index's change from the previous close, as a fraction. All companies have the same weight. */
  indexChange(nowMs: number): number {
    const beat = Math.floor(nowMs / beatMs);
    if (this.#index.beat === beat) return this.#index.change;
    const { time } = this.#hours(nowMs);
    let sum = 0;
    for (const company of companies) {
      const close = this.#closeBefore(company, Math.floor(time));
      sum += this.#priceAt(company, time, Math.floor(time), nowMs).quoteKobo / close - 1;
    }
    this.#index = { beat, change: sum / companies.length };
    return this.#index.change;
  }

  #hours(nowMs: number): MarketHours {
    return this.keepsHours ? exchangeHours(this.calendar, nowMs) : alwaysOpen(nowMs);
  }

  #phase(hours: MarketHours, nowMs: number): Phase {
    const forced = phaseOf(this.forced);
    if (forced !== undefined) return forced;
    if (hours.phase !== 'continuous') return hours.phase;
    const day = Math.floor(hours.time);
    const isBroken = this.#broken.day !== day && Math.abs(this.indexChange(nowMs)) * whole >= breakerBasisPoints;
    if (isBroken) this.#broken = { day, untilMs: nowMs + breakerMs };
    return nowMs < this.#broken.untilMs ? 'halted' : 'continuous';
  }

  #priceAt(listing: Listing, time: number, day: number, nowMs: number): Price {
    const band = dailyBand(this.#closeBefore(listing, day));
    const moved = this.#movesOf(listing.symbol, nowMs);
    const quote = onTickBelow(Math.round((walked(this.seed, listing, time) * (whole + moved)) / whole));
    return { ...band, quoteKobo: Math.min(band.upperKobo, Math.max(band.lowerKobo, quote)) };
  }

  #movesOf(symbol: string, nowMs: number): number {
    if (this.#moves.bySymbol.size === 0) return 0;
    if (Math.floor(this.#hours(nowMs).time) !== this.#moves.day) return 0;
    return this.#moves.bySymbol.get(symbol) ?? 0;
  }

  #closeBefore(listing: Listing, day: number): number {
    const known = this.#closes.get(listing.symbol);
    if (known?.day === day) return known.closeKobo;
    const closeKobo = onTickBelow(Math.round(walked(this.seed, listing, day)));
    this.#closes.set(listing.symbol, { day, closeKobo });
    return closeKobo;
  }
}

const companies = listings.filter(({ kind }) => kind === InstrumentKind.EQUITY);

function walked(seed: number, { symbol, previousCloseKobo }: Listing, time: number): number {
  return previousCloseKobo * walkFactor(seed, symbol, time);
}

function phaseOf(session: MarketSession): Phase | undefined {
  switch (session) {
    case MarketSession.OPEN:
      return 'continuous';
    case MarketSession.CLOSED:
      return 'closed';
    case MarketSession.PAUSED:
      return 'collecting';
    case MarketSession.HALTED:
      return 'halted';
    default:
      return undefined;
  }
}
