import { Side, TimeInForce } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { InstrumentState, Order } from '../model.ts';
import { onTickBelow } from '../prices.ts';
import { Book, type Execution } from './book.ts';
import type { Interest } from './ladder.ts';
import { Street, type StreetOrder } from './street.ts';
import { beatMs, type Phase, type Session } from './venue.ts';

/** How many orders wait for one stock, and for all together. */
const maxAtStall = 10_000;
const maxOnFloor = 100_000;

/** What the floor must know of a stock, and of the exchange. */
export interface FloorView {
  readonly seed: number;
  session(nowMs: number): Session;
  instrument(symbol: string, nowMs: number): InstrumentState | undefined;
  /** The instrument as it was when a day ended. */
  instrumentAtClose(symbol: string, day: number, nowMs: number): InstrumentState | undefined;
}

/** What the floor does to orders. */
export interface FloorEvents {
  trade(order: Order, quantity: number, priceKobo: number): void;
  expire(order: Order): void;
  /** An order waits from now on. */
  waits(order: Order): void;
}

/** An interest of a customer's order; one of the street's has none. */
interface Entry extends Interest {
  readonly order?: Order;
}

/** Where one stock is traded. */
interface Stall {
  readonly symbol: string;
  readonly book: Book<Entry>;
  readonly orders: Map<string, Order>;
  /** The street's interests of the beat it was looked at last. */
  street: number[];
  beat: number;
  phase: Phase | 'restored';
  day: number;
  dayEndsAtMs: number;
}

/**
 * The trading floor: the books of all stocks that trade by the market. Nothing runs here by itself. Whoever comes, an
 * order or the pulse while orders wait, finds a stock as it would be had it been watched all the time: the session as
 * it is by now, and what the street quotes in this beat.
 */
export class Floor {
  readonly #stalls = new Map<string, Stall>();
  readonly #orders = new Map<string, Stall>();
  #lastStreet = 0;

  constructor(private readonly view: FloorView) {}

  /** Whether any order waits. */
  get hasOrders(): boolean {
    return this.#orders.size > 0;
  }

  /** An order that waits here. */
  order(clientOrderId: string): Order | undefined {
    return this.#orders.get(clientOrderId)?.orders.get(clientOrderId);
  }

  hasRoom(symbol: string): boolean {
    return this.#orders.size < maxOnFloor && (this.#stalls.get(symbol)?.book.size ?? 0) < maxAtStall;
  }

  /** Forgets everything. */
  clear(): void {
    this.#stalls.clear();
    this.#orders.clear();
  }

  /** Puts an order back that waited when it was last heard of; in the order in which they came. */
  restore(order: Order, nowMs: number): void {
    const instrument = this.view.instrument(order.symbol, nowMs);
    if (instrument === undefined) return;
    let stall = this.#stalls.get(order.symbol);
    if (stall === undefined) {
      stall = newStall(instrument, { phase: 'restored', day: 0, dayEndsAtMs: 0 });
      this.#stalls.set(order.symbol, stall);
    }
    this.#rest(stall, order, entryOf(order));
  }

  /** Brings an accepted order to its book: it trades what it can, and what is left waits or lapses. */
  place(order: Order, nowMs: number, events: FloorEvents): void {
    const stall = this.#attend(order.symbol, nowMs, events);
    if (stall === undefined) return;
    const entry = entryOf(order);
    const rests = order.timeInForce === TimeInForce.DAY || order.timeInForce === TimeInForce.GTC;
    const allOrNothing = order.timeInForce === TimeInForce.FOK;
    if (stall.phase === 'continuous') {
      stall.book.enter(entry, allOrNothing ? 'all_or_nothing' : 'lapses', (execution) => report(execution, events));
    }
    if (entry.left === 0) return;
    if (rests) {
      this.#rest(stall, order, entry);
      events.waits(order);
    } else {
      events.expire(order);
    }
  }

  /** Follows what became of an order elsewhere: a cancel, an end, a fill by an operator. */
  follow(order: Order, isOpen: boolean): void {
    const stall = this.#orders.get(order.clientOrderId);
    if (stall === undefined) return;
    const left = isOpen ? order.quantity - order.filled : 0;
    const entry = stall.book.get(order.sequence);
    if (left > 0 && entry !== undefined) {
      entry.left = left;
      return;
    }
    stall.book.remove(order.sequence);
    stall.orders.delete(order.clientOrderId);
    this.#orders.delete(order.clientOrderId);
    order.inBook = false;
  }

  /** Lets the market go on for all stocks in which orders wait. */
  pulse(nowMs: number, events: FloorEvents): void {
    for (const stall of [...this.#stalls.values()]) {
      if (stall.orders.size > 0) this.#attend(stall.symbol, nowMs, events);
      else this.#stalls.delete(stall.symbol);
    }
  }

  #rest(stall: Stall, order: Order, entry: Entry): void {
    order.inBook = true;
    stall.orders.set(order.clientOrderId, order);
    this.#orders.set(order.clientOrderId, stall);
    stall.book.rest(entry);
  }

  /** A stock's stall as it is by now. */
  #attend(symbol: string, nowMs: number, events: FloorEvents): Stall | undefined {
    const instrument = this.view.instrument(symbol, nowMs);
    if (instrument === undefined) return undefined;
    const session = this.view.session(nowMs);
    const phase = session.phase === 'continuous' && instrument.halted ? 'halted' : session.phase;
    const now = { phase, day: Math.floor(session.time), dayEndsAtMs: session.dayEndsAtMs };
    const beat = Math.floor(nowMs / beatMs);
    const stall = this.#stalls.get(symbol) ?? newStall(instrument, now);
    this.#stalls.set(symbol, stall);
    if (stall.beat === beat && stall.phase === phase && stall.dayEndsAtMs === now.dayEndsAtMs) return stall;
    for (const id of stall.street) stall.book.remove(id);
    stall.street = [];
    const closes = phase === 'closed' && stall.phase !== 'closed';
    if (closes || nowMs >= stall.dayEndsAtMs) this.#endDay(stall, closes, nowMs, events);
    const opens = stall.phase !== 'continuous';
    Object.assign(stall, now, { beat });
    stall.book.setBand(instrument);
    if (phase === 'continuous') this.#goOn(stall, instrument, beat, opens, events);
    return stall;
  }

  /** One beat: the maker quotes anew, and somebody may come. What was collected meanwhile is auctioned first. */
  #goOn(stall: Stall, instrument: InstrumentState, beat: number, opens: boolean, events: FloorEvents): void {
    const { book } = stall;
    const drawn = drawnOf(book);
    const street = new Street(this.view.seed, instrument, beat);
    const onExecution = (execution: Execution<Entry>) => report(execution, events);
    for (const order of street.maker(drawn.bySellers, drawn.byBuyers)) {
      const entry = this.#streetEntry(stall, order);
      if (opens) book.rest(entry);
      else book.enter(entry, 'rests', onExecution);
    }
    if (opens) book.auction(onTickBelow(instrument.quoteKobo), onExecution);
    const visitor = street.visitor(drawn.bySellers, drawn.byBuyers);
    if (visitor !== undefined) book.enter(this.#streetEntry(stall, visitor), 'lapses', onExecution);
  }

  /** The closing auction, where the exchange keeps hours; then the day orders run out. */
  #endDay(stall: Stall, closes: boolean, nowMs: number, events: FloorEvents): void {
    const { book } = stall;
    const traded = stall.phase === 'continuous' || stall.phase === 'collecting';
    const isOver = nowMs >= stall.dayEndsAtMs;
    const instrument = isOver
      ? this.view.instrumentAtClose(stall.symbol, stall.day, nowMs)
      : this.view.instrument(stall.symbol, nowMs);
    if (traded && instrument !== undefined && (closes || this.view.session(nowMs).nextOpenAtMs !== undefined)) {
      const drawn = drawnOf(book);
      const street = new Street(this.view.seed, instrument, stall.dayEndsAtMs);
      for (const order of street.maker(drawn.bySellers, drawn.byBuyers)) book.rest(this.#streetEntry(stall, order));
      book.auction(onTickBelow(instrument.quoteKobo), (execution) => report(execution, events));
      for (const id of stall.street) book.remove(id);
      stall.street = [];
    }
    for (const order of [...stall.orders.values()]) {
      const isDue = order.expiresAtMs !== null && order.expiresAtMs <= nowMs;
      if (isDue || (closes && order.timeInForce === TimeInForce.DAY)) events.expire(order);
    }
  }

  #streetEntry(stall: Stall, { side, limitKobo, quantity }: StreetOrder): Entry {
    this.#lastStreet -= 1;
    stall.street.push(this.#lastStreet);
    return { id: this.#lastStreet, side, limitKobo, left: quantity };
  }
}

function newStall(instrument: InstrumentState, now: Pick<Stall, 'phase' | 'day' | 'dayEndsAtMs'>): Stall {
  const { symbol, lowerKobo, upperKobo } = instrument;
  return { symbol, book: new Book({ lowerKobo, upperKobo }), orders: new Map(), street: [], beat: -1, ...now };
}

function entryOf(order: Order): Entry {
  const { sequence, side, priceKobo, quantity, filled } = order;
  return { id: sequence, side, limitKobo: priceKobo, left: quantity - filled, order };
}

function report({ buy, sell, quantity, priceKobo }: Execution<Entry>, events: FloorEvents): void {
  if (buy.order !== undefined) events.trade(buy.order, quantity, priceKobo);
  if (sell.order !== undefined) events.trade(sell.order, quantity, priceKobo);
}

/** How much the first order of each side still wants: a large one draws others. */
function drawnOf(book: Book<Entry>): { bySellers: number; byBuyers: number } {
  return { bySellers: book.first(Side.SELL)?.left ?? 0, byBuyers: book.first(Side.BUY)?.left ?? 0 };
}
