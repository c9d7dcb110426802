import {
  type Document,
  DocumentSchema,
  type DocumentType,
  DocumentTypeSchema,
} from '../../gen/marina/gateway/v1/documents_pb.ts';
import { enumWords } from '../../lib/enums.ts';
import { shownMessage } from '../../lib/shown-message.ts';
import type { StoredDocument } from './store.ts';

export const typeWords = enumWords<typeof DocumentType>(DocumentTypeSchema);

/** A document as partners see it: one that the broker has. */
export function toDocumentMessage(document: StoredDocument): Document {
  return shownMessage(DocumentSchema, document, { application: document.applicationId });
}
