import type { Database } from '../db/database.ts';
import { type Statement, statement } from '../db/statement.ts';
import { instantRange } from '../lib/timestamps.ts';
import { type DeliveryState, longestRetryWaitMs, sentForMs } from './rules.ts';
import { attempts, type Delivery, deliveries, progress } from './table.ts';

/** A delivery with what is sent. */
export interface LoadedDelivery extends Delivery {
  /** The event's bytes; null when the event is gone. */
  readonly body: Buffer | null;
  /** The request that created the event's object, and its place in a trace; null where they were not kept. */
  readonly requestId: string | null;
  readonly traceParent: string | null;
  /** The object the event is about; null in rows of an earlier version. */
  readonly objectId: string | null;
}

/** Puts events into the queue of their endpoints, out of the rows of the outbox. */
export function insertDeliveries(events: readonly { partnerId: string; version: bigint }[], now: number): Statement {
  return statement(
    `INSERT INTO webhook_deliveries
      (partner_id, version, event_id, type, occurred_at, committed_at, taken_at, state, queue)
      SELECT partner_id, version, id, type, occurred_at, publish_at, ?, 'waiting', 1 FROM outbox
      WHERE (partner_id, version) IN (${events.map(() => '(?, ?)').join(', ')})`,
    new Date(now),
    ...events.flatMap(({ partnerId, version }) => [partnerId, version]),
  );
}

/**
 * Which part of a partner's queue is read, and how much of it, at most. `new`: what is to be sent at once, after a version,
 * oldest first. `retries`: what is to be sent again by now, longest due first. `probe`: the oldest of all that waits after
 * a version, or of all where nothing does.
 */
export interface QueueRead {
  readonly part: 'new' | 'retries' | 'probe';
  readonly after: bigint;
  readonly most: number;
}

/** Reads parts of queues in one round trip, without some versions of new events and retries; answers with what each found. */
export async function readQueues(
  database: Database,
  reads: readonly (QueueRead & { readonly partnerId: string; readonly without: ReadonlySet<bigint> })[],
  now: number,
): Promise<LoadedDelivery[][]> {
  if (reads.length === 0) return [];
  const sets = await database.readAll(
    reads.map(({ partnerId, without, ...read }) => findQueued(partnerId, read, [...without], now)),
  );
  return sets.map((rows) =>
    rows.map((row) => ({
      ...deliveries.all.read(row),
      body: row.body as Buffer | null,
      requestId: row.request_id as string | null,
      traceParent: row.trace_parent as string | null,
      objectId: row.object_id as string | null,
    })),
  );
}

/** Whether a delivery `d` that is sent again is due at an instant. */
export const isRetryDue = '(d.due_at <= ? OR d.due_at > ?)';

export function retryDueValues(now: number): Date[] {
  return [new Date(now), new Date(now + longestRetryWaitMs)];
}

// Named, because a server that guesses from the age of events would sort all that waits at each read.
const waiting = 'webhook_deliveries d FORCE INDEX (webhook_deliveries_due)';
const loaded = `d.*, COALESCE(f.body, o.body) AS body, COALESCE(f.request_id, o.request_id) AS request_id,
  COALESCE(f.trace_parent, o.trace_parent) AS trace_parent, COALESCE(f.object_id, o.object_id) AS object_id`;
// The feed's copy and the outbox row change places in one transaction, so one statement always finds one of them.
const bodies = `LEFT JOIN feed_events f ON f.partner_id = d.partner_id AND f.version = d.version
  LEFT JOIN outbox o ON o.partner_id = d.partner_id AND o.version = d.version`;
const isWaiting = 'd.partner_id = ? AND d.occurred_at > ?';
const isNew = 'd.queue = 1 AND d.due_at IS NULL';

function findQueued(
  partnerId: string,
  { part, after, most }: QueueRead,
  without: readonly bigint[],
  now: number,
): Statement {
  const values = [partnerId, new Date(now - sentForMs)];
  if (part === 'new') {
    return statement(
      `SELECT ${loaded} FROM ${waiting} ${bodies} WHERE ${isWaiting} AND ${isNew} AND d.version > ?
        ${except(without.filter((version) => version > after))} ORDER BY d.version LIMIT ${most}`,
      ...values,
      after,
    );
  }
  if (part === 'retries') {
    return statement(
      `SELECT ${loaded} FROM ${waiting} ${bodies} WHERE ${isWaiting} AND d.queue = 2 AND ${isRetryDue}
        ${except(without)} ORDER BY d.due_at LIMIT ${most}`,
      ...values,
      ...retryDueValues(now),
    );
  }
  const oldest = [isNew, 'd.queue = 2'].map(
    (queue) =>
      `(SELECT d.* FROM ${waiting} WHERE ${isWaiting} AND ${queue} AND d.version > ? ORDER BY d.version LIMIT 1)`,
  );
  return statement(
    `SELECT ${loaded} FROM (${[...oldest, ...oldest].join(' UNION ')}) d ${bodies}
      ORDER BY d.version > ? DESC, d.version LIMIT ${most}`,
    ...[after, after, 0n, 0n].flatMap((least) => [...values, least]),
    after,
  );
}

/** Versions are numbers, so they can stand in the statement. */
function except(versions: readonly bigint[]): string {
  return versions.length === 0 ? '' : `AND d.version NOT IN (${versions.join(', ')})`;
}

/** How the deliveries of some events stand. */
export function findProgress(versionsOf: ReadonlyMap<string, readonly bigint[]>): Statement {
  const { sql, values } = ofVersions(versionsOf);
  return statement(`SELECT ${progress.list} FROM webhook_deliveries FORCE INDEX (PRIMARY) WHERE ${sql}`, ...values);
}

/** Notes that events were delivered at their next attempt. */
export function saveDelivered(versionsOf: ReadonlyMap<string, readonly bigint[]>, now: number): Statement {
  const { sql, values } = ofVersions(versionsOf);
  return statement(
    `UPDATE webhook_deliveries FORCE INDEX (PRIMARY) SET state = 'delivered', queue = NULL, due_at = NULL,
      attempts = attempts + 1, tries = tries + 1, ended_at = ? WHERE ${sql}`,
    new Date(now),
    ...values,
  );
}

/** Notes an attempt, and when the event is sent again, unless that stays as it is. */
export function saveTry(partnerId: string, version: bigint, attempts: number, retryAt: number | null): Statement {
  return statement(
    `UPDATE webhook_deliveries SET tries = tries + 1, attempts = ? ${retryAt === null ? '' : ', queue = 2, due_at = ?'}
      WHERE partner_id = ? AND version = ?`,
    ...(retryAt === null ? [attempts] : [attempts, new Date(retryAt)]),
    partnerId,
    version,
  );
}

/** Moves what waits for its time to the front of the queue, at most so many. */
export function bringForward(partnerId: string, fence: bigint, most: number): Statement {
  return statement(
    `UPDATE webhook_deliveries SET queue = 1, due_at = NULL WHERE partner_id = ? AND queue = 2
      AND EXISTS (SELECT 1 FROM webhook_endpoints e WHERE e.partner_id = ? AND e.fence = ?) LIMIT ${most}`,
    partnerId,
    partnerId,
    fence,
  );
}

/** Which of a partner's deliveries operators ask for; what is undefined does not matter. */
export interface DeliveryFilter {
  readonly eventId?: string | undefined;
  readonly state?: DeliveryState | undefined;
  readonly versions?: readonly bigint[] | undefined;
  readonly before?: bigint | undefined;
  readonly after?: bigint | undefined;
  /** Changes from this instant on, and before the other. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** A partner's deliveries, newest first, with the objects their events are about (`object_kind`, `object_id`). */
export function listDeliveries(partnerId: string, filter: DeliveryFilter, most: number): Statement {
  const { sql, values } = where(partnerId, filter);
  return statement(
    `SELECT d.*, COALESCE(f.object_kind, o.object_kind) AS object_kind, COALESCE(f.object_id, o.object_id) AS object_id
      FROM (SELECT * FROM webhook_deliveries WHERE ${sql} ORDER BY version DESC LIMIT ${most}) d ${bodies}
      ORDER BY d.version DESC`,
    ...values,
  );
}

/** Locks deliveries that can still be sent, in the order of versions. */
export function lockForRedelivery(partnerId: string, filter: DeliveryFilter, now: number, most: number): Statement {
  const { sql, values } = where(partnerId, { ...filter, from: Math.max(filter.from ?? 0, now - sentForMs + 1) });
  return statement(
    `SELECT version FROM webhook_deliveries WHERE ${sql} ORDER BY version LIMIT ${most} FOR UPDATE`,
    ...values,
  );
}

function where(partnerId: string, { eventId, state, versions, before, after, from, to }: DeliveryFilter): Statement {
  const same = deliveries.where({
    partnerId,
    ...(eventId && { eventId }),
    ...(state && { state }),
    ...(versions && { version: [0n, ...versions] }),
  });
  return statement(
    `${same.sql} AND version > ? AND version < ? AND occurred_at >= ? AND occurred_at < ?`,
    ...[...same.values, after ?? 0n, before ?? mostVersion],
    ...[new Date(from ?? 0), new Date(to ?? instantRange.most)],
  );
}

const mostVersion = 2n ** 63n - 1n;

/** The versions of the last events about an object, before a version, at most so many. */
export function findVersionsAbout(partnerId: string, objectId: string, before = mostVersion, most: number): Statement {
  const about = 'WHERE partner_id = ? AND object_id = ? AND version < ?';
  return statement(
    `SELECT version FROM feed_events FORCE INDEX (feed_events_object) ${about} UNION SELECT version FROM outbox ${about}
      ORDER BY version DESC LIMIT ${most}`,
    ...[partnerId, objectId, before],
    ...[partnerId, objectId, before],
  );
}

/** Sends deliveries again, at once. */
export function redeliver(partnerId: string, versions: readonly bigint[]): Statement {
  return statement(
    `UPDATE webhook_deliveries SET state = 'waiting', queue = 1, due_at = NULL, ended_at = NULL, round = round + 1
      WHERE partner_id = ? AND version IN (${versions.join(', ')})`,
    partnerId,
  );
}

/** Ends deliveries of events that are no longer sent, at most so many. */
export function expireDeliveries(now: number, most: number): Statement {
  return statement(
    `UPDATE webhook_deliveries SET state = 'expired', queue = NULL, due_at = NULL, ended_at = ?
      WHERE queue IN (1, 2) AND occurred_at <= ? LIMIT ${most}`,
    new Date(now),
    new Date(now - sentForMs),
  );
}

/** Removes ended deliveries of changes from before an instant, at most so many. */
export function removeDeliveries(before: number, most: number): Statement {
  return statement(
    `DELETE FROM webhook_deliveries WHERE queue IS NULL AND occurred_at < ? LIMIT ${most}`,
    new Date(before),
  );
}

/** The attempts of some deliveries, in their order, at most so many. */
export function findAttempts(partnerId: string, versions: readonly bigint[], most: number): Statement {
  const order = statement(`ORDER BY version DESC, number LIMIT ${most}`);
  return attempts.find({ partnerId, version: [0n, ...versions] }, attempts.all, order);
}

/** Removes attempts from before an instant, at most so many. */
export function removeAttempts(before: number, most: number): Statement {
  return statement(`DELETE FROM webhook_attempts WHERE at < ? LIMIT ${most}`, new Date(before));
}

/** Each partner's versions as a range of the primary key: one list of pairs would be compared with every row. */
function ofVersions(versionsOf: ReadonlyMap<string, readonly bigint[]>): { sql: string; values: string[] } {
  const parts = [...versionsOf.values()].map((versions) => `(partner_id = ? AND version IN (${versions.join(', ')}))`);
  return { sql: parts.join(' OR '), values: [...versionsOf.keys()] };
}
