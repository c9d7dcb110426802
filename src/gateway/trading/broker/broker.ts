import type {
  GetAccountStatusResponse,
  GetBalanceResponse,
  GetMarketResponse,
  ListContractNotesResponse,
  ListPositionsResponse,
  ListTradesResponse,
  ListTransactionsResponse,
} from '../../../gen/marina/broker/v1/accounts_pb.ts';
import type { AllocationRecord } from '../../../gen/marina/broker/v1/allocations_pb.ts';
import type { ApplicationFields, ApplicationReport } from '../../../gen/marina/broker/v1/applications_pb.ts';
import type {
  EstimateOrderResponse,
  GetCapabilitiesResponse,
  GetTradingContextResponse,
  OrderType,
  Report,
  Side,
  TimeInForce,
} from '../../../gen/marina/broker/v1/orders_pb.ts';
import type { Lga, ListedInstrument, MarketDay, State } from '../../../gen/marina/broker/v1/reference_pb.ts';
import type { WithdrawalDestination, WithdrawalReport } from '../../../gen/marina/broker/v1/withdrawals_pb.ts';
import type { EnumName } from '../../../kit/enums.ts';
import type { Origin } from '../../edge/origin.ts';
import type { BrokerClock } from './clock.ts';
import type {
  ContractNotePlace,
  PositionsRange,
  ReadTime,
  RecordRange,
  TradePlace,
  TransactionPlace,
  TransactionRange,
} from './records.ts';
import type { StatementPage, StatementPlace } from './statements.ts';

/**
 * The short name of a broker: `zenith`. At most 8 lower-case letters and digits, because the names of `nameAt` have columns
 * of 20 and 40 characters.
 */
export type BrokerId = string;

/** The broker of an installation that has one. What is kept for it has names without its id. */
export const firstBroker: BrokerId = 'first';

/**
 * The name of what is kept for one broker: a position, a lease, a concurrency slot, a stream of reports. `order-reports` of
 * the broker `zenith` is `order-reports.zenith`.
 */
export function nameAt(broker: BrokerId, name: string): string {
  return broker === firstBroker ? name : `${name}.${broker}`;
}

/** A broker, in parts: each consumer uses the one that it needs. */
export interface Broker {
  readonly id: BrokerId;
  /** How far its clock is ahead of ours, by the times that its answers state. */
  readonly clock: BrokerClock;
  readonly orders: BrokerOrders;
  readonly applications: BrokerApplications;
  readonly documents: BrokerDocuments;
  readonly allocations: BrokerAllocations;
  readonly withdrawals: BrokerWithdrawals;
  readonly submissions: BrokerSubmissions;
  readonly records: BrokerRecords;
  readonly statements: BrokerStatements;
  close(): void;
}

/** Orders, and the reads before them. */
export interface BrokerOrders {
  /** Whether the broker can be reached, as far as is known. */
  readonly connected: boolean;
  /** Whether the broker refuses a submission after its `not_after`. Throws if the broker does not say. */
  honoursNotAfter(): Promise<boolean>;
  /** Asks the broker what it can do, anew each time. Throws `exchange_unavailable` or `exchange_error`. */
  capabilities(time: Partial<ReadTime>): Promise<GetCapabilitiesResponse>;
  /** Throws `exchange_unavailable`, `exchange_error` or `unknown_symbol`. */
  tradingContext(account: string, symbol: string, origin: Origin): Promise<GetTradingContextResponse>;
  /** Throws `exchange_unavailable`, `exchange_error` or `unknown_symbol`. */
  estimateOrder(order: OrderToEstimate, origin: Origin): Promise<EstimateOrderResponse>;
  /** Sends once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  submitOrder(order: OrderToSend, notAfterMs: number): Promise<Sent<Report>>;
  /** Sends a cancel once, and not after `notAfterMs`, in real time. Its answer is not waited for longer. Does not throw. */
  cancelOrder(orderId: string, notAfterMs: number, origin: Origin): Promise<Cancelled>;
  /** All its reports above a number. Throws if the broker gives no answer that makes sense. */
  lookUpOrder(orderId: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly Report[]>>;
  /** Batches of reports above a number, in order. An empty batch is a heartbeat. Throws if the stream breaks. */
  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]>;
}

export interface BrokerApplications {
  /** Sends once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  submitApplication(application: ApplicationToSend, notAfterMs: number): Promise<Sent<ApplicationReport>>;
  /** All its reports above a number. Throws if the broker gives no answer that makes sense. */
  lookUpApplication(id: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly ApplicationReport[]>>;
  /** Like `BrokerOrders.streamReports`, for reports about applications, which have their own numbers. */
  streamApplicationReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly ApplicationReport[]>;
}

/** The files of applications. */
export interface BrokerDocuments {
  /** Sends a file once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  sendDocument(document: DocumentToSend, notAfterMs: number): Promise<Sent<'delivered' | 'refused'>>;
  /** Whether the broker has a document of a type. Throws if the broker gives no answer that makes sense. */
  lookUpDocument(id: string, type: DocumentToSend['type'], origin: Origin): Promise<LookedUp<'delivered'>>;
}

export interface BrokerAllocations {
  /** Sends once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  submitAllocation(allocation: AllocationToSend, notAfterMs: number): Promise<Sent<AllocationRecord>>;
  /** Throws if the broker gives no answer that makes sense. */
  lookUpAllocation(id: string, origin: Origin): Promise<LookedUp<AllocationRecord>>;
}

export interface BrokerWithdrawals {
  /** Sends once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  submitWithdrawal(withdrawal: WithdrawalToSend, notAfterMs: number): Promise<Sent<WithdrawalReport>>;
  /** All its reports above a number. Throws if the broker gives no answer that makes sense. */
  lookUpWithdrawal(id: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly WithdrawalReport[]>>;
  /** Like `BrokerOrders.streamReports`, for reports about withdrawals, which have their own numbers. */
  streamWithdrawalReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly WithdrawalReport[]>;
}

/** The broker's list of submissions, from which the gateway restores what its database has lost. */
export interface BrokerSubmissions {
  /**
   * The submissions above a number, in order and without a gap; undefined if the broker keeps no such list. An id that is not
   * printable is that of none of ours, and must not keep the gateway from the others.
   */
  submissionsAfter(number: bigint, most: number): Promise<readonly Taken[] | undefined>;
}

/**
 * The broker's records and reference data. Each read throws `exchange_unavailable`, or `exchange_error` if the answer makes no
 * sense; reads of an account also throw `account_not_at_broker`.
 */
export interface BrokerRecords {
  balance(account: string, time: ReadTime): Promise<GetBalanceResponse>;
  positions(account: string, range: PositionsRange, time: ReadTime): Promise<ListPositionsResponse>;
  trades(range: RecordRange<TradePlace>, time: ReadTime): Promise<ListTradesResponse>;
  contractNotes(range: RecordRange<ContractNotePlace>, time: ReadTime): Promise<ListContractNotesResponse>;
  /** Only asked of a broker that has it. Without the holder's initials, which no partner sees. */
  accountStatus(account: string, time: ReadTime): Promise<GetAccountStatusResponse>;
  /** The same for operators, with the holder's initials. Never store or log them. */
  accountStatusWithHolder(account: string, time: ReadTime): Promise<GetAccountStatusResponse>;
  /** Only asked of a broker that has them. */
  transactions(range: TransactionRange, time: ReadTime): Promise<ListTransactionsResponse>;
  /** Transactions of all types whose sums nobody has checked. */
  uncheckedTransactions(range: RecordRange<TransactionPlace>, time: ReadTime): Promise<ListTransactionsResponse>;
  market(time: ReadTime): Promise<GetMarketResponse>;
  states(time: ReadTime): Promise<readonly State[]>;
  /** Throws `not_found` for an unknown state. */
  lgas(state: string, time: ReadTime): Promise<readonly Lga[]>;
  /** Everything that the exchange lists, by symbol. */
  instruments(time: ReadTime): Promise<readonly ListedInstrument[]>;
  /** The days of the calendar from one to another, at most `maxMarketDays`; fewer if the calendar ends before. */
  marketDays(from: string, to: string, time: ReadTime): Promise<readonly MarketDay[]>;
}

/** The broker's statements of days. */
export interface BrokerStatements {
  /** Reads a page. Throws a `StatementError`. */
  page(place: StatementPlace, timeoutMs?: number): Promise<StatementPage>;
}

/** The members of every submission. */
interface ToSend {
  readonly id: string;
  readonly origin: Origin;
  /** From which it can be restored. */
  readonly note: Buffer;
}

/** An order to submit. Names are those of the database and the partners. */
export interface OrderToSend extends ToSend {
  readonly account: string;
  readonly symbol: string;
  readonly side: EnumName<typeof Side>;
  readonly quantity: bigint;
  readonly type: EnumName<typeof OrderType>;
  readonly timeInForce: EnumName<typeof TimeInForce>;
  readonly priceKobo: bigint | null;
}

/** An order whose costs are estimated. */
export type OrderToEstimate = Omit<OrderToSend, keyof ToSend | 'timeInForce'>;

/** The outcome of a cancel. Each but `unclear` is the broker's own answer. */
export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly report: Report }
  | { readonly outcome: 'too-late' }
  | { readonly outcome: 'unclear'; readonly evidence: string };

/** An application to submit. */
export interface ApplicationToSend extends ToSend {
  readonly fields: ApplicationFields;
}

/** A file for the broker. */
export interface DocumentToSend {
  readonly applicationId: string;
  readonly type: 'photo' | 'government_id' | 'utility_bill' | 'signature';
  /** `image/jpeg` or `image/png`. */
  readonly mediaType: string;
  readonly content: Buffer;
  readonly origin: Origin;
}

/** An allocation to submit. */
export interface AllocationToSend extends ToSend {
  readonly account: string;
  readonly amountKobo: bigint;
}

/** A withdrawal to submit. */
export interface WithdrawalToSend extends ToSend {
  readonly account: string;
  readonly amountKobo: bigint;
  readonly destination: EnumName<typeof WithdrawalDestination>;
}

/** A submission that the broker took, with its number among all. */
export interface Taken {
  readonly number: bigint;
  readonly clientId: string;
  /** The note it was sent with. */
  readonly note: Uint8Array;
}

/**
 * The outcome of a send. `never-left` needs proof that the other side did not and will not take it. Anything that is
 * neither an answer nor such a proof is `unclear`.
 */
export type Sent<Answer> =
  | { readonly outcome: 'answered'; readonly answer: Answer }
  | {
      readonly outcome: 'never-left';
      readonly evidence: string;
      /** A sentence for the partner, if there is more to say than that it never left. */
      readonly reason?: string;
    }
  | { readonly outcome: 'unclear'; readonly evidence: string };

/** The answer from the broker's record: for an order, all reports above the given number. */
export type LookedUp<Answer> =
  | {
      readonly found: false;
      /** Business time in milliseconds before which the record is complete; undefined: unknown. */
      readonly completeUntil: number | undefined;
      /** Real time in milliseconds that the broker's clock had reached when it was asked; undefined: not stated. */
      readonly brokerTime: number | undefined;
    }
  | { readonly found: true; readonly answer: Answer };
