import { ApiError } from '../lib/errors.ts';
import type { Fact } from './facts.ts';
import type { PartnerTransaction } from './partner-transaction.ts';
import type { Decision } from './statement.ts';

/** One piece of work on a partner's objects: its facts, and its decision. */
export interface PartnerWork<Value, T> {
  /**
   * Names that only one piece of work in a transaction may touch: an object's id, an Idempotency-Key. Work that touches the
   * same name waits for the next transaction, so that its reads see the earlier writes.
   */
  readonly touches: readonly string[];
  readonly fact: Fact<Value>;
  /**
   * Decides, under the lock or on expected values. Throws to refuse: then this work writes nothing. It may be called twice,
   * because a decision on expected values is made again under the lock if they are wrong or if it refuses.
   */
  decide(value: Value, partner: PartnerTransaction): Decision<T>;
}

// biome-ignore lint/suspicious/noExplicitAny: work on many kinds of values waits in one queue.
export type AnyWork = PartnerWork<any, unknown>;

/** Work waiting for its transaction. */
export interface WaitingWork {
  readonly work: AnyWork;
  /** Since when, on a clock that never goes back. */
  readonly since: number;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** How many pieces of work may wait for one partner, and how many share a transaction. */
const longestQueue = 500;
const mostTogether = 16;
/** How long work may wait for its transaction to begin: while one waits for a lock, more would come than can go. */
const longestWaitMs = 8_000;

/**
 * Lets a partner's work run in one transaction at a time, in the order of arrival, and all that waits meanwhile together
 * in the next: many waiters then cost one lock, two round trips and one flush to disk. Waiters wait here rather than in
 * the database, where each would hold a connection.
 */
export class PartnerQueue {
  readonly #waiting = new Map<string, WaitingWork[]>();

  /** `runTogether` runs some work in one transaction and settles each piece of it. It never rejects. */
  constructor(private readonly runTogether: (partnerId: string, group: readonly WaitingWork[]) => Promise<void>) {}

  /** How many pieces of work wait for their turn. */
  get waiting(): number {
    let waiting = 0;
    for (const entries of this.#waiting.values()) waiting += entries.length;
    return waiting;
  }

  run<Value, T>(partnerId: string, work: PartnerWork<Value, T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiting = this.#waiting.get(partnerId);
      if (waiting !== undefined && waiting.length >= longestQueue) throw new ApiError('service_unavailable');
      const entry = { work, since: performance.now(), resolve: resolve as (result: unknown) => void, reject };
      if (waiting !== undefined) {
        waiting.push(entry);
        return;
      }
      this.#waiting.set(partnerId, [entry]);
      void this.#drain(partnerId);
    });
  }

  async #drain(partnerId: string): Promise<void> {
    for (;;) {
      const waiting = refuseLate(this.#waiting.get(partnerId) ?? []);
      const { group, rest } = takeGroup(waiting);
      if (group.length === 0) {
        this.#waiting.delete(partnerId);
        return;
      }
      this.#waiting.set(partnerId, rest);
      await this.runTogether(partnerId, group);
    }
  }
}

/** Refuses the work that waited too long, and returns the rest. */
function refuseLate(waiting: readonly WaitingWork[]): readonly WaitingWork[] {
  const oldest = performance.now() - longestWaitMs;
  if (waiting[0] === undefined || waiting[0].since >= oldest) return waiting;
  for (const { since, reject } of waiting) if (since < oldest) reject(new ApiError('service_unavailable'));
  return waiting.filter(({ since }) => since >= oldest);
}

/** The work that can share a transaction: the first that waits, and those after it that touch no name of an earlier one. */
function takeGroup(waiting: readonly WaitingWork[]): { group: WaitingWork[]; rest: WaitingWork[] } {
  const group: WaitingWork[] = [];
  const rest: WaitingWork[] = [];
  const touched = new Set<string>();
  for (const entry of waiting) {
    const fits = group.length < mostTogether && entry.work.touches.every((thing) => !touched.has(thing));
    (fits ? group : rest).push(entry);
    for (const thing of entry.work.touches) touched.add(thing);
  }
  return { group, rest };
}
