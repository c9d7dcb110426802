import { type SqlRow, type Statement, statement } from '../../db/statement.ts';
import { type DocumentFacts, type DocumentStateWord, type DocumentTypeWord, longestLeaseMs } from './rules.ts';

/** A document as it is stored. */
export interface StoredDocument extends DocumentFacts {
  readonly partnerId: string;
  readonly applicationId: string;
  readonly type: DocumentTypeWord;
}

const columns = 'partner_id, application_id, type, digest, state, attempt, lease_until, created_at, updated_at';

/** All of an application's documents, in the order in which they were first sent. */
export function findDocuments(partnerId: string, applicationId: string): Statement {
  return statement(
    `SELECT ${columns} FROM documents WHERE partner_id = ? AND application_id = ? ORDER BY created_at, type`,
    partnerId,
    applicationId,
  );
}

/**
 * How many of a partner's documents are on their way. `realNow` is real time. In a state of another version a document counts
 * while its lease lasts.
 */
export function countUnderWay(partnerId: string, realNow: number): Statement {
  return statement(
    `SELECT COUNT(*) AS under_way FROM documents
      WHERE partner_id = ? AND state NOT IN ('unconfirmed', 'delivered') AND lease_until > ? AND lease_until <= ?`,
    partnerId,
    new Date(realNow),
    new Date(realNow + longestLeaseMs),
  );
}

/** Stores a document as it is now. The partner's lock must be held. */
export function saveDocument(document: StoredDocument): Statement {
  return statement(
    `INSERT INTO documents (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON DUPLICATE KEY UPDATE digest = VALUES(digest), state = VALUES(state), attempt = VALUES(attempt),
        lease_until = VALUES(lease_until), updated_at = VALUES(updated_at)`,
    document.partnerId,
    document.applicationId,
    document.type,
    document.digest,
    document.state,
    document.attempt,
    document.leaseUntil === null ? null : new Date(document.leaseUntil),
    new Date(document.createdAt),
    new Date(document.updatedAt),
  );
}

/** Forgets a document that the broker does not have. The partner's lock must be held. */
export function removeDocument({ partnerId, applicationId, type }: StoredDocument): Statement {
  return statement(
    'DELETE FROM documents WHERE partner_id = ? AND application_id = ? AND type = ?',
    partnerId,
    applicationId,
    type,
  );
}

export function toStoredDocument(row: SqlRow): StoredDocument {
  return {
    partnerId: row.partner_id as string,
    applicationId: row.application_id as string,
    type: row.type as DocumentTypeWord,
    digest: row.digest as Buffer,
    state: row.state as DocumentStateWord,
    attempt: Number(row.attempt),
    leaseUntil: row.lease_until === null ? null : (row.lease_until as Date).getTime(),
    createdAt: (row.created_at as Date).getTime(),
    updatedAt: (row.updated_at as Date).getTime(),
  };
}
