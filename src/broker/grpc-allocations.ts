import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRejectReason,
  Allocations,
} from '../gen/marina/broker/v1/allocations_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';
import { type GrpcBrokerOptions, SubmissionService } from './connection.ts';
import { notFound } from './not-found.ts';
import type { AllocationBroker, AllocationToSend, LookedUp, Noted, Sent } from './port.ts';

/** A broker's allocations met over `marina.broker.v1`. */
export class GrpcAllocations extends SubmissionService<typeof Allocations> implements AllocationBroker {
  constructor(options: GrpcBrokerOptions) {
    super(Allocations, options);
  }

  submitAllocation(allocation: AllocationToSend & Noted, notAfterMs: number): Promise<Sent<AllocationRecord>> {
    const { id: clientAllocationId, account, amountKobo, origin, note } = allocation;
    const request = { clientAllocationId, account, amountKobo, notAfter: timestampFromMs(notAfterMs), note };
    const about = { notAfterMs, longestMs: this.options.submitTimeoutMs, origin, objectId: clientAllocationId };
    return this.submissions.send('submitAllocation', request, about, ({ record }) =>
      record !== undefined && isRecord(record, clientAllocationId) ? record : undefined,
    );
  }

  async lookUpAllocation(allocationId: string, origin: Origin): Promise<LookedUp<AllocationRecord>> {
    const request = { clientAllocationId: allocationId };
    const about = { timeoutMs: this.options.readTimeoutMs, origin, objectId: allocationId };
    const askedAt = performance.now();
    const answer = await this.lookUps.call('lookUpAllocation', request, about);
    const { record } = answer;
    if (record === undefined) return notFound(answer, askedAt);
    if (!isRecord(record, allocationId)) throw new ApiError('exchange_error');
    return { found: true, answer: record };
  }
}

/** Whether a record is of the allocation and has what its outcome needs, and nothing of the other outcome. */
function isRecord(record: AllocationRecord, allocationId: string): boolean {
  const { clientAllocationId, outcome, brokerReference, rejectReason, at } = record;
  if (clientAllocationId !== allocationId || at === undefined) return false;
  if (outcome === AllocationOutcome.REJECTED) return brokerReference === '';
  return (
    outcome === AllocationOutcome.BOOKED &&
    brokerReference !== '' &&
    brokerReference.length <= 64 &&
    rejectReason === AllocationRejectReason.UNSPECIFIED
  );
}
