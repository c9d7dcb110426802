import type { Database } from '../db/database.ts';
import { type RemovedRows, removalWorker } from '../db/removal.ts';
import { joined, type Statement, sql, statement, toBigInt } from '../db/statement.ts';
import type { RemovalTime } from '../lib/clock.ts';
import { groupBy } from '../lib/group.ts';
import type { Worker } from '../lib/worker.ts';
import { feedEvents } from './table.ts';

/** Events are kept 30 days. */
export const keptEvents: RemovedRows = {
  name: 'feed-retention',
  keptMs: 30 * 86_400_000,
  oldest: statement('SELECT MIN(occurred_at) AS oldest FROM feed_events'),
};

const restMs = 1_000;
/** An event further in the future than this comes from a wrong clock. */
const mostAheadMs = 86_400_000;

const key = feedEvents.only('partnerId', 'version', 'occurredAt');
type Key = ReturnType<typeof key.read>;

/**
 * Removes events older than 30 days in batches: the first versions of many partners. Stores the last one removed of each in
 * the same transaction.
 */
export function feedRetention(database: Database, timeOf: RemovalTime, holder: string): Worker {
  // Events that must stay for now are passed over until all others were visited, so that they hold nothing up.
  let after: Key | undefined;
  return removalWorker({ database, holder, timeOf, name: keptEvents.name, restMs }, async (now, most) => {
    const before = new Date(now - keptEvents.keptMs);
    const [rows = []] = await database.readAll([findOld(before, after, most)]);
    const old = rows.map(key.read);
    after = old.length < most ? undefined : old.at(-1);
    if (old.length > 0) await removeOldEvents(database, old, before, new Date(now + mostAheadMs));
    return old.length;
  });
}

function findOld(before: Date, after: Key | undefined, most: number): Statement {
  return sql`SELECT ${statement(key.list)} FROM feed_events FORCE INDEX (feed_events_occurred_at)
    WHERE occurred_at < ${before} ${after === undefined ? statement('') : isAfter(after)}
    ORDER BY occurred_at, partner_id, version LIMIT ${most}`;
}

function isAfter({ partnerId, version, occurredAt }: Key): Statement {
  const at = new Date(occurredAt);
  return sql`AND occurred_at >= ${at} AND (occurred_at > ${at} OR partner_id > ${partnerId}
    OR (partner_id = ${partnerId} AND version > ${version}))`;
}

async function removeOldEvents(database: Database, old: readonly Key[], before: Date, ahead: Date): Promise<void> {
  const versionsOf = new Map(
    [...groupBy(old, ({ partnerId }) => partnerId)].map(([id, own]) => [id, own.map(({ version }) => version)]),
  );
  const last = new Map([...versionsOf].map(([id, versions]) => [id, versions.reduce(larger)]));
  // The first version that is not old. An event from a slow clock stays until all before it are old. One from a fast clock
  // is removed with those after it, because it would keep them in the feed until its own time.
  const findYoung = sql`SELECT partner_id, MIN(version) AS version FROM feed_events FORCE INDEX (PRIMARY)
    WHERE (${upTo(last)}) AND occurred_at BETWEEN ${before} AND ${ahead} GROUP BY partner_id`;
  await database.transaction([findYoung], ([rows = []]) => {
    const young = new Map(rows.map((row) => [String(row.partner_id), toBigInt(row.version)]));
    const removed = new Map<string, bigint>();
    for (const [partnerId, version] of [...last].sort()) {
      const purged = (young.get(partnerId) ?? version + 1n) - 1n;
      if (versionsOf.get(partnerId)?.some((own) => own <= purged)) removed.set(partnerId, purged);
    }
    if (removed.size === 0) return { writes: [], result: undefined };
    const note = sql`INSERT INTO feed_purges (partner_id, purged_version) VALUES ${[...removed]}
      ON DUPLICATE KEY UPDATE purged_version = GREATEST(purged_version, VALUES(purged_version))`;
    const remove = sql`DELETE old FROM feed_events AS old FORCE INDEX (PRIMARY) WHERE ${upTo(removed)}`;
    return { writes: [note, remove], result: undefined };
  });
}

/** Partners' first versions, each up to one, as ranges of the primary key. */
function upTo(versions: ReadonlyMap<string, bigint>): Statement {
  const parts = [...versions].map(([id, version]) => sql`(partner_id = ${id} AND version <= ${version})`);
  return joined(parts, ' OR ');
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}
