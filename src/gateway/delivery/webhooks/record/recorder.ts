import type { Clock } from '../../../../kit/clock.ts';
import { groupBy } from '../../../../kit/group.ts';
import type { Logger } from '../../../../kit/log.ts';
import { pause, Wakeup } from '../../../../kit/worker.ts';
import type { Database } from '../../../store/database.ts';
import { isDuplicate } from '../../../store/errors.ts';
import { type SqlRow, type Statement, sql } from '../../../store/statement.ts';
import type { ShownBy } from '../../../store/table.ts';
import type { MadeAttempt } from '../attempt/attempts.ts';
import { lockEndpoints, saveEndpoint, startDraining } from '../plan/endpoint-store.ts';
import { healthAfter, progressAfter } from '../rules.ts';
import {
  type Attempt,
  attempts as attemptsTable,
  type Endpoint,
  endpoints as endpointsTable,
  progress,
} from '../table.ts';
import { findProgress, saveDelivered, saveTry } from './delivery-store.ts';

/** The endpoints of some attempts after these are recorded. */
type EndpointsAfter = ReadonlyMap<string, Endpoint>;

const maxAtOnce = 500;
/** Batching window in milliseconds, so that attempts are recorded together under load. */
const batchingWindowMs = 20;
const idleMs = 1_000;
const retryAfterMs = { first: 50, longest: 1_000 };

/** Records attempts in batches, in the order in which they ended. Retries until it stops. Callers bound the backlog. */
export class AttemptRecorder {
  #waiting: MadeAttempt[] = [];
  readonly #wakeup = new Wakeup();

  /** `onRecorded` is called with attempts that were recorded or are another process's to record. */
  constructor(
    private readonly options: { readonly database: Database; readonly clock: Clock; readonly log: Logger },
    private readonly onRecorded: (attempts: readonly MadeAttempt[], endpoints: EndpointsAfter) => void,
  ) {}

  add(attempt: MadeAttempt): void {
    this.#waiting.push(attempt);
    if (this.#waiting.length === 1 || this.#waiting.length >= maxAtOnce) this.#wakeup.wake();
  }

  /** Runs until the signal is aborted, then tries once more to record the rest. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { database, clock, log } = this.options;
    for (let retryMs = retryAfterMs.first; ; ) {
      if (this.#waiting.length === 0) {
        if (signal.aborted) return;
        await this.#wakeup.wait(idleMs, signal);
        continue;
      }
      if (this.#waiting.length < maxAtOnce) await pause(batchingWindowMs, signal);
      const batch = this.#waiting.slice(0, maxAtOnce);
      const isLast = signal.aborted;
      try {
        const endpoints = await recordAttempts(database, batch, clock.now());
        this.#waiting = this.#waiting.slice(batch.length);
        retryMs = retryAfterMs.first;
        this.onRecorded(batch, endpoints);
      } catch (error) {
        log.warn({ err: error, count: batch.length }, 'webhook attempts could not be recorded');
        if (isLast) return;
        await pause(retryMs, signal);
        retryMs = Math.min(retryMs * 2, retryAfterMs.longest);
      }
    }
  }
}

/**
 * Records attempts in the order in which they ended, with their deliveries' progress and endpoints' health. Decides on the
 * present rows, under the endpoints' locks. Recording a batch again is safe, for example after a COMMIT without an answer.
 */
export async function recordAttempts(
  database: Database,
  attempts: readonly MadeAttempt[],
  now: number,
): Promise<EndpointsAfter> {
  const { usual, others } = splitUsual(attempts);
  const recorded = usual.length === 0 ? undefined : await recordUsual(database, usual, now);
  const rest = recorded === undefined ? attempts : others;
  if (rest.length === 0) return recorded ?? new Map();
  const versionsOf = groupVersions(rest);
  const after = await database.transaction<EndpointsAfter>(
    [lockEndpoints([...versionsOf.keys()]), findProgress(versionsOf)],
    ([endpointRows = [], deliveryRows = []]) => {
      const endpoints = byPartner(endpointRows);
      const deliveries = new Map(deliveryRows.map(progress.read).map((delivery) => [keyOf(delivery), delivery]));
      return decide(rest, endpoints, deliveries, now);
    },
  );
  return new Map([...(recorded ?? []), ...after]);
}

/**
 * Splits off first attempts that were delivered before any attempt of their endpoint failed. Recorded before all others, they lead to the
 * same health of their endpoint.
 */
function splitUsual(attempts: readonly MadeAttempt[]): { usual: MadeAttempt[]; others: MadeAttempt[] } {
  const [usual, others]: [MadeAttempt[], MadeAttempt[]] = [[], []];
  const failed = new Set<string>();
  for (const attempt of attempts) {
    const { partnerId, outcome, number, round } = attempt;
    if (outcome !== 'delivered') failed.add(partnerId);
    const isUsual = outcome === 'delivered' && number === 1 && round === 0 && !failed.has(partnerId);
    (isUsual ? usual : others).push(attempt);
  }
  return { usual, others };
}

/** The rows are not what first attempts of healthy endpoints find. */
class NotAsUsual extends Error {}

/**
 * Records first attempts that were all delivered to healthy endpoints, without reading each delivery before. Undefined if
 * something is not as usual. Then nothing was written.
 */
async function recordUsual(
  database: Database,
  attempts: readonly MadeAttempt[],
  now: number,
): Promise<EndpointsAfter | undefined> {
  const versionsOf = groupVersions(attempts);
  const statements = [
    lockEndpoints([...versionsOf.keys()]),
    sql`${saveDelivered(versionsOf, now)} AND tries = 0 AND round = 0`,
    sql`SELECT ROW_COUNT() AS saved`,
    attemptsTable.insert(...attempts),
  ];
  try {
    return await database.transaction<EndpointsAfter>(statements, ([endpointRows = [], , counted = []]) => {
      const endpoints = byPartner(endpointRows);
      const isUsual = attempts.every(({ partnerId, fence }) => {
        const endpoint = endpoints.get(partnerId);
        return endpoint?.fence === fence && endpoint.failingSince === null && endpoint.pausedAt === null;
      });
      if (!isUsual || Number(counted[0]?.saved) !== attempts.length) throw new NotAsUsual();
      return { writes: [], result: endpoints };
    });
  } catch (error) {
    // A duplicate is an attempt that was recorded before.
    if (error instanceof NotAsUsual || isDuplicate(error)) return undefined;
    throw error;
  }
}

function byPartner(rows: readonly SqlRow[]): Map<string, Endpoint> {
  return new Map(rows.map(endpointsTable.all.read).map((endpoint) => [endpoint.partnerId, endpoint]));
}

function decide(
  attempts: readonly MadeAttempt[],
  endpoints: ReadonlyMap<string, Endpoint>,
  deliveries: ReadonlyMap<string, ShownBy<typeof progress>>,
  now: number,
): { writes: Statement[]; result: EndpointsAfter } {
  const recorded: MadeAttempt[] = [];
  const delivered: MadeAttempt[] = [];
  const writes: Statement[] = [];
  const after = new Map(endpoints);
  for (const attempt of attempts) {
    const { partnerId, version } = attempt;
    const endpoint = after.get(partnerId);
    const delivery = deliveries.get(keyOf(attempt));
    if (endpoint === undefined || endpoint.fence !== attempt.fence) continue;
    if (delivery === undefined || delivery.tries >= attempt.number) continue;
    recorded.push(attempt);
    if (attempt.generation === endpoint.generation) {
      after.set(partnerId, { ...endpoint, ...healthAfter(endpoint, attempt) });
    }
    const { state, attempts: counted, dueAt } = progressAfter(delivery, attempt);
    // If an operator has asked for the event again meanwhile, the delivery keeps its new state.
    const isSameRound = delivery.round === attempt.round;
    const isRetried = isSameRound && state === 'waiting' && counted > delivery.attempts;
    if (isSameRound && state === 'delivered') delivered.push(attempt);
    else writes.push(saveTry(partnerId, version, counted, isRetried ? dueAt : null));
  }
  if (delivered.length > 0) writes.push(saveDelivered(groupVersions(delivered), now));
  if (recorded.length > 0) writes.push(attemptsTable.insert(...recorded));
  for (const [partnerId, before] of endpoints) {
    const own = after.get(partnerId) ?? before;
    const isResumed = before.pausedAt !== null && own.pausedAt === null;
    const { writes: changes, saved } = saveEndpoint(before, isResumed ? startDraining(own) : own);
    writes.push(...changes);
    after.set(partnerId, saved);
  }
  return { writes, result: after };
}

function groupVersions(attempts: readonly MadeAttempt[]): Map<string, bigint[]> {
  const groups = groupBy(attempts, ({ partnerId }) => partnerId);
  return new Map([...groups].map(([partnerId, own]) => [partnerId, own.map(({ version }) => version)]));
}

function keyOf({ partnerId, version }: Pick<Attempt, 'partnerId' | 'version'>): string {
  return `${partnerId} ${version}`;
}
