import type { ApplicationReport } from '../../gen/marina/broker/v1/applications_pb.ts';
import type { Change } from '../../submission/change.ts';
import type { ApplicationKind } from '../kind.ts';
import type { StoredApplication } from '../table.ts';
import { areAllDelivered } from './rules.ts';
import { removeDocument, type StoredDocument, saveDocument } from './store.ts';

/** What becomes of one of an application's documents. */
export interface DocumentChange {
  readonly before: StoredDocument;
  /** Undefined: the broker does not have it and never may have had. */
  readonly after: StoredDocument | undefined;
  /** What the history says. */
  readonly what: string;
}

/** The change of an application with one of its documents. With the fourth that the broker has, it is submitted. */
export function changeWith(
  kind: Pick<ApplicationKind, 'begin' | 'documentsDelivered'>,
  application: StoredApplication,
  documents: readonly StoredDocument[],
  { before, after, what }: DocumentChange,
): Change<StoredApplication, ApplicationReport> {
  const isLast = after?.state === 'delivered' && areAllDelivered([...documents, after]);
  const change = (isLast ? kind.documentsDelivered(application) : undefined) ?? kind.begin(application);
  const write = after === undefined ? removeDocument(before) : saveDocument(after);
  return change.write(write).step('document', `${before.type}: ${what}`);
}
