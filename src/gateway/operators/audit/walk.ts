import { auditEntries } from '../../edge/auth/audit-store.ts';
import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import type { RowOf } from '../../store/table.ts';
import { type AuditBatch, type BatchFault, batchFault, noBatch, type SealedEntry } from './rules.ts';
import { type AuditSeals, secretIn } from './seals.ts';
import { auditSeals } from './table.ts';

/** A batch that does not match. */
export interface FaultyBatch {
  readonly batch: bigint;
  readonly kind: BatchFault;
  readonly firstId: bigint;
  readonly lastId: bigint;
}

/** A batch that was walked, with its fault. */
export interface WalkedBatch extends AuditBatch {
  readonly fault: BatchFault | undefined;
}

/** The most entries of a batch. Each may have some 200 KB of text. */
export const maxEntries = 200;

/** The batches after one, in order. */
export function batchesAfter(number: bigint, most: number): Statement {
  return statement(
    `SELECT ${auditSeals.all.list} FROM audit_seals WHERE number > ? ORDER BY number LIMIT ${most}`,
    number,
  );
}

/** The last batch. */
export const lastBatch = statement(`SELECT ${auditSeals.all.list} FROM audit_seals ORDER BY number DESC LIMIT 1`);

/** Entries with numbers from after the first to the last given one. */
export function entriesBetween(after: bigint, last: bigint, most: number): Statement {
  return statement(
    `SELECT ${auditEntries.all.list} FROM audit_entries FORCE INDEX (PRIMARY)
      WHERE id > ? AND id <= ? ORDER BY id LIMIT ${most}`,
    ...[after, last],
  );
}

/** How many seals are read at a time. */
const together = 20;

/**
 * Walks batches after one: each against the one before, its seal and its entries. It goes on until the last batch, or until it is
 * left. The caller proves the last batch, which stands for those that are sealed with a secret that left the ring.
 */
export async function* walkBatches(
  database: Database,
  seals: AuditSeals,
  after: bigint,
): AsyncGenerator<WalkedBatch, void> {
  const start = after === 0n ? noBatch : await readBatch(database, after);
  if (start === undefined) return;
  for (let before: AuditBatch = start; ; ) {
    const rows: RowOf<typeof auditSeals>[] = (await database.read(batchesAfter(before.number, together))).map(
      auditSeals.all.read,
    );
    for (const row of rows) {
      yield { ...row, fault: await faultOf(database, seals, row, before) };
      before = row;
    }
    if (rows.length < together) return;
  }
}

async function faultOf(
  database: Database,
  seals: AuditSeals,
  row: AuditBatch & { readonly seal: Buffer },
  before: AuditBatch,
): Promise<BatchFault | undefined> {
  if (seals.prove(row, row.seal) === 'wrong') return 'unsealed';
  // One more shows that there are too many.
  const found = await database.read(entriesBetween(before.lastId, row.lastId, row.entries + 1));
  return batchFault(row, before, found.map(toSealedEntry));
}

/** The number before the batch that has an entry, or that would have it; the number of the last batch if none does. */
export async function batchBefore(database: Database, id: bigint): Promise<bigint> {
  const [row] = await database.read(
    statement(
      `SELECT number FROM audit_seals FORCE INDEX (audit_seals_last_id) WHERE last_id < ? ORDER BY last_id DESC, number DESC LIMIT 1`,
      id,
    ),
  );
  return BigInt(String(row?.number ?? 0));
}

/** The last batch with its proof; undefined: nothing is sealed yet. */
export async function readLastBatch(database: Database, seals: AuditSeals) {
  const [row] = await database.read(lastBatch);
  const batch = row && auditSeals.all.read(row);
  return batch && { batch, proof: seals.prove(batch, batch.seal) };
}

/** The id of the secret that the audit's last seal is made with; undefined: nothing is sealed. */
export async function secretOfLastSeal(database: Database): Promise<string | undefined> {
  const [row] = await database.read(lastBatch);
  return row && secretIn(auditSeals.all.read(row).seal);
}

async function readBatch(database: Database, number: bigint): Promise<AuditBatch | undefined> {
  const [row] = await database.read(auditSeals.find({ number }));
  return row && auditSeals.all.read(row);
}

export const toSealedEntry: (row: Parameters<typeof auditEntries.all.read>[0]) => SealedEntry = auditEntries.all.read;
