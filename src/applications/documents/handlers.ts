import { create } from '@bufbuild/protobuf';
import type { Call, Handler } from '../../auth/call.ts';
import type { Database } from '../../db/database.ts';
import {
  type Document,
  DocumentType,
  type ListDocumentsRequest,
  type ListDocumentsResponse,
  ListDocumentsResponseSchema,
  type SendDocumentRequest,
} from '../../gen/marina/gateway/v1/documents_pb.ts';
import { ApiError } from '../../lib/errors.ts';
import type { ImageChecker } from '../images/checker.ts';
import { applications, type ShownApplication, shownApplication } from '../table.ts';
import { toDocumentMessage, typeWords } from './messages.ts';
import { checkTakesDocuments, isShown } from './rules.ts';
import type { DocumentSender } from './sender.ts';
import { findDocuments, toStoredDocument } from './store.ts';

export interface DocumentHandlerParts {
  readonly database: Database;
  readonly images: ImageChecker;
  readonly sender: DocumentSender;
}

/** The operations on applications' documents. */
export function documentHandlers({ database, images, sender }: DocumentHandlerParts) {
  /** What the application says, and whether the file may wait, come before the file: one that is refused is not received. */
  const sendDocument: Handler<SendDocumentRequest, Document> = async ({ id, type }, call) => {
    const { partnerId } = call.caller;
    const application = await find(id, call);
    checkTakesDocuments(application.state);
    images.checkRoom(partnerId);
    const { mediaType, content } = await call.receiveFile();
    // A key that was revoked meanwhile gets nothing decoded, and is told of nothing that was delivered.
    await call.permission.renew();
    images.checkRoom(partnerId);
    const image = images.readHeaders(content, mediaType);
    const word = typeWords.word(type ?? DocumentType.UNSPECIFIED);
    const file = { partnerId, applicationId: application.id, type: word, mediaType, content };
    const digest = sender.digestOf(file);
    // Decoding is what costs: a file that cannot be sent now is not decoded, and one the broker has was decoded before.
    const delivered = await sender.look(file, digest);
    if (delivered !== undefined) return toDocumentMessage(delivered);
    await images.decode(image, partnerId);
    return toDocumentMessage(await sender.send(file, digest, call));
  };

  const listDocuments: Handler<ListDocumentsRequest, ListDocumentsResponse> = async ({ id }, call) => {
    const application = await find(id, call);
    const rows = await database.read(findDocuments(call.caller.partnerId, application.id));
    const documents = rows.map(toStoredDocument).filter(isShown);
    return create(ListDocumentsResponseSchema, { data: documents.map(toDocumentMessage) });
  };

  /** Another partner's application is found exactly as little, and as fast, as one that does not exist. */
  async function find(id: string | undefined, { caller }: Call): Promise<ShownApplication> {
    const [row] = await database.read(
      applications.find({ partnerId: caller.partnerId, id: id ?? '' }, shownApplication),
    );
    if (row === undefined) throw new ApiError('application_not_found');
    return shownApplication.read(row);
  }

  return { sendDocument, listDocuments };
}
