import { create } from '@bufbuild/protobuf';
import type { Handler } from '../auth/call.ts';
import {
  CreateApplicationRequestSchema,
  type ListApplicationsRequest,
  type ListApplicationsResponse,
  ListApplicationsResponseSchema,
} from '../gen/marina/gateway/v1/applications_pb.ts';
import { type SubmissionHandlerParts, submissionHandlers } from '../submission/handlers.ts';
import type { ApplicationKind } from './kind.ts';
import { toApplicationMessage } from './messages.ts';
import { shownApplication } from './table.ts';

/** The operations on applications. */
export function applicationHandlers(parts: SubmissionHandlerParts & { readonly kind: ApplicationKind }) {
  const of = submissionHandlers(parts, parts.kind, {
    request: CreateApplicationRequestSchema,
    shown: shownApplication,
    toMessage: toApplicationMessage,
    notFound: 'application_not_found',
  });

  const listApplications: Handler<ListApplicationsRequest, ListApplicationsResponse> = async (request, call) =>
    create(ListApplicationsResponseSchema, await of.list(request, {}, call));

  return { createApplication: of.create, getApplication: of.get, listApplications };
}
