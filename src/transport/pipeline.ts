import { randomUUID } from 'node:crypto';
import type { Message } from '@bufbuild/protobuf';
import type { Call, Caller, CallLimits, Identify } from '../auth/call.ts';
import { ApiError, type ErrorCode } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Operation } from './operations.ts';

/** Where a request came in. */
export type Door = 'rest' | 'grpc' | 'connect';

/** What a door knows of a request before its parameters and body are looked at. */
export interface Head<Route> {
  /** The one Authorization header; undefined when it is absent or repeated. */
  readonly authorization: string | undefined;
  readonly clientAddress: string;
  /** Finds the operation. Throws `not_found` or `method_not_allowed`, which the pipeline lets come in its turn. */
  readonly route: () => Route;
}

/** An operation's answer, before a door gives it a form. */
export interface Reply {
  readonly message: Message;
  /** This is the first answer of an operation that creates an object: 201 in REST. */
  readonly created: boolean;
  /** This repeats what an earlier request with the same Idempotency-Key did. */
  readonly replayed: boolean;
  /** The path of the object created. */
  readonly location: string | undefined;
}

/** How a request ended, for metrics. */
export interface Finished {
  readonly door: Door;
  /** Undefined when no operation was found. */
  readonly operation: string | undefined;
  readonly partnerId: string | undefined;
  /** The HTTP status, whatever the door. */
  readonly status: number;
  readonly code: ErrorCode | 'client_gone' | undefined;
  readonly durationMs: number;
}

export interface PipelineOptions {
  readonly identify: Identify;
  readonly limits: CallLimits;
  readonly log: Logger;
  /** Whether the caller's partner may use the operation at all; by default it may. */
  readonly featureEnabled?: (operation: Operation, caller: Caller) => boolean;
  readonly onFinished?: (finished: Finished) => void;
  /** How many requests may be under way in all doors together; one more is answered `service_unavailable`. */
  readonly maxUnderWay?: number;
}

/** The status logs and metrics give a request whose client left before it could be answered. */
export const clientGoneStatus = 499;

/** One request on its way through a door, from its first line to its answer. */
export class Visit {
  readonly requestId = randomUUID();
  readonly startedMs = performance.now();
  operation: Operation | undefined;
  caller: Caller | undefined;
  finished = false;
  #givePlaceBack: (() => void) | undefined;

  constructor(readonly door: Door) {}

  holdPlace(giveBack: () => void): void {
    this.#givePlaceBack = giveBack;
  }

  /** Gives the partner's place back, if the request holds one; the second time does nothing. */
  releasePlace(): void {
    const giveBack = this.#givePlaceBack;
    this.#givePlaceBack = undefined;
    giveBack?.();
  }
}

/**
 * The way of every request, whatever its door: `begin`, then `admit` with its head, then `call` with its message, and
 * in every case `finish`. The order of the checks is decided here and in the doors' own reading, nowhere else.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #requestLog: Logger;
  readonly #maxUnderWay: number;
  #underWay = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#maxUnderWay = options.maxUnderWay ?? 2_000;
    // Every member of a request's line is chosen below, so the net that searches it for secrets is left out: it costs
    // more than the line.
    this.#requestLog = options.log.child({}, { redact: [] });
  }

  /** How many requests are under way in all doors. */
  get underWay(): number {
    return this.#underWay;
  }

  begin(door: Door): Visit {
    this.#underWay += 1;
    return new Visit(door);
  }

  /** Decides who calls, whether they may, and whether there is a place for them. Returns the operation's route. */
  async admit<Route extends { readonly operation: Operation }>(visit: Visit, head: Head<Route>): Promise<Route> {
    if (this.#underWay > this.#maxUnderWay) throw new ApiError('service_unavailable');
    const { limits, featureEnabled } = this.#options;
    const { caller, refusal } = await this.#options.identify(head.authorization, head.clientAddress);
    visit.caller = caller;
    if (caller !== undefined) limits.takeRequest(caller);
    const route = head.route();
    const { operation } = route;
    visit.operation = operation;
    if (refusal !== undefined) throw new ApiError(refusal);
    if (caller === undefined) throw new ApiError('unauthorized');
    if (!caller.scopes.has(operation.scope)) throw new ApiError('insufficient_scope');
    if (featureEnabled?.(operation, caller) === false) throw new ApiError('feature_not_enabled');
    if (operation.takesPlace) visit.holdPlace(limits.takePlace(caller));
    return route;
  }

  /**
   * Checks the rules of the body's fields and runs the handler, whose call keeps running when the client leaves. The
   * door has checked path, query and Idempotency-Key before.
   */
  async call(visit: Visit, message: Message, idempotencyKey: string | undefined): Promise<Reply> {
    const { operation, caller } = visit;
    if (operation === undefined || caller === undefined) throw new Error('called before it was admitted');
    operation.checkBody(message);
    const call = new HandlerCall(visit.requestId, caller, idempotencyKey, this.#options.log);
    try {
      const answer = await operation.handler(message, call);
      const { replayed } = call.reply;
      const created = operation.location !== undefined && !replayed;
      return { message: answer, created, replayed, location: created ? operation.location?.(answer) : undefined };
    } finally {
      visit.releasePlace();
    }
  }

  /** What the door answers for anything that was thrown. What is not from the catalogue is logged and kept back. */
  refusal(visit: Visit, error: unknown): ApiError {
    const { requestId } = visit;
    const operation = visit.operation?.name;
    if (!(error instanceof ApiError)) {
      this.#options.log.error({ err: error, requestId, operation }, 'a request failed');
      return new ApiError('internal_error', { cause: error });
    }
    if (error.status >= 500 && error.cause !== undefined) {
      this.#options.log.warn({ err: error.cause, requestId, operation, code: error.code }, 'a request was not served');
    }
    return error;
  }

  /** Ends the visit, once its handler has ended and its answer is decided: one line in the log, one metric. */
  finish(visit: Visit, status: number, code?: ErrorCode | 'client_gone'): void {
    if (visit.finished) return;
    visit.finished = true;
    this.#underWay -= 1;
    visit.releasePlace();
    const { door, requestId, caller } = visit;
    const operation = visit.operation?.name;
    const durationMs = Math.round((performance.now() - visit.startedMs) * 1_000) / 1_000;
    const partnerId = caller?.partnerId;
    this.#requestLog.info(
      { requestId, door, operation, partnerId, keyId: caller?.keyId, status, code, durationMs },
      'request',
    );
    this.#options.onFinished?.({ door, operation, partnerId, status, code, durationMs });
  }
}

class HandlerCall implements Call {
  readonly reply = { replayed: false };
  #log: Logger | undefined;

  constructor(
    readonly requestId: string,
    readonly caller: Caller,
    readonly idempotencyKey: string | undefined,
    readonly root: Logger,
  ) {}

  /** Made when it is first used: most calls log nothing of their own. */
  get log(): Logger {
    this.#log ??= this.root.child({ requestId: this.requestId, partnerId: this.caller.partnerId });
    return this.#log;
  }
}
