import type { ClockAgreement } from '../broker/clock.ts';
import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import { atMost } from '../lib/at-most.ts';
import type { Clock, RemovalTime } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';

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

/** Everything that is removed by age is older than a day by far, so a smaller difference does no harm. */
const mostApartMs = 3_600_000;

/**
 * Tells the time to those who remove what is old, if this process's clock agrees with the database's and is not known to
 * differ from the broker's: the earlier of ours and the database's. Forgotten keys would have repeated requests sent again.
 */
export function removalTime(options: {
  readonly database: Database;
  readonly clock: Clock;
  readonly brokerClocks: { readonly known: ClockAgreement };
  /** Opens at the start, when the broker has answered and so has stated its time. */
  readonly gate: { readonly isOpen: boolean };
  readonly log: Logger;
}): RemovalTime {
  const { database, clock, brokerClocks, gate, log } = options;
  const doubting = new Set<string>();
  return async (worker) => {
    if (!gate.isOpen) return undefined;
    // Read first: a clock that jumps after this has no effect.
    const now = clock.now();
    const { aheadMs } = await readDatabaseClock(database, clock);
    const isRight = Math.abs(aheadMs) < mostApartMs && brokerClocks.known !== 'apart';
    if (isRight) {
      doubting.delete(worker);
      return now + Math.min(0, aheadMs);
    }
    if (!doubting.has(worker)) log.error({ worker, databaseAheadMs: aheadMs }, 'a clock is wrong: nothing is removed');
    doubting.add(worker);
    return undefined;
  };
}
