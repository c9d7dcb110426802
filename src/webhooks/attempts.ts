import { crash } from '../lib/crash.ts';
import { passingTracer, type Span, traceIdOf } from '../lib/trace.ts';
import type { Attempt, DispatcherOptions } from './dispatcher.ts';
import type { Lane, NextTry } from './lane.ts';
import type { Result } from './results.ts';
import type { SigningKey } from './signature.ts';

export interface AttemptsOptions
  extends Pick<DispatcherOptions, 'clock' | 'log' | 'send' | 'keysOf' | 'meters' | 'tracer'> {
  /** Called when an attempt has ended, which is still to be recorded. */
  readonly onEnded: (lane: Lane, result: Result) => void;
  /** Called when a lane may begin its next attempt, because the one before is ahead of it. */
  readonly onAhead: (lane: Lane) => void;
}

/** How long others wait for an attempt to be ahead of them: longer than a healthy endpoint takes to be dialled. */
const mostAheadMs = 1_000;

/**
 * When an attempt is ahead of those that come after it, so that events arrive in the order in which they were sent though
 * each may have to dial. Most are at once, on a connection that stands; others are waited for, for a while.
 */
class Ahead {
  #isReached = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly goOn: () => void) {}

  reached(): void {
    if (this.#isReached) return;
    this.#isReached = true;
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.goOn();
  }

  /** Whether others must wait; then they may go on when it is reached, or has been waited for long enough. */
  isWaitedFor(): boolean {
    if (!this.#isReached) this.#timer = setTimeout(() => this.reached(), mostAheadMs);
    return !this.#isReached;
  }
}

/** Makes attempts, and tells of each in the log and in the metrics. */
export class Attempts {
  /** How many are under way. */
  readonly load = { underWay: 0, retriesUnderWay: 0 };

  constructor(private readonly options: AttemptsOptions) {}

  /** Begins what a lane said is next. */
  begin(lane: Lane, next: NextTry): void {
    const { clock, log, meters, send, tracer } = this.options;
    const { delivery, isProbe } = next;
    const { body } = delivery;
    if (body === undefined) {
      lane.pass(next);
      log.error({ partnerId: lane.partnerId, eventId: delivery.eventId }, 'an event to be sent is gone');
      return;
    }
    const keys = this.#keysOf(lane, next);
    if (keys === undefined) return;
    const { url, generation, fence } = lane.endpoint;
    const isRetry = delivery.isRetry && !isProbe;
    const startedAt = clock.now();
    const span = tracer.begin({ name: 'webhook attempt', kind: 'producer', parent: delivery.traceParent });
    this.load.underWay += 1;
    if (isRetry) this.load.retriesUnderWay += 1;
    if (!isProbe) meters.waited(Math.max(0, startedAt - delivery.dueSince) / 1_000);
    crash('delivery.before-send');
    const ahead = new Ahead(() => {
      if (lane.isAhead(next)) this.options.onAhead(lane);
    });
    const ended = (attempt: Attempt) => {
      crash('delivery.sent');
      ahead.reached();
      this.load.underWay -= 1;
      if (isRetry) this.load.retriesUnderWay -= 1;
      this.#ended(lane, next, attempt, { generation, fence, startedAt, span });
    };
    const target = { endpointId: lane.partnerId, url, id: delivery.eventId, body, keys };
    send(target, () => ahead.reached()).then(ended, (error: unknown) => {
      log.error({ err: error, partnerId: lane.partnerId, eventId: delivery.eventId }, 'an attempt failed here');
      ended({ outcome: 'endpoint-failed', status: null, errorClass: 'internal', durationMs: 0 });
    });
    if (ahead.isWaitedFor()) lane.letAhead(next);
  }

  #keysOf(lane: Lane, next: NextTry): readonly SigningKey[] | undefined {
    const { clock, log, keysOf } = this.options;
    try {
      return keysOf(lane.endpoint, clock.now());
    } catch (error) {
      lane.pass(next);
      lane.rest(next);
      log.error({ err: error, partnerId: lane.partnerId }, 'the events of an endpoint cannot be signed');
      return undefined;
    }
  }

  #ended(
    lane: Lane,
    next: NextTry,
    attempt: Attempt,
    made: { generation: number; fence: bigint; startedAt: number; span: Span },
  ): void {
    const { clock, meters, onEnded } = this.options;
    const { delivery, isProbe } = next;
    const { outcome, status, errorClass, durationMs } = attempt;
    // Written out member by member, since there is one for each attempt: a spread takes many times as long.
    const result: Result = {
      partnerId: lane.partnerId,
      version: delivery.version,
      number: delivery.tries + 1,
      round: delivery.round,
      isProbe,
      outcome,
      status,
      errorClass,
      durationMs,
      at: made.startedAt,
      endedAt: clock.now(),
      fence: made.fence,
      generation: made.generation,
    };
    this.#tell(next, result, made.span);
    meters.attempted(outcome, errorClass, durationMs / 1_000);
    if (outcome === 'delivered' && delivery.round === 0) {
      meters.arrived(Math.max(0, clock.realNow() - delivery.committedAt) / 1_000);
    }
    lane.end(next, result, made.generation);
    onEnded(lane, result);
  }

  /** One line of the log, and one span, for each attempt. */
  #tell(
    { delivery }: NextTry,
    { partnerId, version, number, isProbe, outcome, status, errorClass, durationMs }: Result,
    span: Span,
  ) {
    const { log, tracer } = this.options;
    if (!log.isLevelEnabled('info') && tracer === passingTracer) return;
    const { eventId, type, requestId } = delivery;
    const objectId = objectIdOf(delivery.body);
    log.info(
      {
        requestId,
        partnerId,
        objectId,
        eventId,
        type,
        version: version.toString(),
        attempt: number,
        isProbe,
        outcome,
        status,
        errorClass,
        durationMs,
        traceId: traceIdOf(span.traceParent),
      },
      'webhook attempt',
    );
    span.end({
      failed: outcome !== 'delivered',
      attributes: {
        'http.response.status_code': status ?? undefined,
        'error.type': errorClass ?? undefined,
        'marina.partner_id': partnerId,
        'marina.object_id': objectId,
        'marina.event_id': eventId,
        'marina.attempt': number,
      },
    });
  }
}

/** The object an event is about, out of the event's bytes, which are ours and begin alike. */
function objectIdOf(body: Buffer | undefined): string | undefined {
  return /"data":\{"object":"\w+","id":"(\w+)"/.exec(body?.toString('latin1', 0, 300) ?? '')?.[1];
}
