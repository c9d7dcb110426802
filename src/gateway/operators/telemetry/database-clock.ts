import { atMost } from '../../../kit/at-most.ts';
import type { Clock, RemovalTime } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import type { Database } from '../../store/database.ts';
import { statement } from '../../store/statement.ts';
import type { ClockAgreement } from '../../trading/broker/clock.ts';

/** How far the database's clock is ahead of this process's, to within half a round trip, and the server's version. */
export async function readDatabaseClock(database: Database, clock: Clock) {
  const askedAt = clock.realNow();
  const startedAt = performance.now();
  const [row] = await database.readOfServer(statement('SELECT NOW(3) AS now, VERSION() AS version'));
  if (row === undefined) throw new Error('the database does not tell the time');
  const roundTripMs = Math.round(performance.now() - startedAt);
  const aheadMs = (row.now as Date).getTime() - (askedAt + Math.round(roundTripMs / 2));
  return { aheadMs, roundTripMs, version: String(row.version) };
}

const answerWithinMs = 2_000;

/** Polls whether the database answers, and its time, for code that cannot wait for an answer. */
export class DatabaseProbe {
  /** Whether the database answered the last query. */
  isReachable = true;
  /** How far the database's clock is ahead of ours; undefined: it did not answer. */
  clockAheadMs: number | undefined;
  #asking: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Whether its node has not taken over, so that reads are refused. */
  get isBehind(): boolean {
    return this.database.refusesReads;
  }

  /** Queries it now. Concurrent callers share the answer. Never throws, and ends within 2 s. */
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

/** Rows that are removed by age are far older than a day, so a smaller difference does no harm. */
const maxApartMs = 3_600_000;

/** The earlier of our time and the database's, whose clock is so far ahead of ours. Undefined if they are too far apart. */
export function earlierTime(now: number, databaseAheadMs: number): number | undefined {
  return Math.abs(databaseAheadMs) < maxApartMs ? now + Math.min(0, databaseAheadMs) : undefined;
}

/**
 * The time for removing old rows: the earlier of ours and the database's. Undefined unless the two agree and ours is not
 * known to differ from the broker's. Otherwise keys could be forgotten too early, and repeated requests be sent again.
 */
export function removalTime(options: {
  readonly database: Database;
  readonly clock: Clock;
  readonly brokerClocks: { readonly known: ClockAgreement };
  /** Opens at the start, after the broker has answered and so stated its time. */
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
    const earlier = brokerClocks.known === 'apart' ? undefined : earlierTime(now, aheadMs);
    if (earlier !== undefined) {
      doubting.delete(worker);
      return earlier;
    }
    if (!doubting.has(worker)) log.error({ worker, databaseAheadMs: aheadMs }, 'a clock is wrong: nothing is removed');
    doubting.add(worker);
    return undefined;
  };
}
