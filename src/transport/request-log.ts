import type { CredentialRefusal } from '../auth/call.ts';
import { ApiError, type ErrorCode, type Limit } from '../lib/errors.ts';
import { LineSampler } from '../lib/line-sampler.ts';
import type { Logger } from '../lib/log.ts';
import { addressShower } from '../lib/network.ts';
import { passingTracer, readTraceParent, type Tracer, traceIdOf } from '../lib/trace.ts';
import type { ProtocolName, RequestContext } from './request-context.ts';

/** What a request that did not succeed ended with. */
export type EndCode = ErrorCode | 'client_gone';

/** How a request ended, for metrics. */
export interface Finished {
  readonly protocol: ProtocolName;
  /** Undefined when no operation was found. */
  readonly operation: string | undefined;
  readonly partnerId: string | undefined;
  /** The HTTP status, whatever the protocol. */
  readonly status: number;
  readonly code: EndCode | undefined;
  /** Which limit refused it, if one did. */
  readonly limit: Limit | undefined;
  /** Why its credential was refused, if it was. */
  readonly credentialRefusal: CredentialRefusal | undefined;
  readonly durationMs: number;
}

export interface RequestLogOptions {
  readonly log: Logger;
  readonly onFinished?: (finished: Finished) => void;
  /** Makes spans; by default a trace that comes in only goes on. */
  readonly tracer?: Tracer;
  /** How a client's address is logged; undefined: not at all. By default it is logged whole. */
  readonly shownAddress?: (address: string) => string | undefined;
}

/** What is seen of requests: one line in the log, one metric and one span each. */
export class RequestLog {
  readonly #options: RequestLogOptions;
  readonly #requestLog: Logger;
  readonly #tracer: Tracer;
  readonly #shownAddress: (address: string) => string | undefined;
  readonly #strangersRequests: LineSampler;
  readonly #strangersFailures: LineSampler;

  constructor(options: RequestLogOptions) {
    const { log, tracer = passingTracer, shownAddress = addressShower('full') } = options;
    this.#options = options;
    this.#tracer = tracer;
    this.#shownAddress = shownAddress;
    this.#strangersRequests = new LineSampler(log, 'request', shownAddress);
    this.#strangersFailures = new LineSampler(log, 'a request failed or was not served', shownAddress);
    // Every member of a request's line is chosen below, so the net that searches it for secrets is left out: it costs
    // more than the line.
    this.#requestLog = log.child({}, { redact: [] });
  }

  /** Begins the request's span, in the trace that its client names. */
  begin(context: RequestContext, traceParent: string | undefined): void {
    context.span = this.#tracer.begin({ name: context.protocol, kind: 'server', parent: readTraceParent(traceParent) });
  }

  /** What a request is answered with for anything that was thrown. What is not from the catalogue is logged and kept back. */
  failed(context: RequestContext, error: unknown): ApiError {
    const { log } = this.#options;
    const { requestId } = context;
    const operation = context.operation?.name;
    const isLogged = () => context.isIdentified || this.#strangersFailures.take(context.clientAddress);
    if (!(error instanceof ApiError)) {
      if (isLogged()) log.error({ err: error, requestId, operation }, 'a request failed');
      return new ApiError('internal_error', { cause: error });
    }
    context.limit = error.limit;
    context.objectId ??= error.location?.split('/').at(-1);
    if (error.status >= 500 && error.cause !== undefined && isLogged()) {
      log.warn({ err: error.cause, requestId, operation, code: error.code }, 'a request was not served');
    }
    return error;
  }

  /** Logs and counts a request that has ended. */
  ended(context: RequestContext, status: number, code: EndCode | undefined): void {
    const { protocol, requestId, caller, limit, objectId, span } = context;
    const credentialRefusal = status === 401 ? context.identification?.reason : undefined;
    const operation = context.operation?.name;
    const durationMs = Math.round((performance.now() - context.startedMs) * 1_000) / 1_000;
    const partnerId = caller?.partnerId;
    // Whoever has no good key can make as many requests as he likes, so not each of them gets a line.
    if (context.isIdentified || this.#strangersRequests.take(context.clientAddress)) {
      const clientAddress = this.#shownAddress(context.clientAddress);
      const keyId = caller?.keyId;
      const traceId = traceIdOf(span?.traceParent ?? null);
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
    this.#options.onFinished?.({ protocol, operation, partnerId, status, code, limit, credentialRefusal, durationMs });
  }
}
