import type { Database } from '../../gateway/store/database.ts';
import { type SqlRow, statement } from '../../gateway/store/statement.ts';
import { auditOf, type ChangeAuthor, unnamedAuthor } from './audit.ts';
import {
  type FindingSettlement,
  type FixOrder,
  fixFindingSettlements,
  fixFindings,
  fixNumbers,
  fixOrders,
} from './table.ts';

/**
 * Notes that the database came back from a backup, so that nothing is proven absent, or that an operator has compared it with the
 * broker's record and releases it. Returns whether that is news. An adapter that runs follows it with its next write.
 */
export async function setRestored(
  database: Database,
  restored: boolean,
  by: ChangeAuthor = unnamedAuthor(),
): Promise<boolean> {
  const locked = fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE'));
  return database.transaction([locked], ([rows = []]) => {
    const [row] = rows;
    if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
    const before = fixNumbers.all.read(row);
    if (before.restored === restored) return { writes: [], result: false };
    const after = { ...before, restored, version: before.version + 1n };
    const shown = (isRestored: boolean) => (isRestored ? 'restored' : 'released');
    const entry = auditOf(by, restored ? 'fix restored' : 'fix release', shown(before.restored), shown(restored));
    return { writes: [...fixNumbers.update(before, after), entry], result: true };
  });
}

/** There is no such finding (`missing`), or somebody has settled it. */
export class FindingNotOpen extends Error {
  override readonly name = 'FindingNotOpen';

  constructor(
    readonly why: 'missing' | 'settled',
    message: string,
  ) {
    super(message);
  }
}

/** Settles a finding: it is not open any more. Throws `FindingNotOpen` if it is not. Of two at once one settles it. */
export async function settleFinding(database: Database, settlement: FindingSettlement): Promise<void> {
  const { findingId } = settlement;
  // A lock that all who settle take: a settlement that is not there yet cannot be locked.
  const locked = fixNumbers.find({ id: 1n }, fixNumbers.only('id'), statement('FOR UPDATE'));
  const found = fixFindings.find({ id: findingId }, fixFindings.only('id'));
  const settled = fixFindingSettlements.find({ findingId });
  await database.transaction([locked, found, settled], ([, findings = [], settlements = []]) => {
    if (findings.length === 0) throw new FindingNotOpen('missing', `there is no finding ${findingId}`);
    const [row] = settlements;
    if (row !== undefined) {
      const { operator } = fixFindingSettlements.all.read(row);
      throw new FindingNotOpen('settled', `${operator} has settled finding ${findingId}`);
    }
    return { writes: [fixFindingSettlements.insert(settlement)], result: undefined };
  });
}

/**
 * Notes that an operator has settled an order with the broker's desk: nobody asks about it any more, and its findings are settled.
 * A report of the exchange still counts. Returns how many findings were settled. Throws if there is no such order, or if there is
 * nothing to settle: it has no open finding, and nobody asks about it.
 */
export async function settleOrder(
  database: Database,
  orderId: string,
  { at, operator, note }: Omit<FindingSettlement, 'findingId'>,
): Promise<number> {
  const numbers = fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE'));
  const order = fixOrders.find({ id: orderId }, fixOrders.all, statement('FOR UPDATE'));
  const open = statement(
    `SELECT id FROM fix_findings f WHERE order_id = ?
      AND NOT EXISTS (SELECT 1 FROM fix_finding_settlements s WHERE s.finding_id = f.id)`,
    Buffer.from(orderId),
  );
  return database.transaction([numbers, order, open], ([rows = [], orders = [], findings = []]) => {
    const [row] = orders;
    const [own] = rows;
    if (row === undefined || own === undefined) throw new Error(`there is no order ${orderId}`);
    const before = fixOrders.all.read(row);
    checkToSettle(before, findings);
    const known = fixNumbers.all.read(own);
    const settlements = findings.map(({ id }) => ({ findingId: BigInt(String(id)), at, operator, note }));
    const writes = [
      // An adapter that runs learns by it that rows have changed.
      ...fixNumbers.update(known, { ...known, version: known.version + 1n }),
      ...fixOrders.update(before, { ...before, settled: true, mustAsk: false }),
      auditOf({ at, operator, reason: note }, 'fix settle', orderId, `settled with ${findings.length} findings`),
      ...(settlements.length === 0 ? [] : [fixFindingSettlements.insert(...settlements)]),
    ];
    return { writes, result: findings.length };
  });
}

function checkToSettle({ id, state, settled, mustAsk }: FixOrder, findings: readonly SqlRow[]): void {
  const isLive = state === 'sending' || state === 'open';
  if (findings.length > 0 || (!settled && (isLive || mustAsk))) return;
  const why = settled ? 'was settled before' : 'is not asked about';
  throw new Error(`there is nothing to settle: ${id} has no open finding, and ${why}`);
}
