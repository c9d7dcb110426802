import { create } from '@bufbuild/protobuf';
import type { Handler } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import {
  type Application,
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
  type GetApplicationRequest,
  type ListApplicationsRequest,
  type ListApplicationsResponse,
  ListApplicationsResponseSchema,
} from '../gen/marina/gateway/v1/applications_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Cursors } from '../lib/paging.ts';
import { requestDigest } from '../submission/digest.ts';
import type { Submitter } from '../submission/submit.ts';
import type { ApplicationKind } from './kind.ts';
import { toApplicationMessage } from './messages.ts';
import { findShownApplication, listApplications, toShownApplication } from './store.ts';

export interface ApplicationHandlerParts {
  readonly database: Database;
  readonly submitter: Submitter;
  readonly kind: ApplicationKind;
  readonly cursors: Cursors;
  readonly digestKey: Buffer;
}

/** The operations on applications. */
export function applicationHandlers({ database, submitter, kind, cursors, digestKey }: ApplicationHandlerParts) {
  const createApplication: Handler<CreateApplicationRequest, Application> = async (request, call) => {
    const { row, replayed } = await submitter.submit(kind, {
      origin: call.origin,
      idempotencyKey: call.idempotencyKey ?? '',
      digest: requestDigest(digestKey, CreateApplicationRequestSchema, request),
      request,
      permission: call.permission,
      log: () => call.log,
    });
    call.reply.replayed = replayed;
    return toApplicationMessage(row);
  };

  const getApplication: Handler<GetApplicationRequest, Application> = async ({ id }, { caller }) => {
    const [row] = await database.read(findShownApplication(caller.partnerId, id ?? ''));
    if (row === undefined) throw new ApiError('application_not_found');
    return toApplicationMessage(toShownApplication(row));
  };

  const listApplications_: Handler<ListApplicationsRequest, ListApplicationsResponse> = async (request, { caller }) => {
    const { limit = 25, cursor } = request;
    const issuedFor = ['applications', caller.partnerId];
    const before = cursor === undefined ? undefined : cursors.read(issuedFor, cursor);
    const rows = await database.read(listApplications(caller.partnerId, before, limit + 1));
    const page = rows.slice(0, limit).map(toShownApplication);
    const hasMore = rows.length > limit;
    const last = page.at(-1);
    return create(ListApplicationsResponseSchema, {
      hasMore,
      nextCursor: hasMore && last !== undefined ? cursors.issue(issuedFor, last.id) : undefined,
      data: page.map(toApplicationMessage),
    });
  };

  return { createApplication, getApplication, listApplications: listApplications_ };
}
