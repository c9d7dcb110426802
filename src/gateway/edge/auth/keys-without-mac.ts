import { atMost } from '../../../kit/at-most.ts';
import type { KeyRing, Keys } from '../../../kit/key-ring.ts';
import { periodic, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { ApiError } from '../errors.ts';
import { listKeysWithoutMac } from './store.ts';

/** The least time between two reads of the ids that callers cause. */
const readEveryMs = 2_000;
/** How often the ids are read anyway, so that they are fresh when the database goes away. */
const readAnywayMs = 5_000;
/** How long a caller waits for a read. */
const answerWithinMs = 1_500;
/** How many ids are kept. A gateway with more queries the database for every key without a MAC. */
const maxIds = 100_000;

/**
 * The ids of the active keys without a MAC: an earlier version made them, or `keys reseal` listed them because a former
 * secret made their MAC. Any other key without a MAC is forged. Forged keys cost at most one read of this list in two
 * seconds.
 */
export class KeysWithoutMac {
  readonly worker: Worker = periodic('keys without a MAC', readAnywayMs, () => this.#read());
  #ids: ReadonlySet<string> = new Set();
  #areMore = false;
  #readAt = Number.NEGATIVE_INFINITY;
  /** The secrets that MACs were checked with when the last read began. */
  #askedWith: KeyRing | undefined;
  /** The same for the last read that succeeded; undefined: none did. */
  #readWith: KeyRing | undefined;
  #failure: unknown;
  #reading: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly macKeys: Keys,
    private readonly mostKept = maxIds,
  ) {}

  /**
   * Whether a key without a MAC may have this id. While the database does not answer, the ids that were read last decide.
   * Throws `service_unavailable` if they may be incomplete.
   */
  async has(keyId: string): Promise<boolean> {
    if (this.#mayHave(keyId)) return true;
    const isRecent = performance.now() < this.#readAt + readEveryMs && this.#askedWith === this.macKeys.all;
    if (this.#reading !== undefined || !isRecent) await atMost(answerWithinMs, this.#read());
    if (this.#mayHave(keyId)) return true;
    if (this.#areComplete()) return false;
    throw new ApiError('service_unavailable', { cause: this.#failure });
  }

  #mayHave(keyId: string): boolean {
    return this.#areMore || this.#ids.has(keyId);
  }

  /**
   * `keys reseal` lists further keys at any time. Those that it listed since the last read still have a MAC of a former
   * secret, and need this list only once that secret has been removed from the ring.
   */
  #areComplete(): boolean {
    const { all } = this.macKeys;
    return this.#readWith?.every(({ id }) => all.some((key) => key.id === id)) ?? false;
  }

  /** Never throws. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { all } = this.macKeys;
    this.#readAt = performance.now();
    this.#askedWith = all;
    try {
      const rows = await this.database.read(listKeysWithoutMac(this.mostKept + 1));
      this.#areMore = rows.length > this.mostKept;
      this.#ids = new Set(this.#areMore ? [] : rows.map((row) => String(row.id)));
      this.#readWith = all;
    } catch (error) {
      // Keys of the earlier list remain valid.
      this.#failure = error;
    }
  }
}
