import type { RemovalTime } from '../../../kit/clock.ts';
import { chunksOf, groupBy } from '../../../kit/group.ts';
import type { Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { type RemovedRows, removalWorker } from '../../store/removal.ts';
import { joined, type Statement, sql, statement } from '../../store/statement.ts';
import { toVersions } from './feed.ts';
import { feedEvents } from './table.ts';

/** Events are kept 30 days. */
export const keptEvents: RemovedRows = {
  name: 'feed-retention',
  keptMs: 30 * 86_400_000,
  oldest: statement('SELECT MIN(occurred_at) AS oldest FROM feed_events'),
};

const restMs = 1_000;
/** An event further in the future than this comes from a wrong clock. */
const maxAheadMs = 86_400_000;

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
    if (old.length > 0) await removeOldEvents(database, old, before, new Date(now + maxAheadMs));
    after = old.length < most ? undefined : old.at(-1);
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

/** How many partners' events a transaction removes, and how many it removes of each in addition to the old ones found. */
const atOnce = { partners: 32, others: 500 };

async function removeOldEvents(database: Database, old: readonly Key[], before: Date, ahead: Date): Promise<void> {
  const versionsOf = [...groupBy(old, ({ partnerId }) => partnerId)].sort(([left], [right]) => (left < right ? -1 : 1));
  for (const some of chunksOf(versionsOf, atOnce.partners)) {
    const versions = new Map(some.map(([id, own]) => [id, own.map(({ version }) => version)]));
    await removeFirst(database, versions, before, ahead);
  }
}

/** Removes partners' first events, up to the last of some old ones, or to the first event that must stay. */
async function removeFirst(
  database: Database,
  versionsOf: ReadonlyMap<string, readonly bigint[]>,
  before: Date,
  ahead: Date,
): Promise<void> {
  const findFirst = firstOfEach([...versionsOf.keys()].map((id) => sql`partner_id = ${id}`));
  const [held = []] = await database.readAll([findFirst]);
  const last = new Map<string, bigint>();
  for (const [partnerId, first] of toVersions(held)) {
    const own = versionsOf.get(partnerId) ?? [];
    // An old event can come after many others, if its clock was slow. They are removed in their turn.
    last.set(partnerId, smaller(own.reduce(larger, 0n), first + BigInt(own.length + atOnce.others)));
  }
  if (last.size === 0) return;
  // An event from a slow clock stays until all before it are old. One from a fast clock is removed with those after it,
  // because it would keep them in the feed until its own time.
  const isYoung = sql`occurred_at BETWEEN ${before} AND ${ahead}`;
  const findYoung = firstOfEach([...last].map(([id, version]) => sql`${upTo(id, version)} AND ${isYoung}`));
  await database.transaction([findYoung], ([rows = []]) => {
    const young = toVersions(rows);
    const removed = new Map<string, bigint>();
    for (const [partnerId, version] of last) {
      const purged = (young.get(partnerId) ?? version + 1n) - 1n;
      // Without a young one, those before the first old one are from a fast clock.
      const own = versionsOf.get(partnerId) ?? [];
      if (!young.has(partnerId) || own.some((old) => old <= purged)) removed.set(partnerId, purged);
    }
    if (removed.size === 0) return { writes: [], result: undefined };
    const note = sql`INSERT INTO feed_purges (partner_id, purged_version) VALUES ${[...removed]}
      ON DUPLICATE KEY UPDATE purged_version = GREATEST(purged_version, VALUES(purged_version))`;
    const ranges = [...removed].map(([id, version]) => sql`(${upTo(id, version)})`);
    const remove = sql`DELETE old FROM feed_events AS old FORCE INDEX (PRIMARY) WHERE ${joined(ranges, ' OR ')}`;
    return { writes: [note, remove], result: undefined };
  });
}

/** Of each of some ranges of versions, the first. */
function firstOfEach(ranges: readonly Statement[]): Statement {
  const parts = ranges.map(
    (range) =>
      sql`(SELECT partner_id, version FROM feed_events FORCE INDEX (PRIMARY) WHERE ${range} ORDER BY version LIMIT 1)`,
  );
  return joined(parts, ' UNION ALL ');
}

function upTo(partnerId: string, version: bigint): Statement {
  return sql`partner_id = ${partnerId} AND version <= ${version}`;
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
