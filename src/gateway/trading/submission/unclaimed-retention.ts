import type { Clock, RemovalTime } from '../../../kit/clock.ts';
import type { Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { type RemovedRows, removalWorker } from '../../store/removal.ts';
import { sql, statement } from '../../store/statement.ts';

/**
 * Reports about objects that are not stored are kept 400 days, so that a yearly audit finds those of the whole year. If
 * somebody else uses the broker's connection, each of his reports is a row.
 */
export const keptUnclaimed: RemovedRows = {
  name: 'unclaimed-report-retention',
  keptMs: 400 * 86_400_000,
  oldest: statement('SELECT MIN(seen_at) AS oldest FROM unclaimed_reports'),
  isReal: true,
};

const restMs = 60_000;

/** Removes reports about objects that are not stored once they are old. They are dated in real time. */
export function unclaimedRetention(database: Database, timeOf: RemovalTime, holder: string, clock: Clock): Worker {
  return removalWorker({ database, holder, timeOf, name: keptUnclaimed.name, restMs }, (now, most) => {
    const aheadMs = clock.now() - clock.realNow();
    const before = new Date(now - aheadMs - keptUnclaimed.keptMs);
    // A DELETE takes no index by name, and a server that misjudges the table would read and sort all of it. Without a column
    // that is not in the index, MySQL would read all of the index.
    return database.write(
      sql`DELETE u FROM (SELECT kind, number, report FROM unclaimed_reports FORCE INDEX (unclaimed_reports_seen_at)
          WHERE seen_at < ${before} ORDER BY seen_at LIMIT ${most}) old
        STRAIGHT_JOIN unclaimed_reports u FORCE INDEX (PRIMARY) USING (kind, number)`,
    );
  });
}
