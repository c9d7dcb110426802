import type { Database } from '../../db/database.ts';
import { joined, statement } from '../../db/statement.ts';
import type { RowOf } from '../../db/table.ts';
import { type FindingSettlement, fixFindingSettlements, fixFindings } from '../store/table.ts';

/** A finding without the bytes of its message, which are for a look at the table only. */
export interface StoredFinding extends Omit<RowOf<typeof fixFindings>, 'bytes'> {
  /** Undefined while it is open. */
  readonly settlement: FindingSettlement | undefined;
}

const shown = fixFindings.only('id', 'at', 'what', 'orderId', 'execId', 'detail', 'facts');

/** Which findings to list. All that is given must match. */
export interface FindingFilter {
  /** The gateway's id of the order. */
  readonly orderId?: string | undefined;
  /** Only findings with a lower id: the last one of the page before. */
  readonly beforeId?: bigint | undefined;
  /** Only findings that nobody has settled. */
  readonly openOnly?: boolean;
}

/** Lists findings, newest first. */
export async function listFindings(
  database: Database,
  { orderId, beforeId, openOnly = false }: FindingFilter,
  limit: number,
): Promise<{ readonly findings: readonly StoredFinding[]; readonly hasMore: boolean }> {
  const conditions = [
    ...(orderId === undefined ? [] : [statement('order_id = ?', Buffer.from(orderId))]),
    ...(beforeId === undefined ? [] : [statement('id < ?', beforeId)]),
    ...(openOnly ? [statement('id NOT IN (SELECT finding_id FROM fix_finding_settlements)')] : []),
  ];
  const where = conditions.length === 0 ? statement('1 = 1') : joined(conditions, ' AND ');
  const rows = await database.read({
    sql: `SELECT ${shown.list} FROM fix_findings WHERE ${where.sql} ORDER BY id DESC LIMIT ${limit + 1}`,
    values: where.values,
  });
  const found = rows.slice(0, limit).map((row) => shown.read(row));
  const settlements = await settlementsOf(
    database,
    found.map(({ id }) => id),
  );
  const findings = found.map((finding) => ({ ...finding, settlement: settlements.get(finding.id) }));
  return { findings, hasMore: rows.length > limit };
}

async function settlementsOf(database: Database, ids: readonly bigint[]): Promise<Map<bigint, FindingSettlement>> {
  if (ids.length === 0) return new Map();
  const [rows = []] = await database.readAll([fixFindingSettlements.find({ findingId: ids })]);
  const settlements = rows.map((row) => fixFindingSettlements.all.read(row));
  return new Map(settlements.map((settlement) => [settlement.findingId, settlement]));
}
