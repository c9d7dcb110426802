import type { Clock } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/log.ts';
import { passingTracer, type Span, type Tracer, traceIdOf } from '../../../../kit/trace.ts';
import type { Metrics } from '../../../edge/metrics.ts';
import type { EndpointQueue, NextTry } from '../plan/endpoint-queue.ts';
import type { LoadedDelivery } from '../plan/queue-store.ts';
import { isTooOld, type SendResult } from '../rules.ts';
import type { Attempt, Endpoint } from '../table.ts';
import type { WebhookSender } from './sender.ts';
import type { KeysOf } from './signature.ts';

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
  readonly sender: Pick<WebhookSender, 'send'>;
  readonly keysOf: KeysOf;
}

/** How long an attempt blocks later ones of its endpoint: longer than a healthy endpoint takes to be dialled. */
const maxBlockedMs = 1_000;

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

  /**
   * Begins an attempt and blocks its queue until it is ahead of later ones, because events must arrive in order. An event
   * that has become too old since it was read is not sent: it has waited for slots of a slow endpoint, or the process was
   * frozen. The removal of old rows notes that it expired.
   */
  begin(queue: EndpointQueue, next: NextTry): void {
    const { clock, metrics, tracer } = this.options;
    const { delivery, isProbe } = next;
    const { endpoint } = queue;
    const startedAt = clock.now();
    if (isTooOld(delivery.occurredAt, startedAt)) {
      queue.drop(next);
      return;
    }
    const span = tracer.begin({ name: 'webhook attempt', kind: 'producer', parent: delivery.traceParent });
    this.underWay += 1;
    if (!isProbe) {
      metrics.webhookWaits.observe(Math.max(0, startedAt - (delivery.dueAt ?? delivery.takenAt)) / 1_000);
    }
    let isAhead = false;
    let timer: NodeJS.Timeout | undefined;
    const goOn = () => {
      isAhead = true;
      clearTimeout(timer);
      if (queue.unblock(next)) this.on.unblocked(queue);
    };
    void this.#send(endpoint, delivery, goOn).then((result) => {
      goOn();
      this.underWay -= 1;
      this.#ended(queue, next, result, { endpoint, startedAt, span });
    });
    if (isAhead) return;
    queue.block(next);
    timer = setTimeout(goOn, maxBlockedMs);
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
    log.info(Object.assign(about, { isProbe, outcome, status, errorClass, durationMs, traceId }), 'webhook attempt');
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
