import type { Message } from '@bufbuild/protobuf';
import type { Caller, CallLimits, CredentialRefusal, Identification, Identify, ReceivedFile } from '../auth/call.ts';
import { atMost } from '../lib/at-most.ts';
import { ApiError, type ErrorCode, type Limit } from '../lib/errors.ts';
import { LineSampler } from '../lib/line-sampler.ts';
import type { Logger } from '../lib/log.ts';
import { addressShower } from '../lib/network.ts';
import { passingTracer, readTraceParent, type Tracer, traceIdOf } from '../lib/trace.ts';
import { type FileBody, receiveWithMessage } from './file-body.ts';
import type { Operation, UnaryOperation } from './operations.ts';
import { permissionOf, permit, permitAgain } from './permission.ts';
import { RequestsUnderWay } from './requests-under-way.ts';
import { type Credential, type Door, HandlerCall, Visit } from './visit.ts';

/** What a door knows of a request before its parameters and body are looked at. */
export interface Head<Route> extends Credential {
  /** The one `traceparent`, as it came; undefined when it is absent or repeated. */
  readonly traceParent?: string | undefined;
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
  /** Which limit refused it, if one did. */
  readonly limit: Limit | undefined;
  /** Why its credential was refused, if it was. */
  readonly credentialRefusal: CredentialRefusal | undefined;
  readonly durationMs: number;
}

export interface PipelineOptions {
  readonly identify: Identify;
  readonly limits: CallLimits;
  readonly log: Logger;
  readonly onFinished?: (finished: Finished) => void;
  /** Makes spans; by default a trace that comes in only goes on. */
  readonly tracer?: Tracer;
  /** Bounds the requests under way in all protocols together. */
  readonly requests?: RequestsUnderWay;
  /** Notes the client address of each request that came with a good key. It must be quick. */
  readonly onIdentified?: (clientAddress: string) => void;
  /** How often it is made sure that the caller of an open stream still may call. */
  readonly recheckMs?: number;
  /** How a client's address is logged; undefined: not at all. By default it is logged whole. */
  readonly shownAddress?: (address: string) => string | undefined;
}

/**
 * How long a request waits while its key is looked up. If the requests of a longer time were let go at once, they would
 * be more than their partner's burst.
 */
const identifyWithinMs = 2_000;

/** The status logs and metrics give a request whose client left before it could be answered. */
export const clientGoneStatus = 499;

/** The client left before its request had arrived, or before the end of its stream: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/**
 * The way of every request, whatever its door: `begin`, then `admit` with its head, then `call` with its message, and
 * in every case `finish`. The order of the checks is decided here and in the doors' own reading, nowhere else.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #requestLog: Logger;
  readonly #requests: RequestsUnderWay;
  readonly #tracer: Tracer;
  readonly #shownAddress: (address: string) => string | undefined;
  readonly #strangersRequests: LineSampler;
  readonly #strangersFailures: LineSampler;
  #underWay = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#shownAddress = options.shownAddress ?? addressShower('full');
    this.#strangersRequests = new LineSampler(options.log, 'request', this.#shownAddress);
    this.#strangersFailures = new LineSampler(options.log, 'a request failed or was not served', this.#shownAddress);
    this.#requests = options.requests ?? new RequestsUnderWay();
    this.#tracer = options.tracer ?? passingTracer;
    // Every member of a request's line is chosen below, so the net that searches it for secrets is left out: it costs
    // more than the line.
    this.#requestLog = options.log.child({}, { redact: [] });
  }

  /** How many requests are under way in all doors. */
  get underWay(): number {
    return this.#underWay;
  }

  /** `peer` is the address of the connection's other end. */
  begin(door: Door, peer?: string): Visit {
    this.#underWay += 1;
    return new Visit(door, peer);
  }

  /** Decides who calls, whether they may, and whether there is a place for them. Returns the operation's route. */
  async admit<Route extends { readonly operation: Operation }>(visit: Visit, head: Head<Route>): Promise<Route> {
    visit.span = this.#tracer.begin({ name: visit.door, kind: 'server', parent: readTraceParent(head.traceParent) });
    visit.clientAddress = head.clientAddress;
    const { limits } = this.#options;
    const identification = await this.#identify(head);
    const { caller: known, refusal } = identification;
    visit.identification = identification;
    visit.credential = head;
    visit.isIdentified = known !== undefined && refusal === undefined;
    // A request that ends in 401 takes nothing of a partner's.
    if (known !== undefined && refusal === undefined) {
      visit.holdWhileUnderWay(this.#requests.take(known.partnerId));
      this.#options.onIdentified?.(head.clientAddress);
      await limits.takeRequest(known);
    }
    const route = head.route();
    const { operation } = route;
    visit.operation = operation;
    const caller = permit(operation, identification);
    if (operation.kind === 'stream') visit.holdPlace(limits.takeStream(caller));
    else if (operation.takesPlace) visit.holdSlot(await limits.takePlace(caller));
    if (operation.file !== undefined) visit.holdPlace(limits.takeFile(caller));
    return route;
  }

  /**
   * Identifies the caller again, because the body may have taken long to arrive. Checks the rules of the body's fields
   * and runs the handler, whose call keeps running when the client leaves. The door has checked path, query and
   * Idempotency-Key before. `receive` is how the door receives a file; by default it came with the message.
   */
  async call(
    visit: Visit,
    message: Message,
    idempotencyKey: string | undefined,
    receive?: (file: FileBody) => Promise<ReceivedFile>,
  ): Promise<Reply> {
    const { operation, caller } = visit;
    if (operation?.kind !== 'unary' || caller === undefined) throw new Error('called before it was admitted');
    const current = await this.#lookAgain(visit, operation, caller);
    visit.objectId = operation.objectOf(message);
    operation.checkBody(message);
    const { file } = operation;
    const permission = permissionOf(visit, operation, this.#options.identify);
    const receiveFile = file && (() => receive?.(file) ?? receiveWithMessage(file, message));
    const call = new HandlerCall(visit, current, permission, idempotencyKey, this.#options.log, receiveFile);
    try {
      const answer = await operation.handler(message, call);
      const { replayed } = call.reply;
      const created = operation.location !== undefined && !replayed;
      if (operation.location !== undefined) visit.objectId = operation.createdObjectOf(answer);
      return { message: answer, created, replayed, location: created ? operation.location?.(answer) : undefined };
    } finally {
      visit.releasePlace();
    }
  }

  /**
   * The same for an operation that answers with a stream, which lasts until `ending` is aborted. The key that opened it
   * must be good for as long as it lasts: that is looked at before every message, and now and then while there is none.
   */
  async *stream(visit: Visit, message: Message, ending: AbortController): AsyncGenerator<Message> {
    const { operation, caller } = visit;
    if (operation?.kind !== 'stream' || caller === undefined) throw new Error('called before it was admitted');
    operation.checkBody(message);
    const { identify, log, recheckMs = 1_000 } = this.#options;
    const { signal } = ending;
    const recheck = async () => {
      await permitAgain(visit, operation, identify);
    };
    const timer = setInterval(() => recheck().catch((error: unknown) => ending.abort(error)), recheckMs);
    try {
      const permission = permissionOf(visit, operation, identify);
      const call = new HandlerCall(visit, caller, permission, undefined, log);
      for await (const answer of operation.handler(message, call, signal)) {
        await recheck();
        signal.throwIfAborted();
        yield answer;
        signal.throwIfAborted();
      }
      signal.throwIfAborted();
    } finally {
      clearInterval(timer);
    }
  }

  /** What the door answers for anything that was thrown. What is not from the catalogue is logged and kept back. */
  refusal(visit: Visit, error: unknown): ApiError {
    const { requestId } = visit;
    const operation = visit.operation?.name;
    const isLogged = () => visit.isIdentified || this.#strangersFailures.take(visit.clientAddress);
    if (!(error instanceof ApiError)) {
      if (isLogged()) this.#options.log.error({ err: error, requestId, operation }, 'a request failed');
      return new ApiError('internal_error', { cause: error });
    }
    visit.limit = error.limit;
    visit.objectId ??= error.location?.split('/').at(-1);
    if (error.status >= 500 && error.cause !== undefined && isLogged()) {
      this.#options.log.warn({ err: error.cause, requestId, operation, code: error.code }, 'a request was not served');
    }
    return error;
  }

  /** Ends the visit, once its handler has ended and its answer is decided: one line in the log, one metric. */
  finish(visit: Visit, status: number, code?: ErrorCode | 'client_gone'): void {
    if (visit.finished) return;
    visit.end();
    this.#underWay -= 1;
    const { door, requestId, caller, limit } = visit;
    const credentialRefusal = status === 401 ? visit.identification?.reason : undefined;
    const operation = visit.operation?.name;
    const durationMs = Math.round((performance.now() - visit.startedMs) * 1_000) / 1_000;
    const partnerId = caller?.partnerId;
    const { objectId, span } = visit;
    const traceId = traceIdOf(span?.traceParent ?? null);
    // Whoever has no good key can make as many requests as he likes, so not each of them gets a line.
    if (visit.isIdentified || this.#strangersRequests.take(visit.clientAddress)) {
      const clientAddress = this.#shownAddress(visit.clientAddress);
      const keyId = caller?.keyId;
      this.#requestLog.info(
        { requestId, door, operation, partnerId, keyId, clientAddress, objectId, status, code, durationMs, traceId },
        'request',
      );
    }
    span?.end({
      name: operation,
      failed: status >= 500,
      attributes: {
        'http.response.status_code': status,
        'error.type': code,
        'marina.door': door,
        'marina.request_id': requestId,
        'marina.partner_id': partnerId,
        'marina.object_id': objectId,
      },
    });
    this.#options.onFinished?.({ door, operation, partnerId, status, code, limit, credentialRefusal, durationMs });
  }

  async #identify({ authorization, clientAddress }: Credential): Promise<Identification> {
    const identified = this.#requests.identify(clientAddress);
    try {
      const identification = this.#options.identify(authorization, clientAddress);
      if (!(await atMost(identifyWithinMs, identification))) throw new ApiError('service_unavailable');
      return await identification;
    } finally {
      identified();
    }
  }

  /**
   * The caller as it is when the body has come. If its limit of requests in progress was lowered since, the request
   * gives its own slot back and takes one under the new limit.
   */
  async #lookAgain(visit: Visit, operation: UnaryOperation, before: Caller): Promise<Caller> {
    const { limits, identify } = this.#options;
    const caller = await permitAgain(visit, operation, identify);
    if (operation.takesPlace && caller.limits.requestsUnderWay < before.limits.requestsUnderWay) {
      visit.giveSlotBack();
      visit.holdSlot(await limits.takePlace(caller));
    }
    return caller;
  }
}
