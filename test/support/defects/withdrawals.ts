import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { beyond } from '../../../src/broker-check/session.ts';
import {
  type SubmitWithdrawalRequest,
  type SubmitWithdrawalResponse,
  SubmitWithdrawalResponseSchema,
  WithdrawalRejectReason,
  type WithdrawalReport,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { type Call, Status } from '../defective-adapter.ts';
import {
  briefMs,
  brokerTime,
  hiddenId,
  hourMs,
  inTime,
  isLate,
  isRecent,
  onRepeat,
  type SeededDefect,
  takesTwo,
} from './defect.ts';

type Withdraw = Call<SubmitWithdrawalRequest, SubmitWithdrawalResponse>;

const { ACCEPTED, PAID, REJECTED } = WithdrawalReportKind;

async function withdrawnAgain({ request, next }: Withdraw): Promise<SubmitWithdrawalResponse> {
  const answer = await next({ ...request, clientWithdrawalId: hiddenId(), notAfter: inTime() });
  if (answer.report) answer.report.clientWithdrawalId = request.clientWithdrawalId;
  return answer;
}

export const withdrawalDefects: readonly SeededDefect[] = [
  {
    adapter: 'takes withdrawals, and states no destination of them',
    breaks: 'withdrawal-destinations-stated',
    defect: {
      orders: { getCapabilities: async ({ next }) => ({ ...(await next()), withdrawalDestinations: [] }) },
    },
  },
  {
    adapter: 'rejects every withdrawal',
    breaks: 'withdrawal-taken',
    defect: {
      withdrawals: { submitWithdrawal: ({ request, next }) => next({ ...request, amountKobo: 998_008n }) },
    },
  },
  {
    adapter: 'takes a withdrawal without a reference',
    breaks: 'withdrawal-answer-is-report',
    also: [
      'withdrawal-once',
      'withdrawal-once-other-fields',
      'withdrawal-look-up-current',
      'withdrawal-answers-streamed',
    ],
    defect: {
      withdrawals: {
        submitWithdrawal: async ({ next }) => {
          const answer = await next();
          if (answer.report) answer.report.brokerReference = '';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'answers a rejected withdrawal with a status',
    breaks: 'withdrawal-rejection-is-report',
    defect: {
      withdrawals: {
        submitWithdrawal: async ({ next }) => {
          const answer = await next();
          if (answer.report?.kind === REJECTED) throw new Status(status.INVALID_ARGUMENT);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'does not say why a withdrawal was rejected',
    breaks: 'withdrawal-rejection-has-reason',
    defect: {
      withdrawals: {
        submitWithdrawal: async ({ next }) => {
          const answer = await next();
          if (answer.report) withoutReason(answer.report);
          return answer;
        },
        lookUpWithdrawal: async ({ next }) => {
          const answer = await next();
          for (const report of answer.reports) withoutReason(report);
          return answer;
        },
      },
      withdrawalReports: (message) => {
        for (const report of message.reports) withoutReason(report);
        return message;
      },
    },
  },
  {
    adapter: 'takes a withdrawal again that comes again',
    breaks: 'withdrawal-once',
    also: [
      'withdrawal-once-other-fields',
      'withdrawal-once-at-once',
      'withdrawal-in-balance',
      'withdrawal-answers-streamed',
    ],
    waits: { settleMs: 1_500 },
    defect: { withdrawals: { submitWithdrawal: (call) => onRepeat(call.next(), () => withdrawnAgain(call)) } },
  },
  {
    adapter: 'takes a withdrawal again that comes with another amount',
    breaks: 'withdrawal-once-other-fields',
    defect: {
      withdrawals: {
        submitWithdrawal: (call) => {
          const isUsual = call.request.amountKobo === 3_000n;
          return isUsual ? call.next() : onRepeat(call.next(), () => withdrawnAgain(call));
        },
      },
    },
  },
  {
    adapter: 'takes a withdrawal twice that comes twice at the same time',
    breaks: 'withdrawal-once-at-once',
    also: ['statement-of-withdrawal-states', 'withdrawal-answers-streamed'],
    defect: {
      withdrawals: {
        submitWithdrawal: (call) => takesTwo(call, call.request.clientWithdrawalId, () => withdrawnAgain(call)),
      },
    },
  },
  {
    adapter: 'takes the money of a withdrawal twice',
    breaks: 'withdrawal-in-balance',
    waits: { settleMs: 1_500 },
    defect: {
      withdrawals: {
        submitWithdrawal: async (call) => {
          const answer = await call.next();
          await withdrawnAgain(call);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'ends the look-up of an unknown withdrawal with NOT_FOUND',
    breaks: 'withdrawal-look-up-unknown',
    defect: {
      withdrawals: {
        lookUpWithdrawal: async ({ next }) => {
          const answer = await next();
          if (!answer.found) throw new Status(status.NOT_FOUND);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'answers a withdrawal before its record has it',
    breaks: 'withdrawal-look-up-current',
    also: ['withdrawal-once', 'withdrawal-once-other-fields'],
    defect: {
      withdrawals: {
        lookUpWithdrawal: async ({ next }) => {
          const answer = await next();
          return isRecent(answer.reports[0]?.at) ? { ...answer, found: false, reports: [] } : answer;
        },
      },
    },
  },
  {
    adapter: 'takes a withdrawal whose time is over',
    breaks: 'withdrawal-not-after-honoured',
    defect: {
      withdrawals: { submitWithdrawal: ({ request, next }) => next({ ...request, notAfter: inTime() }) },
    },
  },
  {
    adapter: 'refuses a withdrawal as too late, and takes it',
    breaks: 'withdrawal-late-never-taken',
    defect: {
      withdrawals: {
        submitWithdrawal: async ({ request, next }) => {
          if (!isLate(request.notAfter)) return next();
          await next({ ...request, notAfter: inTime() });
          throw new Status(status.FAILED_PRECONDITION);
        },
      },
    },
  },
  {
    adapter: 'keeps a withdrawal in a queue, and takes it when its time is over',
    breaks: 'withdrawal-abandoned-settles',
    defect: {
      withdrawals: {
        submitWithdrawal: async ({ request, next, adapter }) => {
          const leftMs = Number(request.notAfter?.seconds) * 1_000 + Number(request.notAfter?.nanos) / 1e6 - Date.now();
          if (leftMs < 0 || leftMs > briefMs) return next();
          adapter.kept.set(request.clientWithdrawalId, () => next({ ...request, notAfter: inTime() }));
          throw new Status(status.UNAVAILABLE);
        },
        lookUpWithdrawal: async ({ request, next, adapter }) => {
          const answer = await next();
          const queued = adapter.kept.get(request.clientWithdrawalId) as (() => Promise<unknown>) | undefined;
          adapter.kept.delete(request.clientWithdrawalId);
          await queued?.();
          return answer;
        },
      },
    },
  },
  {
    adapter: 'pays a withdrawal of nothing, and says so',
    breaks: 'withdrawal-nonsense-not-taken',
    defect: {
      withdrawals: {
        submitWithdrawal: ({ request: { amountKobo, clientWithdrawalId }, next }) => {
          if (amountKobo !== 0n) return next();
          const report = { clientWithdrawalId, kind: PAID, brokerReference: 'R', at: brokerTime() };
          return Promise.resolve(
            create(SubmitWithdrawalResponseSchema, {
              report: create(WithdrawalReportSchema, report),
              brokerTime: brokerTime(),
            }),
          );
        },
      },
    },
  },
  {
    adapter: 'lists withdrawals without their notes',
    breaks: 'withdrawal-listed',
    defect: {
      withdrawals: { submitWithdrawal: ({ request, next }) => next({ ...request, note: Buffer.alloc(0) }) },
    },
  },
  {
    adapter: 'says that its record of withdrawals is complete for a time to come',
    breaks: 'withdrawal-complete-until-past',
    defect: {
      withdrawals: {
        lookUpWithdrawal: async ({ next }) => ({
          ...(await next()),
          completeUntil: timestampFromMs(Date.now() + hourMs),
        }),
      },
    },
  },
  {
    adapter: 'forgets its oldest reports about withdrawals',
    breaks: 'withdrawal-stream-from-first',
    defect: {
      withdrawalReports: (message) => ({
        ...message,
        reports: message.reports.filter(({ number }) => number > 2n),
      }),
    },
  },
  {
    adapter: 'states the number that was asked for as its last report about withdrawals',
    breaks: 'withdrawal-stream-beyond-last',
    defect: {
      withdrawalReports: (message, { afterNumber, opened }) =>
        // Not to the kit's first look, which shows it where to begin.
        opened > 0 && afterNumber >= beyond ? { ...message, lastNumber: afterNumber } : message,
    },
  },
  {
    adapter: 'states a last report about withdrawals that is not sent yet',
    breaks: 'withdrawal-stream-last-number',
    defect: { withdrawalReports: (message) => ({ ...message, lastNumber: message.lastNumber + 1n }) },
  },
  {
    adapter: 'sends a message of the stream of withdrawals every 6 s',
    breaks: 'withdrawal-stream-alive',
    defect: { holdsStreamMs: { Withdrawals: 6_000 } },
  },
  {
    adapter: 'leaves a report about a withdrawal out of an open stream',
    breaks: 'withdrawal-reports-dense',
    defect: {
      withdrawalReports: (message, { adapter, opened }) => {
        const [first] = message.reports;
        if (opened !== 1 || adapter.kept.has('left out') || first === undefined) return message;
        adapter.kept.set('left out', true);
        return { ...message, reports: message.reports.slice(1) };
      },
    },
  },
  {
    adapter: 'streams another reference of a withdrawal than it answered',
    breaks: 'withdrawal-answers-streamed',
    also: ['withdrawal-look-up-complete', 'statement-of-withdrawal-states'],
    defect: {
      withdrawalReports: (message) => {
        for (const report of message.reports) report.brokerReference = 'another';
        return message;
      },
    },
  },
  {
    adapter: 'forgets in its record that a withdrawal was paid after it was accepted',
    breaks: 'withdrawal-look-up-complete',
    defect: {
      withdrawals: {
        lookUpWithdrawal: async ({ next }) => {
          const answer = await next();
          const isPaidLater = answer.reports[0]?.kind === ACCEPTED;
          return { ...answer, reports: isPaidLater ? answer.reports.slice(0, 1) : answer.reports };
        },
      },
    },
  },
  {
    adapter: 'says of a withdrawal that it was returned, and never that it was paid',
    breaks: 'withdrawal-life',
    also: ['withdrawal-answers-streamed', 'withdrawal-look-up-complete', 'statement-of-withdrawal-states'],
    defect: {
      withdrawalReports: (message) => {
        for (const report of message.reports) if (report.kind === PAID) report.kind = WithdrawalReportKind.RETURNED;
        return message;
      },
    },
  },
];

function withoutReason(report: WithdrawalReport): void {
  report.rejectReason = WithdrawalRejectReason.UNSPECIFIED;
}
