import type { Database } from '../db/database.ts';
import { removalWorker } from '../db/lease.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import type { RemovalTime } from '../lib/clock.ts';
import type { Worker } from '../lib/worker.ts';

/** How long events stay in the feed. */
export const feedKeptMs = 30 * 86_400_000;

const mostAtOnce = 500;
const restMs = 1_000;
/** An event that is to come later than this is of a clock that was wrong. */
const mostAheadMs = 86_400_000;

/**
 * Removes what is older than 30 days from the feed, in small batches. What is removed of a partner is always the first
 * versions it still has, and up to which one is written down in the same transaction.
 */
export function feedRetention(database: Database, timeOf: RemovalTime, holder: string): Worker {
  return removalWorker(
    { database, holder, timeOf, name: 'feed-retention', restMs },
    async (now) => (await removeOldEvents(database, now)) >= mostAtOnce,
  );
}

async function removeOldEvents(database: Database, now: number): Promise<number> {
  const before = now - feedKeptMs;
  const old = await database.read(
    statement(
      `SELECT partner_id, version FROM feed_events WHERE occurred_at < ? ORDER BY occurred_at LIMIT ${mostAtOnce}`,
      new Date(before),
    ),
  );
  const lastOf = new Map<string, bigint>();
  for (const row of old) {
    const partnerId = String(row.partner_id);
    const version = toBigInt(row.version);
    if (version > (lastOf.get(partnerId) ?? 0n)) lastOf.set(partnerId, version);
  }
  let removed = 0;
  for (const [partnerId, version] of lastOf) {
    const findFirst = findYoung(partnerId, version, { from: before, to: now + mostAheadMs });
    removed += await database.transaction([findFirst], ([young = []]) => {
      const upTo = young[0] === undefined ? version : toBigInt(young[0].version) - 1n;
      const isAny = old.some((row) => String(row.partner_id) === partnerId && toBigInt(row.version) <= upTo);
      const writes = isAny ? [notePurge(partnerId, upTo), removePrefix(partnerId, upTo)] : [];
      return { writes, result: isAny ? 1 : 0 };
    });
  }
  return removed === 0 ? 0 : old.length;
}

/**
 * The first of a partner's events up to a version that is not old. An event of a replica whose clock was behind stays until
 * all before it are old. One of a replica whose clock was far ahead goes with those after it: until its own time is over
 * nothing after it would be removed.
 */
function findYoung(partnerId: string, upTo: bigint, { from, to }: { from: number; to: number }): Statement {
  return statement(
    `SELECT version FROM feed_events FORCE INDEX (PRIMARY)
      WHERE partner_id = ? AND version <= ? AND occurred_at BETWEEN ? AND ? ORDER BY version LIMIT 1`,
    partnerId,
    upTo,
    new Date(from),
    new Date(to),
  );
}

function notePurge(partnerId: string, version: bigint): Statement {
  return statement(
    `INSERT INTO feed_purges (partner_id, purged_version) VALUES (?, ?)
      ON DUPLICATE KEY UPDATE purged_version = GREATEST(purged_version, VALUES(purged_version))`,
    partnerId,
    version,
  );
}

function removePrefix(partnerId: string, version: bigint): Statement {
  return statement('DELETE FROM feed_events WHERE partner_id = ? AND version <= ?', partnerId, version);
}
