import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRejectReason,
  Allocations,
} from '../gen/marina/broker/v1/allocations_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { Connection } from './connection.ts';
import type { GrpcBrokerOptions } from './grpc-broker.ts';
import type { AllocationBroker, AllocationToSend, LookedUp, Sent } from './port.ts';

/**
 * A broker's allocations met over `marina.broker.v1`. Submissions and look-ups have a connection each, so that a hanging
 * look-up does not stand in an allocation's way.
 */
export class GrpcAllocations implements AllocationBroker {
  readonly #submissions: Connection<typeof Allocations>;
  readonly #lookUps: Connection<typeof Allocations>;

  constructor(private readonly options: GrpcBrokerOptions) {
    this.#submissions = new Connection(Allocations, options.address, 'broker');
    this.#lookUps = new Connection(Allocations, options.address, 'broker');
  }

  submitAllocation(allocation: AllocationToSend, notAfterMs: number): Promise<Sent<AllocationRecord>> {
    const { id: clientAllocationId, account, amountKobo } = allocation;
    const request = { clientAllocationId, account, amountKobo, notAfter: timestampFromMs(notAfterMs) };
    const time = { notAfterMs, longestMs: this.options.submitTimeoutMs };
    return this.#submissions.send(time, async (allocations, timeoutMs) => {
      const { record } = await allocations.submitAllocation(request, { timeoutMs });
      return record !== undefined && isRecord(record, clientAllocationId) ? record : undefined;
    });
  }

  async lookUpAllocation(allocationId: string): Promise<LookedUp<AllocationRecord>> {
    const request = { clientAllocationId: allocationId };
    const { record, completeUntil } = await this.#lookUps.use((allocations) =>
      allocations.lookUpAllocation(request, { timeoutMs: this.options.readTimeoutMs }),
    );
    if (record === undefined) return { found: false, completeUntil: completeUntil && timestampMs(completeUntil) };
    if (!isRecord(record, allocationId)) throw new ApiError('exchange_error');
    return { found: true, answer: record };
  }

  close(): void {
    this.#submissions.close();
    this.#lookUps.close();
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
