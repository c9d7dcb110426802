import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { beyond } from '../../../src/broker-check/session.ts';
import {
  ApplicationReportKind,
  DocumentOutcome,
  DocumentPresence,
  LookUpDocumentResponseSchema,
  SendDocumentResponseSchema,
  type SubmitApplicationRequest,
  type SubmitApplicationResponse,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { type Call, Status } from '../defective-adapter.ts';
import {
  brokerTime,
  hiddenId,
  hourMs,
  inTime,
  isLate,
  onRepeat,
  onStatus,
  type SeededDefect,
  takesTwo,
} from './defect.ts';

type Apply = Call<SubmitApplicationRequest, SubmitApplicationResponse>;

export async function appliedAgain({ request, next }: Apply): Promise<SubmitApplicationResponse> {
  const answer = await next({ ...request, clientApplicationId: hiddenId(), notAfter: inTime() });
  if (answer.report) answer.report.clientApplicationId = request.clientApplicationId;
  return answer;
}

export const applicationDefects: readonly SeededDefect[] = [
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
        submitApplication: async ({ request, next }) => {
          if (!isLate(request.notAfter)) return next();
          await next({ ...request, notAfter: inTime() });
          throw new Status(status.FAILED_PRECONDITION);
        },
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

export const documentDefects: readonly SeededDefect[] = [
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
