import type { Database } from '../db/database.ts';
import type { Statement } from '../db/statement.ts';
import type { ShownBy } from '../db/table.ts';
import type { Clock } from '../lib/clock.ts';
import { crash } from '../lib/crash.ts';
import { groupBy } from '../lib/group.ts';
import type { Logger } from '../lib/log.ts';
import { pause, Wakeup } from '../lib/worker.ts';
import { findProgress, saveDelivered, saveTry } from './delivery-store.ts';
import { lockEndpoints, saveEndpoint, startDraining } from './endpoint-store.ts';
import { healthAfter, progressAfter } from './rules.ts';
import {
  type Attempt,
  attempts as attemptsTable,
  type Endpoint,
  endpoints as endpointsTable,
  progress,
} from './table.ts';

/** An attempt that ended and is to be recorded. */
export interface MadeAttempt extends Attempt {
  /** The fence under which it was made: once another process sends to the endpoint, it is not recorded. */
  readonly fence: bigint;
  /** The endpoint's generation it was made to. */
  readonly generation: number;
  /** The delivery's round it was made in. */
  readonly round: number;
}

/** The endpoints of some attempts as they are once these are recorded. */
type EndpointsAfter = ReadonlyMap<string, Endpoint>;

const mostAtOnce = 500;
/** How long the first of some attempts waits for others, so that under load they are recorded together. */
const batchingWindowMs = 4;
const idleMs = 1_000;
const firstRetryMs = 50;
const longestRetryMs = 1_000;

/**
 * Records attempts in batches, in the order in which they ended. What cannot be recorded now is tried again until it is
 * or the process stops. Those who make attempts bound how many wait: they stop at a number.
 */
export class Recorder {
  #waiting: MadeAttempt[] = [];
  readonly #wakeup = new Wakeup();

  /** `onRecorded` is called with attempts that were recorded, or were another's to record. */
  constructor(
    private readonly options: { readonly database: Database; readonly clock: Clock; readonly log: Logger },
    private readonly onRecorded: (attempts: readonly MadeAttempt[], endpoints: EndpointsAfter) => void,
  ) {}

  add(attempt: MadeAttempt): void {
    this.#waiting.push(attempt);
    if (this.#waiting.length === 1 || this.#waiting.length >= mostAtOnce) this.#wakeup.wake();
  }

  /** Runs until the signal is aborted; then what waits is tried once more. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { database, clock, log } = this.options;
    for (let retryMs = firstRetryMs; ; ) {
      if (this.#waiting.length === 0) {
        if (signal.aborted) return;
        await this.#wakeup.wait(idleMs, signal);
        continue;
      }
      if (this.#waiting.length < mostAtOnce) await pause(batchingWindowMs, signal);
      const batch = this.#waiting.slice(0, mostAtOnce);
      const isLast = signal.aborted;
      try {
        const endpoints = await recordAttempts(database, batch, clock.now());
        this.#waiting = this.#waiting.slice(batch.length);
        retryMs = firstRetryMs;
        crash('delivery.recorded');
        this.onRecorded(batch, endpoints);
      } catch (error) {
        log.warn({ err: error, count: batch.length }, 'webhook attempts could not be recorded');
        if (isLast) return;
        await pause(retryMs, signal);
        retryMs = Math.min(retryMs * 2, longestRetryMs);
      }
    }
  }
}

/**
 * Records attempts in the order in which they ended: each attempt, how its delivery stands, and how its endpoint fares.
 * Everything is decided on the rows as they are now, under the locks of the endpoints. An attempt that is there already
 * changes nothing, so a batch whose COMMIT had no answer is simply recorded again.
 */
export function recordAttempts(
  database: Database,
  attempts: readonly MadeAttempt[],
  now: number,
): Promise<EndpointsAfter> {
  const versionsOf = groupVersions(attempts);
  return database.transaction<EndpointsAfter>(
    [lockEndpoints([...versionsOf.keys()]), findProgress(versionsOf)],
    ([endpointRows = [], deliveryRows = []]) => {
      const endpoints = new Map(
        endpointRows.map(endpointsTable.all.read).map((endpoint) => [endpoint.partnerId, endpoint]),
      );
      const deliveries = new Map(deliveryRows.map(progress.read).map((delivery) => [keyOf(delivery), delivery]));
      return decide(attempts, endpoints, deliveries, now);
    },
  );
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
    // When an operator has asked for it again meanwhile, it stays as it was put.
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
