import { create } from '@bufbuild/protobuf';
import {
  type Document,
  DocumentSchema,
  type DocumentState,
  DocumentStateSchema,
  type DocumentType,
  DocumentTypeSchema,
} from '../../gen/marina/gateway/v1/documents_pb.ts';
import { enumWords, withStoredNames } from '../../lib/enums.ts';
import { toSecond } from '../../lib/timestamps.ts';
import type { StoredDocument } from './store.ts';

export const typeWords = enumWords<typeof DocumentType>(DocumentTypeSchema);
const stateWords = enumWords<typeof DocumentState>(DocumentStateSchema);

/** A document as partners see it: one that the broker has. */
export function toDocumentMessage(document: StoredDocument): Document {
  const { type, state } = document;
  const message = create(DocumentSchema, {
    application: document.applicationId,
    type: typeWords.value(type),
    state: stateWords.value(state),
    createdAt: toSecond(document.createdAt),
    updatedAt: toSecond(document.updatedAt),
  });
  return withStoredNames(message, { type, state });
}
