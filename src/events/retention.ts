import type { Database } from '../db/database.ts';
import { removalWorker } from '../db/lease.ts';
import { sql, toBigInt } from '../db/statement.ts';
import type { RemovalTime } from '../lib/clock.ts';
import { groupBy } from '../lib/group.ts';
import type { Worker } from '../lib/worker.ts';
import { feedEvents } from './table.ts';

const feedKeptMs = 30 * 86_400_000;

const mostAtOnce = 500;
const restMs = 1_000;
/** An event further in the future than this comes from a wrong clock. */
const mostAheadMs = 86_400_000;

const key = feedEvents.only('partnerId', 'version');

/** Removes events older than 30 days in small batches: a partner's first versions. Stores the last one removed with them. */
export function feedRetention(database: Database, timeOf: RemovalTime, holder: string): Worker {
  return removalWorker(
    { database, holder, timeOf, name: 'feed-retention', restMs },
    async (now) => (await removeOldEvents(database, now)) >= mostAtOnce,
  );
}

async function removeOldEvents(database: Database, now: number): Promise<number> {
  const before = new Date(now - feedKeptMs);
  const [rows = []] = await database.readAll([
    sql`SELECT partner_id, version FROM feed_events WHERE occurred_at < ${before} ORDER BY occurred_at LIMIT ${mostAtOnce}`,
  ]);
  const old = rows.map(key.read);
  let removed = 0;
  for (const [partnerId, own] of groupBy(old, (event) => event.partnerId)) {
    const versions = own.map(({ version }) => version);
    const last = versions.reduce((most, version) => (version > most ? version : most));
    // The first version that is not old. An event from a slow clock stays until all before it are old. One from a fast clock
    // is removed with those after it, because it would keep them in the feed until its own time.
    const findYoung = sql`SELECT version FROM feed_events FORCE INDEX (PRIMARY)
      WHERE partner_id = ${partnerId} AND version <= ${last}
        AND occurred_at BETWEEN ${before} AND ${new Date(now + mostAheadMs)} ORDER BY version LIMIT 1`;
    removed += await database.transaction([findYoung], ([young = []]) => {
      const upTo = young[0] === undefined ? last : toBigInt(young[0].version) - 1n;
      if (!versions.some((version) => version <= upTo)) return { writes: [], result: 0 };
      const note = sql`INSERT INTO feed_purges (partner_id, purged_version) VALUES (${partnerId}, ${upTo})
        ON DUPLICATE KEY UPDATE purged_version = GREATEST(purged_version, VALUES(purged_version))`;
      const remove = sql`DELETE FROM feed_events WHERE partner_id = ${partnerId} AND version <= ${upTo}`;
      return { writes: [note, remove], result: 1 };
    });
  }
  return removed === 0 ? 0 : old.length;
}
