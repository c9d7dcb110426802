import type { Database } from '../db/database.ts';
import { ApiError } from '../lib/errors.ts';
import { listKeysWithoutMac } from './store.ts';

/** How often the ids are read at most, whoever asks for whichever. */
const readEveryMs = 2_000;
/** How many ids are kept. A gateway that has more looks up every key without a MAC. */
const mostIds = 100_000;

/**
 * The ids of the active keys whose text carries no MAC, because an earlier version made them. A key without a MAC that is
 * none of these is forged. Whoever makes up keys costs the database one read of this list every two seconds, and no more.
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

  /** Whether a key without a MAC may be of this id. Throws `service_unavailable` when that cannot be found out. */
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
      // What was read before still holds for the keys it names.
      this.#failure = error;
    }
  }
}
