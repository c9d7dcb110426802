import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Applications, DocumentOutcome, DocumentType } from '../gen/marina/broker/v1/applications_pb.ts';
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
import { createGrpcClient } from '../lib/grpc-client.ts';
import { isKoboDecimal } from '../lib/money.ts';
import type { Origin } from '../lib/origin.ts';
import { UpstreamCalls } from './calls.ts';
import type { BrokerClock } from './clock.ts';
import {
  type CallAbout,
  Connection,
  channelOptions,
  codeOf,
  evidenceOf,
  type GrpcBrokerOptions,
} from './connection.ts';
import { notFound } from './not-found.ts';
import type { Broker, Cancelled, DocumentToSend, LookedUp, Noted, OrderToSend, Sent } from './port.ts';
import { watchReports } from './report-stream.ts';

/** How many pages of reports a look-up reads, of at most 1,000 each. */
const mostLookUpPages = 100;

const sides = { buy: Side.BUY, sell: Side.SELL } as const;
const types = { limit: OrderType.LIMIT, market: OrderType.MARKET } as const;
const timesInForce = {
  day: TimeInForce.DAY,
  gtc: TimeInForce.GTC,
  ioc: TimeInForce.IOC,
  fok: TimeInForce.FOK,
} as const;

export const documentTypes = {
  photo: DocumentType.PHOTO,
  government_id: DocumentType.GOVERNMENT_ID,
  utility_bill: DocumentType.UTILITY_BILL,
  signature: DocumentType.SIGNATURE,
} as const;
const documentOutcomes: ReadonlyMap<DocumentOutcome, 'delivered' | 'refused'> = new Map([
  [DocumentOutcome.DELIVERED, 'delivered'],
  [DocumentOutcome.REFUSED, 'refused'],
]);

/**
 * A broker met over `marina.broker.v1`. What goes to the exchange, what is read and the stream of reports each have a
 * connection of their own, so that neither a hanging read nor a flood of reports stands in an order's way.
 */
export class GrpcBroker implements Broker {
  readonly #orders: Connection<typeof Orders>;
  readonly #reads: Connection<typeof Orders>;
  readonly #documents: Connection<typeof Applications>;
  readonly #clock: BrokerClock;

  constructor(private readonly options: GrpcBrokerOptions) {
    const { address, calls = new UpstreamCalls() } = options;
    this.#orders = new Connection(Orders, address, 'exchange', calls);
    this.#reads = new Connection(Orders, address, 'exchange', calls);
    this.#documents = new Connection(Applications, address, 'broker', calls);
    this.#clock = calls.clock;
  }

  get connected(): boolean {
    return this.#orders.connected;
  }

  async honoursNotAfter(): Promise<boolean> {
    const answer = await this.#reads.call('getCapabilities', {}, { timeoutMs: this.options.readTimeoutMs });
    return answer.honoursNotAfter;
  }

  async tradingContext(account: string, symbol: string, origin: Origin) {
    const context = await this.#read(origin, (about) =>
      this.#reads.call('getTradingContext', { account, symbol }, about),
    );
    const { instrument } = context;
    const makesSense =
      context.accountStatus !== AccountStatus.UNSPECIFIED &&
      AccountStatus[context.accountStatus] !== undefined &&
      (instrument === undefined || (instrument.symbol === symbol && isPrice(instrument.upperPriceKobo)));
    if (!makesSense) throw new ApiError('exchange_error');
    return context;
  }

  async estimateOrder(
    order: Omit<OrderToSend, 'id' | 'timeInForce' | 'origin'>,
    origin: Origin,
  ): Promise<EstimateOrderResponse> {
    const request = {
      account: order.account,
      symbol: order.symbol,
      side: sides[order.side],
      quantity: order.quantity,
      type: types[order.type],
      priceKobo: order.priceKobo ?? undefined,
    };
    const estimate = await this.#read(origin, (about) => this.#reads.call('estimateOrder', request, about));
    if (!isEstimate(estimate, order.quantity)) throw new ApiError('exchange_error');
    return estimate;
  }

  submitOrder(order: OrderToSend & Noted, notAfterMs: number): Promise<Sent<Report>> {
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
      note: order.note,
    };
    const about = { notAfterMs, longestMs: this.options.submitTimeoutMs, origin: order.origin, objectId: order.id };
    return this.#orders.send('submitOrder', request, about, ({ report }) => {
      const answers = report?.kind === ReportKind.ACCEPTED || report?.kind === ReportKind.REJECTED;
      return answers && isReport(report, order.id) ? report : undefined;
    });
  }

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

  async lookUpOrder(orderId: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly Report[]>> {
    const reports: Report[] = [];
    let after = afterNumber;
    for (let page = 0; page < mostLookUpPages; page += 1) {
      const request = { clientOrderId: orderId, afterNumber: after };
      const about = { timeoutMs: this.options.readTimeoutMs, origin, objectId: orderId };
      const askedAt = performance.now();
      const answer = await this.#reads.call('lookUpOrder', request, about);
      const inOrder = answer.reports.every((report, index) => {
        const previous = answer.reports[index - 1]?.number ?? after;
        return isReport(report, orderId) && report.number > previous;
      });
      if (!inOrder || (!answer.found && answer.reports.length > 0)) throw new ApiError('exchange_error');
      if (!answer.found) {
        return notFound(answer, askedAt);
      }
      reports.push(...answer.reports);
      const last = answer.reports.at(-1);
      if (!answer.hasMore || last === undefined) return { found: true, answer: reports };
      after = last.number;
    }
    throw new ApiError('exchange_error'); // No order has so many trades.
  }

  async *streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]> {
    // A stream that broke may have left a connection that is dead and does not show it.
    const client = createGrpcClient(Orders, this.options.address, channelOptions);
    try {
      yield* watchReports(
        (stopping) => client.streamReports({ afterNumber }, { signal: stopping }),
        afterNumber,
        signal,
        this.#clock,
      );
    } finally {
      client.close();
    }
  }

  sendDocument(document: DocumentToSend, notAfterMs: number): Promise<Sent<'delivered' | 'refused'>> {
    const { applicationId, type, mediaType, content, origin } = document;
    const request = {
      clientApplicationId: applicationId,
      type: documentTypes[type],
      contentType: mediaType,
      content,
      notAfter: timestampFromMs(notAfterMs),
    };
    const about = { notAfterMs, longestMs: this.options.submitTimeoutMs, origin, objectId: applicationId };
    // Of a document no status proves anything, the one neither that says too late.
    const provesNothing = () => false;
    return this.#documents.send(
      'sendDocument',
      request,
      about,
      ({ outcome }) => documentOutcomes.get(outcome),
      provesNothing,
    );
  }

  close(): void {
    this.#orders.close();
    this.#reads.close();
    this.#documents.close();
  }

  /** A read that fails changed nothing, whatever the reason. */
  async #read<T>(origin: Origin, call: (about: CallAbout) => Promise<T>): Promise<T> {
    try {
      return await call({ timeoutMs: this.options.readTimeoutMs, origin });
    } catch (error) {
      if (codeOf(error) === status.NOT_FOUND) throw new ApiError('unknown_symbol');
      const makesNoSense = codeOf(error) === status.INTERNAL || codeOf(error) === status.UNIMPLEMENTED;
      throw new ApiError(makesNoSense ? 'exchange_error' : 'exchange_unavailable', { cause: error });
    }
  }
}

/** Whether a report is about the order and has what its kind needs. A kind of a later version is left to the order's rules. */
export function isReport(report: Report, orderId: string = report.clientOrderId): boolean {
  if (report.clientOrderId !== orderId || report.number <= 0n || report.at === undefined) return false;
  if (report.exchangeOrderId.length > 64) return false;
  if (report.kind === ReportKind.TRADE) return report.quantity > 0n && isPrice(report.priceKobo);
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

/** Prices are bounded so that quantity times price stays within what the database holds exactly. */
function isPrice(kobo: bigint): boolean {
  return kobo > 0n && kobo <= 10_000_000_000n;
}
