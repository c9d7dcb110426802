import {
  type Allocation,
  AllocationSchema,
  type AllocationState,
  AllocationStateSchema,
} from '../gen/marina/gateway/v1/allocations_pb.ts';
import { enumWords } from '../lib/enums.ts';
import { shownMessage } from '../lib/shown-message.ts';
import type { ShownAllocation } from './table.ts';

export const stateWords = enumWords<typeof AllocationState>(AllocationStateSchema);

/** The allocation as partners see it, in answers and in events alike. */
export function toAllocationMessage(allocation: ShownAllocation): Allocation {
  return shownMessage(AllocationSchema, allocation);
}
