import { Side, TimeInForce } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { InstrumentState, Order } from '../model.ts';
import { Book, type BookTrade } from './book.ts';
import type { Interest } from './ladder.ts';
import { OrderFlow, type SyntheticOrder } from './order-flow.ts';
import { onTickBelow } from './prices.ts';
import { beatMs, type Phase, type TradingSession } from './venue.ts';

/** The most waiting orders: of one partner, for one stock, and in all. So nobody fills a book for the others. */
const maxWaitingOfPartner = 2_000;
const maxWaitingForStock = 10_000;
const maxWaiting = 100_000;

/** The engine's view of a stock and of the exchange. */
export interface EngineView {
  readonly seed: number;
  session(nowMs: number): TradingSession;
  instrument(symbol: string, nowMs: number): InstrumentState | undefined;
  /** The instrument at the close of a day. */
  instrumentAtClose(symbol: string, day: number, nowMs: number): InstrumentState | undefined;
}

/** The engine's effects on orders. */
export interface EngineEvents {
  trade(order: Order, quantity: number, priceKobo: number): void;
  expire(order: Order): void;
  waits(order: Order): void;
}

/** An order in a book: a customer's, or without `order` one of the order flow. */
interface Entry extends Interest {
  readonly order?: Order;
}

interface Market {
  readonly symbol: string;
  readonly book: Book<Entry>;
  readonly orders: Map<string, Order>;
  /** The synthetic orders of the last beat. */
  synthetic: number[];
  beat: number;
  phase: Phase | 'restored';
  day: number;
  dayEndsAtMs: number;
}

/**
 * The books of all stocks that trade with the market. There is no timer. When an order comes, or at each `pulse` while
 * orders wait, a stock is brought up to date: its session, and the order flow's quotes in this beat.
 */
export class MatchingEngine {
  readonly #markets = new Map<string, Market>();
  readonly #orders = new Map<string, Market>();
  /** How many orders of each partner wait; of an account, if its partner is not known since a restart. */
  readonly #waiting = new Map<string, number>();
  #lastSynthetic = 0;

  constructor(private readonly view: EngineView) {}

  get hasOrders(): boolean {
    return this.#orders.size > 0;
  }

  /** The waiting order with an id. */
  order(clientOrderId: string): Order | undefined {
    return this.#orders.get(clientOrderId)?.orders.get(clientOrderId);
  }

  /** Whether a further order may wait. */
  hasRoom(order: Pick<Order, 'symbol' | 'account' | 'partner'>): boolean {
    if ((this.#waiting.get(ownerOf(order)) ?? 0) >= maxWaitingOfPartner) return false;
    return this.#orders.size < maxWaiting && (this.#markets.get(order.symbol)?.book.size ?? 0) < maxWaitingForStock;
  }

  clear(): void {
    this.#markets.clear();
    this.#orders.clear();
    this.#waiting.clear();
  }

  /** Restores an order that waited before a restart. Call it in the order of their arrival. */
  restore(order: Order, nowMs: number): void {
    const instrument = this.view.instrument(order.symbol, nowMs);
    if (instrument === undefined) return;
    let market = this.#markets.get(order.symbol);
    if (market === undefined) {
      market = newMarket(instrument, { phase: 'restored', day: 0, dayEndsAtMs: 0 });
      this.#markets.set(order.symbol, market);
    }
    this.#rest(market, order, entryOf(order));
  }

  /** Enters an accepted order in its book. It trades as much as it can, and the rest waits or lapses. */
  place(order: Order, nowMs: number, events: EngineEvents): void {
    const market = this.#bringUpToDate(order.symbol, nowMs, events);
    if (market === undefined) return;
    const entry = entryOf(order);
    const rests = order.timeInForce === TimeInForce.DAY || order.timeInForce === TimeInForce.GTC;
    const allOrNothing = order.timeInForce === TimeInForce.FOK;
    if (market.phase === 'continuous') {
      market.book.enter(entry, allOrNothing ? 'all_or_nothing' : 'lapses', (execution) => report(execution, events));
    }
    if (entry.left === 0) return;
    if (rests) {
      this.#rest(market, order, entry);
      events.waits(order);
    } else {
      events.expire(order);
    }
  }

  /** Follows an order's change from elsewhere: a cancel, an end, a fill by an operator. */
  follow(order: Order, isOpen: boolean): void {
    const market = this.#orders.get(order.clientOrderId);
    if (market === undefined) return;
    const left = isOpen ? order.quantity - order.filled : 0;
    const entry = market.book.get(order.sequence);
    if (left > 0 && entry !== undefined) {
      entry.left = left;
      return;
    }
    market.book.remove(order.sequence);
    // The order of the call may have been read from the table, which does not have its partner.
    this.#count(market.orders.get(order.clientOrderId) ?? order, -1);
    market.orders.delete(order.clientOrderId);
    this.#orders.delete(order.clientOrderId);
    order.inBook = false;
  }

  /** Advances the market of all stocks with waiting orders. */
  pulse(nowMs: number, events: EngineEvents): void {
    for (const market of [...this.#markets.values()]) {
      if (market.orders.size > 0) this.#bringUpToDate(market.symbol, nowMs, events);
      else this.#markets.delete(market.symbol);
    }
  }

  #rest(market: Market, order: Order, entry: Entry): void {
    order.inBook = true;
    market.orders.set(order.clientOrderId, order);
    this.#orders.set(order.clientOrderId, market);
    market.book.rest(entry);
    this.#count(order, 1);
  }

  #count(order: Order, change: 1 | -1): void {
    const owner = ownerOf(order);
    const waiting = (this.#waiting.get(owner) ?? 0) + change;
    if (waiting > 0) this.#waiting.set(owner, waiting);
    else this.#waiting.delete(owner);
  }

  /** Brings a stock's market up to date. */
  #bringUpToDate(symbol: string, nowMs: number, events: EngineEvents): Market | undefined {
    const instrument = this.view.instrument(symbol, nowMs);
    if (instrument === undefined) return undefined;
    const session = this.view.session(nowMs);
    const phase = session.phase === 'continuous' && instrument.halted ? 'halted' : session.phase;
    const now = { phase, day: Math.floor(session.time), dayEndsAtMs: session.dayEndsAtMs };
    const beat = Math.floor(nowMs / beatMs);
    const market = this.#markets.get(symbol) ?? newMarket(instrument, now);
    this.#markets.set(symbol, market);
    if (market.beat === beat && market.phase === phase && market.dayEndsAtMs === now.dayEndsAtMs) return market;
    for (const id of market.synthetic) market.book.remove(id);
    market.synthetic = [];
    const closes = phase === 'closed' && market.phase !== 'closed';
    if (closes || nowMs >= market.dayEndsAtMs) this.#endDay(market, closes, nowMs, events);
    const opens = market.phase !== 'continuous';
    Object.assign(market, now, { beat });
    market.book.setBand(instrument);
    if (phase === 'continuous') this.#runBeat(market, instrument, beat, opens, events);
    return market;
  }

  /** One beat: the market maker quotes again, and a visitor may come. If trading opens, an auction is held between. */
  #runBeat(market: Market, instrument: InstrumentState, beat: number, opens: boolean, events: EngineEvents): void {
    const { book } = market;
    const drawn = drawnOf(book);
    const orderFlow = new OrderFlow(this.view.seed, instrument, beat);
    const onExecution = (execution: BookTrade<Entry>) => report(execution, events);
    for (const order of orderFlow.maker(drawn.bySellers, drawn.byBuyers)) {
      const entry = this.#syntheticEntry(market, order);
      if (opens) book.rest(entry);
      else book.enter(entry, 'rests', onExecution);
    }
    if (opens) book.auction(onTickBelow(instrument.quoteKobo), onExecution);
    const visitor = orderFlow.visitor(drawn.bySellers, drawn.byBuyers);
    if (visitor !== undefined) book.enter(this.#syntheticEntry(market, visitor), 'lapses', onExecution);
  }

  /** The closing auction, if the exchange keeps hours. Then the day orders expire. */
  #endDay(market: Market, closes: boolean, nowMs: number, events: EngineEvents): void {
    const { book } = market;
    const traded = market.phase === 'continuous' || market.phase === 'collecting';
    const isOver = nowMs >= market.dayEndsAtMs;
    const instrument = isOver
      ? this.view.instrumentAtClose(market.symbol, market.day, nowMs)
      : this.view.instrument(market.symbol, nowMs);
    if (traded && instrument !== undefined && (closes || this.view.session(nowMs).nextOpenAtMs !== undefined)) {
      const drawn = drawnOf(book);
      const orderFlow = new OrderFlow(this.view.seed, instrument, market.dayEndsAtMs);
      for (const order of orderFlow.maker(drawn.bySellers, drawn.byBuyers))
        book.rest(this.#syntheticEntry(market, order));
      book.auction(onTickBelow(instrument.quoteKobo), (execution) => report(execution, events));
      for (const id of market.synthetic) book.remove(id);
      market.synthetic = [];
    }
    for (const order of [...market.orders.values()]) {
      const isDue = order.expiresAtMs !== null && order.expiresAtMs <= nowMs;
      if (isDue || (closes && order.timeInForce === TimeInForce.DAY)) events.expire(order);
    }
  }

  #syntheticEntry(market: Market, { side, limitKobo, quantity }: SyntheticOrder): Entry {
    this.#lastSynthetic -= 1;
    market.synthetic.push(this.#lastSynthetic);
    return { id: this.#lastSynthetic, side, limitKobo, left: quantity };
  }
}

function ownerOf({ partner, account }: Pick<Order, 'partner' | 'account'>): string {
  return partner === undefined ? `account ${account}` : `partner ${partner}`;
}

function newMarket(instrument: InstrumentState, now: Pick<Market, 'phase' | 'day' | 'dayEndsAtMs'>): Market {
  const { symbol, lowerKobo, upperKobo } = instrument;
  return { symbol, book: new Book({ lowerKobo, upperKobo }), orders: new Map(), synthetic: [], beat: -1, ...now };
}

function entryOf(order: Order): Entry {
  const { sequence, side, priceKobo, quantity, filled } = order;
  return { id: sequence, side, limitKobo: priceKobo, left: quantity - filled, order };
}

function report({ buy, sell, quantity, priceKobo }: BookTrade<Entry>, events: EngineEvents): void {
  if (buy.order !== undefined) events.trade(buy.order, quantity, priceKobo);
  if (sell.order !== undefined) events.trade(sell.order, quantity, priceKobo);
}

/** The shares that each side's first order still wants, because a large order draws others. */
function drawnOf(book: Book<Entry>): { bySellers: number; byBuyers: number } {
  return { bySellers: book.first(Side.SELL)?.left ?? 0, byBuyers: book.first(Side.BUY)?.left ?? 0 };
}
