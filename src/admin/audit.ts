import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Database } from '../db/database.ts';
import { type SqlRow, type SqlValue, type Statement, statement, toBigInt } from '../db/statement.ts';
import {
  AuditEntrySchema,
  type AuditEntry as AuditMessage,
  type ListEntriesRequest,
  type ListEntriesResponse,
  ListEntriesResponseSchema,
} from '../gen/marina/admin/v1/audit_pb.ts';
import { toMilliseconds } from '../lib/timestamps.ts';
import { invalidField, type Operator, pageSize } from './call.ts';

/** What an operator did. */
export interface AuditEntry {
  readonly at: number;
  readonly operator: Operator;
  /** Service and method, as in `Trading.PauseTrading`. */
  readonly action: string;
  /** The partner it concerns, when it concerns one. */
  readonly partnerId?: string;
  /** The id of what was changed, when it has one. */
  readonly subject?: string;
  /** What was asked for, and why. */
  readonly detail: Record<string, unknown>;
  /** What was so before, and what is so after; absent where nothing was, or nothing is. Never a secret. */
  readonly before?: Record<string, unknown>;
  readonly after?: Record<string, unknown>;
}

/** Writes down what an operator did; belongs into the transaction of the change itself. Entries are never changed. */
export function audit(entry: AuditEntry): Statement {
  return statement(
    `INSERT INTO audit_entries (at, operator, action, partner_id, subject, detail, was, became)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    new Date(entry.at),
    entry.operator,
    entry.action,
    entry.partnerId ?? null,
    entry.subject ?? null,
    toJson(entry.detail),
    entry.before === undefined ? null : toJson(entry.before),
    entry.after === undefined ? null : toJson(entry.after),
  );
}

/** The operators' calls on the audit log. */
export function auditHandlers(database: Database) {
  async function listEntries(request: ListEntriesRequest): Promise<ListEntriesResponse> {
    const limit = pageSize(request.limit);
    const from = request.from && toMilliseconds(request.from);
    const to = request.to && toMilliseconds(request.to);
    if (from !== undefined && to !== undefined && to <= from) throw invalidField('to', 'must be after `from`.');
    const rows = await database.read(listAudit(request, from, to, limit + 1));
    return create(ListEntriesResponseSchema, {
      entries: rows.slice(0, limit).map(toMessage),
      hasMore: rows.length > limit,
    });
  }
  return { listEntries };
}

function listAudit(
  { partnerId, subject, operator, action, beforeId }: ListEntriesRequest,
  from: number | undefined,
  to: number | undefined,
  most: number,
): Statement {
  const conditions: [string, SqlValue | undefined][] = [
    ['partner_id = ?', partnerId || undefined],
    ['subject = ?', subject || undefined],
    ['operator = ?', operator || undefined],
    ['action = ?', action || undefined],
    ['at >= ?', from === undefined ? undefined : new Date(from)],
    ['at < ?', to === undefined ? undefined : new Date(to)],
    ['id < ?', beforeId === 0n ? undefined : beforeId.toString()],
  ];
  const used = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
  return statement(
    `SELECT * FROM audit_entries WHERE ${['id > 0', ...used.map(([sql]) => sql)].join(' AND ')}
      ORDER BY id DESC LIMIT ${most}`,
    ...used.map(([, value]) => value),
  );
}

function toMessage(row: SqlRow): AuditMessage {
  return create(AuditEntrySchema, {
    id: toBigInt(row.id),
    at: timestampFromMs((row.at as Date).getTime()),
    operator: String(row.operator),
    action: String(row.action),
    partnerId: textOf(row.partner_id),
    subject: textOf(row.subject),
    detail: String(row.detail),
    before: textOf(row.was),
    after: textOf(row.became),
  });
}

function textOf(value: unknown): string {
  return value === null ? '' : String(value);
}

/** Amounts beyond 2^53 are written whole, as texts. */
function toJson(value: Record<string, unknown>): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? member.toString() : member));
}
