import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AccountStatus,
  CancelOutcome,
  type EstimateOrderResponse,
  Orders,
  type OrderType,
  OrderTypeSchema,
  type Report,
  ReportKind,
  type Side,
  SideSchema,
  type TimeInForce,
  TimeInForceSchema,
} from '../../../gen/marina/broker/v1/orders_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import { isKoboDecimal } from '../../../kit/money.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import type { BrokerOrders, Cancelled, LookedUp, OrderToEstimate } from './broker.ts';
import {
  BrokerConnection,
  type BrokerOptions,
  type CallAbout,
  type Closable,
  closeAll,
  evidenceOf,
} from './grpc-connection.ts';
import { isPrice, isReportNumber, isUpstreamId, reportsOf } from './rules.ts';

/** How many pages of reports a query reads, of at most 1,000 each. */
const maxLookUpPages = 100;

const sides = enumWords<typeof Side>(SideSchema);
const types = enumWords<typeof OrderType>(OrderTypeSchema);
const timesInForce = enumWords<typeof TimeInForce>(TimeInForceSchema);

/** Orders over gRPC. Submissions, reads and the stream have a connection each. */
export function grpcOrders(options: BrokerOptions): BrokerOrders & Closable {
  const orders = new BrokerConnection(Orders, 'exchange', options);
  const reads = new BrokerConnection(Orders, 'exchange', options);
  return {
    get connected() {
      return orders.connected;
    },
    honoursNotAfter: async () => (await reads.call('getCapabilities', {}, {})).honoursNotAfter,
    capabilities: (time) => reads.read('getCapabilities', {}, time, 'exchange_error', () => true),
    tradingContext: (account, symbol, origin) =>
      reads.read('getTradingContext', { account, symbol }, { origin }, 'unknown_symbol', (context) => {
        const { accountStatus, instrument } = context;
        return (
          accountStatus !== AccountStatus.UNSPECIFIED &&
          AccountStatus[accountStatus] !== undefined &&
          (instrument === undefined || (instrument.symbol === symbol && isPrice(instrument.upperPriceKobo)))
        );
      }),
    estimateOrder: (order, origin) =>
      reads.read('estimateOrder', toRequest(order), { origin }, 'unknown_symbol', (estimate) =>
        isEstimate(estimate, order.quantity),
      ),
    submitOrder: (order, notAfterMs) => {
      const { id, origin, note } = order;
      const request = {
        clientOrderId: id,
        timeInForce: timesInForce.value(order.timeInForce),
        notAfter: timestampFromMs(notAfterMs),
        note,
        partner: origin.partnerId,
        ...toRequest(order),
      };
      return orders.send('submitOrder', request, notAfterMs, { origin, objectId: id }, ({ report }) => {
        const answers = report?.kind === ReportKind.ACCEPTED || report?.kind === ReportKind.REJECTED;
        return answers && isReport(report, id) ? report : undefined;
      });
    },
    cancelOrder: (orderId, notAfterMs, origin) => {
      const timeoutMs = Math.min(options.submitTimeoutMs, notAfterMs - Date.now());
      return cancelOrder(orders, orderId, { timeoutMs, origin, objectId: orderId });
    },
    lookUpOrder: (orderId, afterNumber, origin) => lookUpOrder(reads, orderId, afterNumber, origin),
    streamReports: (afterNumber, signal) =>
      reads.follow(
        (client, stopping) => client.streamReports({ afterNumber }, { signal: stopping }),
        afterNumber,
        signal,
      ),
    close: () => closeAll([orders, reads]),
  };
}

async function cancelOrder(
  orders: BrokerConnection<typeof Orders>,
  orderId: string,
  about: CallAbout & { readonly timeoutMs: number },
): Promise<Cancelled> {
  if (about.timeoutMs <= 0) return { outcome: 'unclear', evidence: 'its time had run out before it was sent' };
  try {
    const { outcome, report } = await orders.call('cancelOrder', { clientOrderId: orderId }, about);
    if (outcome === CancelOutcome.TOO_LATE) return { outcome: 'too-late' };
    if (outcome === CancelOutcome.CANCELLED && report?.kind === ReportKind.CANCELLED && isReport(report, orderId)) {
      return { outcome: 'cancelled', report };
    }
    return { outcome: 'unclear', evidence: 'the answer made no sense' };
  } catch (error) {
    return { outcome: 'unclear', evidence: evidenceOf(error) };
  }
}

async function lookUpOrder(
  reads: BrokerConnection<typeof Orders>,
  orderId: string,
  afterNumber: bigint,
  origin: Origin,
): Promise<LookedUp<readonly Report[]>> {
  const reports: Report[] = [];
  let after = afterNumber;
  for (let page = 0; page < maxLookUpPages; page += 1) {
    const request = { clientOrderId: orderId, afterNumber: after };
    const found = await reads.lookUp(
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

function toRequest(order: OrderToEstimate) {
  const { account, symbol, side, quantity, type, priceKobo } = order;
  return {
    account,
    symbol,
    side: sides.value(side),
    quantity,
    type: types.value(type),
    priceKobo: priceKobo ?? undefined,
  };
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
