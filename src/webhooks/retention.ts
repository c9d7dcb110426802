import type { Database } from '../db/database.ts';
import { removalWorker } from '../db/lease.ts';
import { statement } from '../db/statement.ts';
import type { RemovalTime } from '../lib/clock.ts';
import type { Worker } from '../lib/worker.ts';
import { expireDeliveries, removeAttempts, removeDeliveries } from './delivery-store.ts';
import { dispatcherLeasePrefix } from './endpoint-store.ts';
import { attemptsKeptMs, sentForMs } from './rules.ts';

const most = 500;

/**
 * Ends deliveries whose time is over, and removes attempts after 30 days and deliveries when no attempt of theirs can be
 * left; all in small batches.
 */
export function webhookRetention(database: Database, timeOf: RemovalTime, holder: string): Worker {
  // Leases of processes that ended. An endpoint that still names one is free, as it was before.
  const removeLeases = statement(
    `DELETE FROM leases WHERE name LIKE '${dispatcherLeasePrefix}%' AND expires_at < NOW(3) - INTERVAL 1 DAY LIMIT ${most}`,
  );
  return removalWorker({ database, holder, timeOf, name: 'webhook-retention', restMs: 1_000 }, async (now) => {
    const counts = [
      await database.write(expireDeliveries(now, most)),
      await database.write(removeAttempts(now - attemptsKeptMs, most)),
      await database.write(removeDeliveries(now - attemptsKeptMs - sentForMs, most)),
      await database.write(removeLeases),
    ];
    return counts.some((count) => count >= most);
  });
}
