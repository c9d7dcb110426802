import { Metadata } from '@grpc/grpc-js';
import type { Logger } from '../lib/log.ts';
import type { Metrics } from '../lib/metrics.ts';
import type { Origin } from '../lib/origin.ts';
import { passingTracer, type Tracer, traceIdOf } from '../lib/trace.ts';
import { BrokerClock } from './clock.ts';

/** One call to the broker, before it is made. */
export interface UpstreamCall {
  /** Service and method, as in `Orders.SubmitOrder`. */
  readonly method: string;
  /** On whose behalf; undefined: the gateway's own. */
  readonly origin: Origin | undefined;
  /** The object it is about, where it is about one. */
  readonly objectId: string | undefined;
}

/** A call to the broker that is under way. */
export interface CallUnderWay {
  /** What goes with it: the request's id and place in a trace. */
  readonly metadata: Metadata;
  /** Tells what it came to: `ok`, `nonsense`, `never_left`, or the gRPC status in lower case. */
  end(outcome: string): void;
}

export interface UpstreamCallsOptions {
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly metrics: Pick<Metrics, 'upstreamCalls'>;
  /** Learns from the times that the broker states. */
  readonly clock: BrokerClock;
}

/** Notes each call to the broker: one line in the log, one metric, one span. */
export class UpstreamCalls {
  readonly clock: BrokerClock;
  readonly #log: Logger | undefined;

  constructor(private readonly options: Partial<UpstreamCallsOptions> = {}) {
    this.clock = options.clock ?? new BrokerClock(0);
    // Every member of the line is chosen below, so the net that searches it for secrets is left out.
    this.#log = options.log?.child({}, { redact: [] });
  }

  begin({ method, origin, objectId }: UpstreamCall): CallUnderWay {
    const { tracer = passingTracer, metrics } = this.options;
    const startedAt = performance.now();
    const span = tracer.begin({ name: method, kind: 'client', parent: origin?.traceParent ?? null });
    const { traceParent } = span;
    const metadata = new Metadata();
    if (origin?.requestId) metadata.set('x-request-id', origin.requestId);
    if (traceParent !== null) metadata.set('traceparent', traceParent);
    return {
      metadata,
      end: (outcome) => {
        const durationMs = Math.round((performance.now() - startedAt) * 1_000) / 1_000;
        const { requestId, partnerId } = origin ?? {};
        const traceId = traceIdOf(traceParent);
        this.#log?.info({ requestId, partnerId, objectId, method, outcome, durationMs, traceId }, 'upstream call');
        metrics?.upstreamCalls.observe({ method, outcome }, durationMs / 1_000);
        span.end({
          failed: outcome !== 'ok' && outcome !== 'not_found',
          attributes: {
            'rpc.system': 'grpc',
            'rpc.method': method,
            'marina.outcome': outcome,
            'marina.object_id': objectId,
          },
        });
      },
    };
  }
}
