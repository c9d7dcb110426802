import type { Database } from '../../db/database.ts';
import { statement } from '../../db/statement.ts';
import { type FindingSettlement, fixFindingSettlements, fixFindings, fixNumbers } from './table.ts';

/**
 * Notes that the database came back from a backup, so that nothing is proven absent, or that an operator has compared it with the
 * broker's record and releases it. Returns whether that is news. An adapter that runs follows it with its next write.
 */
export async function setRestored(database: Database, restored: boolean): Promise<boolean> {
  const locked = fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE'));
  return database.transaction([locked], ([rows = []]) => {
    const [row] = rows;
    if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
    const before = fixNumbers.all.read(row);
    if (before.restored === restored) return { writes: [], result: false };
    const after = { ...before, restored, version: before.version + 1n };
    return { writes: fixNumbers.update(before, after), result: true };
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
