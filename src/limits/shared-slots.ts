import { once } from '../lib/counts.ts';
import { type Change, SharedCounter } from './shared-counter.ts';
import type { Purpose, Sharing } from './sharing.ts';

/** A concurrency slot that was acquired. */
export interface Slot {
  /** Gives the slot back. Only the first call counts. */
  release(): void;
}

/** How many slots each replica has reserved. */
type Reservations = Readonly<Record<string, number>>;

/** How long reserved slots that nobody uses are kept, so that a partner's next request finds one without asking. */
const keptIdleMs = 2_000;
/** An entry is written again before the store forgets it. */
const refreshMs = 200_000;
/** For so long a replica leaves slots to another one that waits in line, which asks again well within this time. */
const yieldMs = 100;

/**
 * Slots counted across replicas. The sum of all replicas' reservations never exceeds the limit, so the sum of slots in use
 * cannot either. A replica gives back what it has not used for a while, or at once if another one needs it. Its share
 * while NATS is away is the limit divided by the replicas there were last, and at least one.
 */
export class SharedSlots {
  readonly #counterOf: (name: string) => SlotCounter;
  /** How many slots of all names are in use here. */
  usedHere = 0;

  constructor(sharing: Sharing) {
    this.#counterOf = sharing.counters((name) => new SlotCounter(sharing, name));
  }

  /**
   * Acquires a slot of a name, or answers undefined if all of them are in use. It never throws.
   *
   * @param name What is counted together, such as `requests.<partner>`: letters, digits, dots, hyphens, underscores.
   * @param most How many slots there are, 1 or more.
   * @param isInLine Whether a caller who gets none asks again and again. Other replicas then let it have its turn.
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

  /** How many slots of a name are in use now, as far as that can be found out. It never throws. */
  used(name: string): Promise<number> {
    return this.#counterOf(name).usedByAll();
  }
}

class SlotCounter extends SharedCounter<Reservations> {
  #most = 1;
  #used = 0;
  /**
   * Slots that the others leave to this replica. Fewer than are in use only if too many are, because NATS was away or this
   * replica was taken for dead. Then no more are acquired.
   */
  #reserved = 0;
  /** What the entry says that this replica has; undefined: not known. */
  #written: number | undefined = 0;
  #writtenAt = 0;
  #idleSince = 0;
  #yieldsUntil = 0;

  constructor(sharing: Sharing, name: string) {
    super(sharing, 'places', name);
  }

  acquire(most: number, isInLine: boolean): boolean | Promise<boolean> {
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
    if (!this.sharing.isShared) return this.#used;
    try {
      const { value } = await this.read();
      if (sum(this.#others(value)) === 0) return this.#used;
      // They may keep some for later. Once asked, they write what is in use.
      await this.sharing.ask(this.othersToAsk(value), this.name, false);
      return sum(this.#others((await this.read()).value)) + this.#used;
    } catch {
      return this.#used;
    }
  }

  override async give(isInLine: boolean): Promise<void> {
    if (isInLine) this.#yieldsUntil = this.sharing.time.now() + yieldMs;
    await super.give(isInLine);
  }

  override lost(): void {
    super.lost();
    this.#written = undefined;
  }

  needs(purpose: Purpose): boolean {
    if (purpose !== 'sweep') return this.#used > 0 || this.#written !== 0;
    const now = this.sharing.time.now();
    const isIdle = this.#reserved > this.#used && now - this.#idleSince >= keptIdleMs;
    const isOld = this.#written !== 0 && now - this.#writtenAt >= refreshMs;
    return !this.isBusy && (isIdle || isOld || this.#written !== Math.max(this.#used, this.#reserved));
  }

  override async update(purpose: Purpose): Promise<boolean> {
    const hasMore = await super.update(purpose);
    // Too many are in use: those who have some left must know.
    if (purpose === 'settle' && this.#used > this.#reserved) void this.askOthers();
    return hasMore;
  }

  protected takeHeld(now: number): boolean {
    return this.#used < Math.min(this.#reserved, this.#most) && !this.#mustYield(now) && this.#use();
  }

  protected takeOfShare(): boolean {
    return this.#used < Math.max(1, this.#share) && this.#use();
  }

  protected isEmpty(now: number): boolean {
    // Those who wait already get what is left.
    return this.#used + this.waiting.length >= this.#most || this.#mustYield(now);
  }

  protected valueFrom(read: unknown): Reservations {
    if (typeof read !== 'object' || read === null) return {};
    return Object.fromEntries(Object.entries(read).filter(([, count]) => Number.isSafeInteger(count) && count > 0));
  }

  protected prepare(purpose: Purpose): void {
    // From now on no more are acquired; once that is written, the others can have them.
    if (purpose !== 'draw') this.#reserved = Math.min(this.#reserved, this.#used);
  }

  protected change(before: Reservations, purpose: Purpose, now: number): Change<Reservations> {
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
    const { sharing } = this;
    return Object.fromEntries(
      Object.entries(reservations).filter(([id]) => id !== sharing.replica && !sharing.isDead(id)),
    );
  }

  /** What each replica can have if all of them want some. */
  get #share(): number {
    return Math.floor(this.#most / this.sharing.replicas);
  }

  /** While another replica waits in line, this one uses no more than its share. */
  #mustYield(now: number): boolean {
    return now < this.#yieldsUntil && this.#used >= this.#share;
  }

  #use(): true {
    this.#used += 1;
    return true;
  }
}

function sum(reservations: Reservations): number {
  return Object.values(reservations).reduce((total, each) => total + each, 0);
}
