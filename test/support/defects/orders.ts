import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  CancelOrderResponseSchema,
  CancelOutcome,
  OrderType,
  type Report,
  ReportKind,
  type SubmitOrderRequest,
  type SubmitOrderResponse,
} from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { type Call, Status } from '../defective-adapter.ts';
import { hiddenId, impatient, inTime, isLate, isRecent, onRepeat, onStatus, type SeededDefect } from './defect.ts';
import { lookUpWithout } from './look-ups.ts';

type Submit = Call<SubmitOrderRequest, SubmitOrderResponse>;

/** Takes an order once more, under an id that nobody else knows. */
async function takenAgain({ request, next }: Submit): Promise<SubmitOrderResponse> {
  const answer = await next({ ...request, clientOrderId: hiddenId(), notAfter: inTime() });
  if (answer.report) answer.report.clientOrderId = request.clientOrderId;
  return answer;
}

/** The ids whose calls are under way. */
function underWay({ adapter }: Pick<Submit, 'adapter'>): Map<string, number> {
  const found = (adapter.kept.get('under way') as Map<string, number> | undefined) ?? new Map<string, number>();
  adapter.kept.set('under way', found);
  return found;
}

/** Does something for each call that comes while another with its id is under way. */
async function atOnce<T>(call: Pick<Submit, 'adapter'>, id: string, work: (others: number) => Promise<T>): Promise<T> {
  const calls = underWay(call);
  const others = calls.get(id) ?? 0;
  calls.set(id, others + 1);
  try {
    return await work(others);
  } finally {
    calls.set(id, (calls.get(id) ?? 1) - 1);
  }
}

/** The defects of an adapter with orders. */
export const submitDefects: readonly SeededDefect[] = [
  {
    adapter: 'takes no order',
    breaks: 'orders-taken',
    also: ['once-after-rejection', 'once-after-refusal'],
    waits: { settleMs: 400 },
    defect: {
      orders: {
        submitOrder: async ({ request, next }) => {
          const isGood = request.symbol === 'SIM-REST' && timestampMs(request.notAfter as Timestamp) > Date.now();
          if (isGood) throw new Status(status.UNAVAILABLE);
          return next();
        },
      },
    },
  },
  {
    adapter: 'answers with an id of the exchange that is too long',
    breaks: 'answer-is-report',
    also: ['look-up-same-report'],
    defect: {
      orders: {
        submitOrder: async ({ next }) => {
          const { $typeName, report, brokerTime } = await next();
          return {
            $typeName,
            report: { ...(report as Report), exchangeOrderId: 'N'.repeat(65) },
            brokerTime,
          } as SubmitOrderResponse;
        },
      },
    },
  },
  {
    adapter: 'answers a rejection with a status',
    breaks: 'rejection-is-report',
    also: ['status-means-not-taken'],
    defect: {
      orders: {
        submitOrder: async ({ next }) => {
          const answer = await next();
          if (answer.report?.kind === ReportKind.REJECTED) throw new Status(status.INVALID_ARGUMENT);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'does not say why an order was rejected',
    breaks: 'rejection-has-reason',
    defect: {
      orders: {
        submitOrder: async ({ next }) => {
          const answer = await next();
          if (answer.report) answer.report.rejectReason = 0;
          return answer;
        },
      },
    },
  },
  {
    adapter: 'takes an id again that came before',
    breaks: 'once',
    also: [
      'once-other-fields',
      'once-late',
      'once-after-rejection',
      'once-after-refusal',
      'once-at-once',
      'answers-streamed',
    ],
    defect: { orders: { submitOrder: (call) => onRepeat(call.next(), () => takenAgain(call)) } },
  },
  {
    adapter: 'looks at the time of an order before it looks whether it has it',
    breaks: 'once-late',
    defect: {
      orders: {
        submitOrder: ({ request: { notAfter }, next }) =>
          onRepeat(next(), () => {
            throw new Status(isLate(notAfter) ? status.FAILED_PRECONDITION : status.ALREADY_EXISTS);
          }),
      },
    },
  },
  {
    adapter: 'does not store the ids that it refuses as late',
    breaks: 'once-after-refusal',
    defect: {
      orders: {
        submitOrder: ({ request: { clientOrderId, notAfter }, next, adapter }) => {
          if (isLate(notAfter) && !adapter.kept.has(clientOrderId)) {
            return Promise.reject(new Status(status.FAILED_PRECONDITION));
          }
          adapter.kept.set(clientOrderId, true);
          return next();
        },
      },
    },
  },
  {
    adapter: 'knows an order by its fields, and takes an id again with others',
    breaks: 'once-other-fields',
    also: ['answers-streamed'],
    defect: {
      orders: {
        submitOrder: (call) => {
          const { clientOrderId, quantity } = call.request;
          const before = call.adapter.kept.get(clientOrderId) ?? quantity;
          call.adapter.kept.set(clientOrderId, before);
          return before === quantity ? call.next() : onRepeat(call.next(), () => takenAgain(call));
        },
      },
    },
  },
  {
    adapter: 'forgets the ids of rejected orders',
    breaks: 'once-after-rejection',
    also: ['answers-streamed'],
    defect: {
      orders: {
        submitOrder: async (call) => {
          const { clientOrderId } = call.request;
          const isRejected = call.adapter.kept.has(clientOrderId);
          const answer = await (isRejected ? onRepeat(call.next(), () => takenAgain(call)) : call.next());
          if (answer.report?.kind === ReportKind.REJECTED) call.adapter.kept.set(clientOrderId, true);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'looks for an id before it stores it, so that two sends at the same time pass',
    breaks: 'once-at-once',
    defect: {
      orders: {
        submitOrder: (call) =>
          atOnce(call, call.request.clientOrderId, (others) => (others > 0 ? takenAgain(call) : call.next())),
      },
    },
  },
  {
    adapter: 'mixes up answers under load',
    breaks: 'orders-at-once',
    also: ['answers-streamed'],
    defect: {
      orders: {
        submitOrder: (call) =>
          atOnce(call, 'all orders', async (others) => {
            const answer = await call.next();
            const former = call.adapter.kept.get('answer') as SubmitOrderResponse | undefined;
            call.adapter.kept.set('answer', answer);
            return others > 10 ? (former ?? answer) : answer;
          }),
      },
    },
  },
  {
    adapter: 'declares that it honours not_after, and does not',
    breaks: 'not-after-honoured',
    defect: { orders: { submitOrder: ({ request, next }) => next({ ...request, notAfter: inTime() }) } },
  },
  {
    adapter: 'refuses an order as too late, and takes it all the same',
    breaks: 'late-never-taken',
    also: ['once-after-refusal'],
    defect: {
      orders: {
        submitOrder: async ({ request, next }) => {
          if (!isLate(request.notAfter)) return next();
          await next({ ...request, notAfter: inTime() });
          throw new Status(status.FAILED_PRECONDITION);
        },
      },
    },
  },
  {
    adapter: 'keeps an order in a queue, and takes it when its time is over',
    breaks: 'abandoned-settles',
    defect: {
      orders: {
        submitOrder: async ({ request, next, adapter }) => {
          const leftMs = timestampMs(request.notAfter as Timestamp) - Date.now();
          if (leftMs < 0 || leftMs > 500) return next();
          adapter.kept.set(request.clientOrderId, () => next({ ...request, notAfter: inTime() }));
          throw new Status(status.UNAVAILABLE);
        },
        lookUpOrder: async ({ request, next, adapter }) => {
          const answer = await next();
          const queued = adapter.kept.get(request.clientOrderId) as (() => Promise<unknown>) | undefined;
          adapter.kept.delete(request.clientOrderId);
          await queued?.();
          return answer;
        },
      },
    },
  },
  {
    adapter: 'takes an order, and answers UNAVAILABLE',
    breaks: 'status-means-not-taken',
    defect: {
      orders: {
        submitOrder: async ({ next, adapter }) => {
          const count = ((adapter.kept.get('orders') as number | undefined) ?? 0) + 1;
          adapter.kept.set('orders', count);
          const answer = await next();
          if (count % 5 === 0) throw new Status(status.UNAVAILABLE);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'makes one share of none',
    breaks: 'nonsense-not-accepted',
    defect: {
      orders: {
        submitOrder: ({ request, next }) => next(request.quantity === 0n ? { ...request, quantity: 1n } : request),
      },
    },
  },
  {
    adapter: 'uses FAILED_PRECONDITION for an order that makes no sense',
    breaks: 'failed-precondition-for-late-only',
    defect: {
      orders: {
        submitOrder: ({ next }) =>
          onStatus(next(), status.INVALID_ARGUMENT, () => Promise.reject(new Status(status.FAILED_PRECONDITION))),
      },
    },
  },
];

/** The defects of an adapter with fills and cancels. */
export const cancelDefects: readonly SeededDefect[] = [
  {
    adapter: 'fills half of an order',
    breaks: 'fills-whole',
    also: ['cancel-filled'],
    waits: impatient,
    defect: {
      orders: {
        submitOrder: ({ request, next }) =>
          next(request.symbol === 'SIM-PARTS' ? { ...request, symbol: 'SIM-HALF', type: OrderType.LIMIT } : request),
      },
    },
  },
  {
    adapter: 'confirms a cancel without its report',
    breaks: 'cancel-open',
    defect: {
      orders: {
        cancelOrder: async ({ next }) => {
          const { report: _, ...answer } = await next();
          return answer;
        },
      },
    },
  },
  {
    adapter: 'confirms a cancel before its record has it',
    breaks: 'cancel-recorded',
    defect: lookUpWithout(({ kind, at }) => kind === ReportKind.CANCELLED && isRecent(at)),
  },
  {
    adapter: 'says that the second cancel of an order is too late',
    breaks: 'cancel-again',
    defect: {
      orders: {
        cancelOrder: async ({ request: { clientOrderId }, next, adapter }) => {
          const answer = await next();
          if (adapter.kept.has(clientOrderId)) return tooLate();
          adapter.kept.set(clientOrderId, true);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'makes a report for each of several cancels',
    breaks: 'cancel-at-once',
    defect: {
      orders: {
        cancelOrder: (call) =>
          atOnce(call, call.request.clientOrderId, async (others) => {
            const answer = await call.next();
            if (answer.report) answer.report.number += BigInt(others);
            return answer;
          }),
      },
    },
  },
  {
    adapter: 'takes one cancel of an order at a time',
    breaks: 'cancel-at-once-answered',
    defect: {
      orders: {
        cancelOrder: (call) =>
          atOnce(call, call.request.clientOrderId, (others) =>
            others > 0 ? Promise.reject(new Status(status.UNAVAILABLE)) : call.next(),
          ),
      },
    },
  },
  {
    adapter: 'confirms the cancel of an order that was filled',
    breaks: 'cancel-filled',
    defect: {
      orders: {
        cancelOrder: async ({ request, next, adapter }) => {
          const answer = await next();
          const { reports } = await adapter.orders.lookUpOrder(
            { clientOrderId: request.clientOrderId },
            { timeoutMs: 5_000 },
          );
          const isFilled = reports.some(({ kind }) => kind === ReportKind.TRADE);
          return isFilled ? { ...answer, outcome: CancelOutcome.CANCELLED } : answer;
        },
      },
    },
  },
  {
    adapter: 'does not know the orders that it has rejected',
    breaks: 'cancel-rejected',
    defect: {
      orders: {
        cancelOrder: async ({ request, next, adapter }) => {
          const { reports } = await adapter.orders.lookUpOrder(
            { clientOrderId: request.clientOrderId },
            { timeoutMs: 5_000 },
          );
          if (reports[0]?.kind === ReportKind.REJECTED) throw new Status(status.NOT_FOUND);
          return next();
        },
      },
    },
  },
  {
    adapter: 'says that it is too late to cancel an order that never came',
    breaks: 'cancel-unknown-no-outcome',
    defect: { orders: { cancelOrder: ({ next }) => onStatus(next(), status.NOT_FOUND, tooLate) } },
  },
  {
    adapter: 'ends the cancel of an order that never came with INTERNAL',
    breaks: 'cancel-unknown-not-found',
    defect: {
      orders: {
        cancelOrder: ({ next }) =>
          onStatus(next(), status.NOT_FOUND, () => Promise.reject(new Status(status.INTERNAL))),
      },
    },
  },
];

export function tooLate() {
  const brokerTime = timestampFromMs(Date.now());
  return create(CancelOrderResponseSchema, { outcome: CancelOutcome.TOO_LATE, brokerTime });
}
