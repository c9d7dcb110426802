import { create } from '@bufbuild/protobuf';
import type { Handler } from '../auth/call.ts';
import {
  CreateAllocationRequestSchema,
  type ListAllocationsRequest,
  type ListAllocationsResponse,
  ListAllocationsResponseSchema,
} from '../gen/marina/gateway/v1/allocations_pb.ts';
import { toMilliseconds } from '../lib/timestamps.ts';
import { type SubmissionHandlerParts, submissionHandlers } from '../submission/handlers.ts';
import type { AllocationKind } from './kind.ts';
import { stateWords, toAllocationMessage } from './messages.ts';
import { shownAllocation } from './table.ts';

/** The operations on allocations. */
export function allocationHandlers(parts: SubmissionHandlerParts & { readonly kind: AllocationKind }) {
  const of = submissionHandlers(parts, parts.kind, {
    request: CreateAllocationRequestSchema,
    shown: shownAllocation,
    toMessage: toAllocationMessage,
    notFound: 'allocation_not_found',
  });

  const listAllocations: Handler<ListAllocationsRequest, ListAllocationsResponse> = async (request, call) => {
    const { state, account, clientReference, updatedSince } = request;
    const filters = {
      state: state === undefined ? undefined : stateWords.word(state),
      account,
      clientReference,
      updatedSince: updatedSince === undefined ? undefined : toMilliseconds(updatedSince),
    };
    return create(ListAllocationsResponseSchema, await of.list(request, filters, call));
  };

  return { createAllocation: of.create, listAllocations, getAllocation: of.get };
}
