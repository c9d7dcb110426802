import {
  CreateAllocationRequestSchema,
  ListAllocationsRequestSchema,
  ListAllocationsResponseSchema,
} from '../../../gen/marina/gateway/v1/allocations_pb.ts';
import { type SubmissionHandlerParts, submissionHandlers } from '../submission/handlers.ts';
import type { AllocationKind } from './kind.ts';
import { shownAllocation, toAllocationMessage } from './table.ts';

/** The operations on allocations. */
export function allocationHandlers(parts: SubmissionHandlerParts & { readonly kind: AllocationKind }) {
  const of = submissionHandlers(
    parts,
    parts.kind,
    [CreateAllocationRequestSchema, ListAllocationsRequestSchema, ListAllocationsResponseSchema],
    shownAllocation,
    toAllocationMessage,
  );
  return { createAllocation: of.create, listAllocations: of.list, getAllocation: of.get };
}
