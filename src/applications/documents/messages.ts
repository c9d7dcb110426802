import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Document,
  DocumentSchema,
  DocumentStateSchema,
  DocumentTypeSchema,
} from '../../gen/marina/gateway/v1/documents_pb.ts';
import { enumWords } from '../../lib/enums.ts';
import type { DocumentTypeWord } from './rules.ts';
import type { StoredDocument } from './store.ts';

export const typeWords = enumWords<DocumentTypeWord>(DocumentTypeSchema);
const stateWords = enumWords(DocumentStateSchema);

/** A document as partners see it: one that the broker has. */
export function toDocumentMessage(document: StoredDocument): Document {
  return create(DocumentSchema, {
    application: document.applicationId,
    type: typeWords.value(document.type),
    state: stateWords.value(document.state),
    createdAt: toSecond(document.createdAt),
    updatedAt: toSecond(document.updatedAt),
  });
}

function toSecond(ms: number) {
  return timestampFromMs(Math.floor(ms / 1_000) * 1_000);
}
