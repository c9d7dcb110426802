import { randomBytes } from 'node:crypto';
import { type DescMethod, fromJson, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Metadata, status } from '@grpc/grpc-js';
import { Accounts } from '../gen/marina/broker/v1/accounts_pb.ts';
import {
  Allocations,
  type SubmitAllocationRequestSchema,
  type SubmitAllocationResponse,
} from '../gen/marina/broker/v1/allocations_pb.ts';
import {
  type ApplicationFields,
  ApplicationFieldsSchema,
  type ApplicationReport,
  Applications,
  type SubmitApplicationRequestSchema,
  type SubmitApplicationResponse,
} from '../gen/marina/broker/v1/applications_pb.ts';
import {
  type GetTradingContextResponse,
  type Instrument,
  type LookUpOrderResponse,
  Orders,
  OrderType,
  type Report,
  ReportSchema,
  Side,
  type SubmitOrderRequestSchema,
  type SubmitOrderResponse,
  TimeInForce,
} from '../gen/marina/broker/v1/orders_pb.ts';
import { Reference } from '../gen/marina/broker/v1/reference_pb.ts';
import { Statements } from '../gen/marina/broker/v1/statements_pb.ts';
import { Submissions } from '../gen/marina/broker/v1/submissions_pb.ts';
import {
  type SubmitWithdrawalRequestSchema,
  type SubmitWithdrawalResponse,
  type WithdrawalReport,
  Withdrawals,
} from '../gen/marina/broker/v1/withdrawals_pb.ts';
import { createGrpcClient, type GrpcClient } from '../kit/grpc-client.ts';
import type { TypedService } from '../kit/grpc-service.ts';
import { channelTls } from '../kit/link.ts';
import { pause } from '../kit/worker.ts';
import { NotRun } from './breach.ts';
import { type CallOutcome, exchange, type RecordedCall, shown } from './exchange.ts';
import { Follower, type Open } from './follower.ts';
import type { Settings } from './settings.ts';

/** The services of `marina.broker.v1`. */
export const services = {
  ...{ Orders, Applications, Allocations, Withdrawals },
  ...{ Accounts, Reference, Statements, Submissions },
} as const;

type Services = typeof services;
export type ServiceName = keyof Services;
type UnaryName<S extends TypedService> = {
  [Name in keyof S['method']]: S['method'][Name]['methodKind'] extends 'unary' ? Name & string : never;
}[keyof S['method']];
type Clients = { -readonly [Name in ServiceName]: GrpcClient<Services[Name]> };

type OrderRequest = MessageInitShape<typeof SubmitOrderRequestSchema>;

/** An order of this run that the adapter was sent. */
export interface SentOrder {
  readonly id: string;
  readonly request: OrderRequest;
  readonly outcome: CallOutcome<SubmitOrderResponse>;
}

/** An order that the adapter has. */
export interface PlacedOrder extends SentOrder {
  /** The report that accepted or rejected it. */
  readonly report: Report;
}

/** An allocation of this run that the adapter was sent. */
export interface SentAllocation {
  readonly id: string;
  readonly request: MessageInitShape<typeof SubmitAllocationRequestSchema>;
  readonly outcome: CallOutcome<SubmitAllocationResponse>;
}

/** An application of this run that the adapter was sent. */
export interface SentApplication {
  readonly id: string;
  readonly request: MessageInitShape<typeof SubmitApplicationRequestSchema>;
  readonly outcome: CallOutcome<SubmitApplicationResponse>;
}

/** A withdrawal of this run that the adapter was sent. */
export interface SentWithdrawal {
  readonly id: string;
  readonly request: MessageInitShape<typeof SubmitWithdrawalRequestSchema>;
  readonly outcome: CallOutcome<SubmitWithdrawalResponse>;
}

interface MadeCall {
  readonly outcome: CallOutcome<unknown>;
  readonly bounded: number;
  readonly isDisturbed: boolean;
}

/** The number that no adapter has reached: an adapter that states its last number shows it below this one. */
export const beyond = 2n ** 52n;

const submissionCalls: ReadonlySet<string> = new Set([
  'submitOrder',
  'cancelOrder',
  'submitApplication',
  'submitAllocation',
  'submitWithdrawal',
  'sendDocument',
]);
const idLetters = 'abcdefghijklmnopqrstuvwxyz234567';
const pollMs = 20;

/** Everything that checks share: the clients, the orders of this run, and the stream of reports, followed all the time. */
export class CheckSession {
  /** Every send of an order, in order. */
  readonly sends: SentOrder[] = [];
  /** Every send of an allocation, in order. */
  readonly allocations: SentAllocation[] = [];
  /** Every send of an application, in order. */
  readonly applications: SentApplication[] = [];
  /** Every send of a withdrawal, in order. */
  readonly withdrawals: SentWithdrawal[] = [];
  /** Every call of the whole run. */
  readonly calls: MadeCall[] = [];
  /** A hook is at work: the adapter, or its line to the exchange, may be away. */
  isDisturbed = false;
  /** The results of `once`, by name. */
  readonly #memos = new Map<string, Promise<unknown>>();
  #clients: Clients | undefined;
  #follower: Follower<Report> | undefined;
  #applications: Follower<ApplicationReport> | undefined;
  #withdrawals: Follower<WithdrawalReport> | undefined;

  constructor(readonly settings: Settings) {}

  /** The stream of reports about orders, from before the first send of this run. */
  get follower(): Follower<Report> {
    if (this.#follower === undefined) throw new NotRun('the stream of reports is not followed');
    return this.#follower;
  }

  /** The same of applications. */
  get applicationFollower(): Follower<ApplicationReport> {
    if (this.#applications === undefined) throw new NotRun('the stream of reports about applications is not followed');
    return this.#applications;
  }

  /** The same of withdrawals. */
  get withdrawalFollower(): Follower<WithdrawalReport> {
    if (this.#withdrawals === undefined) throw new NotRun('the stream of reports about withdrawals is not followed');
    return this.#withdrawals;
  }

  /** Makes one call. The outcome has its status; this throws nothing. */
  async call<Name extends ServiceName, Method extends UnaryName<Services[Name]>>(
    service: Name,
    method: Method,
    request: MessageInitShape<Extract<Services[Name]['method'][Method], DescMethod>['input']>,
    timeoutMs?: number,
  ): Promise<CallOutcome<MessageShape<Extract<Services[Name]['method'][Method], DescMethod>['output']>>> {
    const { submitMs, readMs } = this.settings.waits;
    const bounded = timeoutMs ?? (submissionCalls.has(method) ? submitMs : readMs);
    // The compiler cannot see that a client has a call for each unary method.
    const descriptor = (services[service].method as Record<string, DescMethod>)[method] as DescMethod;
    const call = (this.clients[service] as unknown as Record<string, never>)[method] as never;
    const wasDisturbed = this.isDisturbed;
    const outcome = await exchange(descriptor, call, request as never, { timeoutMs: bounded, metadata: metadata() });
    this.calls.push({ outcome, bounded, isDisturbed: wasDisturbed || this.isDisturbed });
    return outcome as never;
  }

  /** A stream of reports about orders, over a connection of its own. */
  readonly openReports: Open<Report> = (afterNumber, signal) =>
    this.#stream(Orders, signal, (client, stopping) => client.streamReports({ afterNumber }, { signal: stopping }));

  readonly openApplicationReports: Open<ApplicationReport> = (afterNumber, signal) =>
    this.#stream(Applications, signal, (client, stopping) =>
      client.streamApplicationReports({ afterNumber }, { signal: stopping }),
    );

  readonly openWithdrawalReports: Open<WithdrawalReport> = (afterNumber, signal) =>
    this.#stream(Withdrawals, signal, (client, stopping) =>
      client.streamWithdrawalReports({ afterNumber }, { signal: stopping }),
    );

  get clients(): Clients {
    this.#clients ??= Object.fromEntries(
      Object.entries(services).map(([name, service]) => [name, this.#connect(service)]),
    ) as unknown as Clients;
    return this.#clients;
  }

  /** Another client of the orders service, over a connection of its own. */
  anotherOrdersClient(): GrpcClient<typeof Orders> {
    return this.#connect(Orders);
  }

  /** Forgets the connections: the adapter was away. */
  reconnect(): void {
    for (const client of Object.values(this.#clients ?? {})) client.close();
    this.#clients = undefined;
  }

  follow(from: bigint): void {
    this.#follower ??= new Follower('Orders.StreamReports', this.openReports, from);
  }

  followApplications(from: bigint): void {
    this.#applications ??= new Follower('Applications.StreamApplicationReports', this.openApplicationReports, from);
  }

  followWithdrawals(from: bigint): void {
    this.#withdrawals ??= new Follower('Withdrawals.StreamWithdrawalReports', this.openWithdrawalReports, from);
  }

  /** Does something once for all checks that need it. If the work throws, it throws for each of them. */
  once<T>(name: string, work: () => Promise<T>): Promise<T> {
    const begun = (this.#memos.get(name) ?? work()) as Promise<T>;
    this.#memos.set(name, begun);
    return begun;
  }

  /** An id that no gateway makes, of the same length and letters. */
  newId(): string {
    return `chk_${[...randomBytes(20)].map((byte) => idLetters[byte % 32]).join('')}`;
  }

  /** Returns the adapter's data of the account and a symbol. Throws `NotRun` without an instrument. */
  instrument(symbol: string): Promise<Instrument> {
    return this.once(`instrument ${symbol}`, async () => {
      const { answer, exchange } = await this.call('Orders', 'getTradingContext', { account: this.account, symbol });
      const { instrument } = (answer ?? {}) as Partial<GetTradingContextResponse>;
      if (instrument === undefined) throw new NotRun(`no instrument ${symbol}: ${exchange.status}`);
      return instrument;
    });
  }

  get account(): string {
    return this.settings.account ?? '';
  }

  /** An order for a named symbol: it rests at the lowest price of the day, and fills at the highest. */
  async newOrder(where: 'rest' | 'fill' | 'reject', fields: OrderRequest = {}): Promise<OrderRequest & { id: string }> {
    const symbol = this.settings[where] ?? '';
    const instrument = await this.instrument(symbol);
    const id = (fields.clientOrderId as string | undefined) ?? this.newId();
    const order = {
      clientOrderId: id,
      account: this.account,
      symbol,
      side: Side.BUY,
      quantity: this.settings.quantity,
      type: OrderType.LIMIT,
      timeInForce: TimeInForce.DAY,
      priceKobo: where === 'rest' ? instrument.lowerPriceKobo : instrument.upperPriceKobo,
      notAfter: this.inTime(),
      note: Buffer.from(`note of ${id}`),
      ...fields,
    };
    return { ...order, id };
  }

  /** A `not_after` that leaves the usual time. */
  inTime(): Timestamp {
    return timestampFromMs(Date.now() + this.settings.waits.submitMs);
  }

  /** The named fields of an application, made different from those before. */
  newFields(): ApplicationFields {
    const digits = String(randomBytes(4).readUInt32BE() % 100_000_000).padStart(8, '0');
    const fields = Object.entries(this.settings.application ?? {});
    return fromJson(
      ApplicationFieldsSchema,
      Object.fromEntries(fields.map(([name, value]) => [name, value.replaceAll('{n}', digits)])),
    );
  }

  /** Sends an order, once. */
  async send(request: OrderRequest & { id: string }, timeoutMs?: number): Promise<SentOrder> {
    const { id, ...order } = request;
    const outcome = await this.call('Orders', 'submitOrder', order, timeoutMs);
    const sent = { id, request: order, outcome };
    this.sends.push(sent);
    return sent;
  }

  /**
   * Sends an order and returns it with its first report, from the answer or, as a gateway would, from the record. Throws
   * `NotRun` if the adapter does not have it.
   */
  async place(where: 'rest' | 'fill' | 'reject', fields: OrderRequest = {}): Promise<PlacedOrder> {
    const sent = await this.send(await this.newOrder(where, fields));
    const report = sent.outcome.answer?.report ?? (await this.#firstReport(sent.id));
    if (report === undefined) {
      const { status, details = '' } = sent.outcome.exchange;
      throw new NotRun(`no order could be placed: ${status} "${details}"`);
    }
    return { ...sent, report };
  }

  async #firstReport(id: string): Promise<Report | undefined> {
    return poll(this.settings.waits.settleMs / 4, async () => (await this.lookUp(id)).answer?.reports[0]);
  }

  lookUp(clientOrderId: string, afterNumber = 0n): Promise<CallOutcome<LookUpOrderResponse>> {
    return this.call('Orders', 'lookUpOrder', { clientOrderId, afterNumber });
  }

  /** Every report about an order above a number that the record has, over all pages. Throws `NotRun` without an answer. */
  async recorded(
    id: string,
    afterNumber = 0n,
  ): Promise<{ reports: Report[]; found: boolean; exchanges: RecordedCall[] }> {
    const reports: Report[] = [];
    const exchanges: RecordedCall[] = [];
    for (let after = afterNumber; exchanges.length < 100; ) {
      const { answer, exchange } = await this.lookUp(id, after);
      exchanges.push(exchange);
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      reports.push(...answer.reports);
      const last = answer.reports.at(-1);
      if (!answer.hasMore || last === undefined) return { reports, found: answer.found, exchanges };
      after = last.number;
    }
    throw new NotRun('the look-up has more than 100 pages');
  }

  /** The reports about an order that the stream brought so far. */
  streamed(id: string): Report[] {
    return this.follower.reports.filter((report) => report.clientOrderId === id);
  }

  /** Waits until the stream brought a report about an order. Returns the first; undefined: none came in time. */
  async streamedReport(id: string, matches: (report: Report) => boolean): Promise<Report | undefined> {
    const find = () => this.streamed(id).find(matches);
    await this.follower.until(() => find() !== undefined, this.settings.waits.settleMs);
    return find();
  }

  /** Waits until the stream has everything that answers of this run have. */
  async settled(): Promise<void> {
    const most = this.sends.reduce((last, { outcome }) => {
      const number = outcome.answer?.report?.number ?? 0n;
      return number > last ? number : last;
    }, 0n);
    await this.follower.until(() => this.follower.last >= most, this.settings.waits.settleMs);
  }

  async close(): Promise<void> {
    await Promise.all([this.#follower?.close(), this.#applications?.close(), this.#withdrawals?.close()]);
    this.reconnect();
  }

  async *#stream<S extends TypedService, T>(
    service: S,
    signal: AbortSignal,
    open: (client: GrpcClient<S>, signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncIterable<T> {
    const client = this.#connect(service);
    try {
      yield* open(client, signal);
    } finally {
      client.close();
    }
  }

  #connect<S extends TypedService>(service: S): GrpcClient<S> {
    const { address, tls } = this.settings;
    const { options, credentials } = channelTls(tls);
    const waits = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1_000 };
    return createGrpcClient(service, address, { ...waits, ...options }, credentials);
  }
}

/** Repeats until there is a value, at most so long. */
export async function poll<T>(boundMs: number, read: () => Promise<T | undefined>): Promise<T | undefined> {
  const deadline = performance.now() + boundMs;
  for (;;) {
    const value = await read();
    if (value !== undefined || performance.now() >= deadline) return value;
    await pause(pollMs, never);
  }
}

const never = new AbortController().signal;

/** The metadata of a gateway's calls, which decides nothing. */
function metadata(): Metadata {
  const given = new Metadata();
  given.set('x-request-id', `check-${randomBytes(6).toString('hex')}`);
  given.set('traceparent', `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`);
  return given;
}

/** A report for a breach. */
export function shownReport(report: Report): unknown {
  return shown(ReportSchema, report);
}

/** Whether a status says that the server does not have the call. */
export function isMissing({ code }: { readonly code: status }): boolean {
  return code === status.UNIMPLEMENTED;
}
