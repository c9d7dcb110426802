import type { Database } from '../db/database.ts';
import { type Lease, underLease } from '../db/lease.ts';
import { statement } from '../db/statement.ts';
import type { RemovalTime } from '../lib/clock.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { expireDeliveries, removeAttempts, removeDeliveries } from './delivery-store.ts';
import { dispatcherLeasePrefix } from './endpoint-store.ts';
import { attemptsKeptMs, sentForMs } from './rules.ts';

const mostAtOnce = 500;
const betweenRoundsMs = 1_000;

/**
 * Ends deliveries whose time is over, and removes attempts after 30 days and deliveries when no attempt of theirs can be
 * left; all in small batches.
 */
export function webhookRetention(database: Database, timeOf: RemovalTime, holder: string): Worker {
  const name = 'webhook-retention';
  return underLease(database, name, holder, async ({ signal }: Lease) => {
    while (!signal.aborted) {
      const now = await timeOf(name);
      if (now === undefined) {
        await pause(betweenRoundsMs, signal);
        continue;
      }
      const counts = [
        await database.write(expireDeliveries(now, mostAtOnce)),
        await database.write(removeAttempts(now - attemptsKeptMs, mostAtOnce)),
        await database.write(removeDeliveries(now - attemptsKeptMs - sentForMs, mostAtOnce)),
        await database.write(
          // Leases of processes that ended. An endpoint that still names one is free, as it was before.
          statement(
            `DELETE FROM leases WHERE name LIKE '${dispatcherLeasePrefix}%' AND expires_at < NOW(3) - INTERVAL 1 DAY
              LIMIT ${mostAtOnce}`,
          ),
        ),
      ];
      if (counts.every((count) => count < mostAtOnce)) await pause(betweenRoundsMs, signal);
    }
  });
}
