import type { Database } from '../../db/database.ts';
import { statement } from '../../db/statement.ts';
import { auditOf, type ChangeAuthor, unnamedAuthor } from './audit.ts';
import { type FindingSettlement, fixFindingSettlements, fixFindings, fixNumbers, fixOrders } from './table.ts';

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

/** Settles a finding: it is not open any more. Throws if there is no such finding, or somebody has settled it. */
export async function settleFinding(database: Database, settlement: FindingSettlement): Promise<void> {
  const { findingId } = settlement;
  const found = fixFindings.find({ id: findingId }, fixFindings.only('id'));
  const settled = fixFindingSettlements.find({ findingId }, fixFindingSettlements.all, statement('FOR UPDATE'));
  await database.transaction([found, settled], ([findings = [], settlements = []]) => {
    if (findings.length === 0) throw new Error(`there is no finding ${findingId}`);
    const [row] = settlements;
    if (row !== undefined) {
      throw new Error(`${fixFindingSettlements.all.read(row).operator} has settled finding ${findingId}`);
    }
    return { writes: [fixFindingSettlements.insert(settlement)], result: undefined };
  });
}

/**
 * Notes that an operator has settled an order with the broker's desk: nobody asks about it any more, and its findings are settled.
 * A report of the exchange still counts. Throws if there is no such order.
 */
export async function settleOrder(
  database: Database,
  orderId: string,
  { at, operator, note }: Omit<FindingSettlement, 'findingId'>,
): Promise<void> {
  const numbers = fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE'));
  const order = fixOrders.find({ id: orderId }, fixOrders.all, statement('FOR UPDATE'));
  const open = statement(
    `SELECT id FROM fix_findings f WHERE order_id = ?
      AND NOT EXISTS (SELECT 1 FROM fix_finding_settlements s WHERE s.finding_id = f.id)`,
    Buffer.from(orderId),
  );
  await database.transaction([numbers, order, open], ([rows = [], orders = [], findings = []]) => {
    const [row] = orders;
    const [own] = rows;
    if (row === undefined || own === undefined) throw new Error(`there is no order ${orderId}`);
    const before = fixOrders.all.read(row);
    const known = fixNumbers.all.read(own);
    const settlements = findings.map(({ id }) => ({ findingId: BigInt(String(id)), at, operator, note }));
    const writes = [
      // An adapter that runs learns by it that rows have changed.
      ...fixNumbers.update(known, { ...known, version: known.version + 1n }),
      ...fixOrders.update(before, { ...before, settled: true, mustAsk: false }),
      auditOf({ at, operator, reason: note }, 'fix settle', orderId, `settled with ${findings.length} findings`),
      ...(settlements.length === 0 ? [] : [fixFindingSettlements.insert(...settlements)]),
    ];
    return { writes, result: undefined };
  });
}
