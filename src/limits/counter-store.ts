import { type KV, NatsError, StorageType } from 'nats';
import type { Nats } from '../lib/nats.ts';

/** An entry's JSON value and its revision. An entry that does not exist has the value undefined and revision 0. */
export interface Entry<Value = unknown> {
  readonly value: Value;
  readonly revision: number;
}

/** A time read over the network, in milliseconds, between two bounds. */
export interface Instant {
  readonly atLeast: number;
  readonly atMost: number;
}

/** An entry without a write is deleted after this time, so that the store holds only names in use. */
export const keptMs = 600_000;

const timeoutMs = 500;
const mostBytes = 16 * 1024 * 1024;
const wrongRevision = 10_071;
/** Clocks drift, so an older reading of the server's clock is replaced by any newer one. */
const readingKeptMs = 30_000;
/** The server's times are cut to whole milliseconds. */
const grainMs = 1;

/**
 * The shared counter store: entries in a NATS bucket, which replicas change by compare-and-set. Replicas use the NATS
 * server's clock instead of comparing theirs. Its error is the round trip of the fastest answer in the last 30 s.
 */
export class CounterStore {
  #bucket: KV | undefined;
  /** When the bucket was created, in milliseconds of the server's clock. */
  createdAt = 0;
  /** How far the server's clock is ahead of this process's monotonic clock, between two bounds. */
  #ahead: (Instant & { readonly readAt: number }) | undefined;

  constructor(
    private readonly nats: Nats,
    private readonly prefix: string,
    private readonly replica: string,
  ) {}

  /** The time of the server's clock. Throws if it was never read. */
  get now(): Instant {
    if (this.#ahead === undefined) throw new Error("the NATS server's clock is not known");
    const now = performance.now();
    return { atLeast: now + this.#ahead.atLeast, atMost: now + this.#ahead.atMost };
  }

  /**
   * Opens the bucket, or creates it. Returns its age in milliseconds.
   *
   * @param canReplace Whether all replicas write their state again, so that a new bucket may replace an old one.
   */
  async open(canReplace: boolean): Promise<number> {
    let bucket = await this.#openBucket();
    // Versions up to 0.1.0 made a file bucket.
    if (canReplace && (await bucket.status()).storage === StorageType.File) {
      await bucket.destroy();
      bucket = await this.#openBucket();
    }
    this.#bucket = bucket;
    // NATS may run on another server than before.
    this.#ahead = undefined;
    const [{ streamInfo }, now] = await Promise.all([bucket.status(), this.readClock()]);
    this.createdAt = Date.parse(streamInfo.created);
    return now - this.createdAt;
  }

  #openBucket(): Promise<KV> {
    return this.nats.requireConnection().jetstream({ timeout: timeoutMs }).views.kv(`${this.prefix}SLOTS`, {
      history: 1,
      // In memory, because NATS 2.9 blocks on a file write when its disk is full.
      storage: StorageType.Memory,
      ttl: keptMs,
      max_bytes: mostBytes,
      // A follower's answer could be old.
      allow_direct: false,
      timeout: timeoutMs,
    });
  }

  /** Reads the server's clock from the time of an entry that this replica writes. */
  async readClock(): Promise<number> {
    const key = `replica.${this.replica}`;
    const sentAt = performance.now();
    await this.#opened.put(key, '');
    const answeredAt = performance.now();
    const entry = await this.#opened.get(key);
    if (entry === null) throw new Error('the shared counter store was lost');
    const created = entry.created.getTime();
    this.#learn({ atLeast: created - answeredAt, atMost: created + grainMs - sentAt, readAt: answeredAt });
    return created;
  }

  #learn(next: Instant & { readonly readAt: number }): void {
    const best = this.#ahead;
    const isBetter =
      best === undefined ||
      next.readAt - best.readAt > readingKeptMs ||
      next.atMost - next.atLeast <= best.atMost - best.atLeast ||
      // The readings exclude each other: the clock was set, or it is another server's.
      next.atLeast > best.atMost ||
      next.atMost < best.atLeast;
    if (isBetter) this.#ahead = next;
  }

  async read(key: string): Promise<Entry> {
    const entry = await this.#opened.get(key);
    return entry === null
      ? { value: undefined, revision: 0 }
      : { value: parse(entry.string()), revision: entry.revision };
  }

  /** Writes an entry unless another replica changed it. Returns the new revision, or undefined. */
  async write(key: string, { value, revision }: Entry): Promise<number | undefined> {
    try {
      return await this.#opened.put(key, JSON.stringify(value), { previousSeq: revision });
    } catch (error) {
      if (error instanceof NatsError && error.api_error?.err_code === wrongRevision) return undefined;
      throw error;
    }
  }

  get #opened(): KV {
    if (this.#bucket === undefined) throw new Error('the shared counter store is not open');
    return this.#bucket;
  }
}

/** Parses JSON; undefined for anything else, which another version wrote. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
