import { bytesUpTo, count, defineTable, instant, whole } from '../../store/table.ts';

/**
 * The seals of the audit: each is of a batch of entries, in the order of their numbers, and of all batches before. A batch without
 * entries only renews the seal, under another secret. Seals are never changed.
 */
export const auditSeals = defineTable({
  name: 'audit_seals',
  columns: {
    /** From 1 on, without a gap. */
    number: whole(),
    /** The numbers of its first and last entry; without entries, those of the last entry before it. */
    firstId: whole(),
    lastId: whole(),
    entries: count(),
    /** The SHA-256 of the hash before and of the entries. */
    hash: bytesUpTo(32),
    seal: bytesUpTo(40),
    sealedAt: instant(),
  },
  primary: ['number'],
  indexes: { audit_seals_last_id: ['lastId'] },
});
