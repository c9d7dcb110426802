import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AccountStatus,
  CancelOutcome,
  type EstimateOrderResponse,
  type GetTradingContextResponse,
  Orders,
  OrderType,
  type Report,
  ReportKind,
  Side,
  TimeInForce,
} from '../../../gen/marina/broker/v1/orders_pb.ts';
import { isKoboDecimal } from '../../../kit/money.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import { BrokerConnection, type BrokerOptions, evidenceOf } from './connection.ts';
import { isReportNumber, isUpstreamId, type LookedUp, type Noted, reportsOf, type Sent } from './port.ts';

/** An order to submit. Names are those of the database and the partners. */
export interface OrderToSend {
  readonly id: string;
  readonly account: string;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly quantity: bigint;
  readonly type: 'limit' | 'market';
  readonly timeInForce: 'day' | 'gtc' | 'ioc' | 'fok';
  readonly priceKobo: bigint | null;
  readonly origin: Origin;
}

export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly report: Report }
  | { readonly outcome: 'too-late' }
  | { readonly outcome: 'unclear'; readonly evidence: string };

/** How many pages of reports a query reads, of at most 1,000 each. */
const maxLookUpPages = 100;

const sides = { buy: Side.BUY, sell: Side.SELL } as const;
const types = { limit: OrderType.LIMIT, market: OrderType.MARKET } as const;
const timesInForce = {
  day: TimeInForce.DAY,
  gtc: TimeInForce.GTC,
  ioc: TimeInForce.IOC,
  fok: TimeInForce.FOK,
} as const;

/** The broker's orders, and the reads before them. Submissions, reads and the stream have a connection each. */
export class Broker {
  readonly #orders: BrokerConnection<typeof Orders>;
  readonly #reads: BrokerConnection<typeof Orders>;

  constructor(private readonly options: BrokerOptions) {
    this.#orders = new BrokerConnection(Orders, 'exchange', options);
    this.#reads = new BrokerConnection(Orders, 'exchange', options);
  }

  /** Whether the broker can be reached, as far as is known. */
  get connected(): boolean {
    return this.#orders.connected;
  }

  /** Whether the broker refuses a submission after its `not_after`. Throws if the broker does not say. */
  async honoursNotAfter(): Promise<boolean> {
    return (await this.#reads.call('getCapabilities', {}, {})).honoursNotAfter;
  }

  /** Throws `exchange_unavailable`, `exchange_error` or `unknown_symbol`. */
  tradingContext(account: string, symbol: string, origin: Origin): Promise<GetTradingContextResponse> {
    const request = { account, symbol };
    return this.#reads.read('getTradingContext', request, { origin }, 'unknown_symbol', (context) => {
      const { accountStatus, instrument } = context;
      return (
        accountStatus !== AccountStatus.UNSPECIFIED &&
        AccountStatus[accountStatus] !== undefined &&
        (instrument === undefined || (instrument.symbol === symbol && isPrice(instrument.upperPriceKobo)))
      );
    });
  }

  /** Throws `exchange_unavailable`, `exchange_error` or `unknown_symbol`. */
  estimateOrder(
    order: Omit<OrderToSend, 'id' | 'timeInForce' | 'origin'>,
    origin: Origin,
  ): Promise<EstimateOrderResponse> {
    return this.#reads.read('estimateOrder', toRequest(order), { origin }, 'unknown_symbol', (estimate) =>
      isEstimate(estimate, order.quantity),
    );
  }

  /** Sends once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  submitOrder(order: OrderToSend & Noted, notAfterMs: number): Promise<Sent<Report>> {
    const { id, origin, note } = order;
    const request = {
      clientOrderId: id,
      timeInForce: timesInForce[order.timeInForce],
      notAfter: timestampFromMs(notAfterMs),
      note,
      partner: origin.partnerId,
      ...toRequest(order),
    };
    return this.#orders.send('submitOrder', request, notAfterMs, { origin, objectId: id }, ({ report }) => {
      const answers = report?.kind === ReportKind.ACCEPTED || report?.kind === ReportKind.REJECTED;
      return answers && isReport(report, id) ? report : undefined;
    });
  }

  /** Sends a cancel once. Does not throw. */
  async cancelOrder(orderId: string, origin: Origin): Promise<Cancelled> {
    try {
      const about = { timeoutMs: this.options.submitTimeoutMs, origin, objectId: orderId };
      const { outcome, report } = await this.#orders.call('cancelOrder', { clientOrderId: orderId }, about);
      if (outcome === CancelOutcome.TOO_LATE) return { outcome: 'too-late' };
      if (outcome === CancelOutcome.CANCELLED && report?.kind === ReportKind.CANCELLED && isReport(report, orderId)) {
        return { outcome: 'cancelled', report };
      }
      return { outcome: 'unclear', evidence: 'the answer made no sense' };
    } catch (error) {
      return { outcome: 'unclear', evidence: evidenceOf(error) };
    }
  }

  /** Throws if the broker gives no answer that makes sense. */
  async lookUpOrder(orderId: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly Report[]>> {
    const reports: Report[] = [];
    let after = afterNumber;
    for (let page = 0; page < maxLookUpPages; page += 1) {
      const request = { clientOrderId: orderId, afterNumber: after };
      const found = await this.#reads.lookUp(
        'lookUpOrder',
        request,
        { origin, objectId: orderId },
        (answer) => reportsOf(answer, after, (report) => isReport(report, orderId)) && answer,
      );
      if (!found.found) return found;
      reports.push(...found.answer.reports);
      const last = found.answer.reports.at(-1);
      if (!found.answer.hasMore || last === undefined) return { found: true, answer: reports };
      after = last.number;
    }
    throw new ApiError('exchange_error'); // No order has so many trades.
  }

  /** Batches of reports above a number, in order. An empty batch is a heartbeat. Throws if the stream breaks. */
  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]> {
    return this.#reads.follow(
      (client, stopping) => client.streamReports({ afterNumber }, { signal: stopping }),
      afterNumber,
      signal,
    );
  }

  close(): void {
    this.#orders.close();
    this.#reads.close();
  }
}

function toRequest(order: Omit<OrderToSend, 'id' | 'timeInForce' | 'origin'>) {
  const { account, symbol, side, quantity, type, priceKobo } = order;
  return { account, symbol, side: sides[side], quantity, type: types[type], priceKobo: priceKobo ?? undefined };
}

/**
 * Whether a report is about the order and has the fields of its kind. A later version's kind passes. Only a trade needs its
 * time: an exchange may say that an order ended without saying when.
 */
function isReport(report: Report, orderId: string): boolean {
  if (report.clientOrderId !== orderId || !isReportNumber(report.number)) return false;
  if (!isUpstreamId(report.exchangeOrderId)) return false;
  if (report.kind === ReportKind.TRADE) {
    return report.at !== undefined && report.quantity > 0n && isPrice(report.priceKobo);
  }
  return report.kind !== ReportKind.UNSPECIFIED;
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

/** Prices are bounded so that quantity times price fits the database exactly. */
function isPrice(kobo: bigint): boolean {
  return kobo > 0n && kobo <= 10_000_000_000n;
}
