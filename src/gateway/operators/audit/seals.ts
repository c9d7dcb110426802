import { type Keys, RowSeal } from '../../../kit/key-ring.ts';
import type { Environment } from '../../store/database.ts';
import type { AuditBatch } from './rules.ts';

/** The name of the keys that seal the audit. */
export const auditSealUse = 'audit batches';

/**
 * Whether a gateway sealed a batch. `unknown`: with a secret that left the ring. Such a batch is proven by a later one, because the
 * hash of a batch stands for all batches before.
 */
export type BatchProof = 'right' | 'wrong' | 'unknown';

/** The seals of the audit's batches: MACs, so that who has only the database cannot change an entry and seal it again. */
export class AuditSeals {
  readonly #seal: RowSeal;

  constructor(
    private readonly keys: Keys,
    private readonly environment: Environment,
  ) {
    this.#seal = new RowSeal(keys);
  }

  make(batch: AuditBatch): Buffer {
    return this.#seal.make(this.#content(batch));
  }

  prove(batch: AuditBatch, seal: Buffer): BatchProof {
    if (this.#seal.keyOf(seal, this.#content(batch)) !== undefined) return 'right';
    return this.keys.all.some(({ id }) => id === secretIn(seal)) ? 'wrong' : 'unknown';
  }

  /** Whether a seal is made with the secret that is current. */
  isCurrent(seal: Buffer): boolean {
    return secretIn(seal) === this.keys.all[0].id;
  }

  #content({ number, firstId, lastId, entries, hash }: AuditBatch): string {
    const numbers = [number, firstId, lastId].map(String);
    return JSON.stringify([this.environment, ...numbers, entries, hash.toString('hex')]);
  }
}

/** The id of the secret that a seal names. */
export function secretIn(seal: Buffer): string {
  return seal.toString('hex', 0, 8);
}
