import { randomUUID } from 'node:crypto';
import { type KV, type KvEntry, NatsError, StorageType } from 'nats';
import { type Nats, offlineMs } from '../../../kit/nats.ts';
import { remember } from '../../../kit/remember.ts';
import type { PeerMac } from '../peers/mac.ts';
import type { Distrust, UntrustedReason } from '../peers/untrusted.ts';
import { maxEntryBytes, openEntry, sealEntry, UntrustedEntryError } from './sealed-entry.ts';

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
const maxBytes = 16 * 1024 * 1024;
const wrongRevision = 10_071;
/** Clocks drift, so an older reading of the server's clock is replaced by any newer one. */
const readingKeptMs = 30_000;
/** The server's times are cut to whole milliseconds. */
const grainMs = 1;
/** An entry that was seen and is gone was removed by somebody, if it was written within this time. */
const neverGoneMs = keptMs - 10_000;
/** Entries whose last stamp is remembered. */
const maxSeen = 20_000;

/** The bucket lost its entries while it was open: its one server started again, or it was made again. */
export class StoreLostError extends Error {
  override readonly name = 'StoreLostError';
}

/** An entry as it was last read or written here. */
interface Seen {
  readonly revision: number;
  readonly stamp: number;
  /** By the server's clock. */
  readonly writtenAt: number;
}

/**
 * The shared counter store: entries in a NATS bucket, which replicas change by compare-and-set. Replicas use the NATS
 * server's clock instead of comparing theirs. Its error is the round trip of the fastest answer in the last 30 s. An entry
 * carries a MAC and a stamp that only grows, so that nobody without the ring can write one, or bring back a former one.
 */
export class CounterStore {
  #bucket: KV | undefined;
  /** Since when the bucket does not answer. */
  #offlineSince: number | undefined;
  /** The highest revision that this replica's writes had: it only grows while the bucket is the same. */
  #revision = 0;
  /** When the bucket was created, in milliseconds of the server's clock. */
  createdAt = 0;
  readonly #seen = new Map<string, Seen>();
  /** How far the server's clock is ahead of this process's monotonic clock, between two bounds. */
  #ahead: (Instant & { readonly readAt: number }) | undefined;

  constructor(
    private readonly nats: Nats,
    private readonly prefix: string,
    private readonly replica: string,
    private readonly peers: { readonly mac: PeerMac; readonly distrust: Distrust },
    /** On how many servers of a NATS cluster the bucket is kept. */
    private readonly copies = 1,
  ) {}

  /** The time of the server's clock. Throws if it was never read. */
  get now(): Instant {
    if (this.#ahead === undefined) throw new Error("the NATS server's clock is not known");
    const now = performance.now();
    return { atLeast: now + this.#ahead.atLeast, atMost: now + this.#ahead.atMost };
  }

  /** Opens the bucket, or creates it. Returns its age in milliseconds. */
  async open(): Promise<number> {
    const bucket = await this.#openOrReplace();
    const { streamInfo } = await bucket.status();
    if (streamInfo.config.num_replicas < this.copies) {
      const { streams } = await this.#manager();
      await streams.update(this.#streamName, { ...streamInfo.config, num_replicas: this.copies });
    }
    this.#bucket = bucket;
    this.#revision = 0;
    this.#seen.clear();
    // NATS may run on another server than before.
    this.#ahead = undefined;
    const now = await this.readClock();
    this.createdAt = Date.parse(streamInfo.created);
    return now - this.createdAt;
  }

  /**
   * Opens the bucket. One that has not answered for long while JetStream did is deleted and made again: the servers that had
   * it are gone. All replicas have kept to their shares meanwhile, and write their state into the new one.
   */
  async #openOrReplace(): Promise<KV> {
    try {
      const bucket = await this.#openBucket();
      this.#offlineSince = undefined;
      return bucket;
    } catch (error) {
      this.#offlineSince ??= performance.now();
      if (performance.now() - this.#offlineSince < offlineMs(this.copies)) throw error;
      const manager = await this.#manager();
      await manager.getAccountInfo(); // Throws unless the cluster has a leader, who alone can delete it.
      // The servers that have the bucket would answer, so that this fails even when it is done.
      await manager.streams.delete(this.#streamName).catch(() => undefined);
      this.#offlineSince = undefined;
      return this.#openBucket();
    }
  }

  #manager() {
    return this.nats.requireConnection().jetstreamManager({ timeout: timeoutMs, checkAPI: false });
  }

  get #streamName(): string {
    return `KV_${this.prefix}SLOTS`;
  }

  #openBucket(): Promise<KV> {
    return this.nats.requireConnection().jetstream({ timeout: timeoutMs }).views.kv(`${this.prefix}SLOTS`, {
      history: 1,
      // In memory, because NATS 2.9 blocks on a file write when its disk is full.
      storage: StorageType.Memory,
      ttl: keptMs,
      max_bytes: maxBytes,
      maxValueSize: maxEntryBytes,
      replicas: this.copies,
      // A follower's answer could be old.
      allow_direct: false,
      timeout: timeoutMs,
    });
  }

  /** Reads the server's clock from the time of an entry that this replica writes. */
  async readClock(): Promise<number> {
    const key = `replica.${this.replica}`;
    const word = randomUUID();
    const sentAt = performance.now();
    await this.#put(key, word);
    const answeredAt = performance.now();
    const entry = await this.#opened.get(key);
    if (entry === null) throw new Error('the shared counter store was lost');
    // The time would be that of another's write.
    if (entry.length !== word.length || entry.string() !== word) throw new Error('the clock entry was overwritten');
    const created = entry.created.getTime();
    const next = { atLeast: created - answeredAt, atMost: created + grainMs - sentAt, readAt: answeredAt };
    const best = this.#ahead;
    const isBetter =
      best === undefined ||
      next.readAt - best.readAt > readingKeptMs ||
      next.atMost - next.atLeast <= best.atMost - best.atLeast ||
      // The readings exclude each other: the clock was set, or it is another server's.
      next.atLeast > best.atMost ||
      next.atMost < best.atLeast;
    if (isBetter) this.#ahead = next;
    return created;
  }

  /** Reads an entry. Throws an `UntrustedEntryError` if no gateway of the ring wrote it, or it was replaced by a former one. */
  async read(key: string): Promise<Entry> {
    const entry = await this.#opened.get(key);
    if (entry !== null && entry.operation === 'PUT') return this.#open(key, entry);
    const seen = this.#seen.get(key);
    const isRemoved = entry !== null || (seen !== undefined && this.now.atMost - seen.writtenAt < neverGoneMs);
    if (!isRemoved) return { value: undefined, revision: 0 };
    const { streamInfo } = await this.#opened.status();
    const isSameBucket = Date.parse(streamInfo.created) === this.createdAt;
    if (isSameBucket) throw this.untrusted('removed', entry?.revision ?? 0);
    throw new StoreLostError('the shared counter store was made again');
  }

  #open(key: string, entry: KvEntry): Entry {
    const { revision } = entry;
    const writtenAt = entry.created.getTime();
    const opened = openEntry(this.peers.mac, this.#subjectOf(key), entry.value, writtenAt);
    if (typeof opened === 'string') throw this.untrusted(opened, revision);
    const { text, stamp } = opened;
    const seen = this.#seen.get(key);
    if (seen !== undefined && revision > seen.revision && stamp <= seen.stamp) {
      throw this.untrusted('repeated', revision);
    }
    if (revision >= (seen?.revision ?? 0)) remember(this.#seen, key, { revision, stamp, writtenAt }, maxSeen);
    return { value: parse(text), revision };
  }

  /** Counts an entry that is not believed, and returns the error to throw. */
  untrusted(reason: UntrustedReason, revision: number): UntrustedEntryError {
    this.peers.distrust('entry', reason);
    return new UntrustedEntryError(reason, revision);
  }

  /** Writes an entry unless another replica changed it. Returns the new revision, or undefined. */
  async write(key: string, { value, revision: previous }: Entry): Promise<number | undefined> {
    const writtenAt = Math.round(this.now.atMost);
    const stamp = Math.max((this.#seen.get(key)?.stamp ?? 0) + 1, writtenAt);
    const text = sealEntry(this.peers.mac, this.#subjectOf(key), { text: JSON.stringify(value), stamp });
    try {
      const revision = await this.#put(key, text, previous);
      remember(this.#seen, key, { revision, stamp, writtenAt }, maxSeen);
      return revision;
    } catch (error) {
      if (error instanceof NatsError && error.api_error?.err_code === wrongRevision) return undefined;
      throw error;
    }
  }

  #subjectOf(key: string): string {
    return `${this.prefix}SLOTS.${key}`;
  }

  /** Writes, and finds out that the bucket lost its entries: a revision is then one that was there before. */
  async #put(key: string, text: string, previousSeq?: number): Promise<number> {
    const before = this.#revision;
    const revision = await this.#opened.put(key, text, previousSeq === undefined ? {} : { previousSeq });
    if (revision <= before) throw new StoreLostError('the shared counter store lost its entries');
    this.#revision = Math.max(this.#revision, revision);
    return revision;
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
