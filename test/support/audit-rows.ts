import { auditEntries } from '../../src/gateway/edge/auth/audit-store.ts';
import { nextBatch, noBatch } from '../../src/gateway/operators/audit/rules.ts';
import { AuditSeals, auditSealUse } from '../../src/gateway/operators/audit/seals.ts';
import { auditSeals } from '../../src/gateway/operators/audit/table.ts';
import type { StoredEntry } from '../../src/gateway/operators/calls/audit-period.ts';
import type { SqlRow } from '../../src/gateway/store/statement.ts';
import { keysFor, parseKeyRing } from '../../src/kit/key-ring.ts';
import { fixed } from '../../src/kit/watched-files.ts';
import { RowsDatabase } from './rows-database.ts';
import { storedRow } from './stored-row.ts';

export const [firstSecret, nextSecret] = ['ab'.repeat(32), 'cd'.repeat(32)] as const;

export function sealsUnder(...secrets: readonly string[]): AuditSeals {
  return new AuditSeals(keysFor(fixed(parseKeyRing(secrets.join('\n'))), auditSealUse), 'live');
}

export function entryOf(id: number, more: Partial<StoredEntry> = {}): StoredEntry {
  return {
    ...{
      id: BigInt(id),
      at: id * 1_000,
      operator: 'ada',
      action: 'Keys.CreateKey',
      subject: null,
      detail: `{"n":${id}}`,
    },
    ...{ partnerId: null, was: null, became: null, requestId: null, clientAddress: null, roles: null, keyId: null },
    ...more,
  };
}

export const toRow = (entry: StoredEntry): SqlRow => storedRow(auditEntries, entry);

/**
 * An audit of batches with so many entries each, numbered from 1 on and one in each second, and further entries that are not
 * sealed yet. `change` gives entries other values.
 */
export function auditRows(
  sizes: readonly number[],
  seals = sealsUnder(firstSecret),
  { unsealed = 0, change = () => ({}) }: { unsealed?: number; change?: (id: number) => Partial<StoredEntry> } = {},
) {
  const entries: SqlRow[] = [];
  const batches: SqlRow[] = [];
  let [before, id] = [noBatch, 0];
  const nextEntry = () => {
    id += 1;
    return entryOf(id, change(id));
  };
  for (const [at, size] of sizes.entries()) {
    const own = Array.from({ length: size }, nextEntry);
    before = nextBatch(before, own);
    entries.push(...own.map(toRow));
    batches.push(storedRow(auditSeals, { ...before, seal: seals.make(before), sealedAt: at }));
  }
  entries.push(...Array.from({ length: unsealed }, nextEntry).map(toRow));
  return { entries, batches, database: new RowsDatabase({ audit_entries: entries, audit_seals: batches }) };
}
