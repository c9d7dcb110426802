import type { Entry } from './counter-store.ts';
import { UntrustedEntryError } from './sealed-entry.ts';
import type { Purpose, ReplicatedCounter, Sharing } from './sharing.ts';

/** The result of changing an entry. */
export interface EntryChange<Value> {
  /** The new value; absent if it stays. */
  readonly value?: Value;
  /** Called once the store has it. Returns whether this replica holds more than before. */
  readonly done: () => boolean;
}

/** How long to retry a change while other replicas' changes win. */
const writeWithinMs = 500;
/** A counter without a request for this long may be dropped. */
const idleMs = 10_000;

/**
 * The counter of one name, of which each replica holds a part. A replica draws from the shared counter store by
 * compare-and-set and hands out from memory. While NATS is away it keeps to its share. Subclasses define what is
 * counted and the rule.
 */
export abstract class SharedCounter<Value> implements ReplicatedCounter {
  /** Requests that wait, in order of arrival. */
  protected readonly waiting: ((isTaken: boolean | Promise<boolean>) => void)[] = [];
  /** The first part of the entry's key; the second one is the counter's name. */
  protected abstract readonly folder: string;
  /** Whether the waiting requests ask repeatedly until they get some. */
  protected isInLine = false;
  /** The entry as last read or written, unless another replica may have changed it. */
  #entry: Entry<Value> | undefined;
  /** Serialises changes of the entry. */
  #turn: Promise<unknown> = Promise.resolve();
  #isDrawing = false;
  #takenAt = 0;
  /** Whether the entry is not believed, and must be written again before the replicas count together. */
  #isUntrusted = false;

  constructor(
    protected readonly sharing: Sharing,
    protected readonly name: string,
  ) {}

  /** Takes from the part that this replica holds. */
  protected abstract takeHeld(now: number): boolean;
  /** Takes from the share while the other replicas cannot be asked. */
  protected abstract takeOfShare(now: number): boolean | Promise<boolean>;
  /** Whether it is known that nothing can be drawn. */
  protected abstract isEmpty(now: number): boolean;
  /** Checks a value that was read; undefined if it makes no sense. */
  protected abstract valueFrom(read: unknown): Value | undefined;
  /** The value of an entry that does not exist; `isUntrusted`: or that is replaced, because it is not believed. */
  protected abstract newValue(isUntrusted: boolean): Value;
  /** Decides how much of its part this replica keeps. */
  protected abstract prepare(purpose: Purpose, now: number): void;
  protected abstract change(value: Value, purpose: Purpose, now: number): EntryChange<Value>;
  /** The other replicas that hold some and can be asked now. */
  protected abstract othersToAsk(value: Value, now: number): string[];
  /** Whether this replica has anything to change in the entry. */
  protected abstract hasChange(purpose: Purpose): boolean;

  needs(purpose: Purpose): boolean {
    return (purpose === 'settle' && this.#isUntrusted) || this.hasChange(purpose);
  }

  get isUnused(): boolean {
    const isIdle = !this.isBusy && this.sharing.time.now() - this.#takenAt > idleMs;
    return isIdle && !this.needs('settle') && !this.needs('leave');
  }

  lost(): void {
    this.#entry = undefined;
  }

  /** Takes one; false if there is none. It never throws. */
  protected take(): boolean | Promise<boolean> {
    const { sharing } = this;
    const now = sharing.time.now();
    this.#takenAt = now;
    if (sharing.undecided !== undefined) return sharing.undecided.then(() => this.take());
    if (!sharing.isShared) return this.takeOfShare(now);
    if (this.takeHeld(now)) return true;
    if (this.isEmpty(now)) return false;
    return new Promise((settle) => {
      this.waiting.push(settle);
      void this.draw();
    });
  }

  /** Draws for the waiting requests, and asks the other replicas once for unused parts. */
  protected async draw(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    const { losses, time } = this.sharing;
    try {
      for (let hasAsked = false; ; ) {
        const hasMore = await this.update('draw');
        while (this.waiting.length > 0 && this.sharing.isShared && this.takeHeld(time.now()))
          this.waiting.shift()?.(true);
        if (this.waiting.length === 0) break;
        if (hasMore) continue;
        if (hasAsked || !(await this.askOthers())) break;
        hasAsked = true;
      }
    } catch (error) {
      this.sharing.fail(error, losses);
    } finally {
      this.#isDrawing = false;
    }
    for (const settle of this.waiting.splice(0)) settle(this.sharing.isShared ? false : this.take());
  }

  /** Asks the other replicas to give up unused parts. Returns whether there are any. */
  protected async askOthers(): Promise<boolean> {
    const others = this.#entry === undefined ? [] : this.othersToAsk(this.#entry.value, this.sharing.time.now());
    if (others.length === 0) return false;
    await this.sharing.ask(others, this.name, this.isInLine);
    this.#entry = undefined;
    return true;
  }

  /** Returns whether this replica holds more than before. */
  update(purpose: Purpose): Promise<boolean> {
    const done = this.#turn.then(() => this.#update(purpose));
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #update(purpose: Purpose): Promise<boolean> {
    const { time, store, losses } = this.sharing;
    const checkLosses = () => {
      if (this.sharing.losses !== losses) throw new Error('the other replicas were lost');
    };
    // The store refuses a write by an old entry. A change that may write nothing must read the entry again.
    if (purpose !== 'draw') this.#entry = undefined;
    this.prepare(purpose, time.now());
    for (const end = time.now() + writeWithinMs; time.now() < end; ) {
      const entry = this.#entry ?? (await this.read(purpose));
      checkLosses();
      this.#entry = entry;
      const { value, done } = this.change(entry.value, purpose, time.now());
      if (value === undefined && !this.#isUntrusted) return done();
      const next = value ?? entry.value;
      const revision = await store.write(this.#key, { value: next, revision: entry.revision });
      checkLosses();
      this.#entry = revision === undefined ? undefined : { value: next, revision };
      if (revision === undefined) continue;
      this.#isUntrusted = false;
      return done();
    }
    return false;
  }

  /**
   * Reads the entry. Before the replicas count together, one that is not believed counts as absent, because each of them writes
   * what it took. Otherwise throws an `UntrustedEntryError`.
   */
  protected async read(purpose?: Purpose): Promise<Entry<Value>> {
    const { store } = this.sharing;
    try {
      const { value, revision } = await store.read(this.#key);
      const found = revision === 0 ? this.newValue(false) : this.valueFrom(value);
      if (found === undefined) throw store.untrusted('nonsense', revision);
      this.#isUntrusted = false;
      return { value: found, revision };
    } catch (error) {
      if (!(error instanceof UntrustedEntryError)) throw error;
      this.#isUntrusted = true;
      if (purpose !== 'settle') throw error;
      return { value: this.newValue(true), revision: error.revision };
    }
  }

  get #key(): string {
    return `${this.folder}.${this.name}`;
  }

  protected get isBusy(): boolean {
    return this.#isDrawing || this.waiting.length > 0;
  }
}
