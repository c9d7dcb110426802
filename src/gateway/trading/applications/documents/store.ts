import { type Document, DocumentSchema } from '../../../../gen/marina/gateway/v1/documents_pb.ts';
import { type Fact, queryFact } from '../../../store/facts.ts';
import { type Statement, sql, statement } from '../../../store/statement.ts';
import { bytes, count, defineTable, instant, optional, type RowOf, text } from '../../../store/table.ts';
import { shownMessage } from '../../shown-message.ts';
import { type DocumentStateWord, type DocumentTypeWord, longestLeaseMs } from './rules.ts';

/** The documents of applications, without their files. */
export const documents = defineTable({
  name: 'documents',
  columns: {
    partnerId: text(24),
    applicationId: text(24),
    type: text<DocumentTypeWord>(16),
    /** Keyed, so that it reveals nothing about the file. */
    digest: bytes(32),
    state: text<DocumentStateWord>(16),
    /** Counts the sends, so that each one records only its own end. */
    attempt: count(),
    /** Real time until which a send may last. A document that is `sending` after that was cut off. */
    leaseUntil: optional(instant()),
    createdAt: instant(),
    updatedAt: instant(),
  },
  primary: ['partnerId', 'applicationId', 'type'],
  indexes: { documents_under_way: ['partnerId', 'state', 'leaseUntil'] },
});

export type StoredDocument = RowOf<typeof documents>;

/** An application's documents, in the order in which they were first sent. */
export function findDocuments(partnerId: string, applicationId: string): Statement {
  return documents.find({ partnerId, applicationId }, documents.all, statement('ORDER BY created_at, type'));
}

export function documentsOf(partnerId: string, applicationId: string): Fact<StoredDocument[]> {
  return queryFact(findDocuments(partnerId, applicationId), (rows) => rows.map(documents.all.read));
}

/** Counts documents on their way. `realNow` is real time. In another version's state one counts until its lease ends. */
export function countUnderWay(partnerId: string, realNow: number): Statement {
  return sql`SELECT COUNT(*) AS under_way FROM documents FORCE INDEX (documents_under_way)
    WHERE partner_id = ${partnerId} AND state NOT IN ('unconfirmed', 'delivered')
      AND lease_until > ${new Date(realNow)} AND lease_until <= ${new Date(realNow + longestLeaseMs)}`;
}

/** More leases than a partner has that end soon. Those further ahead were made by a clock that was ahead. */
const maxLeases = 100;

/**
 * The ends of the leases of a partner's documents on their way. Between asking and the answer lies the wait for the partner's
 * lock, so they are compared (`countLeased`) with the clock afterwards. `since` is real time from before the wait.
 */
export function leaseEndsOf(partnerId: string, since: number): Fact<readonly number[]> {
  return queryFact(
    sql`SELECT lease_until FROM documents FORCE INDEX (documents_under_way)
      WHERE partner_id = ${partnerId} AND state NOT IN ('unconfirmed', 'delivered') AND lease_until > ${new Date(since)}
      ORDER BY lease_until LIMIT ${statement(String(maxLeases))}`,
    (rows) => rows.flatMap(({ lease_until: until }) => (until instanceof Date ? [until.getTime()] : [])),
  );
}

/** Stores a document. The partner's lock must be held. */
export function saveDocument(document: StoredDocument): Statement {
  return documents.put(document, 'digest', 'state', 'attempt', 'leaseUntil', 'updatedAt');
}

/** Removes a document that the broker does not have. The partner's lock must be held. */
export function removeDocument({ partnerId, applicationId, type }: StoredDocument): Statement {
  return documents.remove({ partnerId, applicationId, type });
}

/** A delivered document as partners see it. */
export function toDocumentMessage(document: StoredDocument): Document {
  return shownMessage(DocumentSchema, document, { application: document.applicationId });
}
