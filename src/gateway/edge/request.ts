import { randomUUID } from 'node:crypto';
import type { Message } from '@bufbuild/protobuf';
import { addressShower } from '../../kit/addresses.ts';
import { LineSampler } from '../../kit/line-sampler.ts';
import type { Logger } from '../../kit/log.ts';
import { passingTracer, readTraceParent, type Span, type Tracer, traceIdOf } from '../../kit/trace.ts';
import type { Caller, Identification } from './auth/caller.ts';
import { ApiError, asApiError, type ErrorCode, type Limit } from './errors.ts';
import type { ByteText } from './json/encoder.ts';
import type { Metrics } from './metrics.ts';
import type { ApiOperation } from './operations.ts';

export type ProtocolName = 'rest' | 'grpc' | 'connect';

/** With `true`, the request is not kept. The second is its name in the release before. */
const unloggedHeaders = ['marina-unlogged', 'marina-unlisted'];

/** Whether a request's client asked that it is not kept, by its headers. */
export function isUnlogged(header: (name: string) => string | string[] | undefined): boolean {
  return unloggedHeaders.some((name) => header(name) === 'true');
}

/** What a sandbox may keep of a request, noted as it passes. Nothing is left out here. */
export interface ExchangedParts {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** Whether its client asked that it is not kept. */
  readonly isUnlogged: boolean;
  /** Its body over REST, or else its message. */
  body?: Buffer;
  message?: Message;
  /** Its answer's body over REST, or else the message. */
  answer?: ByteText;
  reply?: Message;
  error?: ApiError;
}

/** A request's state from its first line to its answer, and the resources it holds. */
export class RequestContext {
  readonly requestId = randomUUID();
  readonly startedMs = performance.now();
  operation: ApiOperation | undefined;
  authorization: string | undefined;
  /** The result of the last identification. */
  identification: Identification | undefined;
  limit: Limit | undefined;
  /** Begun once its key is known. */
  span: Span | undefined;
  /** The object it is about or created, once known. */
  objectId: string | undefined;
  /** Only where requests are kept for their partners. */
  exchanged: ExchangedParts | undefined;
  /** Whether it came with a valid key. */
  isIdentified = false;
  /** Whether it came through a trusted proxy, whose connection carries other clients' requests too. */
  isProxied = false;
  /** Its handler has ended, and its answer is decided. */
  finished = false;
  /** Releases its slot for requests in progress, if it holds one. */
  giveSlotBack: () => void = nothing;
  #isLeaving = false;
  readonly #held = new Set<() => void>();
  readonly #heldUntilAnswered: (() => void)[] = [];

  constructor(
    readonly protocol: ProtocolName,
    /** The connection's peer, until a trusted proxy names the client. */
    public clientAddress = '',
  ) {}

  get caller(): Caller | undefined {
    return this.identification?.caller;
  }

  /**
   * Holds a resource until the handler has ended, which may be already. Call the result to release it earlier; a second
   * call does nothing.
   */
  hold(giveBack: () => void): () => void {
    const giveBackOnce = () => {
      if (this.#held.delete(giveBackOnce)) giveBack();
    };
    this.#held.add(giveBackOnce);
    if (this.finished) giveBackOnce();
    return giveBackOnce;
  }

  /** Releases the resources that are held until the handler has ended. */
  release(): void {
    for (const giveBack of this.#held) giveBack();
  }

  /** Holds a resource until the handler has ended and the answer has left. */
  holdUntilAnswered(giveBack: () => void): void {
    this.#heldUntilAnswered.push(giveBack);
    this.#releaseWhenAnswered();
  }

  /** Notes that the answer takes time to leave. Call the result when it has left or cannot. */
  leaves(): () => void {
    this.#isLeaving = true;
    return () => {
      this.#isLeaving = false;
      this.#releaseWhenAnswered();
    };
  }

  /** Notes that the handler has ended and the answer is decided. */
  end(): void {
    this.finished = true;
    this.release();
    this.#releaseWhenAnswered();
  }

  #releaseWhenAnswered(): void {
    if (!this.finished || this.#isLeaving) return;
    for (const giveBack of this.#heldUntilAnswered.splice(0)) giveBack();
  }
}

function nothing(): void {}

/** How an unsuccessful request ended. */
export type EndCode = ErrorCode | 'client_gone';

export interface RequestLogOptions {
  readonly log: Logger;
  readonly metrics?: Pick<Metrics, 'requests' | 'refusals' | 'limitRefusals' | 'credentialRefusals'>;
  /** By default, an incoming trace is passed on and no spans are made. */
  readonly tracer?: Tracer;
  /** The form of a client's address in the log; undefined if it is not logged. By default it is logged whole. */
  readonly shownAddress?: (address: string) => string | undefined;
}

/** One log line, one metric and one span per request. */
export class RequestLog {
  readonly #options: RequestLogOptions & Required<Pick<RequestLogOptions, 'tracer' | 'shownAddress'>>;
  readonly #requestLog: Logger;
  readonly #strangersRequests: LineSampler;
  readonly #strangersFailures: LineSampler;
  readonly #strangersUnserved: LineSampler;

  constructor(options: RequestLogOptions) {
    const { log, tracer = passingTracer, shownAddress = addressShower('full') } = options;
    this.#options = { ...options, tracer, shownAddress };
    this.#strangersRequests = new LineSampler(log, 'request', shownAddress);
    // Apart, so that a defect's lines are not left out for those of a database that is away.
    this.#strangersFailures = new LineSampler(log, 'a request failed', shownAddress);
    this.#strangersUnserved = new LineSampler(log, 'a request was not served', shownAddress);
    // The line has chosen members only, so redaction is off: it would cost more than the line.
    this.#requestLog = log.child({}, { redact: [] });
  }

  /**
   * Begins the request's span, in the client's trace if it has a valid key. Otherwise the span begins a trace of its own: a
   * client without one could have every request sampled, by the flag of its trace or by its id.
   */
  begin(context: RequestContext, traceParent: string | undefined): void {
    const parent = context.isIdentified ? readTraceParent(traceParent) : null;
    const startedAt = performance.timeOrigin + context.startedMs;
    context.span = this.#options.tracer.begin({ name: context.protocol, kind: 'server', parent, startedAt });
  }

  /** The answer to any thrown error. An error outside the catalogue is logged and not shown. */
  failed(context: RequestContext, thrown: unknown): ApiError {
    const { log } = this.#options;
    const { requestId } = context;
    const operation = context.operation?.name;
    const isLogged = (sampler: LineSampler) => context.isIdentified || sampler.take(context.clientAddress);
    const error = asApiError(thrown);
    if (error === undefined) {
      if (isLogged(this.#strangersFailures)) log.error({ err: thrown, requestId, operation }, 'a request failed');
      return new ApiError('internal_error', { cause: thrown });
    }
    context.limit = error.limit;
    context.objectId ??= error.location?.split('/').at(-1);
    if (error.status >= 500 && error.cause !== undefined && isLogged(this.#strangersUnserved)) {
      log.warn({ err: error.cause, requestId, operation, code: error.code }, 'a request was not served');
    }
    return error;
  }

  /** Logs and counts a request that has ended, with its HTTP status, whatever the protocol. */
  ended(context: RequestContext, status: number, code: EndCode | undefined): void {
    const { protocol, requestId, caller, limit, objectId, span } = context;
    const operation = context.operation?.name;
    const durationMs = Math.round((performance.now() - context.startedMs) * 1_000) / 1_000;
    const partnerId = caller?.partnerId;
    // Clients without a valid key can send any number of requests, so not each gets a line.
    if (context.isIdentified || this.#strangersRequests.take(context.clientAddress)) {
      const clientAddress = this.#options.shownAddress(context.clientAddress);
      const keyId = caller?.keyId;
      const traceId = traceIdOf(span?.traceParent ?? null);
      // Written out member by member, because a spread takes many times as long.
      this.#requestLog.info(
        {
          requestId,
          protocol,
          operation,
          partnerId,
          keyId,
          clientAddress,
          objectId,
          status,
          code,
          durationMs,
          traceId,
        },
        'request',
      );
    }
    span?.end({
      name: operation,
      failed: status >= 500,
      attributes: {
        'http.response.status_code': status,
        'error.type': code,
        'marina.protocol': protocol,
        'marina.request_id': requestId,
        'marina.partner_id': partnerId,
        'marina.object_id': objectId,
      },
    });
    const { metrics } = this.#options;
    if (metrics === undefined) return;
    const named = operation ?? 'none';
    metrics.requests.observe({ protocol, operation: named, status }, durationMs / 1_000);
    if (code !== undefined) metrics.refusals.inc({ protocol, operation: named, code });
    if (limit !== undefined) metrics.limitRefusals.inc({ limit });
    const reason = status === 401 ? context.identification?.refusal : undefined;
    if (reason !== undefined) metrics.credentialRefusals.inc({ reason });
  }
}
