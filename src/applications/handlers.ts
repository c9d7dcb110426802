import {
  CreateApplicationRequestSchema,
  ListApplicationsRequestSchema,
  ListApplicationsResponseSchema,
} from '../gen/marina/gateway/v1/applications_pb.ts';
import { type SubmissionHandlerParts, submissionHandlers } from '../submission/handlers.ts';
import type { ApplicationKind } from './kind.ts';
import { shownApplication, toApplicationMessage } from './table.ts';

/** The operations on applications. */
export function applicationHandlers(parts: SubmissionHandlerParts & { readonly kind: ApplicationKind }) {
  const of = submissionHandlers(parts, parts.kind, {
    schemas: [CreateApplicationRequestSchema, ListApplicationsRequestSchema, ListApplicationsResponseSchema],
    shown: shownApplication,
    toMessage: toApplicationMessage,
    notFound: 'application_not_found',
  });
  return { createApplication: of.create, getApplication: of.get, listApplications: of.list };
}
