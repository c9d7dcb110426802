import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { connectivityState, type ServiceError, status } from '@grpc/grpc-js';
import {
  AccountStatus,
  CancelOutcome,
  type EstimateOrderResponse,
  Orders,
  OrderType,
  type Report,
  ReportKind,
  Side,
  TimeInForce,
} from '../gen/marina/broker/v1/orders_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { createGrpcClient, type GrpcClient } from '../lib/grpc-client.ts';
import { isKoboDecimal } from '../lib/money.ts';
import type { Broker, Cancelled, LookedUp, OrderToSend, Sent } from './port.ts';

export interface GrpcBrokerOptions {
  /** `host:port` of the broker's service. */
  readonly address: string;
  /** How long a submission or a cancel may take. */
  readonly submitTimeoutMs: number;
  /** How long a read may take. */
  readonly readTimeoutMs: number;
}

const channelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
};

/**
 * How long a link that is down may take to come up before a call is said never to have left: longer than the pause between
 * two tries, so that it was tried.
 */
const connectTimeoutMs = 1_500;
/** How many pages of reports a look-up reads, of at most 1,000 each. */
const mostLookUpPages = 100;
/** A stream of reports says something every second; one silent for this long is taken for dead. */
const longestSilenceMs = 5_000;

const sides = { buy: Side.BUY, sell: Side.SELL } as const;
const types = { limit: OrderType.LIMIT, market: OrderType.MARKET } as const;
const timesInForce = {
  day: TimeInForce.DAY,
  gtc: TimeInForce.GTC,
  ioc: TimeInForce.IOC,
  fok: TimeInForce.FOK,
} as const;

/**
 * A broker met over `marina.broker.v1`. What goes to the exchange, what is read and the stream of reports each have a
 * connection of their own, so that neither a hanging read nor a flood of reports stands in an order's way.
 */
export class GrpcBroker implements Broker {
  readonly #orders: Connection;
  readonly #reads: Connection;

  constructor(private readonly options: GrpcBrokerOptions) {
    this.#orders = new Connection(options.address);
    this.#reads = new Connection(options.address);
  }

  get connected(): boolean {
    return this.#orders.client.grpcClient.getChannel().getConnectivityState(true) === connectivityState.READY;
  }

  async honoursNotAfter(): Promise<boolean> {
    const answer = await this.#reads.use((reads) =>
      reads.getCapabilities({}, { timeoutMs: this.options.readTimeoutMs }),
    );
    return answer.honoursNotAfter;
  }

  async tradingContext(account: string, symbol: string) {
    const context = await this.#read((reads, timeoutMs) => reads.getTradingContext({ account, symbol }, { timeoutMs }));
    const { instrument } = context;
    const makesSense =
      context.accountStatus !== AccountStatus.UNSPECIFIED &&
      AccountStatus[context.accountStatus] !== undefined &&
      (instrument === undefined || (instrument.symbol === symbol && isPrice(instrument.upperPriceKobo)));
    if (!makesSense) throw new ApiError('exchange_error');
    return context;
  }

  async estimateOrder(order: Omit<OrderToSend, 'id' | 'timeInForce'>): Promise<EstimateOrderResponse> {
    const request = {
      account: order.account,
      symbol: order.symbol,
      side: sides[order.side],
      quantity: order.quantity,
      type: types[order.type],
      priceKobo: order.priceKobo ?? undefined,
    };
    const estimate = await this.#read((reads, timeoutMs) => reads.estimateOrder(request, { timeoutMs }));
    if (!isEstimate(estimate, order.quantity)) throw new ApiError('exchange_error');
    return estimate;
  }

  async submitOrder(order: OrderToSend, notAfterMs: number): Promise<Sent> {
    const unreachable = await this.#waitForLink();
    if (unreachable !== undefined) return { outcome: 'never-left', evidence: unreachable };
    const timeoutMs = Math.min(this.options.submitTimeoutMs, notAfterMs - Date.now());
    if (timeoutMs <= 0) return { outcome: 'never-left', evidence: 'its time had run out before it was sent' };
    try {
      const request = {
        clientOrderId: order.id,
        account: order.account,
        symbol: order.symbol,
        side: sides[order.side],
        quantity: order.quantity,
        type: types[order.type],
        timeInForce: timesInForce[order.timeInForce],
        priceKobo: order.priceKobo ?? undefined,
        notAfter: timestampFromMs(notAfterMs),
      };
      const { report } = await this.#orders.use((orders) => orders.submitOrder(request, { timeoutMs }));
      const answers = report?.kind === ReportKind.ACCEPTED || report?.kind === ReportKind.REJECTED;
      if (!answers || !isReport(report, order.id)) {
        return { outcome: 'unclear', evidence: 'the answer made no sense' };
      }
      return { outcome: 'answered', report };
    } catch (error) {
      // The one status that says the order was not and will not be taken: its not_after had passed.
      if (codeOf(error) === status.FAILED_PRECONDITION) {
        return { outcome: 'never-left', evidence: 'the exchange refused it as too late' };
      }
      return { outcome: 'unclear', evidence: evidenceOf(error) };
    }
  }

  async cancelOrder(orderId: string): Promise<Cancelled> {
    try {
      const { outcome, report } = await this.#orders.use((orders) =>
        orders.cancelOrder({ clientOrderId: orderId }, { timeoutMs: this.options.submitTimeoutMs }),
      );
      if (outcome === CancelOutcome.TOO_LATE) return { outcome: 'too-late' };
      if (outcome === CancelOutcome.CANCELLED && report?.kind === ReportKind.CANCELLED && isReport(report, orderId)) {
        return { outcome: 'cancelled', report };
      }
      return { outcome: 'unclear', evidence: 'the answer made no sense' };
    } catch (error) {
      return { outcome: 'unclear', evidence: evidenceOf(error) };
    }
  }

  async lookUpOrder(orderId: string, afterNumber: bigint): Promise<LookedUp> {
    const reports: Report[] = [];
    let after = afterNumber;
    for (let page = 0; page < mostLookUpPages; page += 1) {
      const request = { clientOrderId: orderId, afterNumber: after };
      const answer = await this.#reads.use((reads) =>
        reads.lookUpOrder(request, { timeoutMs: this.options.readTimeoutMs }),
      );
      const inOrder = answer.reports.every((report, index) => {
        const previous = answer.reports[index - 1]?.number ?? after;
        return isReport(report, orderId) && report.number > previous;
      });
      if (!inOrder || (!answer.found && answer.reports.length > 0)) throw new ApiError('exchange_error');
      if (!answer.found) {
        const { completeUntil } = answer;
        return { found: false, completeUntil: completeUntil && timestampMs(completeUntil) };
      }
      reports.push(...answer.reports);
      const last = answer.reports.at(-1);
      if (!answer.hasMore || last === undefined) return { found: true, reports };
      after = last.number;
    }
    throw new ApiError('exchange_error'); // No order has so many trades.
  }

  async *streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]> {
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), longestSilenceMs);
    // A stream that broke may have left a connection that is dead and does not show it.
    const client = createGrpcClient(Orders, this.options.address, channelOptions);
    try {
      const stopping = AbortSignal.any([signal, silence.signal]);
      let last = afterNumber;
      for await (const { reports, lastNumber } of client.streamReports({ afterNumber }, { signal: stopping })) {
        timer.refresh();
        for (const { number } of reports) if (number > last) last = number;
        yield reports;
        if (lastNumber > last) throw new Error('the stream left out its last reports');
        timer.refresh(); // The time the taker needed is not the broker's silence.
      }
      throw new Error('the stream of reports ended');
    } finally {
      clearTimeout(timer);
      client.close();
    }
  }

  close(): void {
    this.#orders.close();
    this.#reads.close();
  }

  /** A read that fails changed nothing, whatever the reason. */
  async #read<T>(call: (reads: GrpcClient<typeof Orders>, timeoutMs: number) => Promise<T>): Promise<T> {
    try {
      return await this.#reads.use((reads) => call(reads, this.options.readTimeoutMs));
    } catch (error) {
      if (codeOf(error) === status.NOT_FOUND) throw new ApiError('unknown_symbol');
      const makesNoSense = codeOf(error) === status.INTERNAL || codeOf(error) === status.UNIMPLEMENTED;
      throw new ApiError(makesNoSense ? 'exchange_error' : 'exchange_unavailable', { cause: error });
    }
  }

  /** Waits until the link is up; otherwise says why a call would never leave, because there is nothing to leave by. */
  #waitForLink(): Promise<string | undefined> {
    if (this.connected) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#orders.client.grpcClient.waitForReady(Date.now() + connectTimeoutMs, (error) =>
        resolve(error === undefined || error === null ? undefined : 'there was no connection to the exchange'),
      );
    });
  }
}

/**
 * A connection that is replaced once a call over it got no answer in time: it may be dead and not show it, and what follows
 * is better off with a new one. Calls that are under way over the old one go on to their end.
 */
class Connection {
  client: GrpcClient<typeof Orders>;

  constructor(private readonly address: string) {
    this.client = createGrpcClient(Orders, address, channelOptions);
  }

  async use<T>(call: (client: GrpcClient<typeof Orders>) => Promise<T>): Promise<T> {
    const used = this.client;
    try {
      return await call(used);
    } catch (error) {
      if (codeOf(error) === status.DEADLINE_EXCEEDED && used === this.client) {
        this.client = createGrpcClient(Orders, this.address, channelOptions);
        used.close();
      }
      throw error;
    }
  }

  close(): void {
    this.client.close();
  }
}

/** Whether a report is about the order and has what its kind needs. */
export function isReport(report: Report, orderId: string = report.clientOrderId): boolean {
  if (report.clientOrderId !== orderId || report.number <= 0n || report.at === undefined) return false;
  if (report.exchangeOrderId.length > 64) return false;
  if (report.kind === ReportKind.TRADE) return report.quantity > 0n && isPrice(report.priceKobo);
  return report.kind !== ReportKind.UNSPECIFIED && ReportKind[report.kind] !== undefined;
}

function isEstimate(estimate: EstimateOrderResponse, quantity: bigint): boolean {
  const decimals = [
    estimate.commissionKoboDecimal,
    estimate.statutoryFeesKoboDecimal,
    estimate.otherFeesKoboDecimal,
    estimate.totalKoboDecimal,
    ...estimate.fees.map((fee) => fee.amountKoboDecimal),
  ];
  return (
    isPrice(estimate.priceKobo) &&
    estimate.amountKobo === quantity * estimate.priceKobo &&
    decimals.every(isKoboDecimal)
  );
}

/** Prices are bounded so that quantity times price stays within what the database holds exactly. */
function isPrice(kobo: bigint): boolean {
  return kobo > 0n && kobo <= 10_000_000_000n;
}

function codeOf(error: unknown): status | undefined {
  return (error as Partial<ServiceError>).code;
}

/** What a failed call proves in a word: its status, never the broker's own text. */
function evidenceOf(error: unknown): string {
  const code = codeOf(error);
  return code === undefined
    ? 'no answer'
    : `no answer: ${(status[code] ?? 'unknown').toLowerCase().replaceAll('_', ' ')}`;
}
