import type { Database } from '../../gateway/store/database.ts';
import { joined, statement } from '../../gateway/store/statement.ts';
import type { RowOf } from '../../gateway/store/table.ts';
import { type FindingSettlement, fixFindingSettlements, fixFindings, fixUnsupported } from '../store/table.ts';

/** A finding without the bytes of its message, which are for a look at the table only. */
export interface StoredFinding extends Omit<RowOf<typeof fixFindings>, 'bytes'> {
  /** Undefined while it is open. */
  readonly settlement: FindingSettlement | undefined;
  /** How many messages it stands for: of an unsupported type all of its session day, otherwise 1. */
  readonly messages: bigint;
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
  const { settlements, counts } = await moreOf(
    database,
    found.map(({ id }) => id),
  );
  const findings = found.map((finding) => ({
    ...finding,
    settlement: settlements.get(finding.id),
    messages: counts.get(finding.id) ?? 1n,
  }));
  return { findings, hasMore: rows.length > limit };
}

/** How findings were settled, and how many messages those of unsupported types stand for. */
async function moreOf(database: Database, ids: readonly bigint[]) {
  if (ids.length === 0) return { settlements: new Map<bigint, FindingSettlement>(), counts: new Map<bigint, bigint>() };
  const counted = fixUnsupported.only('findingId', 'messages');
  const [settled = [], rows = []] = await database.readAll([
    fixFindingSettlements.find({ findingId: ids }),
    fixUnsupported.find({ findingId: ids }, counted),
  ]);
  const settlements = settled.map((row) => fixFindingSettlements.all.read(row));
  const counts = rows.map((row) => counted.read(row));
  return {
    settlements: new Map(settlements.map((settlement) => [settlement.findingId, settlement])),
    counts: new Map(counts.map(({ findingId, messages }) => [findingId, messages])),
  };
}
