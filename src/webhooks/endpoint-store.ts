import type { Database } from '../db/database.ts';
import { hasNotRunOut, instant, milliseconds, type SqlRow, type Statement, statement } from '../db/statement.ts';
import { isRetryDue, retryDueValues } from './delivery-store.ts';
import { freshHealth, longestProbeWaitMs, nextDue, type Waiting } from './rules.ts';
import { type Endpoint, endpoints } from './table.ts';

/** The names of dispatchers' leases begin with this. */
export const dispatcherLeasePrefix = 'webhooks-';

/** The lease of a process, which its endpoints name. */
export interface HolderLease {
  readonly name: string;
  readonly fence: bigint;
}

/** A new endpoint. */
export function newEndpoint(
  made: Pick<Endpoint, 'partnerId' | 'url' | 'secret' | 'afterVersion' | 'registeredAt'>,
): Endpoint {
  return {
    ...{ oldSecret: null, oldSecretUntil: null, generation: 0, ...freshHealth, heldAt: null, draining: false },
    ...{ leaseName: null, leaseFence: null, fence: 0n, dueAt: null },
    ...{ revision: 0n, changedRevision: 0n, seenRevision: 0n },
    ...made,
  };
}

/** Locks endpoints, always in the same order. */
export function lockEndpoints(partnerIds: readonly string[]): Statement {
  return endpoints.find({ partnerId: partnerIds }, endpoints.all, statement('ORDER BY partner_id FOR UPDATE'));
}

/** Writes what was changed of an endpoint whose row is locked. Its revision grows, unless nothing was changed. */
export function saveEndpoint(before: Endpoint, after: Endpoint): { writes: Statement[]; saved: Endpoint } {
  const isChanged = endpoints.update(before, after).length > 0;
  const saved = isChanged ? { ...after, revision: before.revision + 1n } : before;
  return { writes: endpoints.update(before, saved), saved };
}

/** An endpoint to which events are sent at another URL from now on. What waited because of a pause goes at once. */
export function moved(endpoint: Endpoint, url: string): Endpoint {
  const after = { ...endpoint, ...freshHealth, url, generation: endpoint.generation + 1 };
  return endpoint.pausedAt === null ? after : startDraining(after);
}

/** An endpoint none of whose pauses goes on. */
export function resumed(endpoint: Endpoint): Endpoint {
  return startDraining({ ...endpoint, ...freshHealth, heldAt: null });
}

/** An endpoint all of whose waiting events are to be moved to the front of its queue, because a pause ended. */
export function startDraining(endpoint: Endpoint): Endpoint {
  return { ...endpoint, draining: true, dueAt: endpoint.registeredAt };
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
    const claimed = rows.map(endpoints.all.read).map((endpoint) => ({ ...endpoint, fence: endpoint.fence + 1n }));
    // Should this process die, the next one finds them by due_at, also those that were found by a full scan.
    const claim = statement(
      `UPDATE webhook_endpoints SET lease_name = ?, lease_fence = ?, fence = fence + 1, seen_revision = revision,
        due_at = LEAST(COALESCE(due_at, ?), ?) WHERE partner_id IN (?)`,
      lease.name,
      lease.fence,
      new Date(now),
      new Date(now),
      claimed.map(({ partnerId }) => partnerId),
    );
    return { writes: [claim], result: claimed };
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
    const writes = rows.map(endpoints.all.read).map((endpoint) => {
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
export function saveSeen(seen: readonly Endpoint[]): Statement {
  return statement(
    `UPDATE webhook_endpoints SET seen_revision = changed_revision
      WHERE ${seen.map(() => '(partner_id = ? AND fence = ? AND changed_revision <= ?)').join(' OR ')}`,
    ...seen.flatMap(({ partnerId, fence, revision }) => [partnerId, fence, revision]),
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
