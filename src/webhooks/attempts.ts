import type { Database } from '../db/database.ts';
import type { Statement } from '../db/statement.ts';
import type { ShownBy } from '../db/table.ts';
import type { Clock } from '../lib/clock.ts';
import { crash } from '../lib/crash.ts';
import { groupBy } from '../lib/group.ts';
import type { Logger } from '../lib/log.ts';
import type { Metrics } from '../lib/metrics.ts';
import { passingTracer, type Span, type Tracer, traceIdOf } from '../lib/trace.ts';
import { pause, Wakeup } from '../lib/worker.ts';
import { findProgress, type LoadedDelivery, saveDelivered, saveTry } from './delivery-store.ts';
import type { EndpointQueue, NextTry } from './endpoint-queue.ts';
import { lockEndpoints, saveEndpoint, startDraining } from './endpoint-store.ts';
import { healthAfter, progressAfter, type SendResult } from './rules.ts';
import type { Sender } from './sender.ts';
import type { KeysOf } from './signature.ts';
import {
  type Attempt,
  attempts as attemptsTable,
  type Endpoint,
  endpoints as endpointsTable,
  progress,
} from './table.ts';

/** An attempt that ended and is to be recorded. */
export interface MadeAttempt extends Attempt {
  /** The endpoint's fence at that time. The attempt is not recorded once another process sends to the endpoint. */
  readonly fence: bigint;
  /** The endpoint's generation at that time. */
  readonly generation: number;
  /** The delivery's round at that time. */
  readonly round: number;
}

export interface AttemptsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'webhookAttempts' | 'webhookWaits' | 'webhookArrivals'>;
  readonly tracer: Tracer;
  readonly sender: Pick<Sender, 'send'>;
  readonly keysOf: KeysOf;
}

/** How long an attempt blocks later ones of its endpoint: longer than a healthy endpoint takes to be dialled. */
const mostBlockedMs = 1_000;

const notSent = { status: null, errorClass: 'internal', durationMs: 0 } as const;

/** Makes attempts, and reports each in the log, the metrics and a span. */
export class Attempts {
  underWay = 0;

  constructor(
    private readonly options: AttemptsOptions,
    /** `ended`: an attempt ended. `unblocked`: a queue may begin its next one. */
    private readonly on: {
      ended(queue: EndpointQueue, attempt: MadeAttempt): void;
      unblocked(queue: EndpointQueue): void;
    },
  ) {}

  /** Begins an attempt and blocks its queue until it is ahead of later ones, because events must arrive in order. */
  begin(queue: EndpointQueue, next: NextTry): void {
    const { clock, metrics, tracer } = this.options;
    const { delivery, isProbe } = next;
    const { endpoint } = queue;
    const startedAt = clock.now();
    const span = tracer.begin({ name: 'webhook attempt', kind: 'producer', parent: delivery.traceParent });
    this.underWay += 1;
    if (!isProbe) {
      metrics.webhookWaits.observe(Math.max(0, startedAt - (delivery.dueAt ?? delivery.takenAt)) / 1_000);
    }
    crash('delivery.before-send');
    let isAhead = false;
    let timer: NodeJS.Timeout | undefined;
    const goOn = () => {
      isAhead = true;
      clearTimeout(timer);
      if (queue.unblock(next)) this.on.unblocked(queue);
    };
    void this.#send(endpoint, delivery, goOn).then((result) => {
      crash('delivery.sent');
      goOn();
      this.underWay -= 1;
      this.#ended(queue, next, result, { endpoint, startedAt, span });
    });
    if (isAhead) return;
    queue.block(next);
    timer = setTimeout(goOn, mostBlockedMs);
  }

  /** Never rejects: an error in the gateway is a failed attempt too. */
  async #send(endpoint: Endpoint, { eventId, body }: LoadedDelivery, onAhead: () => void): Promise<SendResult> {
    const { clock, log, sender, keysOf } = this.options;
    const { partnerId, url } = endpoint;
    if (body === null) {
      log.error({ partnerId, eventId }, 'an event to be sent is gone');
      return { ...notSent, outcome: 'event-failed' };
    }
    try {
      const keys = keysOf(endpoint, clock.now());
      return await sender.send({ endpointId: partnerId, url, id: eventId, body, keys }, onAhead);
    } catch (error) {
      log.error({ err: error, partnerId, eventId }, 'an event could not be sent');
      return { ...notSent, outcome: 'endpoint-failed' };
    }
  }

  #ended(
    queue: EndpointQueue,
    next: NextTry,
    { outcome, status, errorClass, durationMs }: SendResult,
    { endpoint, startedAt, span }: { endpoint: Endpoint; startedAt: number; span: Span },
  ): void {
    const { clock, metrics } = this.options;
    const { delivery, isProbe } = next;
    const { fence, generation } = endpoint;
    // A spread here takes many times as long, and this runs for each attempt.
    const attempt: MadeAttempt = {
      partnerId: queue.partnerId,
      version: delivery.version,
      number: delivery.tries + 1,
      at: startedAt,
      isProbe,
      outcome,
      status,
      errorClass,
      durationMs,
      round: delivery.round,
      fence,
      generation,
    };
    this.#report(delivery, attempt, span);
    metrics.webhookAttempts.observe({ outcome, error_class: errorClass ?? 'none' }, durationMs / 1_000);
    if (outcome === 'delivered' && delivery.round === 0) {
      metrics.webhookArrivals.observe(Math.max(0, clock.realNow() - delivery.committedAt) / 1_000);
    }
    queue.ended(next, attempt, generation);
    this.on.ended(queue, attempt);
  }

  #report({ eventId, type, requestId, objectId }: LoadedDelivery, attempt: MadeAttempt, span: Span): void {
    const { log, tracer } = this.options;
    if (!log.isLevelEnabled('info') && tracer === passingTracer) return;
    const { partnerId, version, number, isProbe, outcome, status, errorClass, durationMs } = attempt;
    const traceId = traceIdOf(span.traceParent);
    const about = { requestId, partnerId, objectId, eventId, type, version: version.toString(), attempt: number };
    log.info({ ...about, isProbe, outcome, status, errorClass, durationMs, traceId }, 'webhook attempt');
    span.end({
      failed: outcome !== 'delivered',
      attributes: {
        'http.response.status_code': status ?? undefined,
        'error.type': errorClass ?? undefined,
        'marina.partner_id': partnerId,
        'marina.object_id': objectId ?? undefined,
        'marina.event_id': eventId,
        'marina.attempt': number,
      },
    });
  }
}

/** The endpoints of some attempts after these are recorded. */
type EndpointsAfter = ReadonlyMap<string, Endpoint>;

const mostAtOnce = 500;
/** Batching window in milliseconds, so that attempts are recorded together under load. */
const batchingWindowMs = 4;
const idleMs = 1_000;
const firstRetryMs = 50;
const longestRetryMs = 1_000;

/** Records attempts in batches, in the order in which they ended. Retries until it stops. Callers bound the backlog. */
export class Recorder {
  #waiting: MadeAttempt[] = [];
  readonly #wakeup = new Wakeup();

  /** `onRecorded` is called with attempts that were recorded or are another process's to record. */
  constructor(
    private readonly options: { readonly database: Database; readonly clock: Clock; readonly log: Logger },
    private readonly onRecorded: (attempts: readonly MadeAttempt[], endpoints: EndpointsAfter) => void,
  ) {}

  add(attempt: MadeAttempt): void {
    this.#waiting.push(attempt);
    if (this.#waiting.length === 1 || this.#waiting.length >= mostAtOnce) this.#wakeup.wake();
  }

  /** Runs until the signal is aborted, then tries once more to record the rest. Never rejects. */
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
 * Records attempts in the order in which they ended, with their deliveries' progress and endpoints' health. Decides on the
 * present rows, under the endpoints' locks. Recording a batch again is safe, for example after a COMMIT without an answer.
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
