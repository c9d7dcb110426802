import type { Database } from '../db/database.ts';
import { ApiError } from '../lib/errors.ts';
import { listKeysWithoutMac } from './store.ts';

/** The least time between two reads of the ids. */
const readEveryMs = 2_000;
/** How many ids are kept. A gateway with more queries the database for every key without a MAC. */
const mostIds = 100_000;

/**
 * The ids of active keys of earlier versions, which have no MAC, and of those whose MAC a former secret made. Any other key
 * without a MAC is forged. So invented keys cost the database at most one read of this list every 2 s.
 */
export class KeysWithoutMac {
  #ids: ReadonlySet<string> = new Set();
  #areMore = false;
  #readAt = Number.NEGATIVE_INFINITY;
  #failure: unknown;
  #reading: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly mostKept = mostIds,
  ) {}

  /** Whether a key without a MAC may have this id. Throws `service_unavailable` if the list cannot be read. */
  async has(keyId: string): Promise<boolean> {
    if (this.#mayHave(keyId)) return true;
    const isRecent = performance.now() < this.#readAt + readEveryMs;
    if (this.#reading !== undefined || !isRecent) await this.#read();
    if (this.#mayHave(keyId)) return true;
    if (this.#failure === undefined) return false;
    throw new ApiError('service_unavailable', { cause: this.#failure });
  }

  #mayHave(keyId: string): boolean {
    return this.#areMore || this.#ids.has(keyId);
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    this.#readAt = performance.now();
    try {
      const rows = await this.database.read(listKeysWithoutMac(this.mostKept + 1));
      this.#areMore = rows.length > this.mostKept;
      this.#ids = new Set(this.#areMore ? [] : rows.map((row) => String(row.id)));
      this.#failure = undefined;
    } catch (error) {
      // Keys of the earlier list remain valid.
      this.#failure = error;
    }
  }
}
