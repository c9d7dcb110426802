import { setTimeout as delay } from 'node:timers/promises';
import { chunksOf } from '../../../kit/group.ts';
import type { Logger } from '../../../kit/log.ts';
import type { PeerMessages } from '../peers/messages.ts';
import type { Distrust } from '../peers/untrusted.ts';
import { type CounterStore, StoreLostError } from './counter-store.ts';
import { heartbeatForm, maxReplicas, pauseForm } from './peers.ts';
import { SharedPause } from './shared-pause.ts';

/** Why a counter's entry is changed. */
export type Purpose =
  /** To take more than this replica holds. */
  | 'draw'
  /** Another replica needs unused parts of this one. */
  | 'give'
  /** Another replica waits in line for them. */
  | 'yield'
  /** Periodically, while the replicas count together. */
  | 'sweep'
  /** Before the replicas count together: the others must see how much this replica took from its share. */
  | 'settle'
  | 'leave';

/** A counter of which each replica holds a part. */
export interface ReplicatedCounter {
  /** Whether dropping it loses nothing. */
  readonly isUnused: boolean;
  /** Whether its entry must be changed for this purpose. */
  needs(purpose: Purpose): boolean;
  /** Changes the entry. Throws if NATS fails. */
  update(purpose: Purpose): Promise<unknown>;
  /** The other replicas may be lost: the entry may be old, and each replica keeps to its share. */
  lost(): void;
}

/** A clock in milliseconds that never goes back, and a wait by it. */
export interface MonotonicTime {
  now(): number;
  wait(ms: number, signal?: AbortSignal): Promise<unknown>;
}

export interface SharingParts {
  readonly nats: Pick<PeerMessages, 'ask' | 'flush' | 'onChange' | 'publish' | 'subscribe'>;
  readonly store: Pick<CounterStore, 'createdAt' | 'now' | 'open' | 'read' | 'readClock' | 'untrusted' | 'write'>;
  readonly distrust: Distrust;
  /** The prefix of all subjects, so that several gateways can share a NATS. */
  readonly prefix: string;
  /** This replica's unique name: letters, digits, hyphens. */
  readonly replica: string;
  readonly log: Logger;
}

const realTime: MonotonicTime = {
  now: () => performance.now(),
  wait: (ms, signal) => delay(ms, undefined, { ref: false, ...(signal && { signal }) }).catch(() => undefined),
};

const heartbeatsPerLease = 5;
const clockReadingMs = 10_000;
const sweepMs = 500;
const askTimeoutMs = 250;
/** All replicas write their state within this time after NATS is back or its bucket is new. */
const settleMs = 1_500;
/** Running replicas have reached a new NATS and sent a heartbeat within this time. */
const quietMs = 600;
/** All replicas begin to count together within this time of each other. */
const spreadMs = 200;
const retryMs = 250;
/** How long requests wait for the first join, and for the last write of any join. Then they get the replica's share. */
const requestWaitMs = { first: 3_000, last: 1_000 };
const maxAtOnce = 32;

/**
 * Whether this replica counts together with the others or keeps to its share. Replicas know each other by heartbeats.
 * No clocks are compared: a replica is dead if this one got no heartbeat of it for a lease. Before they count together,
 * each has written how much it took from its share.
 */
export class Sharing {
  readonly store: SharingParts['store'];
  readonly replica: string;
  /** Set for the moment before replicas count together or not. Requests wait for it briefly. */
  undecided: Promise<void> | undefined;
  /** Whether this replica began with an empty store and no other replica. */
  isFirst = false;
  losses = 0;
  readonly #heartbeatMs: number;
  readonly #kinds: Map<string, ReplicatedCounter>[] = [];
  readonly #stopping = new AbortController();
  /** When the last heartbeat of each other replica came. */
  readonly #heardAt = new Map<string, number>();
  #listeningSince = 0;
  /** When the latest heartbeat that came back was sent. */
  #echoedAt = Number.NEGATIVE_INFINITY;
  #isConnected = false;
  #wasAway = false;
  #isShared = false;
  #lostAt = Number.NEGATIVE_INFINITY;
  #isNew = true;
  readonly #pause = new SharedPause();
  #joining: Promise<void> | undefined;

  /** `leaseMs`: a replica without a heartbeat for this long counts as dead. */
  constructor(
    private readonly parts: SharingParts,
    private readonly leaseMs = 5_000,
    readonly time: MonotonicTime = realTime,
  ) {
    this.store = parts.store;
    this.replica = parts.replica;
    this.#heartbeatMs = leaseMs / heartbeatsPerLease;
  }

  /** Whether the replicas count together now, and not each from its share. */
  get isShared(): boolean {
    return this.#isShared && this.#isHeard;
  }

  /** Since when this replica keeps to its share, on the monotonic clock; -Infinity if it never counted with others. */
  get lostAt(): number {
    return this.#isShared ? this.time.now() : this.#lostAt;
  }

  /** The number of replicas; while NATS is away, their last number. */
  get replicas(): number {
    return 1 + this.#heardAt.size;
  }

  /** Whether a replica is dead, so that others may have its part. */
  isDead(replica: string): boolean {
    const now = this.time.now();
    if (replica === this.replica || now - this.#listeningSince < this.leaseMs) return false;
    return now - (this.#heardAt.get(replica) ?? Number.NEGATIVE_INFINITY) >= this.leaseMs;
  }

  /** Registers a kind of counter. The result returns the counter of a name, and makes it if there is none. */
  counters<Kind extends ReplicatedCounter>(make: (name: string) => Kind): (name: string) => Kind {
    const counters = new Map<string, Kind>();
    this.#kinds.push(counters);
    return (name) => {
      const counter = counters.get(name) ?? make(name);
      counters.set(name, counter);
      return counter;
    };
  }

  /** Joins the other replicas once NATS is connected. */
  start(): void {
    const { nats, prefix } = this.parts;
    this.#subscribe('here', heartbeatForm, (replica, sentAt) => this.#onHeartbeat(replica, sentAt));
    this.#subscribe('alone', pauseForm, (replica, ms) => replica !== this.replica && this.#keepToShare(ms));
    nats.subscribe(`${prefix}peers.gone`, (replica) => this.#heardAt.delete(replica));
    nats.subscribe(`${prefix}peers.ask.${this.replica}`, async (text, message) => {
      const [name = '', line] = text.split(' ');
      await Promise.all(this.#kinds.map((counters) => this.#give(counters.get(name), line ? 'yield' : 'give')));
      message.respond();
    });
    nats.onChange((isConnected) => this.#connectionChanged(isConnected));
    void this.#repeat(this.#heartbeatMs, () => this.#sendHeartbeat());
    void this.#repeat(sweepMs, () => this.#sweep());
    void this.#repeat(clockReadingMs, () => this.#readClock());
  }

  /** Receives what replicas say of themselves: a name and a number, in the given form. */
  #subscribe(subject: string, form: RegExp, receive: (replica: string, number: number) => unknown): void {
    this.parts.nats.subscribe(`${this.parts.prefix}peers.${subject}`, (text) => {
      const [, replica, number] = form.exec(text) ?? [];
      if (replica === undefined) this.parts.distrust('message', 'nonsense');
      else receive(replica, Number(number));
    });
  }

  #publish(subject: string, text: string): void {
    this.parts.nats.publish(`${this.parts.prefix}peers.${subject}`, text);
  }

  async #give(counter: ReplicatedCounter | undefined, purpose: Purpose): Promise<void> {
    if (!this.isShared) return;
    const { losses } = this;
    await counter?.update(purpose).catch((error: unknown) => this.fail(error, losses));
  }

  /** Asks replicas to give up unused parts of a name. One that does not answer gives up none. */
  async ask(replicas: readonly string[], name: string, isInLine: boolean): Promise<void> {
    const { nats, prefix } = this.parts;
    const text = isInLine ? `${name} line` : name;
    await Promise.all(replicas.map((replica) => nats.ask(`${prefix}peers.ask.${replica}`, text, askTimeoutMs)));
  }

  /** Each replica keeps to its share until NATS works again. A failure of work that began before a loss is ignored. */
  fail(error: unknown, lossesBefore: number): void {
    // Everybody writes what they took into a store that lost it, as after NATS was away.
    if (error instanceof StoreLostError) this.#wasAway = true;
    if (this.losses !== lossesBefore) return;
    if (this.#pause.isNeededFor(error, this.time.now())) {
      this.#pauseAll();
      return;
    }
    if (this.#isShared) this.parts.log.warn({ err: error }, 'limits are not counted across replicas now');
    this.#lose();
    this.#join();
  }

  /** Gives back what this replica holds and announces its end. If that is lost, its missing heartbeats show it. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#joining;
    // Parts that are not given back expire.
    if (this.isShared) await this.#updateAll('leave').catch(() => undefined);
    this.#lose();
    this.#publish('gone', this.replica);
    await this.parts.nats.flush();
  }

  /** Whether the other replicas get its heartbeats, so that none takes its part. */
  get #isHeard(): boolean {
    // This ends one heartbeat before the others take this replica for dead.
    return this.#isConnected && this.time.now() - this.#echoedAt < this.leaseMs - this.#heartbeatMs;
  }

  async #repeat(everyMs: number, work: () => unknown): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const { losses } = this;
      try {
        await work();
      } catch (error) {
        this.fail(error, losses);
      }
      await this.time.wait(everyMs, signal);
    }
  }

  /** Reads the server's clock. A failed reading is ignored, because the last one is still true. */
  async #readClock(): Promise<void> {
    if (!this.isShared) return;
    await this.store.readClock().catch((error: unknown) => {
      if (error instanceof StoreLostError) throw error;
    });
  }

  #sendHeartbeat(): void {
    if (!this.#isConnected) return;
    const now = this.time.now();
    if (this.#isHeard) {
      for (const [replica, at] of this.#heardAt) if (now - at >= this.leaseMs) this.#heardAt.delete(replica);
    }
    this.#publish('here', `${this.replica} ${now.toFixed(3)}`);
  }

  #onHeartbeat(replica: string, sentAt: number): void {
    const now = this.time.now();
    if (replica !== this.replica) {
      if (this.#heardAt.has(replica) || this.#heardAt.size < maxReplicas - 1) this.#heardAt.set(replica, now);
      else {
        // The share of each would be nearly nothing.
        this.parts.distrust('replica', 'too_many');
        this.#pauseAll();
      }
      return;
    }
    // Its own heartbeat came back, so NATS sent it to the others too.
    const wasHeard = this.#isHeard;
    this.#echoedAt = Math.max(this.#echoedAt, Math.min(sentAt, now));
    if (wasHeard || !this.#isHeard) return;
    // No heartbeat came back for long, perhaps because the process was frozen. Others may have taken its part.
    this.#lose();
    this.#startListening();
    this.#join();
  }

  /** Known replicas count as running until each has had the time to send a heartbeat. */
  #startListening(): void {
    const now = this.time.now();
    this.#listeningSince = now;
    for (const replica of this.#heardAt.keys()) this.#heardAt.set(replica, now);
  }

  #connectionChanged(isConnected: boolean): void {
    this.#isConnected = isConnected;
    this.#echoedAt = Number.NEGATIVE_INFINITY;
    if (isConnected) {
      this.#startListening();
      this.#sendHeartbeat();
    } else {
      this.#wasAway = true;
      this.#lose();
    }
  }

  /**
   * What the replicas share makes no sense. So each keeps to its share for a while, all at the same time: one that went on
   * counting together would have what the others take from their shares in addition.
   */
  #pauseAll(): void {
    if (this.#isPaused) return;
    const ms = this.#pause.next(this.time.now());
    this.#keepToShare(ms);
    this.#publish('alone', `${this.replica} ${ms}`);
  }

  /** Counts alone for so long, in milliseconds. */
  #keepToShare(ms: number): void {
    if (this.#isShared) this.parts.log.warn({ ms }, 'limits are not counted across replicas for a while');
    this.#pause.begin(this.time.now(), ms);
    // Everybody writes what they took, as after NATS was away.
    this.#wasAway = true;
    this.#lose();
  }

  get #isPaused(): boolean {
    return this.#pause.isOn(this.time.now());
  }

  async #sweep(): Promise<void> {
    for (const counters of this.#kinds) {
      for (const [name, counter] of counters) if (counter.isUnused) counters.delete(name);
    }
    this.#join();
    if (this.isShared) await this.#updateAll('sweep');
  }

  #lose(): void {
    this.losses += 1;
    if (this.#isShared) this.#lostAt = this.time.now();
    this.#isShared = false;
    for (const counters of this.#kinds) for (const counter of counters.values()) counter.lost();
  }

  get #mayJoin(): boolean {
    return !this.#stopping.signal.aborted && !this.#isShared && this.#isHeard && !this.#isPaused;
  }

  #join(): void {
    if (this.#joining !== undefined || !this.#mayJoin) return;
    this.#joining = this.#keepJoining().finally(() => {
      this.#joining = undefined;
    });
    // Right after the start this replica does not know how much the others have taken.
    if (this.#isNew) this.#holdRequests(this.#joining, requestWaitMs.first);
    this.#isNew = false;
  }

  async #keepJoining(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#mayJoin) {
      try {
        await this.#joinOnce(signal);
      } catch (error) {
        this.parts.log.debug({ err: error }, 'limits could not be counted across replicas');
        await this.time.wait(retryMs, signal);
      }
    }
  }

  /** Writes this replica's use, waits until all replicas have, and counts together with them from then on. */
  async #joinOnce(signal: AbortSignal): Promise<void> {
    const before = this.losses;
    const ageMs = await this.store.open();
    const waitMs = this.#wasAway ? settleMs : Math.max(0, settleMs - ageMs);
    await this.#updateAll('settle');
    await this.time.wait(Math.min(waitMs, quietMs), signal);
    const isAlone = this.replicas === 1;
    const lastMs = isAlone || waitMs === 0 ? 0 : spreadMs;
    if (!isAlone) await this.time.wait(Math.max(0, waitMs - quietMs - lastMs), signal);
    const last = this.#updateAll('settle').then(async () => {
      await this.time.wait(lastMs, signal);
      if (this.losses !== before || signal.aborted) return;
      if (this.#lostAt > 0) this.parts.log.info('limits are counted across replicas again');
      this.isFirst = isAlone && waitMs > 0;
      this.#isShared = true;
    });
    // A part taken from the share now would not be written before others draw.
    this.#holdRequests(last, lastMs + requestWaitMs.last);
    await last;
  }

  /** Requests wait for the work, but at most `mostMs`. */
  #holdRequests(work: Promise<void>, mostMs: number): void {
    this.undecided ??= Promise.race([work.catch(() => undefined), this.time.wait(mostMs)]).then(() => {
      this.undecided = undefined;
    });
  }

  /** Changes all entries that need it, at most `maxAtOnce` at a time. */
  async #updateAll(purpose: Purpose): Promise<void> {
    const counters = this.#kinds.flatMap((kind) => [...kind.values()]).filter((each) => each.needs(purpose));
    for (const some of chunksOf(counters, maxAtOnce)) await Promise.all(some.map((each) => each.update(purpose)));
  }
}
