import { status } from '@grpc/grpc-js';
import type { ExportReconciliationBreaksRequest } from '../../../../gen/marina/admin/v1/reconciliation_pb.ts';
import { csvLine } from '../../../../kit/csv.ts';
import type { Database } from '../../../store/database.ts';
import { listBreaks } from '../../reconciliation/store.ts';
import { reconciliationBreaks } from '../../reconciliation/table.ts';
import type { AdminCall } from '../call.ts';
import { AdminError } from '../errors.ts';
import { wantedKind } from './reconciliation.ts';

const rowsTogether = 200;

const columns = [
  ...['id', 'day', 'kind', 'partner_id', 'object_id', 'account', 'symbol', 'ours', 'brokers', 'is_unsettled'],
  ...['first_seen_at', 'last_seen_at', 'gone_at', 'acknowledged_by', 'acknowledged_at', 'acknowledged_reason'],
];

/** The operators' call that exports breaks as CSV. One export reads one page of breaks at a time. */
export function exportCalls(database: Database) {
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
      yield { csv: csvLine(columns) };
      let after: readonly [string, string] | undefined;
      while (!signal.aborted) {
        const found = await database.read(listBreaks(filter, after, rowsTogether));
        const rows = found.map((row) => reconciliationBreaks.toJson(row));
        const wanted = rows.filter((row) => word === undefined || row.kind === word);
        const csv = wanted.map((row) => csvLine(columns.map((name) => String(row[name] ?? '')))).join('');
        if (csv !== '') yield { csv };
        const last = rows.at(-1);
        if (last === undefined || rows.length < rowsTogether) return;
        after = [String(last.day), String(last.id)];
      }
    } finally {
      underWay = false;
    }
  }

  return { exportReconciliationBreaks };
}
