import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  Allocations,
  LookUpAllocationRequest,
  LookUpAllocationResponseSchema,
  SubmitAllocationRequest,
} from '../../gen/marina/broker/v1/allocations_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { check, checkNote, instantMs, positive, text } from '../validation.ts';
import { carrySubmission, completeUntil, receipt } from '../wire/legs.ts';
import type { SimulatorHandlers, WireCall } from '../wire/rpc.ts';
import type { BackOfficeContext } from './applications-service.ts';
import { amountMagic, faultOf } from './magic.ts';
import { allocationRecordMessage } from './messages.ts';
import type { AllocationSubmission } from './model.ts';
import { submitAllocation } from './operations.ts';

const maxAmountKobo = 10_000_000_000n;

/** The broker's service for allocations. Each call passes the faults first. */
export function allocationsService(context: BackOfficeContext): SimulatorHandlers<typeof Allocations> {
  return {
    submitAllocation: (request, call) => submit(context, request, call),
    lookUpAllocation: (request, call) => lookUp(context, request, call),
  };
}

function submit(context: BackOfficeContext, request: SubmitAllocationRequest, call: WireCall) {
  const { clientAllocationId: id, account } = request;
  const { settings, nonsense } = context;
  return carrySubmission(context, call, {
    ...{ call: Call.SUBMIT_ALLOCATION, kind: 'allocation', id, account, request, needs: { allocations: [id] } },
    check: submissionFrom,
    submit: (unit, submission) => submitAllocation(unit, submission, instantMs(request.notAfter), settings),
    answer: (allocation) => ({ record: allocationRecordMessage(allocation) }),
    magicFault: faultOf(amountMagic(request.amountKobo)),
    nonsense: nonsense.submitAllocation,
  });
}

function lookUp(context: BackOfficeContext, request: LookUpAllocationRequest, call: WireCall) {
  const { writer, wire, records, world, nonsense } = context;
  const { clientAllocationId: id } = request;
  const received = receipt(world, Call.LOOK_UP_ALLOCATION, id, call);
  // Through the writer, so that earlier submissions are there.
  const record = (taken: boolean, number?: number) =>
    writer.runOn({ allocations: [id] }, (unit) => {
      const allocation = unit.backOffice.allocation(id);
      return { allocation, number: received(unit, allocation?.account ?? '', taken, number) };
    });
  return wire.carry<MessageInitShape<typeof LookUpAllocationResponseSchema>>(call, {
    call: Call.LOOK_UP_ALLOCATION,
    clientId: id,
    account: () => records.accountOf(id),
    record: async () => (await record(false)).number,
    take: async (recorded) => {
      const { allocation } = await record(true, recorded);
      const until = { completeUntil: completeUntil(world) };
      return allocation === undefined ? until : { record: allocationRecordMessage(allocation), ...until };
    },
    nonsense: nonsense.lookUpAllocation,
  });
}

/** Reads an allocation from its request. A request that makes no sense is an invalid argument, not a rejection. */
function submissionFrom(request: SubmitAllocationRequest): AllocationSubmission {
  checkNote(request);
  check(request.amountKobo <= maxAmountKobo, 'amount_kobo');
  return {
    clientAllocationId: text(request.clientAllocationId, 'client_allocation_id', 64),
    account: text(request.account, 'account', 64),
    amountKobo: positive(request.amountKobo, 'amount_kobo'),
  };
}
