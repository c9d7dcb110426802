import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Document,
  DocumentSchema,
  DocumentStateSchema,
  DocumentTypeSchema,
} from '../../gen/marina/gateway/v1/documents_pb.ts';
import { enumWords, withStoredNames } from '../../lib/enums.ts';
import type { DocumentTypeWord } from './rules.ts';
import type { StoredDocument } from './store.ts';

export const typeWords = enumWords<DocumentTypeWord>(DocumentTypeSchema);
export const stateWords = enumWords(DocumentStateSchema);

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

function toSecond(ms: number) {
  return timestampFromMs(Math.floor(ms / 1_000) * 1_000);
}
