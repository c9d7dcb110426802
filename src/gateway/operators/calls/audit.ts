import { type DescMethod, type Message, toJson } from '@bufbuild/protobuf';
import { Audit } from '../../../gen/marina/admin/v1/audit_pb.ts';
import { toMilliseconds } from '../../../kit/clock.ts';
import { audit, auditEntries } from '../../edge/auth/audit-store.ts';
import type { RowOf } from '../../store/table.ts';
import type { AuditSeals } from '../audit/seals.ts';
import { accountExportCalls } from './account-export/service.ts';
import { auditProofCalls, oneAuditExport } from './audit-export.ts';
import { type AdminCall, type AdminParts, adminService, listed } from './call.ts';
import { invalidField } from './errors.ts';
import type { ReportsUnderWay } from './reports/parts.ts';

export { type AuditEntry, audit, auditEntries } from '../../edge/auth/audit-store.ts';

/** Writes the audit entry of a read of money: whose it is, and what was asked for. One entry for each call. */
export function readAuditor({ database, clock }: Pick<AdminParts, 'database' | 'clock'>) {
  return async (call: AdminCall, { input }: DescMethod, request: Message): Promise<void> => {
    const asked = toJson(input, request, { useProtoFieldName: true }) as Record<string, unknown>;
    const { partner_id: partnerId, account } = asked;
    const concerned = {
      ...(typeof partnerId === 'string' ? { partnerId } : {}),
      ...(typeof account === 'string' ? { subject: account } : {}),
    };
    await database.write(audit(call, clock.now(), { ...concerned, detail: { asked } }));
  };
}

/** The operators' calls on the audit log. */
export function auditService(
  { database, clock }: Pick<AdminParts, 'database' | 'clock'>,
  seals: AuditSeals,
  reports: ReportsUnderWay,
) {
  const exporting = oneAuditExport();
  return adminService(Audit, {
    ...auditProofCalls(database, seals, exporting),
    ...accountExportCalls({ database, clock, seals }, reports, exporting),
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
          else if (operator !== '') query.useIndex('audit_entries_operator');
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
