import { type Statement, statement } from '../db/statement.ts';

/** What an operator did. */
export interface AuditEntry {
  readonly at: number;
  readonly operator: string;
  /** Service and method, as in `Trading.PauseTrading`. */
  readonly action: string;
  /** The id of what was changed, when it has one. */
  readonly subject?: string;
  readonly detail: Record<string, unknown>;
}

/** Writes down what an operator did; belongs into the transaction of the change itself. Entries are never changed. */
export function audit(entry: AuditEntry): Statement {
  return statement(
    'INSERT INTO audit_entries (at, operator, action, subject, detail) VALUES (?, ?, ?, ?, ?)',
    new Date(entry.at),
    entry.operator,
    entry.action,
    entry.subject ?? null,
    JSON.stringify(entry.detail),
  );
}
