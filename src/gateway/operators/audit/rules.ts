import { createHash } from 'node:crypto';

/** An entry of the audit, as far as its seal covers it: all of it. */
export interface SealedEntry {
  readonly id: bigint;
  readonly at: number;
  readonly operator: string;
  readonly action: string;
  readonly subject: string | null;
  readonly detail: string;
  readonly partnerId: string | null;
  readonly was: string | null;
  readonly became: string | null;
  readonly requestId: string | null;
  readonly clientAddress: string | null;
  readonly roles: string | null;
  readonly keyId: string | null;
}

/** A batch of entries with its place in the chain. */
export interface AuditBatch {
  readonly number: bigint;
  readonly firstId: bigint;
  readonly lastId: bigint;
  readonly entries: number;
  readonly hash: Buffer;
}

/** The end of the chain before the first batch. */
export const noBatch: AuditBatch = { number: 0n, firstId: 0n, lastId: 0n, entries: 0, hash: Buffer.alloc(32) };

/** The batch after another one. Without entries it only renews the seal. */
export function nextBatch(before: AuditBatch, entries: readonly SealedEntry[]): AuditBatch {
  return {
    number: before.number + 1n,
    firstId: entries[0]?.id ?? before.lastId,
    lastId: entries.at(-1)?.id ?? before.lastId,
    entries: entries.length,
    hash: hashAfter(before, entries),
  };
}

/**
 * The fault of a batch: `removed`, `inserted` and `changed` are about its entries, by the number of them and their hash; `missing`
 * is a batch that is not there; `unsealed` is one whose seal no gateway made.
 */
export type BatchFault = 'removed' | 'inserted' | 'changed' | 'missing' | 'unsealed';

/** The fault of a batch, by the entries that have numbers from after the batch before to its last one. */
export function batchFault(
  batch: AuditBatch,
  before: AuditBatch,
  entries: readonly SealedEntry[],
): BatchFault | undefined {
  if (batch.number !== before.number + 1n) return 'missing';
  if (entries.length < batch.entries) return 'removed';
  if (entries.length > batch.entries) return 'inserted';
  return hashAfter(before, entries).equals(batch.hash) ? undefined : 'changed';
}

/** The hash before stands for all entries before, so an earlier entry cannot change unnoticed. */
function hashAfter(before: AuditBatch, entries: readonly SealedEntry[]): Buffer {
  const hash = createHash('sha256').update(before.hash);
  for (const entry of entries) hash.update(`${entryText(entry)}\n`);
  return hash.digest();
}

/** As JSON, two different entries never give the same text, and none has a line break. */
function entryText(entry: SealedEntry): string {
  const { id, at, operator, action, subject, detail, partnerId, was, became } = entry;
  const { requestId, clientAddress, roles, keyId } = entry;
  const before = [String(id), at, operator, action, subject, detail, partnerId, was, became];
  return JSON.stringify([...before, requestId, clientAddress, roles, keyId]);
}
