import type { Database } from '../db/database.ts';
import { type Statement, toBigInt } from '../db/statement.ts';
import { groupBy } from '../lib/group.ts';
import { insertAttempts, type StoredAttempt } from './attempt-store.ts';
import { findProgress, type StoredProgress, saveDelivered, saveRetry, saveTry, toProgress } from './delivery-store.ts';
import { lockEndpoints, type StoredEndpoint, saveHealth, toEndpoint } from './endpoint-store.ts';
import { type EndedAttempt, type Health, healthAfter, progressAfter } from './rules.ts';

/** An attempt that ended and is to be recorded. */
export interface Result extends EndedAttempt, StoredAttempt {
  /** The fence under which it was made: once another process sends to the endpoint, it is not recorded. */
  readonly fence: bigint;
  /** The endpoint's generation it was made to. */
  readonly generation: number;
  readonly round: number;
}

/** The endpoints of some results as they are once these are recorded. One that is missing is another's by now. */
export type EndpointsAfter = ReadonlyMap<string, StoredEndpoint>;

/**
 * Records attempts in the order in which they ended: each attempt, how its delivery stands, and how its endpoint fares.
 * Everything is decided on the rows as they are now, under the locks of the endpoints. An attempt that is there already
 * changes nothing, so a batch whose COMMIT had no answer is simply recorded again.
 */
export function recordResults(database: Database, results: readonly Result[], now: number): Promise<EndpointsAfter> {
  const versionsOf = new Map(
    [...groupBy(results, ({ partnerId }) => partnerId)].map(([partnerId, own]) => [
      partnerId,
      own.map(({ version }) => version),
    ]),
  );
  return database.transaction<EndpointsAfter>(
    [lockEndpoints([...versionsOf.keys()]), findProgress(versionsOf)],
    ([endpointRows = [], progressRows = []]) => {
      const endpoints = new Map(endpointRows.map((row) => [String(row.partner_id), toEndpoint(row)]));
      const progressOf = new Map(
        progressRows.map((row) => [keyOf(String(row.partner_id), toBigInt(row.version)), toProgress(row)]),
      );
      return decide(results, endpoints, progressOf, now);
    },
  );
}

function decide(
  results: readonly Result[],
  endpoints: ReadonlyMap<string, StoredEndpoint>,
  progressOf: ReadonlyMap<string, StoredProgress>,
  now: number,
): { writes: Statement[]; result: EndpointsAfter } {
  const attempts: StoredAttempt[] = [];
  const delivered = new Map<string, bigint[]>();
  const writes: Statement[] = [];
  const healthOf = new Map<string, Health>();
  for (const result of results) {
    const { partnerId, version } = result;
    const endpoint = endpoints.get(partnerId);
    const progress = progressOf.get(keyOf(partnerId, version));
    if (endpoint === undefined || endpoint.fence !== result.fence) continue;
    if (progress === undefined || progress.tries >= result.number) continue;
    attempts.push(result);
    if (result.generation === endpoint.generation) {
      healthOf.set(partnerId, healthAfter(healthOf.get(partnerId) ?? endpoint.health, result));
    }
    const after = progressAfter(progress, result);
    if (progress.round !== result.round) {
      // An operator has asked for it again meanwhile: it stays as it was put.
      writes.push(saveTry(partnerId, version, after.attempts));
    } else if (after.state === 'delivered') {
      const own = delivered.get(partnerId);
      if (own === undefined) delivered.set(partnerId, [version]);
      else own.push(version);
    } else if (after.state === 'waiting' && after.attempts > progress.attempts && after.dueAt !== null) {
      writes.push(saveRetry(partnerId, version, after.attempts, after.dueAt));
    } else {
      writes.push(saveTry(partnerId, version, after.attempts));
    }
  }
  if (delivered.size > 0) writes.push(saveDelivered(delivered, now));
  if (attempts.length > 0) writes.push(insertAttempts(attempts));
  const after = new Map<string, StoredEndpoint>();
  for (const [partnerId, endpoint] of endpoints) {
    const health = healthOf.get(partnerId) ?? endpoint.health;
    const isResumed = endpoint.health.pausedAt !== null && health.pausedAt === null;
    const isChanged = !isSame(health, endpoint.health);
    if (isChanged) writes.push(saveHealth(partnerId, health, isResumed));
    const revision = isChanged ? endpoint.revision + 1n : endpoint.revision;
    after.set(partnerId, { ...endpoint, health, draining: endpoint.draining || isResumed, revision });
  }
  return { writes, result: after };
}

function isSame(left: Health, right: Health): boolean {
  return (
    left.streak === right.streak &&
    left.pausedAt === right.pausedAt &&
    left.probeAt === right.probeAt &&
    left.probedVersion === right.probedVersion
  );
}

function keyOf(partnerId: string, version: bigint): string {
  return `${partnerId} ${version}`;
}
