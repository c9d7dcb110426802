import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { beyond } from '../../../src/broker-check/session.ts';
import {
  AllocationOutcome,
  AllocationRecordSchema,
  AllocationRejectReason,
  type SubmitAllocationRequest,
  type SubmitAllocationResponse,
  SubmitAllocationResponseSchema,
} from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import {
  ApplicationReportKind,
  DocumentOutcome,
  DocumentPresence,
  LookUpDocumentResponseSchema,
  SendDocumentResponseSchema,
  type SubmitApplicationRequest,
  type SubmitApplicationResponse,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { type Call, Status } from '../../support/defective-adapter.ts';
import { hiddenId, onRepeat, onStatus, type SeededDefect } from './defect.ts';
import { inTime, isRecent } from './orders.ts';

type Allocate = Call<SubmitAllocationRequest, SubmitAllocationResponse>;
type Apply = Call<SubmitApplicationRequest, SubmitApplicationResponse>;

const hourMs = 3_600_000;
/** How long something is queued for which nobody waits any more. */
const briefMs = 500;
const brokerTime = () => timestampFromMs(Date.now());

export async function allocatedAgain({ request, next }: Allocate): Promise<SubmitAllocationResponse> {
  const answer = await next({ ...request, clientAllocationId: hiddenId(), notAfter: inTime() });
  if (answer.record) answer.record.clientAllocationId = request.clientAllocationId;
  return answer;
}

export async function appliedAgain({ request, next }: Apply): Promise<SubmitApplicationResponse> {
  const answer = await next({ ...request, clientApplicationId: hiddenId(), notAfter: inTime() });
  if (answer.report) answer.report.clientApplicationId = request.clientApplicationId;
  return answer;
}

/** The same, for the second of two calls that are under way at once. */
async function takesTwo<T>(
  { adapter, next }: Pick<Call<unknown, T>, 'adapter' | 'next'>,
  id: string,
  again: () => Promise<T>,
): Promise<T> {
  if (adapter.kept.has(id)) return again();
  adapter.kept.set(id, true);
  try {
    return await next();
  } finally {
    adapter.kept.delete(id);
  }
}

const allocationDefects: readonly SeededDefect[] = [
  {
    adapter: 'rejects every allocation',
    breaks: 'allocation-booked',
    defect: {
      allocations: { submitAllocation: ({ request, next }) => next({ ...request, amountKobo: 999_004n }) },
    },
  },
  {
    adapter: 'books without a reference',
    breaks: 'allocation-answer-is-record',
    also: ['allocation-once', 'allocation-once-other-fields', 'allocation-look-up-current', 'allocation-record-kept'],
    defect: {
      allocations: {
        submitAllocation: async ({ next }) => {
          const answer = await next();
          if (answer.record) answer.record.brokerReference = '';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'answers a rejected allocation with a status',
    breaks: 'allocation-rejection-is-record',
    defect: {
      allocations: {
        submitAllocation: async ({ next }) => {
          const answer = await next();
          if (answer.record?.outcome === AllocationOutcome.REJECTED) throw new Status(status.INVALID_ARGUMENT);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'does not say why an allocation was rejected',
    breaks: 'allocation-rejection-has-reason',
    defect: {
      allocations: {
        submitAllocation: async ({ next }) => withoutReason(await next()),
        lookUpAllocation: async ({ next }) => withoutReason(await next()),
      },
    },
  },
  {
    adapter: 'books an allocation again that comes again',
    breaks: 'allocation-once',
    also: [
      'allocation-once-other-fields',
      'allocation-once-at-once',
      'allocation-in-balance',
      'allocation-record-kept',
    ],
    waits: { settleMs: 1_500 },
    defect: { allocations: { submitAllocation: (call) => onRepeat(call.next(), () => allocatedAgain(call)) } },
  },
  {
    adapter: 'books an allocation again that comes with another amount',
    breaks: 'allocation-once-other-fields',
    defect: {
      allocations: {
        submitAllocation: (call) => {
          const isUsual = call.request.amountKobo === 5_000n;
          return isUsual ? call.next() : onRepeat(call.next(), () => allocatedAgain(call));
        },
      },
    },
  },
  {
    adapter: 'books an allocation twice that comes twice at the same time',
    breaks: 'allocation-once-at-once',
    also: ['allocation-record-kept'],
    defect: {
      allocations: {
        submitAllocation: (call) => takesTwo(call, call.request.clientAllocationId, () => allocatedAgain(call)),
      },
    },
  },
  {
    adapter: 'books the money of an allocation twice',
    breaks: 'allocation-in-balance',
    waits: { settleMs: 1_500 },
    defect: {
      allocations: {
        submitAllocation: async (call) => {
          const answer = await call.next();
          await allocatedAgain(call);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'ends the look-up of an unknown allocation with NOT_FOUND',
    breaks: 'allocation-look-up-unknown',
    defect: {
      allocations: {
        lookUpAllocation: async ({ next }) => {
          const answer = await next();
          if (answer.record === undefined) throw new Status(status.NOT_FOUND);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'answers an allocation before its record has it',
    breaks: 'allocation-look-up-current',
    also: ['allocation-once', 'allocation-once-other-fields', 'allocation-record-kept'],
    defect: {
      allocations: {
        lookUpAllocation: async ({ next }) => {
          const { record, ...answer } = await next();
          return isRecent(record?.at) || record === undefined ? answer : { ...answer, record };
        },
      },
    },
  },
  {
    adapter: 'takes an allocation whose time is over',
    breaks: 'allocation-not-after-honoured',
    defect: {
      allocations: { submitAllocation: ({ request, next }) => next({ ...request, notAfter: inTime() }) },
    },
  },
  {
    adapter: 'refuses an allocation as too late, and books it',
    breaks: 'allocation-late-never-taken',
    defect: {
      allocations: {
        submitAllocation: ({ request, next }) =>
          onStatus(next(), status.FAILED_PRECONDITION, async () => {
            await next({ ...request, notAfter: inTime() });
            throw new Status(status.FAILED_PRECONDITION);
          }),
      },
    },
  },
  {
    adapter: 'keeps an allocation in a queue, and books it when its time is over',
    breaks: 'allocation-abandoned-settles',
    defect: {
      allocations: {
        submitAllocation: async ({ request, next, adapter }) => {
          const leftMs = Number(request.notAfter?.seconds) * 1_000 + Number(request.notAfter?.nanos) / 1e6 - Date.now();
          if (leftMs < 0 || leftMs > briefMs) return next();
          adapter.kept.set(request.clientAllocationId, () => next({ ...request, notAfter: inTime() }));
          throw new Status(status.UNAVAILABLE);
        },
        lookUpAllocation: async ({ request, next, adapter }) => {
          const answer = await next();
          const queued = adapter.kept.get(request.clientAllocationId) as (() => Promise<unknown>) | undefined;
          adapter.kept.delete(request.clientAllocationId);
          await queued?.();
          return answer;
        },
      },
    },
  },
  {
    adapter: 'books nothing, and says so',
    breaks: 'allocation-nonsense-not-booked',
    also: ['allocation-record-kept'],
    defect: {
      allocations: {
        submitAllocation: ({ request: { amountKobo, clientAllocationId }, next }) => {
          if (amountKobo !== 0n) return next();
          const record = {
            clientAllocationId,
            outcome: AllocationOutcome.BOOKED,
            brokerReference: 'R',
            at: brokerTime(),
          };
          return Promise.resolve(
            create(SubmitAllocationResponseSchema, {
              record: create(AllocationRecordSchema, record),
              brokerTime: brokerTime(),
            }),
          );
        },
      },
    },
  },
  {
    adapter: 'lists allocations without their notes',
    breaks: 'allocation-listed',
    defect: {
      allocations: {
        submitAllocation: ({ request, next }) => next({ ...request, note: Buffer.alloc(0) }),
      },
    },
  },
  {
    adapter: 'says that its record of allocations is complete for a time to come',
    breaks: 'allocation-complete-until-past',
    defect: {
      allocations: {
        lookUpAllocation: async ({ next }) => ({
          ...(await next()),
          completeUntil: timestampFromMs(Date.now() + hourMs),
        }),
      },
    },
  },
  {
    adapter: 'changes the record of an allocation after some time',
    breaks: 'allocation-record-kept',
    defect: {
      allocations: {
        lookUpAllocation: async ({ next }) => {
          const answer = await next();
          if (answer.record && !isRecent(answer.record.at)) answer.record.brokerReference = 'another';
          return answer;
        },
      },
    },
  },
];

function withoutReason<Answer extends { record?: { rejectReason: AllocationRejectReason } }>(answer: Answer): Answer {
  if (answer.record) answer.record.rejectReason = AllocationRejectReason.UNSPECIFIED;
  return answer;
}

const applicationDefects: readonly SeededDefect[] = [
  {
    adapter: 'accepts no application',
    breaks: 'application-accepted',
    defect: {
      applications: {
        submitApplication: ({ request, next }) => {
          if (request.fields) request.fields.lastName = 'SIM-REJECT';
          return next(request);
        },
      },
    },
  },
  {
    adapter: 'accepts an application without a reference',
    breaks: 'application-answer-is-report',
    also: ['application-look-up-current', 'application-answers-streamed'],
    defect: {
      applications: {
        submitApplication: async ({ next }) => {
          const answer = await next();
          if (answer.report) answer.report.reference = '';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'does not look at names',
    breaks: 'application-invalid-not-accepted',
    defect: {
      applications: {
        submitApplication: ({ request, next }) => {
          const { fields } = request;
          if (fields?.firstName === '') Object.assign(fields, { firstName: 'A', lastName: 'B' });
          return next(request);
        },
      },
    },
  },
  {
    adapter: 'does not say which field of an application is wrong',
    breaks: 'application-rejection-is-report',
    defect: {
      applications: {
        submitApplication: async ({ next }) => {
          const answer = await next();
          if (answer.report?.kind === ApplicationReportKind.REJECTED) throw new Status(status.INVALID_ARGUMENT);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'takes an application again that comes again',
    breaks: 'application-once',
    also: ['application-once-other-fields', 'application-once-at-once', 'application-answers-streamed'],
    defect: { applications: { submitApplication: (call) => onRepeat(call.next(), () => appliedAgain(call)) } },
  },
  {
    adapter: 'takes an application again that comes with other fields',
    breaks: 'application-once-other-fields',
    defect: {
      applications: {
        submitApplication: (call) => {
          const isOther = call.request.fields?.firstName === 'Another';
          return isOther ? onRepeat(call.next(), () => appliedAgain(call)) : call.next();
        },
      },
    },
  },
  {
    adapter: 'takes an application twice that comes twice at the same time',
    breaks: 'application-once-at-once',
    also: ['application-answers-streamed'],
    defect: {
      applications: {
        submitApplication: (call) => takesTwo(call, call.request.clientApplicationId, () => appliedAgain(call)),
      },
    },
  },
  {
    adapter: 'ends the look-up of an unknown application with NOT_FOUND',
    breaks: 'application-look-up-unknown',
    defect: {
      applications: {
        lookUpApplication: async ({ next }) => {
          const answer = await next();
          if (!answer.found) throw new Status(status.NOT_FOUND);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'finds no application above the number of its last report',
    breaks: 'application-look-up-current',
    defect: {
      applications: {
        lookUpApplication: async ({ next }) => {
          const answer = await next();
          return { ...answer, found: answer.reports.length > 0 };
        },
      },
    },
  },
  {
    adapter: 'takes an application whose time is over',
    breaks: 'application-not-after-honoured',
    defect: {
      applications: { submitApplication: ({ request, next }) => next({ ...request, notAfter: inTime() }) },
    },
  },
  {
    adapter: 'refuses an application as too late, and takes it',
    breaks: 'application-late-never-taken',
    defect: {
      applications: {
        submitApplication: ({ request, next }) =>
          onStatus(next(), status.FAILED_PRECONDITION, async () => {
            await next({ ...request, notAfter: inTime() });
            throw new Status(status.FAILED_PRECONDITION);
          }),
      },
    },
  },
  {
    adapter: 'lists applications with other notes',
    breaks: 'application-listed',
    defect: {
      applications: { submitApplication: ({ request, next }) => next({ ...request, note: Buffer.from('x') }) },
    },
  },
  {
    adapter: 'says that its record of applications is complete for a time to come',
    breaks: 'application-complete-until-past',
    defect: {
      applications: {
        lookUpApplication: async ({ next }) => ({
          ...(await next()),
          completeUntil: timestampFromMs(Date.now() + hourMs),
        }),
      },
    },
  },
  {
    adapter: 'forgets its oldest reports about applications',
    breaks: 'application-stream-from-first',
    defect: {
      applicationReports: (message) => ({
        ...message,
        reports: message.reports.filter(({ number }) => number > 2n),
      }),
    },
  },
  {
    adapter: 'states the number that was asked for as its last report about applications',
    breaks: 'application-stream-beyond-last',
    defect: {
      applicationReports: (message, { afterNumber, opened }) =>
        // Not to the kit's first look, which shows it where to begin.
        opened > 0 && afterNumber >= beyond ? { ...message, lastNumber: afterNumber } : message,
    },
  },
  {
    adapter: 'states a last report about applications that is not sent yet',
    breaks: 'application-stream-last-number',
    defect: { applicationReports: (message) => ({ ...message, lastNumber: message.lastNumber + 1n }) },
  },
  {
    adapter: 'sends a message of the stream of applications every 6 s',
    breaks: 'application-stream-alive',
    defect: { holdsStreamMs: { Applications: 6_000 } },
  },
  {
    adapter: 'leaves a report about an application out of an open stream',
    breaks: 'application-reports-dense',
    defect: {
      applicationReports: (message, { adapter, opened }) => {
        const [first] = message.reports;
        if (opened !== 1 || adapter.kept.has('left out') || first === undefined) return message;
        adapter.kept.set('left out', true);
        return { ...message, reports: message.reports.slice(1) };
      },
    },
  },
  {
    adapter: 'streams another reference of an application than it answered',
    breaks: 'application-answers-streamed',
    also: ['application-look-up-complete'],
    defect: {
      applicationReports: (message) => {
        for (const report of message.reports) report.reference = 'another';
        return message;
      },
    },
  },
  {
    adapter: 'forgets in its record that an account was opened',
    breaks: 'application-look-up-complete',
    defect: {
      applications: {
        lookUpApplication: async ({ next }) => {
          const answer = await next();
          const { OPENED } = ApplicationReportKind;
          return { ...answer, reports: answer.reports.filter(({ kind }) => kind !== OPENED) };
        },
      },
    },
  },
  {
    adapter: 'opens an account without its code',
    breaks: 'application-life',
    also: ['application-look-up-complete'],
    defect: {
      applicationReports: (message) => {
        for (const report of message.reports) report.account = '';
        return message;
      },
    },
  },
];

const documentDefects: readonly SeededDefect[] = [
  {
    adapter: 'refuses every document',
    breaks: 'document-delivered',
    defect: {
      applications: {
        sendDocument: async ({ next }) => ({ ...(await next()), outcome: DocumentOutcome.REFUSED }),
      },
    },
  },
  {
    adapter: 'refuses a file that it has',
    breaks: 'document-again',
    defect: {
      applications: {
        sendDocument: async ({ request, next, adapter }) => {
          const file = `${request.clientApplicationId} ${Buffer.from(request.content).toString('base64')}`;
          const answer = await next();
          if (adapter.kept.has(file)) answer.outcome = DocumentOutcome.REFUSED;
          adapter.kept.set(file, true);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'replaces a file by another',
    breaks: 'document-other-refused',
    defect: {
      applications: {
        sendDocument: async ({ next }) => ({ ...(await next()), outcome: DocumentOutcome.DELIVERED }),
      },
    },
  },
  {
    adapter: 'does not know of a document that it has',
    breaks: 'document-look-up-current',
    defect: {
      applications: {
        lookUpDocument: async ({ next }) => ({ ...(await next()), presence: DocumentPresence.MISSING }),
      },
    },
  },
  {
    adapter: 'says that a document of an unknown application is missing',
    breaks: 'document-look-up-unknown',
    defect: {
      applications: {
        lookUpDocument: ({ next }) =>
          onStatus(next(), status.NOT_FOUND, () =>
            create(LookUpDocumentResponseSchema, { presence: DocumentPresence.MISSING, brokerTime: brokerTime() }),
          ),
      },
    },
  },
  {
    adapter: 'takes a document whose time is over',
    breaks: 'document-not-after-honoured',
    defect: {
      applications: { sendDocument: ({ request, next }) => next({ ...request, notAfter: inTime() }) },
    },
  },
  {
    adapter: 'takes a document of an application that it does not know',
    breaks: 'document-unknown-not-delivered',
    defect: {
      applications: {
        sendDocument: ({ next }) =>
          onStatus(next(), status.NOT_FOUND, () =>
            create(SendDocumentResponseSchema, { outcome: DocumentOutcome.DELIVERED, brokerTime: brokerTime() }),
          ),
      },
    },
  },
];

export const backOfficeDefects: readonly SeededDefect[] = [
  ...allocationDefects,
  ...applicationDefects,
  ...documentDefects,
];
