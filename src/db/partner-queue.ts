import { ApiError } from '../lib/errors.ts';
import type { LockedPartner } from './locked-partner.ts';
import type { Decision, SqlRow, Statement } from './statement.ts';

/** One piece of work on a partner's objects: what it reads under the lock, and what it makes of it. */
export interface PartnerWork<T> {
  /**
   * What only one piece of work in a transaction may touch: an object's id, an idempotency key. Work that touches the
   * same waits for the next transaction, so that its reads see what the earlier wrote.
   */
  readonly touches: readonly string[];
  /** Run under the lock. A statement object that several pieces of work share is run once for all of them. */
  readonly reads: readonly Statement[];
  /** Throws to refuse: then this work writes nothing. */
  decide(partner: LockedPartner, rows: SqlRow[][]): Decision<T>;
  /**
   * Decides without reading, on what is known already; it refuses nothing. Then lock, writes and COMMIT go in one round
   * trip. The writes must fail (`db/errors.isDisproved`) where what is assumed is not so; nothing is written then, and the
   * work is done with its reads. Each of them finds or makes a row. A statement object that several share is run once.
   */
  readonly decideAssumed?: ((partner: LockedPartner) => Decision<T>) | undefined;
}

/** Work waiting for its transaction. */
export interface WaitingWork {
  readonly work: PartnerWork<unknown>;
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

  run<T>(partnerId: string, work: PartnerWork<T>): Promise<T> {
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

/** Refuses what waited too long, and returns the rest. */
function refuseLate(waiting: readonly WaitingWork[]): readonly WaitingWork[] {
  const oldest = performance.now() - longestWaitMs;
  if (waiting[0] === undefined || waiting[0].since >= oldest) return waiting;
  for (const { since, reject } of waiting) if (since < oldest) reject(new ApiError('service_unavailable'));
  return waiting.filter(({ since }) => since >= oldest);
}

/** The work that can go together: the first that waits, and those after it that touch nothing an earlier one touches. */
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
