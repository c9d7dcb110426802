import { Audit } from '../../../gen/marina/admin/v1/audit_pb.ts';
import { toMilliseconds } from '../../../kit/clock.ts';
import type { Statement } from '../../store/statement.ts';
import { defineTable, instant, longText, optional, type RowOf, text, whole } from '../../store/table.ts';
import { type AdminCall, type AdminParts, adminService, listed } from './call.ts';
import { invalidField } from './errors.ts';

/** The audit entry of a call that changes something. */
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

/** Operators' changes. Entries are never changed. */
export const auditEntries = defineTable({
  name: 'audit_entries',
  columns: {
    id: whole(),
    at: instant(),
    operator: text(64),
    action: text(64),
    subject: optional(text(64)),
    detail: longText(),
    partnerId: optional(text(24)),
    /** The state before and after, as JSON objects. */
    was: optional(longText()),
    became: optional(longText()),
  },
  primary: ['id'],
  generated: 'id',
  indexes: {
    audit_entries_partner_id: ['partnerId', 'id'],
    audit_entries_subject: ['subject', 'id'],
    audit_entries_action: ['partnerId', 'action', 'at'],
  },
});

/** The audit entry of a call. It belongs in the transaction of the change. */
export function audit(
  { operator, action }: Pick<AdminCall, 'operator' | 'action'>,
  at: number,
  entry: AuditEntry,
): Statement {
  const { partnerId, subject = partnerId, detail, before, after } = entry;
  return auditEntries.insert({
    id: 0n,
    ...{ at, operator, action },
    partnerId: partnerId ?? null,
    subject: subject ?? null,
    detail: toJson(detail),
    was: before === undefined ? null : toJson(before),
    became: after === undefined ? null : toJson(after),
  });
}

/** Amounts beyond 2^53 become exact texts. */
function toJson(value: Record<string, unknown>): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? member.toString() : member));
}

/** The operators' calls on the audit log. */
export function auditService({ database }: AdminParts) {
  return adminService(Audit, {
    async listEntries({ partnerId, subject, operator, action, beforeId, limit, ...request }) {
      const from = request.from && toMilliseconds(request.from);
      const to = request.to && toMilliseconds(request.to);
      if (from !== undefined && to !== undefined && to <= from) throw invalidField('to', 'must be after `from`.');
      const read = (most: number) =>
        database.manage((manager) => {
          const query = manager
            .createQueryBuilder<RowOf<typeof auditEntries>>(auditEntries.name, 'entry')
            .orderBy('entry.id', 'DESC')
            .take(most);
          for (const [field, value] of Object.entries({ partnerId, subject, operator, action })) {
            if (value !== '') query.andWhere(`entry.${field} = :${field}`, { [field]: value });
          }
          // Newest first by the filter's own index: the server would weigh reading the whole log backwards.
          if (partnerId !== '') query.useIndex('audit_entries_partner_id');
          else if (subject !== '') query.useIndex('audit_entries_subject');
          if (from !== undefined) query.andWhere('entry.at >= :from', { from: new Date(from) });
          if (to !== undefined) query.andWhere('entry.at < :to', { to: new Date(to) });
          if (beforeId !== 0n) query.andWhere('entry.id < :beforeId', { beforeId: beforeId.toString() });
          return query.getMany();
        });
      const { rows, hasMore } = await listed(limit, read);
      return { entries: rows.map(({ was, became, ...entry }) => ({ ...entry, before: was, after: became })), hasMore };
    },
  });
}
