import type { Database } from '../db/database.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import { pause, Wakeup, type Worker } from '../lib/worker.ts';

/** How often the feed is looked at when nobody says that it grew. */
const pollMs = 500;
/** How long after a word that it grew: what comes close together is looked at once. */
const lingerMs = 10;
const idleMs = 60_000;

/** A reader that waits for events of its partner. */
export interface FeedWatcher {
  readonly partnerId: string;
  /** The last version it has seen. */
  readonly seen: bigint;
  /** Woken when there is more. */
  readonly wakeup: Wakeup;
}

/**
 * Tells readers when the feed has more for them. All readers of a process share one small query, made when this or
 * another process says that events were taken, and twice a second in case nobody could: however many wait, an idle
 * feed costs two queries a second, and none when nobody waits.
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

  /** Says that events were taken into the feed. */
  wake(): void {
    if (this.#watchers.size > 0) this.#wakeup.wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#wakeup.wait(this.#watchers.size > 0 ? pollMs : idleMs, signal);
      await pause(lingerMs, signal);
      if (this.#watchers.size > 0 && !signal.aborted) await this.#look();
    }
  }

  /**
   * A reader is woken as long as the feed has a later version, even one it cannot read yet because an earlier one is
   * still on its way.
   */
  async #look(): Promise<void> {
    const partnerIds = [...new Set([...this.#watchers].map(({ partnerId }) => partnerId))];
    const rows = await this.database.read(lastVersions(partnerIds));
    const last = new Map(rows.map((row) => [String(row.partner_id), toBigInt(row.version)]));
    for (const { partnerId, seen, wakeup } of this.#watchers) {
      if ((last.get(partnerId) ?? 0n) > seen) wakeup.wake();
    }
  }
}

function lastVersions(partnerIds: readonly string[]): Statement {
  return statement(
    `SELECT partner_id, MAX(version) AS version FROM feed_events
      WHERE partner_id IN (${partnerIds.map(() => '?').join(', ')}) GROUP BY partner_id`,
    ...partnerIds,
  );
}
