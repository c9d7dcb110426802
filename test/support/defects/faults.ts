import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { checks } from '../../../src/broker-check/checks.ts';
import {
  LookUpOrderResponseSchema,
  ReportKind,
  ReportSchema,
  type StreamReportsResponse,
  type SubmitOrderRequest,
  type SubmitOrderResponse,
  SubmitOrderResponseSchema,
} from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { pause } from '../../../src/kit/worker.ts';
import { type Call, type DefectiveAdapter, Status } from '../defective-adapter.ts';
import { allocatedAgain } from './allocations.ts';
import { appliedAgain } from './applications.ts';
import { hiddenId, inTime, onRepeat, type SeededDefect } from './defect.ts';
import { tooLate } from './orders.ts';

const never = new AbortController().signal;
const brokerTime = () => timestampFromMs(Date.now());

/** Accepts an order without anybody. */
function accepted({ clientOrderId }: SubmitOrderRequest): SubmitOrderResponse {
  const report = create(ReportSchema, { number: 1n, clientOrderId, kind: ReportKind.ACCEPTED, at: brokerTime() });
  return create(SubmitOrderResponseSchema, { report, brokerTime: brokerTime() });
}

/** Finds an order that was left without an answer, until it has asked the exchange. */
function guesses(isInDoubt: (adapter: DefectiveAdapter) => boolean): SeededDefect['defect'] {
  return {
    orders: {
      submitOrder: ({ request, next, adapter }) => {
        const taken = `taken ${request.clientOrderId}`;
        if (!isInDoubt(adapter)) {
          adapter.kept.set(taken, true);
          return next();
        }
        if (!adapter.kept.has(taken)) adapter.kept.set(request.clientOrderId, 0);
        return Promise.reject(new Status(status.UNAVAILABLE));
      },
      lookUpOrder: async ({ request: { clientOrderId }, next, adapter }) => {
        const asked = adapter.kept.get(clientOrderId) as number | undefined;
        if (asked === undefined || asked > 1) return next();
        adapter.kept.set(clientOrderId, asked + 1);
        return create(LookUpOrderResponseSchema, { found: true, brokerTime: brokerTime() });
      },
    },
  };
}

const cutDefects: readonly SeededDefect[] = [
  {
    adapter: 'accepts orders while the exchange is away',
    breaks: 'cut-not-accepted',
    hooks: 'cut',
    defect: {
      orders: {
        submitOrder: async ({ request, next, adapter }) => (adapter.isCut ? accepted(request) : next()),
      },
    },
  },
  {
    adapter: 'answers nothing while the exchange is away',
    breaks: 'cut-calls-end',
    hooks: 'cut',
    waits: { submitMs: 2_500 },
    defect: {
      orders: {
        cancelOrder: async ({ next, adapter }) => {
          if (adapter.isCut) await pause(5_000, never);
          return next();
        },
      },
    },
  },
  {
    adapter: 'refuses all orders while the exchange is away, also those that it has',
    breaks: 'cut-once',
    also: ['cut-once-after-refusal'],
    hooks: 'cut',
    defect: {
      orders: {
        submitOrder: ({ next, adapter }) =>
          adapter.isCut ? Promise.reject(new Status(status.FAILED_PRECONDITION)) : next(),
      },
    },
  },
  {
    adapter: 'finds no order while the exchange is away',
    breaks: 'cut-look-up-honest',
    hooks: 'cut',
    defect: {
      orders: {
        lookUpOrder: async ({ next, adapter }) => {
          const answer = await next();
          return adapter.isCut ? { ...answer, found: false, reports: [] } : answer;
        },
      },
    },
  },
  {
    adapter: 'says that it is too late to cancel while the exchange is away',
    breaks: 'cut-cancel-honest',
    hooks: 'cut',
    defect: { orders: { cancelOrder: async ({ next, adapter }) => (adapter.isCut ? tooLate() : next()) } },
  },
  {
    adapter: 'is silent while the exchange is away',
    breaks: 'cut-stream-alive',
    hooks: 'cut',
    defect: {
      reports: (message, { adapter, opened }) => {
        const held = (adapter.kept.get(`held ${opened}`) as StreamReportsResponse['reports'] | undefined) ?? [];
        const reports = [...held, ...message.reports];
        adapter.kept.set(`held ${opened}`, adapter.isCut ? reports : []);
        return adapter.isCut ? undefined : { ...message, reports };
      },
    },
  },
  {
    adapter: 'does not connect again',
    breaks: 'cut-comes-back',
    hooks: 'cut',
    waits: { hookMs: 1_500 },
    defect: { staysAway: 'cut' },
  },
  {
    adapter: 'refuses orders while the exchange is away, and sends them when it is back',
    breaks: 'cut-refusals-hold',
    hooks: 'cut',
    defect: {
      orders: {
        submitOrder: async ({ request, next, adapter }) => {
          if (adapter.kept.has(request.clientOrderId)) return next();
          if (!adapter.isCut) {
            adapter.kept.set(request.clientOrderId, 'sent');
            const queued = (adapter.kept.get('queue') as SubmitOrderRequest[] | undefined) ?? [];
            adapter.kept.set('queue', []);
            for (const each of queued) await next({ ...each, notAfter: inTime() });
            return next();
          }
          adapter.kept.set('queue', [...((adapter.kept.get('queue') as object[] | undefined) ?? []), request]);
          throw new Status(status.FAILED_PRECONDITION);
        },
      },
    },
  },
  {
    adapter: 'does not find an order in doubt while the exchange is away, and has it afterwards',
    breaks: 'cut-unknown-honest',
    hooks: 'cut',
    defect: {
      orders: {
        submitOrder: async ({ request, next, adapter }) => {
          if (!adapter.isCut) return next();
          // It reaches the exchange, and its answer does not come back.
          const isTaken = await adapter.orders.submitOrder(request, { timeoutMs: 10_000 }).then(
            () => true,
            () => false,
          );
          if (isTaken) adapter.kept.set(request.clientOrderId, 'in doubt');
          throw new Status(status.UNAVAILABLE);
        },
        lookUpOrder: async ({ request: { clientOrderId }, next, adapter }) => {
          const answer = await next();
          const isHidden = adapter.isCut && adapter.kept.has(clientOrderId);
          return isHidden ? { ...answer, found: false, reports: [] } : answer;
        },
      },
    },
  },
  {
    adapter: 'does not store the ids that it refuses while the exchange is away',
    breaks: 'cut-once-after-refusal',
    hooks: 'cut',
    defect: {
      orders: {
        submitOrder: ({ request: { clientOrderId }, next, adapter }) => {
          if (adapter.isCut && !adapter.kept.has(clientOrderId)) {
            return Promise.reject(new Status(status.FAILED_PRECONDITION));
          }
          adapter.kept.set(clientOrderId, true);
          return next();
        },
      },
    },
  },
  {
    adapter: 'guesses what became of an order that had no answer',
    breaks: 'cut-doubts-settle',
    hooks: 'cut',
    defect: guesses(({ isCut }) => isCut),
  },
  {
    adapter: 'forgets open orders when the exchange is away',
    breaks: 'cut-open-order',
    hooks: 'cut',
    defect: {
      orders: {
        cancelOrder: ({ next, adapter }) => {
          if (adapter.isCut) adapter.kept.set('was cut', true);
          return adapter.kept.has('was cut') ? Promise.reject(new Status(status.NOT_FOUND)) : next();
        },
      },
    },
  },
];

/** Takes an id again after a restart. */
async function takenAfterRestart(call: Call<SubmitOrderRequest, SubmitOrderResponse>): Promise<SubmitOrderResponse> {
  if (call.adapter.restarts === 0) return call.next();
  return onRepeat(call.next(), async () => {
    const answer = await call.next({ ...call.request, clientOrderId: hiddenId() });
    if (answer.report) answer.report.clientOrderId = call.request.clientOrderId;
    return answer;
  });
}

const restartDefects: readonly SeededDefect[] = [
  {
    adapter: 'does not come back from a restart',
    breaks: 'restart-comes-back',
    also: checks.flatMap(({ id }) => (id.startsWith('restart-') && id !== 'restart-comes-back' ? [id] : [])),
    hooks: 'restart',
    waits: { hookMs: 1_500 },
    defect: { staysAway: 'restart' },
  },
  {
    adapter: 'takes an order again after a restart',
    breaks: 'restart-once',
    also: ['answers-streamed'],
    hooks: 'restart',
    defect: { orders: { submitOrder: takenAfterRestart } },
  },
  {
    adapter: 'has other reports of an order in its record after a restart',
    breaks: 'restart-look-up',
    also: ['restart-answers-kept'],
    hooks: 'restart',
    defect: {
      orders: {
        lookUpOrder: async ({ next, adapter }) => {
          const answer = await next();
          if (adapter.restarts > 0) for (const report of answer.reports) report.exchangeOrderId = 'another';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'gives reports other numbers after a restart',
    breaks: 'restart-numbers',
    hooks: 'restart',
    defect: {
      reports: (message, { adapter, afterNumber }) => {
        const last = (adapter.kept.get('last') as bigint | undefined) ?? 0n;
        if (adapter.restarts === 0) {
          for (const { number } of message.reports) if (number > last) adapter.kept.set('last', number);
          return message;
        }
        // Those before the restart have moved by one.
        const ids = message.reports.map(({ clientOrderId }) => clientOrderId);
        for (const [at, report] of message.reports.entries()) {
          const isMoved = report.number <= last && report.number > afterNumber;
          if (isMoved) report.clientOrderId = ids[at + 1] ?? 'another';
        }
        return message;
      },
    },
  },
  {
    adapter: 'begins to number reports from 1 after a restart',
    breaks: 'restart-numbers-go-on',
    hooks: 'restart',
    defect: {
      orders: {
        submitOrder: async ({ next, adapter }) => {
          const answer = await next();
          if (adapter.restarts > 0 && answer.report) answer.report.number = 1n;
          return answer;
        },
      },
    },
  },
  {
    adapter: 'answers an order before it is stored, and goes away',
    breaks: 'restart-answers-kept',
    hooks: 'restart',
    defect: {
      orders: {
        submitOrder: async ({ request, next, adapter }) => (adapter.isStopping ? accepted(request) : next()),
      },
    },
  },
  {
    adapter: 'refuses what is under way when it stops, although it was sent',
    breaks: 'restart-refusals-hold',
    hooks: 'restart',
    defect: {
      orders: {
        submitOrder: async ({ next, adapter }) => {
          const { isStopping } = adapter;
          const answer = await next();
          if (isStopping) throw new Status(status.FAILED_PRECONDITION);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'guesses what became of an order that had no answer before a restart',
    breaks: 'restart-doubts-settle',
    hooks: 'restart',
    defect: guesses(({ isStopping }) => isStopping),
  },
  {
    adapter: 'forgets open orders at a restart',
    breaks: 'restart-open-order',
    hooks: 'restart',
    defect: {
      orders: {
        cancelOrder: ({ next, adapter }) =>
          adapter.restarts > 0 ? Promise.reject(new Status(status.NOT_FOUND)) : next(),
      },
    },
  },
  {
    adapter: 'forgets notes at a restart',
    breaks: 'restart-submissions',
    hooks: 'restart',
    defect: {
      submissions: {
        listSubmissions: async ({ next, adapter }) => {
          const answer = await next();
          if (adapter.restarts > 0) for (const each of answer.submissions) each.note = Buffer.alloc(0);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'books an allocation again after a restart',
    breaks: 'restart-allocations',
    hooks: 'restart',
    defect: {
      allocations: {
        submitAllocation: (call) =>
          call.adapter.restarts > 0 ? onRepeat(call.next(), () => allocatedAgain(call)) : call.next(),
      },
    },
  },
  {
    adapter: 'takes an application again after a restart',
    breaks: 'restart-applications',
    hooks: 'restart',
    defect: {
      applications: {
        submitApplication: (call) =>
          call.adapter.restarts > 0 ? onRepeat(call.next(), () => appliedAgain(call)) : call.next(),
      },
    },
  },
];

export const faultDefects: readonly SeededDefect[] = [...cutDefects, ...restartDefects];
