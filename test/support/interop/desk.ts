import type { Acceptor } from './acceptor.ts';
import type { TrueEnd, TrueOrder, TrueTrade } from './book.ts';
import type { Delivery } from './session.ts';
import { utcTimestamp, type WireField, type WireMessage } from './wire.ts';

/** How a report is worded, where it is not as it should be: other values by tag, null for a field that is missing. */
export interface Wording {
  readonly [tag: number]: string | null;
  /** Fields behind all others. */
  readonly also?: readonly WireField[];
  /** Changes the list of fields as a whole. */
  readonly edit?: (fields: WireField[]) => WireField[];
  /** How the message leaves. */
  readonly how?: Delivery;
}

/** The exchange's words about an event: none at all, or words that may be wrong. */
export type Said = 'nothing' | Wording;

const execTypes = { cancelled: '4', expired: 'C', rejected: '8' } as const;
const statuses = { absent: '0', pending: '0', partially_filled: '1', filled: '2', ...execTypes } as const;

/**
 * The exchange's side of one order: each method changes the book, which is the truth, and says so in an ExecutionReport. What
 * is said can be worded otherwise or left out, and can be said without anything having happened.
 */
export class Desk {
  constructor(
    readonly acceptor: Acceptor,
    readonly order: TrueOrder,
  ) {}

  /** The book takes the order. */
  accept(said: Said = {}): this {
    this.order.isTaken = true;
    return this.#say({ 150: '0', 39: '0' }, said);
  }

  /** The book takes the order, and nobody is told. */
  takeSilently(): this {
    return this.accept('nothing');
  }

  /** Shares trade, at the limit unless another price is given. */
  trade(quantity: number, said: Said = {}, priceKobo: bigint = this.order.terms.limitKobo ?? 1_000n): TrueTrade {
    const trade = { execId: this.acceptor.newId('T'), quantity: BigInt(quantity), priceKobo, isBusted: false };
    this.order.isTaken = true;
    this.order.trades.push(trade);
    this.sayTrade(trade, said);
    return trade;
  }

  /** Reports a trade, whether or not it happened. */
  sayTrade(trade: TrueTrade, said: Said = {}): this {
    return this.#say(
      { 17: trade.execId, 150: 'F', 32: String(trade.quantity), 31: this.acceptor.price(trade.priceKobo) },
      said,
    );
  }

  /** Reports a trade that never happened. */
  inventTrade(quantity: number, said: Wording = {}, priceKobo: bigint = this.order.terms.limitKobo ?? 1_000n): this {
    const execId = this.acceptor.newId('T');
    return this.sayTrade({ execId, quantity: BigInt(quantity), priceKobo, isBusted: false }, said);
  }

  /** The order ends. */
  end(how: TrueEnd, said: Said = {}): this {
    this.order.end = how;
    return this.#say({ 150: execTypes[how], 103: how === 'rejected' ? '99' : null }, said);
  }

  /** The exchange takes a trade back. */
  bust(trade: TrueTrade, said: Said = {}): this {
    trade.isBusted = true;
    return this.#say(
      { 150: 'H', 19: trade.execId, 32: String(trade.quantity), 31: this.acceptor.price(trade.priceKobo) },
      said,
    );
  }

  /** Says that the book is as it is. */
  status(said: Wording = {}): this {
    return this.#say({ 150: 'I' }, said);
  }

  /** An ExecutionReport with the book's facts, otherwise worded. */
  report(said: Wording): this {
    return this.#say({}, said);
  }

  /** "Unknown order", as an answer to a status request. */
  unknown(request: WireMessage, said: Wording = {}): this {
    return this.#say(
      { 37: 'NONE', 150: 'I', 39: '8', 103: '5', 151: '0', 14: '0', 6: '0', 790: request.find(790) ?? null },
      said,
    );
  }

  /** Answers a status request as an honest engine does. */
  answerStatus(request: WireMessage, said: Wording = {}): this {
    const { isTaken, isForgotten, end } = this.order;
    if (isForgotten || (!isTaken && end === undefined)) return this.unknown(request, said);
    return this.status({ 790: request.find(790) ?? null, ...said });
  }

  /** Answers a cancel as an honest engine does. */
  answerCancel(request: WireMessage, said: Wording = {}): this {
    const ids = { 11: request.text(11), 41: request.text(41) };
    if (this.order.open > 0n && !this.order.isForgotten) return this.end('cancelled', { ...ids, ...said });
    return this.rejectCancel(request, said);
  }

  /** An OrderCancelReject: too late, or unknown order. */
  rejectCancel(request: WireMessage, said: Wording = {}): this {
    const isKnown = this.order.isTaken && !this.order.isForgotten;
    const fields: WireField[] = [
      [37, isKnown ? this.order.orderId : 'NONE'],
      [11, request.text(11)],
      [41, request.text(41)],
      [39, isKnown ? statuses[this.order.state] : '8'],
      [434, '1'],
      [102, isKnown ? '0' : '1'],
    ];
    return this.send('9', fields, said);
  }

  /** Any message, with the wording that rows use. */
  send(type: string, fields: readonly WireField[], said: Wording = {}): this {
    this.acceptor.send(type, reword(fields, said), said.how);
    return this;
  }

  #say(usual: Record<number, string | null>, said: Said): this {
    if (said === 'nothing') return this;
    return this.send('8', reword(this.#facts(), usual), said);
  }

  /** The fields that every ExecutionReport has. */
  #facts(): WireField[] {
    const { terms, orderId, state, filled, value, open } = this.order;
    const price: WireField[] = terms.limitKobo === undefined ? [] : [[44, this.acceptor.price(terms.limitKobo)]];
    return [
      [37, orderId],
      [11, terms.clOrdId],
      [17, this.acceptor.newId('E')],
      [150, '0'],
      [39, statuses[state]],
      [1, terms.account],
      [55, terms.symbol],
      [54, terms.side],
      [38, String(terms.quantity)],
      [40, terms.type],
      ...price,
      [59, terms.timeInForce],
      [151, String(open)],
      [14, String(filled)],
      [6, filled === 0n ? '0' : averagePrice(value, filled, this.acceptor.unit === 'kobo' ? 1n : 100n)],
      [60, utcTimestamp(Date.now())],
    ];
  }
}

function reword(fields: readonly WireField[], said: Wording): WireField[] {
  const changes = new Map(
    Object.entries(said)
      .filter(([tag]) => /^\d+$/.test(tag))
      .map(([tag, value]) => [Number(tag), value as string | null]),
  );
  const kept = fields.flatMap(([tag, value]): WireField[] => {
    if (!changes.has(tag)) return [[tag, value]];
    const changed = changes.get(tag) ?? null;
    changes.delete(tag);
    return changed === null ? [] : [[tag, changed]];
  });
  const added = [...changes].flatMap(([tag, value]): WireField[] => (value === null ? [] : [[tag, value]]));
  const all = [...kept, ...added, ...(said.also ?? [])];
  return said.edit?.(all) ?? all;
}

/** An exact average to six places, half up. */
function averagePrice(valueKobo: bigint, quantity: bigint, koboPerUnit: bigint): string {
  const millionths = (valueKobo * 2_000_000n + quantity * koboPerUnit) / (2n * quantity * koboPerUnit);
  return `${millionths / 1_000_000n}.${String(millionths % 1_000_000n).padStart(6, '0')}`;
}
