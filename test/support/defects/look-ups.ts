import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { type Report, ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { pause } from '../../../src/kit/worker.ts';
import { Status } from '../defective-adapter.ts';
import { hourMs, isRecent, type SeededDefect } from './defect.ts';

const never = new AbortController().signal;

/** Of a look-up, the reports that it should have. */
export function lookUpWithout(
  isLacking: (report: Report, reports: readonly Report[]) => boolean,
): SeededDefect['defect'] {
  return {
    orders: {
      lookUpOrder: async ({ next }) => {
        const answer = await next();
        return { ...answer, reports: answer.reports.filter((report) => !isLacking(report, answer.reports)) };
      },
    },
  };
}

/** The defects of an adapter's record. */
export const lookUpDefects: readonly SeededDefect[] = [
  {
    adapter: 'ends the look-up of an unknown order with NOT_FOUND',
    breaks: 'look-up-unknown',
    defect: {
      orders: {
        lookUpOrder: async ({ next }) => {
          const answer = await next();
          if (!answer.found) throw new Status(status.NOT_FOUND);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'answers before its record has the report',
    breaks: 'look-up-current',
    defect: lookUpWithout(({ kind, at }) => kind === ReportKind.ACCEPTED && isRecent(at)),
  },
  {
    adapter: 'has another report in its record than in its answer',
    breaks: 'look-up-same-report',
    defect: {
      orders: {
        lookUpOrder: async ({ next }) => {
          const answer = await next();
          const [first] = answer.reports;
          if (first?.kind === ReportKind.ACCEPTED) first.exchangeOrderId = 'another';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'looks up reports from the first, whatever number was asked for',
    breaks: 'look-up-after-number',
    defect: { orders: { lookUpOrder: ({ request, next }) => next({ ...request, afterNumber: 0n }) } },
  },
  {
    adapter: 'says that its record is complete for a time to come',
    breaks: 'complete-until-past',
    defect: {
      orders: {
        lookUpOrder: async ({ next }) => ({ ...(await next()), completeUntil: timestampFromMs(Date.now() + hourMs) }),
      },
    },
  },
  {
    adapter: 'streams a trade before its record has it',
    breaks: 'look-up-current-trades',
    defect: lookUpWithout(({ kind, at }) => kind === ReportKind.TRADE && isRecent(at)),
  },
  {
    adapter: 'forgets the last trade of an order in its record',
    breaks: 'look-up-complete',
    defect: lookUpWithout((report, reports) => report.kind === ReportKind.TRADE && reports.indexOf(report) > 1),
  },
  {
    adapter: 'has a report in its record that is about another order',
    breaks: 'stream-complete',
    defect: {
      orders: {
        lookUpOrder: async ({ request, next }) => {
          const answer = await next();
          const [first] = answer.reports;
          if (first === undefined || request.afterNumber > 0n) return answer;
          return { ...answer, reports: [{ ...first, number: first.number - 1n }, ...answer.reports] };
        },
      },
    },
  },
  {
    adapter: 'does not state its time in a look-up',
    breaks: 'broker-time-stated',
    defect: {
      orders: {
        lookUpOrder: async ({ next }) => {
          const { brokerTime: _, ...answer } = await next();
          return answer;
        },
      },
    },
  },
  {
    adapter: 'takes 1.5 s for an estimate',
    breaks: 'calls-in-time',
    waits: { slowMs: 1_400 },
    defect: {
      orders: {
        estimateOrder: async ({ next }) => {
          await pause(1_500, never);
          return next();
        },
      },
    },
  },
];
