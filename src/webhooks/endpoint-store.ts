import {
  hasNotRunOut,
  insertRows,
  instant,
  milliseconds,
  type SqlRow,
  type Statement,
  statement,
  toBigInt,
} from '../db/statement.ts';
import { isRetryDue, retryDueValues } from './delivery-store.ts';
import { type Health, longestProbeWaitMs } from './rules.ts';

/** What stands before the names of dispatchers' leases. */
export const dispatcherLeasePrefix = 'webhooks-';

/** A partner's endpoint as stored. Instants are business time. */
export interface StoredEndpoint {
  readonly partnerId: string;
  readonly url: string;
  /** Sealed, as is the old one. */
  readonly secret: Buffer;
  readonly oldSecret: Buffer | null;
  /** Until when events are signed with the old secret too. */
  readonly oldSecretUntil: number | null;
  /** Events with a higher version are delivered. */
  readonly afterVersion: bigint;
  readonly registeredAt: number;
  /** Grows with a move. */
  readonly generation: number;
  readonly health: Health;
  /** Since when an operator holds it; null when none does. */
  readonly heldAt: number | null;
  /** Whether all that waits must still be moved to the front, because a pause ended. */
  readonly draining: boolean;
  /** Grows with each process that sends to it. */
  readonly fence: bigint;
  /** Grows with every change of the row: of two reads of it, the one with the higher revision is the newer. */
  readonly revision: bigint;
  /** The revision of the last change an operator made. */
  readonly changedRevision: bigint;
  /** The last revision of which the sending process has said that it works by it. */
  readonly seenRevision: bigint;
}

/** A lease of a process, which its endpoints name. */
export interface HolderLease {
  readonly name: string;
  readonly fence: bigint;
}

export function insertEndpoint(endpoint: {
  partnerId: string;
  url: string;
  secret: Buffer;
  afterVersion: bigint;
  registeredAt: number;
}): Statement {
  return insertRows(
    'webhook_endpoints',
    ['partner_id', 'url', 'secret', 'after_version', 'registered_at'],
    [[endpoint.partnerId, endpoint.url, endpoint.secret, endpoint.afterVersion, new Date(endpoint.registeredAt)]],
  );
}

export function findEndpoint(partnerId: string): Statement {
  return statement('SELECT * FROM webhook_endpoints WHERE partner_id = ?', partnerId);
}

/** The endpoints of some partners. */
export function findEndpoints(partnerIds: readonly string[]): Statement {
  return statement('SELECT * FROM webhook_endpoints WHERE partner_id IN (?)', partnerIds);
}

export function lockEndpoint(partnerId: string): Statement {
  return statement('SELECT * FROM webhook_endpoints WHERE partner_id = ? FOR UPDATE', partnerId);
}

/** Locks endpoints, always in the same order. */
export function lockEndpoints(partnerIds: readonly string[]): Statement {
  return statement(
    'SELECT * FROM webhook_endpoints WHERE partner_id IN (?) ORDER BY partner_id FOR UPDATE',
    partnerIds,
  );
}

export function toEndpoint(row: SqlRow): StoredEndpoint {
  return {
    partnerId: String(row.partner_id),
    url: String(row.url),
    secret: row.secret as Buffer,
    oldSecret: row.old_secret as Buffer | null,
    oldSecretUntil: milliseconds(row.old_secret_until),
    afterVersion: toBigInt(row.after_version),
    registeredAt: milliseconds(row.registered_at) ?? 0,
    generation: Number(row.generation),
    health: {
      streak: Number(row.streak),
      pausedAt: milliseconds(row.paused_at),
      probeAt: milliseconds(row.probe_at),
      probedVersion: toBigInt(row.probed_version),
    },
    heldAt: milliseconds(row.held_at),
    draining: Number(row.draining) === 1,
    fence: toBigInt(row.fence),
    revision: toBigInt(row.revision),
    changedRevision: toBigInt(row.changed_revision),
    seenRevision: toBigInt(row.seen_revision),
  };
}

/** What an operator changes, the sending process must say that it has seen. Assigned from left to right. */
const byOperator = 'revision = revision + 1, changed_revision = revision';

export function saveHealth(partnerId: string, health: Health, startDraining: boolean): Statement {
  return statement(
    `UPDATE webhook_endpoints SET streak = ?, paused_at = ?, probe_at = ?, probed_version = ?,
      draining = draining | ?, due_at = IF(?, registered_at, due_at), revision = revision + 1 WHERE partner_id = ?`,
    health.streak,
    instant(health.pausedAt),
    instant(health.probeAt),
    health.probedVersion,
    startDraining,
    startDraining,
    partnerId,
  );
}

/** Sends events to another URL from now on. */
export function saveMove(partnerId: string, url: string, fresh: Health, startDraining: boolean): Statement[] {
  return [
    saveHealth(partnerId, fresh, startDraining),
    statement(
      `UPDATE webhook_endpoints SET url = ?, generation = generation + 1, ${byOperator} WHERE partner_id = ?`,
      url,
      partnerId,
    ),
  ];
}

export function saveRotation(partnerId: string, secret: Buffer, oldSecret: Buffer, oldUntil: number): Statement {
  return statement(
    `UPDATE webhook_endpoints SET secret = ?, old_secret = ?, old_secret_until = ?, ${byOperator} WHERE partner_id = ?`,
    secret,
    oldSecret,
    new Date(oldUntil),
    partnerId,
  );
}

/** Holds an endpoint for an operator. */
export function saveHold(partnerId: string, at: number): Statement {
  const sql = `UPDATE webhook_endpoints SET held_at = ?, ${byOperator} WHERE partner_id = ?`;
  return statement(sql, new Date(at), partnerId);
}

/** Ends every pause of an endpoint. */
export function saveResume(partnerId: string, fresh: Health): Statement[] {
  return [
    saveHealth(partnerId, fresh, true),
    statement(`UPDATE webhook_endpoints SET held_at = NULL, ${byOperator} WHERE partner_id = ?`, partnerId),
  ];
}

/** Whether a process may send to an endpoint: no other that lives does. */
const isFree = `((e.lease_name = ? AND e.lease_fence = ?) OR NOT EXISTS (SELECT 1 FROM leases l
  WHERE l.name = e.lease_name AND l.fence = e.lease_fence AND ${hasNotRunOut('l.expires_at')}))`;

/** Whether an endpoint may be tried at an instant, for all that its pause says. */
const mayTry = '(e.paused_at IS NULL OR e.probe_at <= ? OR e.probe_at > ?)';

function mayTryValues(now: number): Date[] {
  return [new Date(now), new Date(now + longestProbeWaitMs)];
}

/** Whether an endpoint has something to be sent by an instant, if its pauses allow it. */
const hasWork = `(e.draining = 1
  OR EXISTS (SELECT 1 FROM webhook_deliveries d
    WHERE d.partner_id = e.partner_id AND d.queue = 1 AND d.due_at IS NULL)
  OR EXISTS (SELECT 1 FROM webhook_deliveries d
    WHERE d.partner_id = e.partner_id AND d.queue = 2 AND (${isRetryDue} OR e.paused_at IS NOT NULL)))`;

/** Locks those of some endpoints that no other living process sends to. */
export function lockFree(partnerIds: readonly string[], lease: HolderLease): Statement {
  return statement(
    `SELECT e.* FROM webhook_endpoints e WHERE e.partner_id IN (?) AND ${isFree} ORDER BY e.partner_id FOR UPDATE`,
    partnerIds,
    lease.name,
    lease.fence,
  );
}

/**
 * Makes a process the one that sends to endpoints, by their rows as it has locked them. What others that did so before it
 * still write is refused.
 */
export function claimEndpoints(partnerIds: readonly string[], lease: HolderLease): Statement {
  return statement(
    `UPDATE webhook_endpoints SET lease_name = ?, lease_fence = ?, fence = fence + 1, seen_revision = revision
      WHERE partner_id IN (?)`,
    lease.name,
    lease.fence,
    partnerIds,
  );
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

/** Locks those of some endpoints that a process sends to. */
export function lockHeld(partnerIds: readonly string[], lease: HolderLease): Statement {
  return statement(
    `SELECT * FROM webhook_endpoints WHERE partner_id IN (?) AND lease_name = ? AND lease_fence = ?
      ORDER BY partner_id FOR UPDATE`,
    partnerIds,
    lease.name,
    lease.fence,
  );
}

/** Gives an endpoint back that has nothing to be sent before an instant, or nothing at all. It must be locked. */
export function releaseUntil(partnerId: string, dueAt: number | null): Statement {
  return statement(
    'UPDATE webhook_endpoints SET lease_name = NULL, lease_fence = NULL, due_at = ? WHERE partner_id = ?',
    instant(dueAt),
    partnerId,
  );
}

/** Gives endpoints back, so that any process may send to them at once. */
export function releaseEndpoints(partnerIds: readonly string[], lease: HolderLease): Statement {
  return statement(
    `UPDATE webhook_endpoints SET lease_name = NULL, lease_fence = NULL
      WHERE partner_id IN (?) AND lease_name = ? AND lease_fence = ?`,
    partnerIds,
    lease.name,
    lease.fence,
  );
}

/**
 * Partners whose endpoint has something to be sent now and is free or this process's, at most so many, those that have
 * waited longest first. Endpoints without anything due cost it nothing.
 */
export function findWork(lease: HolderLease, now: number, most: number): Statement {
  return statement(
    `SELECT e.partner_id FROM webhook_endpoints e FORCE INDEX (webhook_endpoints_due_at)
      WHERE e.due_at <= ? AND e.held_at IS NULL AND ${mayTry}
        AND ${isFree} AND ${hasWork}
      ORDER BY e.due_at LIMIT ${most}`,
    new Date(now),
    ...mayTryValues(now),
    lease.name,
    lease.fence,
    ...retryDueValues(now),
  );
}

/**
 * The next endpoints after a partner, and of each whether it has something to be sent now that its due_at does not tell of.
 * Versions before due_at was added queue events and do not write it.
 */
export function findUnmarked(afterPartnerId: string, now: number, most: number): Statement {
  return statement(
    `SELECT e.partner_id, ((e.due_at IS NULL OR e.due_at > ?) AND e.held_at IS NULL
        AND ${mayTry} AND ${hasWork}) AS is_unmarked
      FROM webhook_endpoints e WHERE e.partner_id > ? ORDER BY e.partner_id LIMIT ${most}`,
    new Date(now),
    ...mayTryValues(now),
    ...retryDueValues(now),
    afterPartnerId,
  );
}

/** Notes that all that waited is at the front, unless the row has changed since: another pause may have ended. */
export function endDraining({ partnerId, fence, revision }: StoredEndpoint): Statement {
  return statement(
    `UPDATE webhook_endpoints SET draining = 0, revision = revision + 1
      WHERE partner_id = ? AND fence = ? AND revision = ?`,
    partnerId,
    fence,
    revision,
  );
}

/** Says that the process that sends to some endpoints works by their rows as they are given. */
export function saveSeen(endpoints: readonly StoredEndpoint[]): Statement {
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
