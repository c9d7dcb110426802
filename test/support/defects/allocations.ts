import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AllocationOutcome,
  AllocationRecordSchema,
  AllocationRejectReason,
  type SubmitAllocationRequest,
  type SubmitAllocationResponse,
  SubmitAllocationResponseSchema,
} from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
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

type Allocate = Call<SubmitAllocationRequest, SubmitAllocationResponse>;

export async function allocatedAgain({ request, next }: Allocate): Promise<SubmitAllocationResponse> {
  const answer = await next({ ...request, clientAllocationId: hiddenId(), notAfter: inTime() });
  if (answer.record) answer.record.clientAllocationId = request.clientAllocationId;
  return answer;
}

export const allocationDefects: readonly SeededDefect[] = [
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
        submitAllocation: async ({ request, next }) => {
          if (!isLate(request.notAfter)) return next();
          await next({ ...request, notAfter: inTime() });
          throw new Status(status.FAILED_PRECONDITION);
        },
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
    adapter: 'changes the record of an allocation once it was looked up',
    breaks: 'allocation-record-kept',
    defect: {
      allocations: {
        lookUpAllocation: async ({ adapter, request, next }) => {
          const answer = await next();
          const isFirst = !adapter.kept.has(request.clientAllocationId);
          adapter.kept.set(request.clientAllocationId, true);
          if (answer.record && !isFirst) answer.record.brokerReference = 'another';
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
