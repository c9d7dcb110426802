import type { Database } from '../db/database.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import { pause, Wakeup, type Worker } from '../lib/worker.ts';

/** A reader that waits for events of its partner. */
export interface FeedWatcher {
  readonly partnerId: string;
  /** The last version it has seen. */
  readonly seen: bigint;
  /** Woken when there is more. */
  readonly wakeup: Wakeup;
}

/** How often the feed is polled while nobody notifies that it grew. */
const pollMs = 500;
/** How long it waits after a notification for others that come close behind. */
const batchingWindowMs = 10;

/**
 * Wakes readers when the feed has more for them. All readers of a process share one small query. It is made when this or
 * another process notifies that the feed grew, and twice a second in case a notification was lost: an idle feed costs two
 * queries a second however many readers wait, and none when nobody waits.
 */
export class FeedWatch {
  readonly worker: Worker = { name: 'feed watch', run: (signal) => this.#run(signal) };
  readonly #watchers = new Set<FeedWatcher>();
  readonly #wakeup = new Wakeup();

  constructor(private readonly database: Database) {}

  /** Watches for a reader, until the function returned is called. */
  watch(watcher: FeedWatcher): () => void {
    this.#watchers.add(watcher);
    this.#wakeup.wake();
    return () => this.#watchers.delete(watcher);
  }

  /** Notifies that the feed grew. */
  wake(): void {
    if (this.#watchers.size > 0) this.#wakeup.wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#wakeup.wait(pollMs, signal);
      await pause(batchingWindowMs, signal);
      if (this.#watchers.size > 0 && !signal.aborted) await this.#wakeReaders();
    }
  }

  /**
   * A reader is woken as long as the feed has a later version, even one it cannot read yet because an earlier one is
   * still on its way.
   */
  async #wakeReaders(): Promise<void> {
    const partnerIds = [...new Set([...this.#watchers].map(({ partnerId }) => partnerId))];
    const last = toVersions(await this.database.read(findLastVersions(partnerIds)));
    for (const { partnerId, seen, wakeup } of this.#watchers) {
      if ((last.get(partnerId) ?? 0n) > seen) wakeup.wake();
    }
  }
}

/** The last version of each of some partners that the feed has. */
export function findLastVersions(partnerIds: readonly string[]): Statement {
  return statement(
    `SELECT partner_id, MAX(version) AS version FROM feed_events
      WHERE partner_id IN (${partnerIds.map(() => '?').join(', ')}) GROUP BY partner_id`,
    ...partnerIds,
  );
}

/** Versions by their partners, of rows that have both. */
export function toVersions(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, bigint> {
  return new Map(rows.map((row) => [String(row.partner_id), toBigInt(row.version)]));
}
