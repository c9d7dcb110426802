import type {
  GetBalanceResponse,
  GetMarketResponse,
  ListContractNotesResponse,
  ListPositionsResponse,
  ListTradesResponse,
} from '../gen/marina/broker/v1/accounts_pb.ts';
import type { AllocationRecord } from '../gen/marina/broker/v1/allocations_pb.ts';
import type { ApplicationFields, ApplicationReport } from '../gen/marina/broker/v1/applications_pb.ts';
import type { EstimateOrderResponse, GetTradingContextResponse, Report } from '../gen/marina/broker/v1/orders_pb.ts';
import type { Lga, State } from '../gen/marina/broker/v1/reference_pb.ts';
import type { Origin } from '../lib/origin.ts';

/** An order as the broker must know it. Words are the ones the database and partners use. */
export interface OrderToSend {
  readonly id: string;
  readonly account: string;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly quantity: bigint;
  readonly type: 'limit' | 'market';
  readonly timeInForce: 'day' | 'gtc' | 'ioc' | 'fok';
  readonly priceKobo: bigint | null;
  /** On whose behalf it is sent. */
  readonly origin: Origin;
}

/** What is sent, with the note by which it can be stored anew. */
export interface Noted {
  readonly note: Buffer;
}

/**
 * What a send came to. `never-left` needs proof that the other side did not and will not take it; everything that is
 * neither an answer nor such a proof is `unclear`.
 */
export type Sent<Answer> =
  | { readonly outcome: 'answered'; readonly answer: Answer }
  | {
      readonly outcome: 'never-left';
      readonly evidence: string;
      /** A sentence for the partner, where there is more to say than that it never left. */
      readonly reason?: string;
    }
  | { readonly outcome: 'unclear'; readonly evidence: string };

export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly report: Report }
  | { readonly outcome: 'too-late' }
  | { readonly outcome: 'unclear'; readonly evidence: string };

/** A file for the broker. */
export interface DocumentToSend {
  readonly applicationId: string;
  readonly type: 'photo' | 'government_id' | 'utility_bill' | 'signature';
  /** `image/jpeg` or `image/png`. */
  readonly mediaType: string;
  readonly content: Buffer;
  readonly origin: Origin;
}

/** What the broker's record says of something: of an order, all reports above the number asked for. */
export type LookedUp<Answer> =
  | {
      readonly found: false;
      /** Business time before which the record is known to be complete, in milliseconds; undefined: not known. */
      readonly completeUntil: number | undefined;
      /** Real time in milliseconds that the broker's clock showed at least when it was asked; undefined: not stated. */
      readonly brokerTime: number | undefined;
    }
  | { readonly found: true; readonly answer: Answer };

/**
 * What the gateway needs from a broker. An adapter for another broker implements this. Every call has a deadline, and
 * none is ever tried again by the adapter or anything below it.
 */
export interface Broker {
  /** Whether a submission that comes after its `not_after` is refused. Throws when the broker does not say. */
  honoursNotAfter(): Promise<boolean>;
  /** Throws `exchange_unavailable` or `exchange_error`. */
  tradingContext(account: string, symbol: string, origin: Origin): Promise<GetTradingContextResponse>;
  /** Throws `exchange_unavailable`, `exchange_error` or `unknown_symbol`. */
  estimateOrder(
    order: Omit<OrderToSend, 'id' | 'timeInForce' | 'origin'>,
    origin: Origin,
  ): Promise<EstimateOrderResponse>;
  /** Sends once. Does not throw. `notAfterMs` is real time past which the broker must not take it. */
  submitOrder(order: OrderToSend & Noted, notAfterMs: number): Promise<Sent<Report>>;
  /** Sends a cancel once. Does not throw. */
  cancelOrder(orderId: string, origin: Origin): Promise<Cancelled>;
  /** Throws when the broker gives no answer that makes sense. */
  lookUpOrder(orderId: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly Report[]>>;
  /** Batches of reports above a number, in order; an empty batch only shows that the link lives. Throws when it breaks. */
  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]>;
  /** Sends a file once. Does not throw. `notAfterMs` is real time past which the broker must not take it. */
  sendDocument(document: DocumentToSend, notAfterMs: number): Promise<Sent<'delivered' | 'refused'>>;
  /** Whether the broker can be reached, as far as is known. */
  readonly connected: boolean;
  close(): void;
}

/** An application as the broker must know it. */
export interface ApplicationToSend {
  readonly id: string;
  readonly fields: ApplicationFields;
  readonly origin: Origin;
}

/** What the gateway needs from a broker to open accounts, by the same rules as a `Broker`. */
export interface ApplicationBroker {
  /** Sends once. Does not throw. `notAfterMs` is real time past which the broker must not take it. */
  submitApplication(application: ApplicationToSend & Noted, notAfterMs: number): Promise<Sent<ApplicationReport>>;
  /** Throws when the broker gives no answer that makes sense. */
  lookUpApplication(id: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly ApplicationReport[]>>;
  /** Whether the broker has a document of a type. Throws when the broker gives no answer that makes sense. */
  lookUpDocument(id: string, type: DocumentToSend['type'], origin: Origin): Promise<LookedUp<'delivered'>>;
  /** As `streamReports`, of the reports about applications, which have numbers of their own. */
  streamApplicationReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly ApplicationReport[]>;
  close(): void;
}

/** An allocation as the broker must know it. */
export interface AllocationToSend {
  readonly id: string;
  readonly account: string;
  readonly amountKobo: bigint;
  readonly origin: Origin;
}

/** One thing the broker took, by its place among all. */
export interface Taken {
  readonly number: bigint;
  /** The id the gateway gave it. */
  readonly clientId: string;
  /** The note it was sent with. */
  readonly note: Uint8Array;
}

/** What the gateway needs from a broker to find what its database has lost. */
export interface SubmissionsBroker {
  /** What was taken above a number, in order and without a gap; undefined where the broker keeps no such record. */
  submissionsAfter(number: bigint, most: number): Promise<readonly Taken[] | undefined>;
  close(): void;
}

/** What the gateway needs from a broker to move money to accounts, by the same rules as a `Broker`. */
export interface AllocationBroker {
  /** Sends once. Does not throw. `notAfterMs` is real time past which the broker must not take it. */
  submitAllocation(allocation: AllocationToSend & Noted, notAfterMs: number): Promise<Sent<AllocationRecord>>;
  /** Throws when the broker gives no answer that makes sense. */
  lookUpAllocation(allocationId: string, origin: Origin): Promise<LookedUp<AllocationRecord>>;
  close(): void;
}

/** What reads of records need beside what is read: how long they may take, and on whose behalf they are made. */
export interface ReadTime {
  readonly timeoutMs: number;
  readonly origin: Origin;
}

/** A part of an account's records between two Lagos days, both YYYY-MM-DD, from a place on. */
export interface RecordRange<Place> {
  readonly account: string;
  readonly from: string;
  readonly to: string;
  /** Only what comes after it; undefined: from the newest. */
  readonly after: Place | undefined;
  /** How many at most, 1 to 100. */
  readonly limit: number;
}

export interface TradePlace {
  readonly executedAtMs: number;
  readonly id: string;
}

export interface ContractNotePlace {
  readonly tradeDate: string;
  readonly ticket: string;
}

/**
 * What the gateway reads of a broker's records. Every read throws `exchange_unavailable`, or `exchange_error` where the
 * answer makes no sense; those of an account also `account_not_at_broker`.
 */
export interface RecordsBroker {
  balance(account: string, time: ReadTime): Promise<GetBalanceResponse>;
  positions(
    account: string,
    page: { readonly afterSymbol: string; readonly limit: number },
    time: ReadTime,
  ): Promise<ListPositionsResponse>;
  trades(range: RecordRange<TradePlace>, time: ReadTime): Promise<ListTradesResponse>;
  contractNotes(range: RecordRange<ContractNotePlace>, time: ReadTime): Promise<ListContractNotesResponse>;
  market(time: ReadTime): Promise<GetMarketResponse>;
  states(time: ReadTime): Promise<readonly State[]>;
  /** Throws `not_found` for a state there is not. */
  lgas(state: string, time: ReadTime): Promise<readonly Lga[]>;
  close(): void;
}
