import { milliseconds, type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';
import { type DeliveryState, longestRetryWaitMs, type Progress, sentForMs, type Waiting } from './rules.ts';

/** An event on its way to its endpoint. */
export interface Delivery {
  readonly version: bigint;
  readonly eventId: string;
  readonly type: string;
  /** When the change was committed, in real time. */
  readonly committedAt: number;
  /** From when on it could be sent, in business time. */
  readonly dueSince: number;
  readonly tries: number;
  readonly round: number;
  readonly isRetry: boolean;
  /** The request that created the event's object, and its place in a trace; null where they were not kept. */
  readonly requestId: string | null;
  readonly traceParent: string | null;
  /** The event's bytes; undefined when the event is gone. */
  readonly body: Buffer | undefined;
}

/** How a delivery stands, as stored. */
export interface StoredProgress extends Progress {
  readonly tries: number;
  readonly round: number;
}

/** A delivery as operators see it. */
export interface ListedDelivery {
  readonly version: bigint;
  readonly eventId: string;
  readonly type: string;
  readonly state: DeliveryState;
  readonly occurredAt: number;
  readonly attempts: number;
  /** When it is sent next; null when that is at once or never. */
  readonly dueAt: number | null;
}

/** Which deliveries an operator asks for again: one, or those of changes in a window. */
export interface RedeliveryRange {
  readonly eventId?: string;
  /** Changes from this instant on. */
  readonly from?: number;
  /** Changes before this instant. */
  readonly to?: number;
}

// Named, because a server that guesses from the age of events would sort all that waits for each look at it.
const byDue = 'FORCE INDEX (webhook_deliveries_due)';

/** Whether something of endpoints is to be sent at once, and when the first of what is to be sent again is due. */
export function findWaiting(partnerIds: readonly string[]): Statement {
  return statement(
    `SELECT e.partner_id,
      EXISTS (SELECT 1 FROM webhook_deliveries d
        WHERE d.partner_id = e.partner_id AND d.queue = 1 AND d.due_at IS NULL) AS is_ready,
      (SELECT MIN(d.due_at) FROM webhook_deliveries d ${byDue} WHERE d.partner_id = e.partner_id AND d.queue = 2) AS retry_at
      FROM webhook_endpoints e WHERE e.partner_id IN (?)`,
    partnerIds,
  );
}

export function toWaiting(row: SqlRow): Waiting {
  return { isReady: Number(row.is_ready) === 1, retryAt: milliseconds(row.retry_at) };
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

const deliveryColumns = `d.version, d.event_id, d.type, d.committed_at, COALESCE(d.due_at, d.taken_at) AS due_since, d.queue,
  d.tries, d.round, COALESCE(f.body, o.body) AS body,
  COALESCE(f.request_id, o.request_id) AS request_id, COALESCE(f.trace_parent, o.trace_parent) AS trace_parent`;
// The feed's copy and the outbox row change places in one transaction, so one statement always finds one of them.
const bodies = `LEFT JOIN feed_events f ON f.partner_id = d.partner_id AND f.version = d.version
  LEFT JOIN outbox o ON o.partner_id = d.partner_id AND o.version = d.version`;

/** What is to be sent at once, oldest first, after a version and without the given ones. */
export function findReady(
  partnerId: string,
  { after, without }: { after: bigint; without: readonly bigint[] },
  now: number,
  most: number,
): Statement {
  return statement(
    `SELECT ${deliveryColumns} FROM webhook_deliveries d ${byDue} ${bodies}
      WHERE d.partner_id = ? AND d.queue = 1 AND d.due_at IS NULL AND d.version > ? AND d.occurred_at > ?
        ${except(without.filter((version) => version > after))}
      ORDER BY d.version LIMIT ${most}`,
    partnerId,
    after,
    new Date(now - sentForMs),
  );
}

/** Whether a delivery `d` that is sent again is due at an instant. */
export const isRetryDue = '(d.due_at <= ? OR d.due_at > ?)';

export function retryDueValues(now: number): Date[] {
  return [new Date(now), new Date(now + longestRetryWaitMs)];
}

/** What is to be sent again by now, longest due first, without the given versions. */
export function findRetries(partnerId: string, without: readonly bigint[], now: number, most: number): Statement {
  return statement(
    `SELECT ${deliveryColumns} FROM webhook_deliveries d ${byDue} ${bodies}
      WHERE d.partner_id = ? AND d.queue = 2 AND ${isRetryDue} AND d.occurred_at > ? ${except(without)}
      ORDER BY d.due_at LIMIT ${most}`,
    partnerId,
    ...retryDueValues(now),
    new Date(now - sentForMs),
  );
}

/** The oldest events that wait after a version: the one with the lowest version is among them. */
export function findProbe(partnerId: string, afterVersion: bigint, now: number): Statement {
  const oldest = (condition: string) =>
    `(SELECT d.* FROM webhook_deliveries d ${byDue} WHERE d.partner_id = ? AND ${condition} AND d.version > ?
      AND d.occurred_at > ? ORDER BY d.version LIMIT 1)`;
  const values = [partnerId, afterVersion, new Date(now - sentForMs)];
  return statement(
    `SELECT ${deliveryColumns} FROM (${oldest('d.queue = 1 AND d.due_at IS NULL')}
      UNION ALL ${oldest('d.queue = 2')}) d ${bodies} ORDER BY d.version LIMIT 1`,
    ...values,
    ...values,
  );
}

/** Versions are numbers, so they can stand in the statement. */
function except(versions: readonly bigint[]): string {
  return versions.length === 0 ? '' : `AND d.version NOT IN (${versions.join(', ')})`;
}

export function toDelivery(row: SqlRow): Delivery {
  return {
    version: toBigInt(row.version),
    eventId: String(row.event_id),
    type: String(row.type),
    committedAt: milliseconds(row.committed_at) ?? 0,
    dueSince: milliseconds(row.due_since) ?? 0,
    tries: Number(row.tries),
    round: Number(row.round),
    isRetry: Number(row.queue) === 2,
    requestId: row.request_id as string | null,
    traceParent: row.trace_parent as string | null,
    body: (row.body as Buffer | null) ?? undefined,
  };
}

/** How the deliveries of some events stand. */
export function findProgress(versionsOf: ReadonlyMap<string, readonly bigint[]>): Statement {
  const { sql, values } = ofVersions(versionsOf);
  return statement(
    `SELECT partner_id, version, state, attempts, due_at, tries, round FROM webhook_deliveries FORCE INDEX (PRIMARY)
      WHERE ${sql}`,
    ...values,
  );
}

export function toProgress(row: SqlRow): StoredProgress {
  return {
    state: String(row.state) as DeliveryState,
    attempts: Number(row.attempts),
    dueAt: milliseconds(row.due_at),
    tries: Number(row.tries),
    round: Number(row.round),
  };
}

/** Notes that events were delivered at their next attempt. */
export function saveDelivered(versionsOf: ReadonlyMap<string, readonly bigint[]>, now: number): Statement {
  const { sql, values } = ofVersions(versionsOf);
  return statement(
    `UPDATE webhook_deliveries FORCE INDEX (PRIMARY) SET state = 'delivered', queue = NULL, due_at = NULL, attempts = attempts + 1,
      tries = tries + 1, ended_at = ? WHERE ${sql}`,
    new Date(now),
    ...values,
  );
}

/** Notes an attempt that does not change when the event is sent next. */
export function saveTry(partnerId: string, version: bigint, attempts: number): Statement {
  return statement(
    'UPDATE webhook_deliveries SET tries = tries + 1, attempts = ? WHERE partner_id = ? AND version = ?',
    attempts,
    partnerId,
    version,
  );
}

/** Notes an attempt after which an event is sent again. */
export function saveRetry(partnerId: string, version: bigint, attempts: number, dueAt: number): Statement {
  return statement(
    `UPDATE webhook_deliveries SET tries = tries + 1, attempts = ?, queue = 2, due_at = ?
      WHERE partner_id = ? AND version = ?`,
    attempts,
    new Date(dueAt),
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

/** Deliveries that can still be sent, of an event or a window, after a version, in the order of versions. */
export function lockForRedelivery(
  partnerId: string,
  { eventId, from, to }: RedeliveryRange,
  afterVersion: bigint,
  now: number,
  most: number,
): Statement {
  const conditions = ['partner_id = ?', 'version > ?', 'occurred_at > ?'];
  const values: (string | bigint | Date)[] = [partnerId, afterVersion, new Date(now - sentForMs)];
  if (eventId !== undefined) {
    conditions.push('event_id = ?');
    values.push(eventId);
  }
  if (from !== undefined) {
    conditions.push('occurred_at >= ?');
    values.push(new Date(from));
  }
  if (to !== undefined) {
    conditions.push('occurred_at < ?');
    values.push(new Date(to));
  }
  return statement(
    `SELECT version FROM webhook_deliveries WHERE ${conditions.join(' AND ')} ORDER BY version LIMIT ${most} FOR UPDATE`,
    ...values,
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

/** Deliveries of a partner before a version, newest first; all states, or one. */
export function findDeliveries(
  partnerId: string,
  before: bigint | undefined,
  state: DeliveryState | undefined,
  eventId: string | undefined,
  most: number,
): Statement {
  const conditions = ['partner_id = ?'];
  const values: (string | bigint)[] = [partnerId];
  if (before !== undefined) {
    conditions.push('version < ?');
    values.push(before);
  }
  if (state !== undefined) {
    conditions.push('state = ?');
    values.push(state);
  }
  if (eventId !== undefined) {
    conditions.push('event_id = ?');
    values.push(eventId);
  }
  return statement(
    `SELECT version, event_id, type, state, occurred_at, attempts, due_at FROM webhook_deliveries
      WHERE ${conditions.join(' AND ')} ORDER BY version DESC LIMIT ${most}`,
    ...values,
  );
}

export function toListedDelivery(row: SqlRow): ListedDelivery {
  return {
    version: toBigInt(row.version),
    eventId: String(row.event_id),
    type: String(row.type),
    state: String(row.state) as DeliveryState,
    occurredAt: milliseconds(row.occurred_at) ?? 0,
    attempts: Number(row.attempts),
    dueAt: milliseconds(row.due_at),
  };
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

/** Each partner's versions as a range of the primary key: one list of pairs would be compared with every row. */
function ofVersions(versionsOf: ReadonlyMap<string, readonly bigint[]>): { sql: string; values: string[] } {
  const parts = [...versionsOf.values()].map((versions) => `(partner_id = ? AND version IN (${versions.join(', ')}))`);
  return { sql: parts.join(' OR '), values: [...versionsOf.keys()] };
}
