/** The exchange's own book: what really became of each order. It is the truth that partners' views are compared with. */

/** An execution that happened. */
export interface TrueTrade {
  readonly execId: string;
  quantity: bigint;
  priceKobo: bigint;
  /** The exchange took it back. */
  isBusted: boolean;
}

/** How an order ended at the exchange, other than by trading in full. */
export type TrueEnd = 'cancelled' | 'expired' | 'rejected';

/** The terms of an order, as its NewOrderSingle has them. */
export interface OrderTerms {
  readonly clOrdId: string;
  readonly account: string;
  readonly symbol: string;
  readonly side: string;
  readonly type: string;
  readonly timeInForce: string;
  readonly quantity: bigint;
  readonly limitKobo: bigint | undefined;
}

/** One order at the exchange. */
export class TrueOrder {
  readonly trades: TrueTrade[] = [];
  /** Whether the book took it. */
  isTaken = false;
  end: TrueEnd | undefined;
  /** The exchange does not find it any more: it answers "unknown order". */
  isForgotten = false;

  constructor(
    readonly terms: OrderTerms,
    readonly orderId: string,
  ) {}

  get filled(): bigint {
    return this.live.reduce((sum, { quantity }) => sum + quantity, 0n);
  }

  /** The trades that stand. */
  get live(): TrueTrade[] {
    return this.trades.filter(({ isBusted }) => !isBusted);
  }

  get value(): bigint {
    return this.live.reduce((sum, { quantity, priceKobo }) => sum + quantity * priceKobo, 0n);
  }

  get open(): bigint {
    const open = this.terms.quantity - this.filled;
    return !this.isTaken || this.end !== undefined || open < 0n ? 0n : open;
  }

  /** The state that a partner should see. */
  get state(): 'absent' | 'pending' | 'partially_filled' | 'filled' | TrueEnd {
    if (this.end !== undefined) return this.end;
    if (!this.isTaken) return 'absent';
    if (this.filled >= this.terms.quantity) return 'filled';
    return this.filled > 0n ? 'partially_filled' : 'pending';
  }

  toString(): string {
    const { state, filled, value } = this;
    return `${state}, ${filled} shares for ${value} kobo`;
  }
}
