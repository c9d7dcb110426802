import type { Statement } from '../../store/statement.ts';
import { defineTable, instant, longText, optional, text, whole } from '../../store/table.ts';

/** Changes by operators, their reads of money, and partners' changes of their keys. Entries are never changed. */
export const auditEntries = defineTable({
  name: 'audit_entries',
  columns: {
    id: whole(),
    at: instant(),
    /** Empty: a partner did it, with `keyId`. */
    operator: text(64),
    action: text(64),
    subject: optional(text(64)),
    detail: longText(),
    partnerId: optional(text(24)),
    /** The state before and after, as JSON objects. */
    was: optional(longText()),
    became: optional(longText()),
    /** The `x-request-id` of the call; null in entries of earlier versions, like all that follows. */
    requestId: optional(text(36)),
    /** As log lines show it; null also if they show none. */
    clientAddress: optional(text(64)),
    /** The roles of the operator's token, joined by `+`. */
    roles: optional(text(64)),
    /** The partner's key. */
    keyId: optional(text(24)),
  },
  primary: ['id'],
  generated: 'id',
  indexes: {
    audit_entries_partner_id: ['partnerId', 'id'],
    audit_entries_subject: ['subject', 'id'],
    audit_entries_action: ['partnerId', 'action', 'at'],
    audit_entries_operator: ['operator', 'id'],
    audit_entries_at: ['at'],
  },
});

/** Who did what. A command of the gateway has no request. */
export interface AuditedBy {
  readonly operator: string;
  readonly action: string;
  readonly requestId?: string;
  readonly clientAddress?: string | undefined;
  readonly roles?: readonly string[];
  readonly keyId?: string;
}

/** The audit entry of a call. */
export interface AuditEntry {
  /** The partner, if the call concerns one. */
  readonly partnerId?: string;
  /** The id of the changed object; by default the partner's. */
  readonly subject?: string;
  /** The request, with its reason. */
  readonly detail: Record<string, unknown>;
  /** The state before and after; absent if there was or is none. Never a secret. */
  readonly before?: Record<string, unknown>;
  readonly after?: Record<string, unknown>;
}

/** The audit entry of a call. It belongs in the transaction of the change. */
export function audit(by: AuditedBy, at: number, entry: AuditEntry): Statement {
  const { partnerId, subject = partnerId, detail, before, after } = entry;
  const { operator, action, requestId, clientAddress, roles, keyId } = by;
  return auditEntries.insert({
    id: 0n,
    ...{ at, operator, action },
    partnerId: partnerId ?? null,
    subject: subject ?? null,
    detail: toJson(detail),
    was: before === undefined ? null : toJson(before),
    became: after === undefined ? null : toJson(after),
    requestId: requestId ?? null,
    clientAddress: clientAddress ?? null,
    roles: roles?.join('+') ?? null,
    keyId: keyId ?? null,
  });
}

/** Amounts beyond 2^53 become exact texts. */
function toJson(value: Record<string, unknown>): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? member.toString() : member));
}
