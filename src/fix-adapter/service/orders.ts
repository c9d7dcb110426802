import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ServiceError, status } from '@grpc/grpc-js';
import {
  CancelOutcome,
  type Orders,
  RejectReason,
  ReportKind,
  type ReportSchema,
  type SubmitOrderRequest,
} from '../../gen/marina/broker/v1/orders_pb.ts';
import type { GrpcClient } from '../../kit/grpc-client.ts';
import { ReferencePrices } from '../orders/reference-prices.ts';
import type { Trading } from '../orders/trading.ts';
import type { FixStore } from '../store/store.ts';
import type { FixReport } from '../store/table.ts';
import { type BrokerHandlers, type CallContext, RpcError } from './rpc.ts';

/** How long a market order waits at most for the price of its symbol. */
const longestPriceMs = 1_000;

const kinds = {
  accepted: ReportKind.ACCEPTED,
  rejected: ReportKind.REJECTED,
  trade: ReportKind.TRADE,
  cancelled: ReportKind.CANCELLED,
  expired: ReportKind.EXPIRED,
} as const;

/** The broker's orders: those of the exchange over FIX; what FIX does not have, from the back office. */
export function ordersService(parts: {
  readonly trading: Trading;
  readonly store: FixStore;
  readonly backOffice: GrpcClient<typeof Orders>;
  readonly now: () => number;
}): BrokerHandlers<typeof Orders> {
  const { trading, store, backOffice, now } = parts;
  const prices = new ReferencePrices();
  /** The price of a market order's symbol from the back office, after a start or a take-over; null if it does not answer soon. */
  const referenceOf = async (order: SubmitOrderRequest, deadlineMs: number): Promise<bigint | null> => {
    if (order.priceKobo !== undefined) return null;
    const timeoutMs = Math.max(1, Math.min(longestPriceMs, deadlineMs - now()));
    const { account, symbol } = order;
    const context = await backOffice.getTradingContext({ account, symbol }, { timeoutMs }).catch(() => undefined);
    prices.note(symbol, context?.instrument?.upperPriceKobo ?? 0n);
    return prices.of(symbol);
  };
  const onward = ({ call, deadlineMs }: CallContext) => ({
    timeoutMs: Math.max(1, deadlineMs - now()),
    metadata: call.metadata,
  });
  return {
    // Ours is checked at the last moment before an order is written. The answer holds for the back office's calls too.
    getCapabilities: async (_, context) => {
      const capabilities = await passed(backOffice.getCapabilities({}, onward(context)));
      const { honoursNotAfter, accountTransactions, accountStatus, withdrawalDestinations } = capabilities;
      return { honoursNotAfter, accountTransactions, accountStatus, withdrawalDestinations };
    },
    getTradingContext: async (request, context) => {
      const answer = await passed(backOffice.getTradingContext(request, onward(context)));
      prices.note(request.symbol, answer.instrument?.upperPriceKobo ?? 0n);
      return answer;
    },
    estimateOrder: (request, context) => passed(backOffice.estimateOrder(request, onward(context))),
    submitOrder: async (request, { deadlineMs }) => {
      const referenceKobo = prices.of(request.symbol) ?? (await referenceOf(request, deadlineMs));
      return { report: reportMessage(await trading.submit(request, deadlineMs, referenceKobo)) };
    },
    lookUpOrder: async ({ clientOrderId, afterNumber }) => {
      if (afterNumber < 0n) throw new RpcError(status.INVALID_ARGUMENT, 'after_number must be 0 or more');
      if ((await trading.settle(clientOrderId)) === 'absent') return { found: false };
      const { reports, hasMore } = await store.reportsOf(clientOrderId, afterNumber);
      return { found: true, reports: reports.map(reportMessage), hasMore };
    },
    cancelOrder: async ({ clientOrderId }, { deadlineMs }) => {
      const report = await trading.cancel(clientOrderId, deadlineMs);
      if (report === undefined) return { outcome: CancelOutcome.TOO_LATE };
      return { outcome: CancelOutcome.CANCELLED, report: reportMessage(report) };
    },
  };
}

/** A report as the broker's protocol has it. */
export function reportMessage(report: FixReport): MessageInitShape<typeof ReportSchema> {
  const { number, orderId, exchangeOrderId, kind, at, quantity, priceKobo, rejectReason } = report;
  return {
    number,
    clientOrderId: orderId,
    exchangeOrderId,
    kind: kinds[kind],
    ...(at === null ? {} : { at: timestampFromMs(at) }),
    quantity: quantity ?? 0n,
    priceKobo: priceKobo ?? 0n,
    rejectReason: rejectReason === null ? RejectReason.UNSPECIFIED : reasonOf(rejectReason),
  };
}

function reasonOf(name: string): RejectReason {
  return RejectReason[name.toUpperCase() as keyof typeof RejectReason] ?? RejectReason.REJECTED_BY_EXCHANGE;
}

/** The back office's answer, or its status. */
async function passed<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const { code, details } = error as ServiceError;
    throw new RpcError(code ?? status.UNAVAILABLE, details ?? 'the back office did not answer');
  }
}
