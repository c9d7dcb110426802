import type { Database } from '../db/database.ts';
import {
  hasNotRunOut,
  insertRows,
  instant,
  milliseconds,
  type SqlRow,
  type SqlValue,
  type Statement,
  statement,
  toBigInt,
} from '../db/statement.ts';
import { isRetryDue, retryDueValues } from './delivery-store.ts';
import { type Endpoint, longestProbeWaitMs, nextDue, type Waiting } from './rules.ts';

/** The names of dispatchers' leases begin with this. */
export const dispatcherLeasePrefix = 'webhooks-';

/** The lease of a process, which its endpoints name. */
export interface HolderLease {
  readonly name: string;
  readonly fence: bigint;
}

export function insertEndpoint({
  partnerId,
  url,
  secret,
  afterVersion,
  registeredAt,
}: Pick<Endpoint, 'partnerId' | 'url' | 'secret' | 'afterVersion' | 'registeredAt'>): Statement {
  return insertRows(
    'webhook_endpoints',
    ['partner_id', 'url', 'secret', 'after_version', 'registered_at'],
    [[partnerId, url, secret, afterVersion, new Date(registeredAt)]],
  );
}

/** The endpoints of some partners. */
export function findEndpoints(partnerIds: readonly string[]): Statement {
  return statement('SELECT * FROM webhook_endpoints WHERE partner_id IN (?)', partnerIds);
}

/** Locks endpoints, always in the same order. */
export function lockEndpoints(partnerIds: readonly string[]): Statement {
  return statement(
    'SELECT * FROM webhook_endpoints WHERE partner_id IN (?) ORDER BY partner_id FOR UPDATE',
    partnerIds,
  );
}

export function toEndpoint(row: SqlRow): Endpoint {
  return {
    partnerId: String(row.partner_id),
    url: String(row.url),
    secret: row.secret as Buffer,
    oldSecret: row.old_secret as Buffer | null,
    oldSecretUntil: milliseconds(row.old_secret_until),
    afterVersion: toBigInt(row.after_version),
    registeredAt: milliseconds(row.registered_at) ?? 0,
    generation: Number(row.generation),
    streak: Number(row.streak),
    pausedAt: milliseconds(row.paused_at),
    probeAt: milliseconds(row.probe_at),
    probedVersion: toBigInt(row.probed_version),
    heldAt: milliseconds(row.held_at),
    draining: Number(row.draining) === 1,
    dueAt: milliseconds(row.due_at),
    fence: toBigInt(row.fence),
    revision: toBigInt(row.revision),
    changedRevision: toBigInt(row.changed_revision),
    seenRevision: toBigInt(row.seen_revision),
  };
}

/** Columns that an attempt or an operator changes, by their names in `Endpoint`. */
const changeable = {
  url: 'url',
  secret: 'secret',
  oldSecret: 'old_secret',
  oldSecretUntil: 'old_secret_until',
  generation: 'generation',
  streak: 'streak',
  pausedAt: 'paused_at',
  probeAt: 'probe_at',
  probedVersion: 'probed_version',
  heldAt: 'held_at',
  draining: 'draining',
  dueAt: 'due_at',
  revision: 'revision',
  changedRevision: 'changed_revision',
} as const;
const instants = new Set(['oldSecretUntil', 'pausedAt', 'probeAt', 'heldAt', 'dueAt']);

/** Writes what was changed of an endpoint whose row is locked. Its revision grows, unless nothing was changed. */
export function saveEndpoint(before: Endpoint, after: Endpoint): { writes: Statement[]; saved: Endpoint } {
  const changedOf = (saved: Endpoint) =>
    (Object.keys(changeable) as (keyof typeof changeable)[]).filter((key) => before[key] !== saved[key]);
  if (changedOf(after).length === 0) return { writes: [], saved: before };
  const saved = { ...after, revision: before.revision + 1n };
  const changed = changedOf(saved);
  const values = changed.map(
    (key): SqlValue => (instants.has(key) ? instant(saved[key] as number | null) : saved[key]),
  );
  const assignments = changed.map((key) => `${changeable[key]} = ?`).join(', ');
  const sql = `UPDATE webhook_endpoints SET ${assignments} WHERE partner_id = ?`;
  return { writes: [statement(sql, ...values, before.partnerId)], saved };
}

/** Whether a process may send to an endpoint: no other that lives does. */
const isFree = `((e.lease_name = ? AND e.lease_fence = ?) OR NOT EXISTS (SELECT 1 FROM leases l
  WHERE l.name = e.lease_name AND l.fence = e.lease_fence AND ${hasNotRunOut('l.expires_at')}))`;

/** Whether an endpoint has something to be sent by an instant, if its pauses allow it. */
const hasWork = `(e.draining = 1
  OR EXISTS (SELECT 1 FROM webhook_deliveries d
    WHERE d.partner_id = e.partner_id AND d.queue = 1 AND d.due_at IS NULL)
  OR EXISTS (SELECT 1 FROM webhook_deliveries d
    WHERE d.partner_id = e.partner_id AND d.queue = 2 AND (${isRetryDue} OR e.paused_at IS NOT NULL)))`;

/**
 * Partners whose endpoint has something to be sent now and is free or this process's, at most so many, those that have
 * waited longest first. It reads the endpoints that are marked as due. A full scan reads all endpoints: it also finds those
 * that a version before `due_at` did not mark, or a clock that was ahead marked for later.
 */
export function findWork(lease: HolderLease, now: number, most: number, isFullScan = false): Statement {
  const isDue = isFullScan ? '' : 'e.due_at <= ? AND';
  return statement(
    `SELECT e.partner_id FROM webhook_endpoints e ${isFullScan ? '' : 'FORCE INDEX (webhook_endpoints_due_at)'}
      WHERE ${isDue} e.held_at IS NULL AND (e.paused_at IS NULL OR e.probe_at <= ? OR e.probe_at > ?)
        AND ${isFree} AND ${hasWork}
      ORDER BY e.due_at LIMIT ${most}`,
    ...(isFullScan ? [] : [new Date(now)]),
    new Date(now),
    new Date(now + longestProbeWaitMs),
    lease.name,
    lease.fence,
    ...retryDueValues(now),
  );
}

/**
 * Makes a process the one that sends to those of some endpoints that no other living process sends to, and answers with
 * them. What others that did so before it still write is refused.
 */
export function claimEndpoints(
  database: Database,
  partnerIds: readonly string[],
  lease: HolderLease,
  now: number,
): Promise<Endpoint[]> {
  const lockFree = statement(
    `SELECT e.* FROM webhook_endpoints e WHERE e.partner_id IN (?) AND ${isFree} ORDER BY e.partner_id FOR UPDATE`,
    partnerIds,
    lease.name,
    lease.fence,
  );
  return database.transaction<Endpoint[]>([lockFree], ([rows = []]) => {
    if (rows.length === 0) return { writes: [], result: [] };
    const endpoints = rows.map(toEndpoint).map((endpoint) => ({ ...endpoint, fence: endpoint.fence + 1n }));
    // Should this process die, the next one finds them by due_at, also those that were found by a full scan.
    const claim = statement(
      `UPDATE webhook_endpoints SET lease_name = ?, lease_fence = ?, fence = fence + 1, seen_revision = revision,
        due_at = LEAST(COALESCE(due_at, ?), ?) WHERE partner_id IN (?)`,
      lease.name,
      lease.fence,
      new Date(now),
      new Date(now),
      endpoints.map(({ partnerId }) => partnerId),
    );
    return { writes: [claim], result: endpoints };
  });
}

/** Gives endpoints back that a process sends to, and notes when there will be something to do for each. */
export function releaseEndpoints(
  database: Database,
  partnerIds: readonly string[],
  lease: HolderLease,
  now: number,
): Promise<void> {
  const lockHeld = statement(
    `SELECT * FROM webhook_endpoints WHERE partner_id IN (?) AND lease_name = ? AND lease_fence = ?
      ORDER BY partner_id FOR UPDATE`,
    partnerIds,
    lease.name,
    lease.fence,
  );
  return database.transaction<void>([lockHeld, findWaiting(partnerIds)], ([rows = [], waiting = []]) => {
    const waitingOf = new Map(waiting.map((row) => [String(row.partner_id), toWaiting(row)]));
    const writes = rows.map(toEndpoint).map((endpoint) => {
      const found = waitingOf.get(endpoint.partnerId) ?? { isReady: false, retryAt: null };
      return statement(
        'UPDATE webhook_endpoints SET lease_name = NULL, lease_fence = NULL, due_at = ? WHERE partner_id = ?',
        instant(nextDue(endpoint, found, now)),
        endpoint.partnerId,
      );
    });
    return { writes, result: undefined };
  });
}

/** Whether something of endpoints is to be sent at once, and when the first of what is to be sent again is due. */
function findWaiting(partnerIds: readonly string[]): Statement {
  return statement(
    `SELECT e.partner_id,
      EXISTS (SELECT 1 FROM webhook_deliveries d
        WHERE d.partner_id = e.partner_id AND d.queue = 1 AND d.due_at IS NULL) AS is_ready,
      (SELECT MIN(d.due_at) FROM webhook_deliveries d FORCE INDEX (webhook_deliveries_due)
        WHERE d.partner_id = e.partner_id AND d.queue = 2) AS retry_at
      FROM webhook_endpoints e WHERE e.partner_id IN (?)`,
    partnerIds,
  );
}

function toWaiting(row: SqlRow): Waiting {
  return { isReady: Number(row.is_ready) === 1, retryAt: milliseconds(row.retry_at) };
}

/**
 * Notes that endpoints have something to be sent now. It waits for their locks also where this is noted already, so that
 * whoever notes at the same time that nothing waits sees what was queued before.
 */
export function markDue(partnerIds: readonly string[], now: number): Statement {
  return statement(
    'UPDATE webhook_endpoints SET due_at = LEAST(COALESCE(due_at, ?), ?) WHERE partner_id IN (?)',
    new Date(now),
    new Date(now),
    partnerIds,
  );
}

/** Notes that all that waited is at the front, unless the row has changed since: another pause may have ended. */
export function endDraining({ partnerId, fence, revision }: Endpoint): Statement {
  return statement(
    `UPDATE webhook_endpoints SET draining = 0, revision = revision + 1
      WHERE partner_id = ? AND fence = ? AND revision = ?`,
    partnerId,
    fence,
    revision,
  );
}

/** Says that the process that sends to some endpoints works by their rows as they are given. */
export function saveSeen(endpoints: readonly Endpoint[]): Statement {
  return statement(
    `UPDATE webhook_endpoints SET seen_revision = changed_revision
      WHERE ${endpoints.map(() => '(partner_id = ? AND fence = ? AND changed_revision <= ?)').join(' OR ')}`,
    ...endpoints.flatMap(({ partnerId, fence, revision }) => [partnerId, fence, revision]),
  );
}

/** Finds a row when no process works by an endpoint's row as it was before the last change of an operator. */
export function findAdopted(partnerId: string): Statement {
  return statement(
    `SELECT 1 FROM webhook_endpoints
      WHERE partner_id = ? AND (lease_name IS NULL OR seen_revision >= changed_revision)`,
    partnerId,
  );
}

export function countPaused(): Statement {
  return statement(
    `SELECT (SELECT COUNT(*) FROM webhook_endpoints WHERE paused_at IS NOT NULL) AS failing,
      (SELECT COUNT(*) FROM webhook_endpoints WHERE held_at IS NOT NULL) AS held`,
  );
}
