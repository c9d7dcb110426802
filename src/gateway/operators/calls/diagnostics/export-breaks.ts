import { status } from '@grpc/grpc-js';
import type { Diagnostics } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { ExportReconciliationBreaksRequest } from '../../../../gen/marina/admin/v1/reconciliation_pb.ts';
import { csvLine } from '../../../../kit/csv.ts';
import type { Database } from '../../../store/database.ts';
import { listBreaks } from '../../reconciliation/store.ts';
import { reconciliationBreaks, type StoredBreak } from '../../reconciliation/table.ts';
import type { AdminCall, AdminCalls } from '../call.ts';
import { AdminError } from '../errors.ts';
import { wantedKind } from './reconciliation.ts';

const rowsTogether = 200;

const columns = {
  id: ({ id }) => id,
  day: ({ day }) => day,
  kind: ({ kind }) => kind,
  partner_id: ({ partnerId }) => partnerId,
  object_id: ({ objectId }) => objectId,
  account: ({ account }) => account,
  symbol: ({ symbol }) => symbol,
  ours: ({ ours }) => ours,
  brokers: ({ brokers }) => brokers,
  is_unsettled: ({ isUnsettled }) => String(isUnsettled),
  first_seen_at: ({ firstSeenAt }) => instant(firstSeenAt),
  last_seen_at: ({ lastSeenAt }) => instant(lastSeenAt),
  gone_at: ({ goneAt }) => instant(goneAt),
  acknowledged_by: ({ acknowledgedBy }) => acknowledgedBy ?? '',
  acknowledged_at: ({ acknowledgedAt }) => instant(acknowledgedAt),
  acknowledged_reason: ({ acknowledgedReason }) => acknowledgedReason ?? '',
} satisfies Readonly<Record<string, (row: StoredBreak) => string>>;

/** The operators' call that exports breaks as CSV. One export reads one page of breaks at a time. */
export function exportCalls(database: Database): Pick<AdminCalls<typeof Diagnostics>, 'exportReconciliationBreaks'> {
  let underWay = false;

  async function* exportReconciliationBreaks(
    { kind, ...filter }: ExportReconciliationBreaksRequest,
    _call: AdminCall,
    signal: AbortSignal,
  ) {
    const word = wantedKind(kind, filter);
    if (underWay) throw new AdminError(status.RESOURCE_EXHAUSTED, 'another export is under way: call again');
    underWay = true;
    try {
      yield { csv: csvLine(Object.keys(columns)) };
      let after: readonly [string, string] | undefined;
      while (!signal.aborted) {
        const found = await database.read(listBreaks(filter, after, rowsTogether));
        const rows = found.map(reconciliationBreaks.all.read);
        const wanted = rows.filter((row) => word === undefined || row.kind === word);
        const csv = wanted.map((row) => csvLine(Object.values(columns).map((value) => value(row)))).join('');
        if (csv !== '') yield { csv };
        const last = rows.at(-1);
        if (last === undefined || rows.length < rowsTogether) return;
        after = [last.day, last.id];
      }
    } finally {
      underWay = false;
    }
  }

  return { exportReconciliationBreaks };
}

function instant(ms: number | null): string {
  return ms === null ? '' : new Date(ms).toISOString();
}
