import type { ClockAgreement } from '../broker/clock.ts';
import type { Database } from '../db/database.ts';
import type { Clock, RemovalTime } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import { readDatabaseClock } from '../telemetry/database-clock.ts';

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
