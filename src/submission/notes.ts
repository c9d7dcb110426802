import type { Seal } from '../lib/seal.ts';
import type { NewSubmission, Submittable } from './kind.ts';

/** What one kind of object must know of an object to store it anew; whole numbers that can be large are texts. */
export type Facts = Readonly<Record<string, string | number | null>>;

/** What must be known of an object that was sent, to store it anew where the database has lost it. */
export interface Note extends NewSubmission {
  readonly facts: Facts;
}

/**
 * The notes that go out with submissions and come back from the broker's record. They are sealed for their object, because
 * they hold the partner's own words, and what comes back decides whose an order is.
 */
export class Notes {
  constructor(private readonly seal: Seal) {}

  /** The note of a row, as it was stored and goes out. */
  write(row: Submittable & { readonly idempotencyKey: string | null }, facts: Facts): Buffer {
    const { id, partnerId, idempotencyKey, origin } = row;
    const digest = row.requestDigest.toString('base64');
    return this.seal.seal(id, JSON.stringify({ partnerId, idempotencyKey, digest, origin, facts }));
  }

  /** Undefined where it is no note of ours for the object. */
  read(id: string, bytes: Uint8Array): Note | undefined {
    try {
      const { partnerId, idempotencyKey, digest, origin, facts } = JSON.parse(this.seal.open(id, Buffer.from(bytes)));
      return { partnerId, idempotencyKey, requestDigest: Buffer.from(digest, 'base64'), origin, facts };
    } catch {
      return undefined; // Whoever else uses the broker's connection writes other notes, or none.
    }
  }
}
