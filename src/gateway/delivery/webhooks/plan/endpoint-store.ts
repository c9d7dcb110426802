import type { Database } from '../../../store/database.ts';
import type { Lease } from '../../../store/lease.ts';
import {
  hasNotRunOut,
  joined,
  milliseconds,
  type SqlRow,
  type Statement,
  sql,
  statement,
} from '../../../store/statement.ts';
import { freshHealth, longestProbeWaitMs, nextDue } from '../rules.ts';
import { type Endpoint, endpoints } from '../table.ts';
import { isRetryDue } from './queue-store.ts';

/** The lease of a process, which its endpoints name. */
export type HolderLease = Pick<Lease, 'name' | 'fence'>;

/** The row of a new endpoint. */
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

/** Writes the changes of an endpoint whose row is locked. The revision grows if anything changed. */
export function saveEndpoint(before: Endpoint, after: Endpoint): { writes: Statement[]; saved: Endpoint } {
  const isChanged = endpoints.update(before, after).length > 0;
  const saved = isChanged ? { ...after, revision: before.revision + 1n } : before;
  return { writes: endpoints.update(before, saved), saved };
}

/** An endpoint with a new URL. Events that waited because of a pause are sent at once. */
export function moved(endpoint: Endpoint, url: string): Endpoint {
  const after = { ...endpoint, ...freshHealth, url, generation: endpoint.generation + 1 };
  return endpoint.pausedAt === null ? after : startDraining(after);
}

/** An endpoint without any pause. Whether it delivers is not known yet. */
export function resumed(endpoint: Endpoint): Endpoint {
  const { failingSince } = endpoint;
  return startDraining({ ...endpoint, ...freshHealth, failingSince, heldAt: null });
}

/** An endpoint whose waiting events must move to the front of its queue, because a pause ended. */
export function startDraining(endpoint: Endpoint): Endpoint {
  return { ...endpoint, draining: true, dueAt: endpoint.registeredAt };
}

/** Whether a process may send to an endpoint `e`: no other live process does. */
function isFree({ name, fence }: HolderLease): Statement {
  return sql`((e.lease_name = ${name} AND e.lease_fence = ${fence}) OR NOT EXISTS (SELECT 1 FROM leases l
    WHERE l.name = e.lease_name AND l.fence = e.lease_fence AND ${statement(hasNotRunOut('l.expires_at'))}))`;
}

/** Whether an endpoint `e` has an event to send at once. */
const isReady = hasQueued(statement('d.queue = 1 AND d.due_at IS NULL'));

/**
 * Whether an endpoint `e` has a delivery `d` of some sort in its queue. Not as EXISTS: by some statistics MariaDB would first
 * read the deliveries of all endpoints.
 */
function hasQueued(sort: Statement): Statement {
  return sql`(SELECT 1 FROM webhook_deliveries d FORCE INDEX (webhook_deliveries_due)
    WHERE d.partner_id = e.partner_id AND ${sort} LIMIT 1) IS NOT NULL`;
}

/**
 * Partners whose endpoint has work and is free or this process's, longest waiting first. It reads endpoints marked as due. A
 * full scan also finds those that a version before `due_at` did not mark, or that a fast clock marked for later.
 */
export function findWork(lease: HolderLease, now: number, most: number, isFullScan = false): Statement {
  const index = statement(isFullScan ? '' : 'FORCE INDEX (webhook_endpoints_due_at)');
  const isDue = isFullScan ? statement('TRUE') : sql`e.due_at <= ${new Date(now)}`;
  const longestWait = new Date(now + longestProbeWaitMs);
  return sql`SELECT e.partner_id FROM webhook_endpoints e ${index} WHERE ${isDue} AND e.held_at IS NULL
    AND (e.paused_at IS NULL OR e.probe_at <= ${new Date(now)} OR e.probe_at > ${longestWait}) AND ${isFree(lease)}
    AND (e.draining = 1 OR ${isReady} OR ${hasQueued(sql`d.queue = 2 AND (${isRetryDue(now)} OR e.paused_at IS NOT NULL)`)})
    ORDER BY e.due_at LIMIT ${most}`;
}

/** Claims those endpoints that no other live process sends to. The fence rejects later writes of their former processes. */
export function claimEndpoints(
  database: Database,
  partnerIds: readonly string[],
  lease: HolderLease,
  now: number,
): Promise<Endpoint[]> {
  const lockFree = sql`SELECT e.* FROM webhook_endpoints e FORCE INDEX (PRIMARY) WHERE e.partner_id IN (${partnerIds}) AND ${isFree(lease)}
    ORDER BY e.partner_id FOR UPDATE`;
  return database.transaction<Endpoint[]>([lockFree], ([rows = []]) => {
    if (rows.length === 0) return { writes: [], result: [] };
    const claimed = rows.map(endpoints.all.read).map((endpoint) => ({ ...endpoint, fence: endpoint.fence + 1n }));
    // If this process dies, the next one finds them by `due_at`, also those from a full scan.
    const claim = sql`UPDATE webhook_endpoints FORCE INDEX (PRIMARY) SET lease_name = ${lease.name}, lease_fence = ${lease.fence},
      fence = fence + 1, seen_revision = revision, ${isDueAt(now)}
      WHERE partner_id IN (${claimed.map(({ partnerId }) => partnerId)})`;
    return { writes: [claim], result: claimed };
  });
}

/** Releases a process's endpoints, and stores when each will have work. */
export function releaseEndpoints(
  database: Database,
  partnerIds: readonly string[],
  { name, fence }: HolderLease,
  now: number,
): Promise<void> {
  const lockHeld = sql`SELECT * FROM webhook_endpoints FORCE INDEX (PRIMARY)
    WHERE partner_id IN (${partnerIds}) AND lease_name = ${name} AND lease_fence = ${fence}
    ORDER BY partner_id FOR UPDATE`;
  // Whether an event is to be sent at once, and when the first retry is due.
  const findWaiting = sql`SELECT e.partner_id, ${isReady} AS is_ready,
      (SELECT MIN(d.due_at) FROM webhook_deliveries d FORCE INDEX (webhook_deliveries_due)
        WHERE d.partner_id = e.partner_id AND d.queue = 2) AS retry_at
      FROM webhook_endpoints e FORCE INDEX (PRIMARY) WHERE e.partner_id IN (${partnerIds})`;
  return database.transaction<void>([lockHeld, findWaiting], ([rows = [], waiting = []]) => {
    const waitingOf = new Map(waiting.map((row) => [String(row.partner_id), row]));
    const writes = rows.map(endpoints.all.read).map((endpoint) => {
      const { partnerId } = endpoint;
      const row = waitingOf.get(partnerId);
      const found = { isReady: Number(row?.is_ready) === 1, retryAt: milliseconds(row?.retry_at ?? null) };
      return endpoints.set({ partnerId }, { leaseName: null, leaseFence: null, dueAt: nextDue(endpoint, found, now) });
    });
    return { writes, result: undefined };
  });
}

function isDueAt(now: number): Statement {
  return sql`due_at = LEAST(COALESCE(due_at, ${new Date(now)}), ${new Date(now)})`;
}

/** Marks endpoints as due now. It always locks them, so that a concurrent release sees the events queued before. */
export function markDue(partnerIds: readonly string[], now: number): Statement {
  return sql`UPDATE webhook_endpoints FORCE INDEX (PRIMARY) SET ${isDueAt(now)} WHERE partner_id IN (${partnerIds})`;
}

/** Stores that all retries are at the front, unless the row has changed since: another pause may have ended. */
export function endDraining({ partnerId, fence, revision }: Endpoint): Statement {
  return endpoints.set({ partnerId, fence, revision }, { draining: false, revision: revision + 1n });
}

/** Stores that the sending process uses these versions of its endpoints' rows. */
export function saveSeen(seen: readonly Endpoint[]): Statement {
  const rows = seen.map(
    ({ partnerId, fence, revision }) =>
      sql`(partner_id = ${partnerId} AND fence = ${fence} AND changed_revision <= ${revision})`,
  );
  return sql`UPDATE webhook_endpoints SET seen_revision = changed_revision WHERE ${joined(rows, ' OR ')}`;
}

/** Finds a row if no process uses the endpoint's row from before the last change by an operator. */
export function findAdopted(partnerId: string): Statement {
  return sql`SELECT 1 FROM webhook_endpoints
    WHERE partner_id = ${partnerId} AND (lease_name IS NULL OR seen_revision >= changed_revision)`;
}

export function countPaused(): Statement {
  return sql`SELECT (SELECT COUNT(*) FROM webhook_endpoints WHERE paused_at IS NOT NULL) AS failing,
    (SELECT COUNT(*) FROM webhook_endpoints WHERE held_at IS NOT NULL) AS held`;
}

/** An endpoint that delivers nothing although events wait. */
export interface Undelivered {
  readonly partnerId: string;
  /** Why: its attempts fail, or an operator has paused it. */
  readonly by: 'failures' | 'operator';
  /** The last instant at which nothing waited, or nothing had failed. */
  readonly since: number;
}

/**
 * The endpoints that have delivered nothing for the longest while events wait: the first that waits is older than
 * `until`, and so is the first failure or an operator's pause. At most so many, the longest first.
 */
export function findUndelivered(until: number, most: number): Statement {
  const before = new Date(until);
  return sql`SELECT partner_id, is_held, GREATEST(failing_since, waits_since) AS since FROM
      (SELECT e.partner_id, e.held_at IS NOT NULL AS is_held,
        LEAST(COALESCE(e.failing_since, e.held_at), COALESCE(e.held_at, e.failing_since)) AS failing_since,
        (SELECT d.occurred_at FROM webhook_deliveries d FORCE INDEX (webhook_deliveries_state)
          WHERE d.partner_id = e.partner_id AND d.state = 'waiting' ORDER BY d.version LIMIT 1) AS waits_since
        FROM webhook_endpoints e WHERE e.failing_since <= ${before} OR e.held_at <= ${before}) AS found
    WHERE waits_since <= ${before} ORDER BY since LIMIT ${most}`;
}

export function readUndelivered(row: SqlRow): Undelivered {
  const by = Number(row.is_held) === 1 ? 'operator' : 'failures';
  return { partnerId: String(row.partner_id), by, since: (row.since as Date).getTime() };
}
