import { type KV, type NatsConnection, NatsError, StorageType } from 'nats';
import type { Logger } from '../lib/log.ts';
import type { Nats } from '../lib/nats.ts';
import { parseEntry } from './bucket.ts';
import { type Instant, ServerClock } from './server-clock.ts';

export interface SlotBoardOptions {
  readonly nats: Nats;
  /** Stands before the names of the bucket and the subjects, so that gateways can share a NATS. */
  readonly prefix: string;
  /** This replica's name: letters, digits, hyphens; no other has it. */
  readonly replica: string;
  readonly log: Logger;
  /** How long a replica that is not heard of keeps its places. */
  readonly leaseMs?: number;
}

/** How many places of a name each replica has, at a revision; 0: nothing is written yet. */
export interface Holding {
  readonly revision: number;
  readonly holders: Readonly<Record<string, number>>;
}

/** The text of a name's entry, at a revision; undefined and 0: nothing is written. */
export interface Entry {
  readonly revision: number;
  readonly text: string | undefined;
}

/** What is told of the board's state. */
export interface BoardListener {
  /** The replicas may no longer know of each other. */
  lost(): void;
  /** They can again. */
  found(): void;
  /** Another replica needs places of a name that are kept here and not used. */
  asked(name: string): Promise<void>;
}

const requestTimeoutMs = 500;
/** How many heartbeats a lease is long. */
const heartbeatsPerLease = 5;
/** How long the question for unused places waits for its answers. */
const askTimeoutMs = 250;
/** When NATS is back, or its bucket is new, all replicas that are there write what they have within this time. */
const settleMs = 1_500;
const usualLeaseMs = 5_000;
/** What nobody writes for so long is forgotten, so that the bucket holds names in use only. */
const keptMs = 600_000;
const mostBytes = 16 * 1024 * 1024;
const wrongRevision = 10_071;
/** How many heartbeats there are from one look at the server's clock to the next. */
const heartbeatsPerLook = 10;

/**
 * What the replicas tell each other of the places they have taken: a NATS bucket in which each name's entry is changed by
 * compare-and-set, and heartbeats by which they know who is there. No two clocks are compared: a replica is dead when this
 * one has not heard of it for the length of a lease, and the age of the bucket is told by the server's times alone.
 */
export class SlotBoard {
  readonly #options: SlotBoardOptions;
  readonly #leaseMs: number;
  readonly #heartbeatMs: number;
  readonly #heard = new Map<string, number>();
  #listener: BoardListener | undefined;
  #bucket: KV | undefined;
  #timer: NodeJS.Timeout | undefined;
  #reachable = false;
  #wasAway = false;
  #sentAt = Number.NEGATIVE_INFINITY;
  #echoedAt = Number.NEGATIVE_INFINITY;
  #listeningSince = 0;
  #beats = 0;
  readonly #serverClock = new ServerClock();
  #createdAt = 0;

  constructor(options: SlotBoardOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? usualLeaseMs;
    this.#heartbeatMs = this.#leaseMs / heartbeatsPerLease;
  }

  /** This replica's name. */
  get replica(): string {
    return this.#options.replica;
  }

  /** How often what is written must be written again. */
  get refreshMs(): number {
    return keptMs / 3;
  }

  /** Whether the others hear this replica: what it has here nobody else takes. */
  get isHeard(): boolean {
    // Somewhat less than the others wait, so that this replica stops first.
    return this.#reachable && performance.now() - this.#echoedAt < this.#leaseMs - this.#heartbeatMs;
  }

  /** How many replicas there are; while NATS is away, how many there were. */
  get replicas(): number {
    return 1 + this.#heard.size;
  }

  /** How long what nobody writes is kept. */
  get keptMs(): number {
    return keptMs;
  }

  /** When what is on the board began, in milliseconds of the server's clock. */
  get createdAt(): number {
    return this.#createdAt;
  }

  /** What the server's clock says. */
  get serverTime(): Instant {
    return this.#serverClock.now();
  }

  /** Counts with the others from when NATS is there. */
  start(listener: BoardListener): void {
    const { nats, prefix } = this.#options;
    this.#listener = listener;
    nats.subscribe(`${prefix}slots.here`, (text) => this.#hear(text));
    nats.subscribe(`${prefix}slots.gone`, (text) => this.#heard.delete(text));
    nats.subscribe(`${prefix}slots.ask.${this.replica}`, (text, message) => {
      const answer = () => void message.respond();
      listener.asked(text).then(answer, answer);
    });
    nats.onChange((isConnected) => (isConnected ? this.#reached() : this.#lost()));
    this.#timer = setInterval(() => this.#beat(), this.#heartbeatMs);
  }

  /** Whether a replica is there no more, so that its places can be taken. */
  isDead(replica: string): boolean {
    const now = performance.now();
    if (replica === this.replica || now - this.#listeningSince < this.#leaseMs) return false;
    return now - (this.#heard.get(replica) ?? Number.NEGATIVE_INFINITY) >= this.#leaseMs;
  }

  /** Reads who has how many places of a name. */
  async read(name: string): Promise<Holding> {
    const { revision, text } = await this.readText(`places.${name}`);
    return { revision, holders: text === undefined ? {} : holdersFrom(text) };
  }

  /** Writes it, unless another replica did since it was read. Answers the new revision, or undefined. */
  write(name: string, holders: Holding['holders'], revision: number): Promise<number | undefined> {
    return this.writeText(`places.${name}`, JSON.stringify(holders), revision);
  }

  /** Reads an entry. */
  async readText(key: string): Promise<Entry> {
    const entry = await this.#open().get(key);
    return entry === null ? { revision: 0, text: undefined } : { revision: entry.revision, text: entry.string() };
  }

  /** Writes an entry, unless another replica did since it was read. Answers the new revision, or undefined. */
  async writeText(key: string, text: string, revision: number): Promise<number | undefined> {
    try {
      return await this.#open().put(key, text, { previousSeq: revision });
    } catch (error) {
      if (error instanceof NatsError && error.api_error?.err_code === wrongRevision) return undefined;
      throw error;
    }
  }

  /** Asks replicas to give up what they keep of a name and do not use. */
  async ask(replicas: readonly string[], name: string): Promise<void> {
    const { nats, prefix } = this.#options;
    const { connection } = nats;
    if (connection === undefined) return;
    // One that does not answer gives nothing up; who needed a place finds it taken.
    await Promise.allSettled(
      replicas.map((replica) => connection.request(`${prefix}slots.ask.${replica}`, name, { timeout: askTimeoutMs })),
    );
  }

  /**
   * Makes sure of the bucket, and says how long to wait until all replicas have written there what they have: no time,
   * unless the bucket is new or NATS was away.
   */
  async join(): Promise<number> {
    const connection = this.#options.nats.connected;
    let bucket = await this.#openBucket(connection);
    // Versions up to 0.1.0 made a bucket in files. After NATS was away all replicas write what they have into a new one.
    if (this.#wasAway && (await bucket.status()).storage === StorageType.File) {
      await bucket.destroy();
      bucket = await this.#openBucket(connection);
    }
    this.#serverClock.forget();
    const [{ streamInfo }, now] = await Promise.all([bucket.status(), this.#lookAtClock(bucket)]);
    this.#createdAt = Date.parse(streamInfo.created);
    this.#bucket = bucket;
    // Both are the server's times.
    return this.#wasAway ? settleMs : Math.max(0, settleMs - (now - this.#createdAt));
  }

  #openBucket(connection: NatsConnection): Promise<KV> {
    return connection.jetstream({ timeout: requestTimeoutMs }).views.kv(`${this.#options.prefix}SLOTS`, {
      history: 1,
      // When its disk is full, NATS 2.9 stands still while it writes to a file, until it is restarted.
      storage: StorageType.Memory,
      ttl: keptMs,
      max_bytes: mostBytes,
      // What was read from a follower could be old.
      allow_direct: false,
      timeout: requestTimeoutMs,
    });
  }

  /** Finds out what the server's clock says, by what it gives an entry of this replica's own. */
  async #lookAtClock(bucket: KV): Promise<number> {
    const key = `replica.${this.replica}`;
    const sentAt = performance.now();
    await bucket.put(key, '');
    const answeredAt = performance.now();
    const entry = await bucket.get(key);
    if (entry === null) throw new Error('the bucket of limits was lost');
    const created = entry.created.getTime();
    this.#serverClock.learn(created, sentAt, answeredAt);
    return created;
  }

  /** Tells the others that this replica goes. Where that cannot be said they find out by its silence. */
  async close(): Promise<void> {
    const { nats, prefix } = this.#options;
    clearInterval(this.#timer);
    nats.publish(`${prefix}slots.gone`, this.replica);
    await nats.flush();
  }

  #open(): KV {
    if (this.#bucket === undefined) throw new Error('not connected to NATS');
    return this.#bucket;
  }

  #lost(): void {
    this.#reachable = false;
    this.#wasAway = true;
    this.#listener?.lost();
  }

  #reached(): void {
    this.#reachable = true;
    this.#startListening();
    this.#beat();
  }

  /** Who was there is taken to be there until it has had the time to be heard. */
  #startListening(): void {
    const now = performance.now();
    this.#listeningSince = now;
    for (const replica of this.#heard.keys()) this.#heard.set(replica, now);
    this.#echoedAt = Number.NEGATIVE_INFINITY;
  }

  #beat(): void {
    if (!this.#reachable) return;
    const now = performance.now();
    for (const [replica, at] of this.#heard) if (now - at >= this.#leaseMs && this.isHeard) this.#heard.delete(replica);
    this.#sentAt = now;
    this.#options.nats.publish(`${this.#options.prefix}slots.here`, `${this.replica} ${now}`);
    this.#beats += 1;
    if (this.#beats % heartbeatsPerLook > 0 || this.#bucket === undefined) return;
    this.#lookAtClock(this.#bucket).catch((error: unknown) => {
      this.#options.log.debug({ err: error }, "the server's clock could not be looked at");
    });
  }

  #hear(text: string): void {
    const [replica = '', sentAt = ''] = text.split(' ');
    if (replica !== this.replica) {
      this.#heard.set(replica, performance.now());
      return;
    }
    // Its own word: the server has it, and with it the others.
    const wasHeard = this.isHeard;
    this.#echoedAt = Math.max(this.#echoedAt, Math.min(Number(sentAt), this.#sentAt));
    if (wasHeard || !this.isHeard) return;
    // It was silent for long, frozen perhaps: others may have taken its places, and it has heard of none of them.
    this.#listener?.lost();
    const heardAt = this.#echoedAt;
    this.#startListening();
    this.#echoedAt = heardAt;
    this.#listener?.found();
  }
}

/** What another version wrote in a form that this one cannot read is nobody's: it is written anew. */
function holdersFrom(text: string): Record<string, number> {
  const value = parseEntry(text);
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter(([, count]) => Number.isSafeInteger(count) && count > 0));
}
