import type {
  InstrumentKind,
  OrderType,
  RejectReason,
  ReportKind,
  Side,
  TimeInForce,
} from '../gen/marina/broker/v1/orders_pb.ts';
import type { Call } from '../gen/marina/simulator/v1/controls_pb.ts';

/** Prices and quantities are whole numbers below 2^53, checked where they come in. */

/** What an order was asked to be. */
export interface Submission {
  readonly clientOrderId: string;
  readonly account: string;
  readonly symbol: string;
  readonly side: Side;
  readonly type: OrderType;
  readonly timeInForce: TimeInForce;
  readonly quantity: number;
  /** Null on a market order. */
  readonly priceKobo: number | null;
}

/** What became of a submission: taken or rejected, and recorded; or not taken. */
export type Submitted<Result> =
  | { readonly outcome: 'taken'; readonly result: Result }
  | { readonly outcome: 'seen_before' | 'too_late' };

/** Something that will happen to an order by itself. `afterMs` counts from the step before, in real time. */
export type PlannedStep =
  | { readonly kind: 'fill'; readonly afterMs: number; readonly quantity: number; readonly priceKobo: number }
  | { readonly kind: 'expire'; readonly afterMs: number }
  | { readonly kind: 'reject'; readonly afterMs: number; readonly rejectReason: RejectReason };

/** An order as the exchange has it. */
export interface Order extends Submission {
  readonly sequence: number;
  /** Empty when it was rejected at once. */
  readonly exchangeOrderId: string;
  filled: number;
  /** Unspecified while it is open. */
  endedBy: ReportKind;
  /** The business time at which an open day order runs out. */
  expiresAtMs: number | null;
  plan: readonly PlannedStep[];
  /** The real time of the plan's first step. */
  planAtMs: number | null;
  /** Whether it waits in a book, and trades as the market goes. */
  inBook: boolean;
  /** The Lagos day it traded on last, and what it traded for on that day: its charges are those of the whole. */
  tradedOn: string | null;
  tradedKobo: bigint;
}

/** One thing the exchange said about one order. */
export interface OrderReport {
  readonly number: number;
  readonly clientOrderId: string;
  readonly exchangeOrderId: string;
  readonly kind: ReportKind;
  readonly atMs: number;
  readonly quantity: number;
  readonly priceKobo: number;
  readonly rejectReason: RejectReason;
}

/** One message that was received, whatever became of it. */
export interface Message {
  readonly number: number;
  readonly call: Call;
  readonly clientOrderId: string;
  readonly account: string;
  readonly receivedAtMs: number;
  readonly taken: boolean;
  /** What came with it: the request it was made for, and its place in a trace; empty where nothing did. */
  readonly requestId: string;
  readonly traceParent: string;
}

/** A stock as the exchange trades it today. */
export interface InstrumentState {
  readonly symbol: string;
  readonly name: string;
  readonly kind: InstrumentKind;
  readonly lowerKobo: number;
  readonly upperKobo: number;
  /** The price the exchange trades it at now. */
  readonly quoteKobo: number;
  /** The price of the last trade, or of the previous close. */
  readonly lastKobo: number;
  readonly halted: boolean;
  /** Whether its price is the one set for it, and does not move by itself. */
  readonly pinned: boolean;
  /** Its place in lists. */
  readonly position: number;
}
