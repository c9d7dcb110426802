import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { eventually } from '../eventually.ts';

const pollIntervalMs = 50;

/** Watches how long after its commit each event can be read, by polling the tables. */
export class FeedWatch {
  /** The longest any event took so far, in milliseconds; too long by at most the time between two polls. */
  longestMs = 0;
  readonly #waiting = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  readonly #polling: Promise<void>;
  #stopping = false;

  private constructor(private readonly database: Database) {
    this.#polling = this.#poll();
  }

  static start(database: Database): FeedWatch {
    return new FeedWatch(database);
  }

  /** Waits until all that was committed can be read, and returns the longest wait. */
  async stop(boundMs = 20_000): Promise<number> {
    try {
      await eventually(() => assert.equal(this.#waiting.size, 0, 'events that cannot be read'), boundMs);
    } finally {
      this.#stopping = true;
      await this.#polling;
    }
    return this.longestMs;
  }

  async #poll(): Promise<void> {
    while (!this.#stopping) {
      // One statement, so that both are of one moment.
      const rows = await this.database
        .read(
          statement(
            'SELECT p.id, p.version, (SELECT MAX(f.version) FROM feed_events f WHERE f.partner_id = p.id) AS last FROM partners p',
          ),
        )
        .catch(() => []);
      const now = performance.now();
      for (const row of rows) {
        const id = String(row.id);
        const committed = Number(row.version);
        const readable = Number(row.last ?? 0);
        for (let version = (this.#seen.get(id) ?? 0) + 1; version <= committed; version += 1) {
          this.#waiting.set(`${id} ${version}`, now);
        }
        this.#seen.set(id, committed);
        for (const [key, since] of this.#waiting) {
          const [partnerId, version] = key.split(' ');
          if (partnerId !== id || Number(version) > readable) continue;
          this.longestMs = Math.max(this.longestMs, now - since);
          this.#waiting.delete(key);
        }
      }
      await delay(pollIntervalMs);
    }
  }
}
