import { create } from '@bufbuild/protobuf';
import {
  type Allocation,
  type AllocationRejectReason,
  AllocationRejectReasonSchema,
  AllocationSchema,
  type AllocationState,
  AllocationStateSchema,
} from '../gen/marina/gateway/v1/allocations_pb.ts';
import { enumWords, withStoredNames } from '../lib/enums.ts';
import { toSecond } from '../lib/timestamps.ts';
import type { ShownAllocation } from './table.ts';

export const stateWords = enumWords<typeof AllocationState>(AllocationStateSchema);
const rejectReasonWords = enumWords<typeof AllocationRejectReason>(AllocationRejectReasonSchema);

/** The allocation as partners see it, in answers and in events alike. */
export function toAllocationMessage(allocation: ShownAllocation): Allocation {
  const { id, state, account, amountKobo, rejectReason } = allocation;
  const message = create(AllocationSchema, {
    id,
    state: stateWords.value(state),
    account,
    amountKobo,
    clientReference: allocation.clientReference ?? undefined,
    brokerReference: allocation.brokerReference ?? undefined,
    reason: allocation.reason ?? undefined,
    rejectReason: rejectReason === null ? undefined : rejectReasonWords.value(rejectReason),
    createdAt: toSecond(allocation.createdAt),
    updatedAt: toSecond(allocation.updatedAt),
  });
  return withStoredNames(message, { state, rejectReason });
}
