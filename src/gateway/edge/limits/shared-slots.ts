import { once } from '../../../kit/counts.ts';
import { isReplicaName, maxReplicas } from './peers.ts';
import { type EntryChange, SharedCounter } from './shared-counter.ts';
import type { Purpose, Sharing } from './sharing.ts';

/** A concurrency slot that was acquired. */
export interface Slot {
  /** Only the first call counts. */
  release(): void;
}

type Reservations = Readonly<Record<string, number>>;

/** How long unused slots stay reserved, so that a partner's next request finds one without asking. */
const keptIdleMs = 2_000;
/** An entry is written again before the store deletes it. */
const refreshMs = 200_000;
/** No replica reserves more: a partner may have 10,000 requests in progress. */
const maxSlots = 1_000_000;
/** How long a replica yields to another one that waits in line, which asks again well within this time. */
const yieldMs = 100;

/**
 * Slots counted across replicas. The sum of all replicas' reservations never exceeds the limit, so the sum of slots in
 * use cannot either. A replica gives back slots after some idle time, or at once if another needs them. While NATS is
 * away, its share is the limit divided by the last number of replicas, and at least 1.
 */
export class SharedSlots {
  readonly #counterOf: (name: string) => SlotCounter;
  /** Slots of all names in use here. */
  usedHere = 0;

  constructor(sharing: Sharing) {
    this.#counterOf = sharing.counters((name) => new SlotCounter(sharing, name));
  }

  /**
   * Acquires a slot of a name; undefined if all are in use. It never throws.
   *
   * @param name The counter's name, such as `requests.<partner>`: letters, digits, dots, hyphens, underscores.
   * @param most How many slots there are, 1 or more.
   * @param isInLine Whether a caller without a slot asks again and again. Other replicas then yield to it.
   */
  async acquire(name: string, most: number, isInLine = false): Promise<Slot | undefined> {
    const counter = this.#counterOf(name);
    if (!(await counter.acquire(most, isInLine))) return undefined;
    this.usedHere += 1;
    const release = once(() => {
      this.usedHere -= 1;
      counter.release();
    });
    return { release };
  }

  /** How many slots of a name are in use, as far as replicas can be asked. It never throws. */
  used(name: string): Promise<number> {
    return this.#counterOf(name).usedByAll();
  }
}

class SlotCounter extends SharedCounter<Reservations> {
  protected readonly folder = 'slots';
  #most = 1;
  #used = 0;
  /**
   * The slots reserved for this replica. Fewer than are in use only after NATS was away, after this replica was taken for dead,
   * or after the limit was lowered. Then it acquires no more.
   */
  #reserved = 0;
  /** This replica's reservation in the entry; undefined if unknown. */
  #written: number | undefined = 0;
  #writtenAt = 0;
  #idleSince = 0;
  #yieldsUntil = 0;

  acquire(most: number, isInLine: boolean): boolean | Promise<boolean> {
    // All replicas' reservations under a higher limit may be more than this one, so each draws its slots again.
    if (most < this.#most) this.#reserved = 0;
    this.#most = most;
    this.isInLine = isInLine;
    return this.take();
  }

  release(): void {
    this.#used -= 1;
    this.#idleSince = this.sharing.time.now();
  }

  /** How many are in use on all replicas, or here while the others cannot be asked. */
  async usedByAll(): Promise<number> {
    const others = this.sharing.isShared ? await this.#usedByOthers().catch(() => 0) : 0;
    return others + this.#used;
  }

  async #usedByOthers(): Promise<number> {
    const { value } = await this.read();
    if (sum(this.#others(value)) === 0) return 0;
    // Their reservations may include idle slots. Once asked, they write the number in use.
    await this.sharing.ask(this.othersToAsk(value), this.name, false);
    return sum(this.#others((await this.read()).value));
  }

  override lost(): void {
    super.lost();
    this.#written = undefined;
  }

  protected hasChange(purpose: Purpose): boolean {
    if (purpose !== 'sweep') return this.#used > 0 || this.#written !== 0;
    const now = this.sharing.time.now();
    const isIdle = this.#reserved > this.#used && now - this.#idleSince >= keptIdleMs;
    const isOld = this.#written !== 0 && now - this.#writtenAt >= refreshMs;
    return !this.isBusy && (isIdle || isOld || this.#written !== Math.max(this.#used, this.#reserved));
  }

  protected takeHeld(now: number): boolean {
    return this.#useIf(this.#used < Math.min(this.#reserved, this.#most) && !this.#mustYield(now));
  }

  protected takeOfShare(): boolean {
    return this.#useIf(this.#used < Math.max(1, this.#share));
  }

  protected isEmpty(now: number): boolean {
    // The waiting requests get the remaining slots first.
    return this.#used + this.waiting.length >= this.#most || this.#mustYield(now);
  }

  protected valueFrom(read: unknown): Reservations | undefined {
    return reservationsFrom(read);
  }

  protected newValue(): Reservations {
    return {};
  }

  protected prepare(purpose: Purpose, now: number): void {
    if (purpose === 'yield') this.#yieldsUntil = now + yieldMs;
    // No more are acquired from now on. Once that is written, other replicas can have the rest.
    if (purpose !== 'draw') this.#reserved = Math.min(this.#reserved, this.#used);
  }

  protected change(before: Reservations, purpose: Purpose, now: number): EntryChange<Reservations> {
    const { replica } = this.sharing;
    const others = this.#others(before);
    const left = Math.max(0, this.#most - sum(others));
    const wanted = purpose === 'draw' ? Math.min(this.#used + this.waiting.length, left) : 0;
    const own = Math.max(this.#used, this.#reserved, wanted);
    const done = () => {
      const reserved = Math.min(own, left);
      const hasMore = reserved > this.#reserved;
      this.#written = own;
      this.#reserved = reserved;
      // Too many are in use, so replicas with idle slots must give them up.
      if (purpose === 'settle' && this.#used > reserved) void this.askOthers();
      return hasMore;
    };
    if (own === (before[replica] ?? 0) && (own === 0 || now - this.#writtenAt < refreshMs)) return { done };
    this.#written = undefined;
    this.#writtenAt = now;
    return { value: own > 0 ? { ...others, [replica]: own } : others, done };
  }

  protected othersToAsk(reservations: Reservations): string[] {
    return Object.keys(reservations).filter((id) => id !== this.sharing.replica);
  }

  #others(reservations: Reservations): Reservations {
    const others = this.othersToAsk(reservations).filter((id) => !this.sharing.isDead(id));
    return Object.fromEntries(others.map((id) => [id, reservations[id] ?? 0]));
  }

  /** Each replica's part if all of them want slots. */
  get #share(): number {
    return Math.floor(this.#most / this.sharing.replicas);
  }

  /** While another replica waits in line, this one uses no more than its share. */
  #mustYield(now: number): boolean {
    return now < this.#yieldsUntil && this.#used >= this.#share;
  }

  #useIf(isFree: boolean): boolean {
    if (isFree) this.#used += 1;
    return isFree;
  }
}

/** Checks an entry's value; undefined if it makes no sense. A later version may add members that are no numbers. */
export function reservationsFrom(value: unknown): Reservations | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value).filter(([, count]) => typeof count === 'number');
  const makesSense = ([replica, count]: [string, number]) =>
    isReplicaName(replica) && Number.isSafeInteger(count) && count > 0 && count <= maxSlots;
  return entries.length <= maxReplicas && entries.every(makesSense) ? Object.fromEntries(entries) : undefined;
}

function sum(reservations: Reservations): number {
  return Object.values(reservations).reduce((total, each) => total + each, 0);
}
