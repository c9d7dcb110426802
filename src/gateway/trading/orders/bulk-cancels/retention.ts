import type { RemovalTime } from '../../../../kit/clock.ts';
import type { Worker } from '../../../../kit/worker.ts';
import type { Database } from '../../../store/database.ts';
import { type RemovedRows, removalWorker } from '../../../store/removal.ts';
import { sql, statement } from '../../../store/statement.ts';

/** Jobs and their orders are kept 400 days after their end, so that a yearly audit finds those of the whole year. */
export const keptBulkCancels: RemovedRows = {
  name: 'bulk-cancel-retention',
  keptMs: 400 * 86_400_000,
  oldest: statement('SELECT MIN(ended_at) AS oldest FROM bulk_cancels'),
};

const restMs = 60_000;

/** Removes jobs that ended long ago, one after another: first its orders, then the job. The orders themselves stay. */
export function bulkCancelRetention(database: Database, timeOf: RemovalTime, holder: string): Worker {
  return removalWorker({ database, holder, timeOf, name: keptBulkCancels.name, restMs }, async (now, most) => {
    const [old] = await database.read(
      sql`SELECT id FROM bulk_cancels FORCE INDEX (bulk_cancels_ended_at)
        WHERE ended_at < ${new Date(now - keptBulkCancels.keptMs)} ORDER BY ended_at LIMIT 1`,
    );
    if (old === undefined) return 0;
    const id = String(old.id);
    // A DELETE takes no index by name.
    const removed = await database.write(
      sql`DELETE o FROM (SELECT partner_id, bulk_cancel_id, order_id FROM bulk_cancel_orders
            FORCE INDEX (bulk_cancel_orders_due_at) WHERE bulk_cancel_id = ${id} LIMIT ${most}) old
        STRAIGHT_JOIN bulk_cancel_orders o FORCE INDEX (PRIMARY) USING (partner_id, bulk_cancel_id, order_id)`,
    );
    if (removed < most) await database.write(sql`DELETE FROM bulk_cancels WHERE id = ${id}`);
    return most;
  });
}
