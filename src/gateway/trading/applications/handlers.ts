import { create } from '@bufbuild/protobuf';
import {
  type Application,
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
  ListApplicationsRequestSchema,
  ListApplicationsResponseSchema,
} from '../../../gen/marina/gateway/v1/applications_pb.ts';
import {
  type Document,
  type ListDocumentsRequest,
  type ListDocumentsResponse,
  ListDocumentsResponseSchema,
  type SendDocumentRequest,
  SendDocumentRequestSchema,
} from '../../../gen/marina/gateway/v1/documents_pb.ts';
import { type Clock, lagosDay } from '../../../kit/clock.ts';
import type { Handler } from '../../edge/call.ts';
import { invalidParam } from '../../edge/errors.ts';
import { storedFields } from '../shown-message.ts';
import { type SubmissionHandlerParts, submissionHandlers } from '../submission/handlers.ts';
import { checkTakesDocuments, type DocumentTypeWord, isShown } from './documents/rules.ts';
import type { DocumentSender } from './documents/sender.ts';
import { documents, findDocuments, toDocumentMessage } from './documents/store.ts';
import type { ImageChecker } from './image-checker.ts';
import type { ApplicationKind } from './kind.ts';
import { shownApplication, toApplicationMessage } from './table.ts';

export interface ApplicationHandlerParts extends SubmissionHandlerParts {
  readonly kind: ApplicationKind;
  readonly clock: Clock;
  readonly images: ImageChecker;
  readonly sender: DocumentSender;
}

/** The operations on applications and their documents. */
export function applicationHandlers(parts: ApplicationHandlerParts) {
  const { clock, database, images, sender } = parts;
  const of = submissionHandlers(
    parts,
    parts.kind,
    [CreateApplicationRequestSchema, ListApplicationsRequestSchema, ListApplicationsResponseSchema],
    shownApplication,
    toApplicationMessage,
  );

  /** The proto's pattern states the first day; today needs a clock. */
  const createApplication: Handler<CreateApplicationRequest, Application> = async (request, call) => {
    // Dates of this form have the order of their texts.
    if ((request.dateOfBirth ?? '') > lagosDay(clock.now())) {
      throw invalidParam('date_of_birth', 'must be a date from 1900-01-01 to today, as in 1990-12-31.');
    }
    return of.create(request, call);
  };

  /** Checks the application's state and the room for waiting before the file, so that a refused file is not received. */
  const sendDocument: Handler<SendDocumentRequest, Document> = async (request, call) => {
    const { partnerId } = call.caller;
    const application = await of.find(request.id, call);
    checkTakesDocuments(application.state);
    images.checkRoom(partnerId);
    const { mediaType, content } = await call.receiveFile();
    // If the key was revoked meanwhile, nothing is decoded and the caller does not learn what was delivered.
    await call.permission.renew();
    images.checkRoom(partnerId);
    const image = images.readHeaders(content, mediaType);
    const type = storedFields(SendDocumentRequestSchema, request).type as DocumentTypeWord; // It is required.
    const file = { partnerId, applicationId: application.id, type, mediaType, content };
    const digest = sender.digestOf(file);
    // Decoding is expensive, so a file that cannot be sent now, or that the broker has, is not decoded.
    const delivered = await sender.findDelivered(file, digest);
    if (delivered !== undefined) return toDocumentMessage(delivered);
    await images.decode(image, partnerId);
    return toDocumentMessage(await sender.send(file, digest, call));
  };

  const listDocuments: Handler<ListDocumentsRequest, ListDocumentsResponse> = async ({ id }, call) => {
    const application = await of.find(id, call);
    const rows = await database.read(findDocuments(call.caller.partnerId, application.id));
    const shown = rows.map(documents.all.read).filter(isShown);
    return create(ListDocumentsResponseSchema, { data: shown.map(toDocumentMessage) });
  };

  return {
    ...{ createApplication, getApplication: of.get, listApplications: of.list },
    ...{ sendDocument, listDocuments },
  };
}
