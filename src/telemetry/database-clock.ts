import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import { atMost } from '../lib/at-most.ts';
import type { Clock } from '../lib/clock.ts';

/**
 * Compares the database's clock, by which leases go, with this process's: how far it is ahead, to within half a round trip.
 * Reads the server's version too.
 */
export async function readDatabaseClock(database: Database, clock: Clock) {
  const askedAt = clock.realNow();
  const startedAt = performance.now();
  const [row] = await database.read(statement('SELECT NOW(3) AS now, VERSION() AS version'));
  if (row === undefined) throw new Error('the database does not tell the time');
  const roundTripMs = Math.round(performance.now() - startedAt);
  const aheadMs = (row.now as Date).getTime() - (askedAt + Math.round(roundTripMs / 2));
  return { aheadMs, roundTripMs, version: String(row.version) };
}

/** How long the database may take to answer. */
const answerWithinMs = 2_000;

/** Asks the database repeatedly whether it answers, and what time it is, for code that cannot wait for an answer. */
export class DatabaseProbe {
  /** Whether the database answered when it was asked last. */
  isReachable = true;
  /** How far the database's clock is ahead of ours. Undefined: it did not answer. */
  clockAheadMs: number | undefined;
  #asking: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Asks it now. Callers that come while it is asked share the answer. Never throws, and ends within seconds. */
  ask(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    let aheadMs: number | undefined;
    const answer = readDatabaseClock(this.database, this.clock).then((found) => (aheadMs = found.aheadMs));
    await atMost(
      answerWithinMs,
      answer.catch(() => undefined),
    );
    this.isReachable = aheadMs !== undefined;
    this.clockAheadMs = aheadMs;
  }
}
