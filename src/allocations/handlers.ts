import { create } from '@bufbuild/protobuf';
import type { Handler } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import {
  type Allocation,
  type CreateAllocationRequest,
  CreateAllocationRequestSchema,
  type GetAllocationRequest,
  type ListAllocationsRequest,
  type ListAllocationsResponse,
  ListAllocationsResponseSchema,
} from '../gen/marina/gateway/v1/allocations_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Cursors } from '../lib/paging.ts';
import { toMilliseconds } from '../lib/timestamps.ts';
import { requestDigest } from '../submission/digest.ts';
import type { Submitter } from '../submission/submit.ts';
import type { AllocationKind } from './kind.ts';
import { stateWords, toAllocationMessage } from './messages.ts';
import { findShownAllocation, listAllocations, toShownAllocation } from './store.ts';

export interface AllocationHandlerParts {
  readonly database: Database;
  readonly submitter: Submitter;
  readonly kind: AllocationKind;
  readonly cursors: Cursors;
  readonly digestKey: Buffer;
}

/** The operations on allocations. */
export function allocationHandlers({ database, submitter, kind, cursors, digestKey }: AllocationHandlerParts) {
  const createAllocation: Handler<CreateAllocationRequest, Allocation> = async (request, call) => {
    const { row, replayed } = await submitter.submit(kind, {
      origin: call.origin,
      idempotencyKey: call.idempotencyKey ?? '',
      digest: requestDigest(digestKey, CreateAllocationRequestSchema, request),
      request,
      permission: call.permission,
      log: () => call.log,
    });
    call.reply.replayed = replayed;
    return toAllocationMessage(row);
  };

  /** Another partner's allocation is found exactly as little, and as fast, as one that does not exist. */
  const getAllocation: Handler<GetAllocationRequest, Allocation> = async ({ id }, { caller }) => {
    const [row] = await database.read(findShownAllocation(caller.partnerId, id ?? ''));
    if (row === undefined) throw new ApiError('allocation_not_found');
    return toAllocationMessage(toShownAllocation(row));
  };

  const listAllocations_: Handler<ListAllocationsRequest, ListAllocationsResponse> = async (request, { caller }) => {
    const { limit = 25, cursor, state, account, clientReference, updatedSince } = request;
    const filters = {
      state: state === undefined ? undefined : stateWords.word(state),
      account,
      clientReference,
      updatedSince: updatedSince === undefined ? undefined : toMilliseconds(updatedSince),
    };
    const issuedFor = ['allocations', caller.partnerId, JSON.stringify(filters)];
    const before = cursor === undefined ? undefined : cursors.read(issuedFor, cursor);
    const rows = await database.read(listAllocations(caller.partnerId, filters, before, limit + 1));
    const page = rows.slice(0, limit).map(toShownAllocation);
    const hasMore = rows.length > limit;
    const last = page.at(-1);
    return create(ListAllocationsResponseSchema, {
      hasMore,
      nextCursor: hasMore && last !== undefined ? cursors.issue(issuedFor, last.id) : undefined,
      data: page.map(toAllocationMessage),
    });
  };

  return { createAllocation, listAllocations: listAllocations_, getAllocation };
}
