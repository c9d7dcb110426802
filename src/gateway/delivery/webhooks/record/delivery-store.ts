import type { RemovalTime } from '../../../../kit/clock.ts';
import { groupBy } from '../../../../kit/group.ts';
import type { Worker } from '../../../../kit/worker.ts';
import type { Database } from '../../../store/database.ts';
import { type RemovedRows, removalWorker } from '../../../store/removal.ts';
import { joined, type Statement, sql, statement } from '../../../store/statement.ts';
import { bodies } from '../plan/queue-store.ts';
import { attemptsKeptMs, type DeliveryState, sentForMs } from '../rules.ts';
import { type Attempt, attempts, deliveries, dispatcherLeasePrefix, progress } from '../table.ts';

/** The progress of some events' deliveries. */
export function findProgress(versionsOf: ReadonlyMap<string, readonly bigint[]>): Statement {
  return sql`SELECT ${statement(progress.list)} FROM webhook_deliveries FORCE INDEX (PRIMARY)
    WHERE ${ofVersions(versionsOf)}`;
}

/** Stores that events were delivered at their next attempt. */
export function saveDelivered(versionsOf: ReadonlyMap<string, readonly bigint[]>, now: number): Statement {
  return sql`UPDATE webhook_deliveries FORCE INDEX (PRIMARY) SET state = 'delivered', queue = NULL, due_at = NULL,
      attempts = attempts + 1, tries = tries + 1, ended_at = ${new Date(now)} WHERE ${ofVersions(versionsOf)}`;
}

/** Stores an attempt, and the time of the next one unless it stays the same. */
export function saveTry(partnerId: string, version: bigint, attempts: number, retryAt: number | null): Statement {
  const retry = retryAt === null ? statement('') : sql`, queue = 2, due_at = ${new Date(retryAt)}`;
  return sql`UPDATE webhook_deliveries SET tries = tries + 1, attempts = ${attempts}${retry}
    WHERE partner_id = ${partnerId} AND version = ${version}`;
}

/** Selects a partner's deliveries for operators. An undefined member matches all. */
export interface DeliveryFilter {
  readonly eventId?: string | undefined;
  readonly state?: DeliveryState | undefined;
  readonly versions?: readonly bigint[] | undefined;
  readonly before?: bigint | undefined;
}

/** A partner's deliveries, newest first, with the objects of their events (`object_kind`, `object_id`). */
export function listDeliveries(partnerId: string, filter: DeliveryFilter, most: number): Statement {
  const { eventId, state, versions, before = maxVersion } = filter;
  const wanted = {
    partnerId,
    ...(eventId && { eventId }),
    ...(state && { state }),
    ...(versions && { version: [0n, ...versions] }),
  };
  const index = eventId ? byEvent : state && !versions ? byState : 'PRIMARY';
  const tail = sql`AND version < ${before} ORDER BY version DESC LIMIT ${most}`;
  return sql`SELECT d.*, f.object_kind, f.object_id FROM (${deliveries.find(wanted, deliveries.all, tail, index)}) d
      ${bodies} ORDER BY d.version DESC`;
}

/** The fields of a delivery that decide whether it is sent again. */
export const redelivered = deliveries.only('version', 'occurredAt');

/** Locks the delivery of an event if it can still be sent: after the wait for the lock it may be too old. */
export function lockEvent(partnerId: string, eventId: string, now: number): Statement {
  const recent = sql`AND occurred_at > ${new Date(now - sentForMs)} FOR UPDATE`;
  return deliveries.find({ partnerId, eventId }, redelivered, recent, byEvent);
}

/** Where to go on in a window: after the delivery of this version. */
export interface WindowPosition {
  readonly occurredAt: number;
  readonly version: bigint;
}

/**
 * Locks deliveries of changes in a window that can still be sent, at most so many, in the order of the changes: that of the
 * index, so that no call reads what another one has done.
 */
export function lockWindow(
  partnerId: string,
  { from, to, after }: { readonly from: number; readonly to: number; readonly after?: WindowPosition | undefined },
  now: number,
  most: number,
): Statement {
  const first = new Date(Math.max(from, now - sentForMs + 1, after?.occurredAt ?? 0));
  const isAfter = after && sql`AND (occurred_at > ${new Date(after.occurredAt)} OR version > ${after.version})`;
  const tail = sql`AND occurred_at >= ${first} AND occurred_at < ${new Date(to)} ${isAfter ?? statement('')}
    ORDER BY partner_id, occurred_at, version LIMIT ${most} FOR UPDATE`;
  // A list of partners, because for a single one a server may begin at its first delivery instead of the window's.
  return deliveries.find({ partnerId: ['', partnerId] }, redelivered, tail, byTime);
}

/** The position of the delivery of a version, or of the last one before. */
export function findPosition(partnerId: string, version: bigint): Statement {
  const tail = sql`AND version <= ${version} ORDER BY version DESC LIMIT 1`;
  return deliveries.find({ partnerId }, deliveries.all, tail, 'PRIMARY');
}

// Named, because a server that guesses from the number of partners may read all of a partner's deliveries.
const [byEvent, byState, byTime] = [
  'webhook_deliveries_event',
  'webhook_deliveries_state',
  'webhook_deliveries_occurred_at',
] as const;

const maxVersion = 2n ** 63n - 1n;

/** The last versions about an object before a version, at most so many. */
export function findVersionsAbout(partnerId: string, objectId: string, before = maxVersion, most: number): Statement {
  return sql`SELECT version FROM feed_events FORCE INDEX (feed_events_object)
    WHERE partner_id = ${partnerId} AND object_id = ${objectId} AND version < ${before} ORDER BY version DESC LIMIT ${most}`;
}

/** Sends deliveries again, at once. */
export function redeliver(partnerId: string, versions: readonly bigint[]): Statement {
  return sql`UPDATE webhook_deliveries FORCE INDEX (PRIMARY) SET state = 'waiting', queue = 1, due_at = NULL,
      ended_at = NULL, round = round + 1 WHERE partner_id = ${partnerId} AND version IN (${versions})`;
}

/** The first attempts of each of some deliveries, in order, and at most so many of all. */
export function findAttempts(
  partnerId: string,
  versions: readonly bigint[],
  mostEach: number,
  most = mostEach,
): Statement {
  const order = sql`AND number <= ${mostEach} ORDER BY version DESC, number LIMIT ${most}`;
  return attempts.find({ partnerId, version: [0n, ...versions] }, attempts.all, order);
}

/** The first attempts of each of some deliveries by their versions, and at most so many of all. */
export async function readAttempts(
  database: Database,
  partnerId: string,
  versions: readonly bigint[],
  mostEach: number,
  most: number,
): Promise<ReadonlyMap<bigint, readonly Attempt[]>> {
  if (versions.length === 0) return new Map();
  const [rows = []] = await database.readAll([findAttempts(partnerId, versions, mostEach, most)]);
  return groupBy(rows.map(attempts.all.read), ({ version }) => version);
}

/** Each partner's versions as a range of the primary key: one list of pairs would be compared with every row. */
function ofVersions(versionsOf: ReadonlyMap<string, readonly bigint[]>): Statement {
  const parts = [...versionsOf].map(([id, versions]) => sql`(partner_id = ${id} AND version IN (${versions}))`);
  return sql`(${joined(parts, ' OR ')})`;
}

const name = 'webhook-retention';

/** Attempts, and deliveries from when nothing of them is sent any more, are kept 30 days. */
export const keptWebhooks: readonly RemovedRows[] = [
  { name, keptMs: attemptsKeptMs, oldest: statement('SELECT MIN(at) AS oldest FROM webhook_attempts') },
  {
    name,
    keptMs: attemptsKeptMs + sentForMs,
    oldest: statement(`SELECT occurred_at AS oldest FROM webhook_deliveries FORCE INDEX (webhook_deliveries_age)
      WHERE queue IS NULL ORDER BY occurred_at LIMIT 1`),
  },
];

/**
 * Stores that overdue deliveries expired, at most so many of each queue. Returns the partners of each queue's, each as often
 * as it lost one.
 */
function expire(database: Database, now: number, most: number): Promise<readonly string[][]> {
  // One queue each, because for both a server may read the whole index.
  const queues = [1, 2].map(
    (queue) => sql`queue = ${queue} AND occurred_at <= ${new Date(now - sentForMs)} LIMIT ${most}`,
  );
  return database.transaction<readonly string[][]>(
    queues.map(
      (overdue) =>
        sql`SELECT partner_id FROM webhook_deliveries FORCE INDEX (webhook_deliveries_age) WHERE ${overdue} FOR UPDATE`,
    ),
    (found) => ({
      // The same rows, because they are locked and both statements read the same part of the index.
      writes: queues
        .filter((_, index) => (found[index]?.length ?? 0) > 0)
        .map(
          (overdue) =>
            sql`UPDATE webhook_deliveries FORCE INDEX (webhook_deliveries_age) SET state = 'expired', queue = NULL,
              due_at = NULL, ended_at = ${new Date(now)} WHERE ${overdue}`,
        ),
      result: found.map((rows) => rows.map((row) => String(row.partner_id))),
    }),
  );
}

/**
 * Expires overdue deliveries, and removes attempts after 30 days and then their deliveries. `onExpired` is called with each
 * partner and how many of its events expired.
 */
export function webhookRetention(
  database: Database,
  timeOf: RemovalTime,
  holder: string,
  onExpired: (partnerId: string, count: number) => void,
): Worker {
  const options = { database, holder, timeOf, name, restMs: 1_000 };
  return removalWorker(options, async (now, most) => {
    const expired = await expire(database, now, most);
    for (const [partnerId, own] of groupBy(expired.flat(), (id) => id)) onExpired(partnerId, own.length);
    const old = new Date(now - attemptsKeptMs);
    const changes = [
      // A DELETE takes no index by name, and a server that misjudges the table would read and sort all of it. Without a
      // column that is not in the index, MySQL would read all of the index.
      sql`DELETE a FROM (SELECT partner_id, version, number, outcome FROM webhook_attempts FORCE INDEX (webhook_attempts_at)
          WHERE at < ${old} ORDER BY at LIMIT ${most}) old
        STRAIGHT_JOIN webhook_attempts a FORCE INDEX (PRIMARY) USING (partner_id, version, number)`,
      sql`DELETE d FROM (SELECT partner_id, version, state FROM webhook_deliveries FORCE INDEX (webhook_deliveries_age)
          WHERE queue IS NULL AND occurred_at < ${new Date(old.getTime() - sentForMs)} ORDER BY occurred_at LIMIT ${most}) old
        STRAIGHT_JOIN webhook_deliveries d FORCE INDEX (PRIMARY) USING (partner_id, version)`,
      // Leases of processes that ended. An endpoint that still names one stays free.
      sql`DELETE FROM leases WHERE name LIKE ${`${dispatcherLeasePrefix}%`} AND expires_at < NOW(3) - INTERVAL 1 DAY
        LIMIT ${most}`,
    ];
    let found = Math.max(...expired.map(({ length }) => length));
    for (const change of changes) found = Math.max(found, await database.write(change));
    return found;
  });
}
