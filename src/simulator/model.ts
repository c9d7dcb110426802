import type {
  InstrumentKind,
  OrderType,
  RejectReason,
  ReportKind,
  Side,
  TimeInForce,
} from '../gen/marina/broker/v1/orders_pb.ts';
import type { Call } from '../gen/marina/simulator/v1/controls_pb.ts';

/** A request for an order. Prices and quantities are whole numbers below 2^53, checked on receipt. */
export interface OrderRequest {
  readonly clientOrderId: string;
  readonly account: string;
  readonly symbol: string;
  readonly side: Side;
  readonly type: OrderType;
  readonly timeInForce: TimeInForce;
  readonly quantity: number;
  readonly priceKobo: number | null;
  /** The partner whose order it is, if the gateway states it. It is not stored. */
  readonly partner?: string;
}

/** The result of a submission: accepted or rejected, with a record, or not taken. */
export type SubmissionResult<Result> =
  | { readonly outcome: 'taken'; readonly result: Result }
  | { readonly outcome: 'seen_before' | 'too_late' };

/** A planned change of an order. `afterMs` counts from the step before, in real time. */
export type PlannedStep =
  | { readonly kind: 'fill'; readonly afterMs: number; readonly quantity: number; readonly priceKobo: number }
  | { readonly kind: 'expire'; readonly afterMs: number }
  | { readonly kind: 'reject'; readonly afterMs: number; readonly rejectReason: RejectReason };

export interface Order extends OrderRequest {
  readonly sequence: number;
  /** Empty if it was rejected at once. */
  readonly exchangeOrderId: string;
  filled: number;
  /** Unspecified while it is open. */
  endedBy: ReportKind;
  /** The business time at which an open day order expires. */
  expiresAtMs: number | null;
  plan: readonly PlannedStep[];
  /** The real time of the plan's first step. */
  planAtMs: number | null;
  /** Whether it waits in a book and trades with the market. */
  inBook: boolean;
  /** The Lagos day it last traded on, and its traded amount of that day, because charges apply to the day's total. */
  tradedOn: string | null;
  tradedKobo: bigint;
}

/** One report about one order. */
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

/** One received message, whatever its outcome. */
export interface ReceivedCall {
  readonly number: number;
  readonly call: Call;
  readonly clientOrderId: string;
  readonly account: string;
  readonly receivedAtMs: number;
  readonly taken: boolean;
  /** The gateway's request id and trace context; empty if the message has none. */
  readonly requestId: string;
  readonly traceParent: string;
}

/** A stock as it trades today. */
export interface InstrumentState {
  readonly symbol: string;
  readonly name: string;
  readonly kind: InstrumentKind;
  readonly lowerKobo: number;
  readonly upperKobo: number;
  /** The exchange's present price. */
  readonly quoteKobo: number;
  /** The price of the last trade, or of the previous close. */
  readonly lastKobo: number;
  readonly halted: boolean;
  /** Whether its price was set and does not move. */
  readonly pinned: boolean;
  readonly position: number;
}
