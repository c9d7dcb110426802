import type { Message } from '@bufbuild/protobuf';
import type { Call, Caller, Identification, Identify, Permission, ReceivedFile } from '../auth/call.ts';
import { Feature } from '../gen/marina/options/v1/options_pb.ts';
import { atMost } from '../lib/at-most.ts';
import { ApiError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Origin } from '../lib/origin.ts';
import type { CallerLimits } from '../limits/caller-limits.ts';
import { ConnectionLimits, RequestsUnderWay } from './bounds.ts';
import type { Operation, UnaryOperation } from './operations.ts';
import { type FileBody, receiveWithMessage } from './operations.ts';
import { type EndCode, type ProtocolName, RequestContext, RequestLog, type RequestLogOptions } from './request.ts';

/** What each protocol is made of. */
export interface ProtocolOptions {
  readonly pipeline: Pipeline;
  readonly operations: readonly Operation[];
  /** Where partners reach us, for links to the documentation. Known once the port is open, so it is read at each answer. */
  readonly baseUrl: string;
  /** How long a client may take over one message of a stream. */
  readonly slowReaderMs?: number;
}

/** What a request's head says of who sends it. */
export interface Head {
  /** The one Authorization header; undefined when it is absent or repeated. */
  readonly authorization: string | undefined;
  /** The one `traceparent`, as it came; undefined when it is absent or repeated. */
  readonly traceParent?: string | undefined;
}

/** An operation's answer, before a protocol gives it a form. */
export interface Reply {
  readonly message: Message;
  /** This repeats what an earlier request with the same Idempotency-Key did. */
  readonly replayed: boolean;
  /** The path of the object that this request created; undefined if it created none. */
  readonly location: string | undefined;
}

/** Holds callers to their limits. */
export type CallLimits = Pick<CallerLimits, 'takeRequest' | 'acquireSlot' | 'takeStream' | 'takeFile'>;

export interface PipelineOptions extends RequestLogOptions {
  readonly identify: Identify;
  readonly limits: CallLimits;
  /** Bounds the requests under way in all protocols together. */
  readonly requests?: RequestsUnderWay;
  /** Bounds the connections of all partners' ports together. */
  readonly connectionLimits?: ConnectionLimits;
  /** How often it is made sure that the caller of an open stream still may call. */
  readonly recheckMs?: number;
}

/**
 * How long a request waits while its key is looked up. If the requests of a longer time were let go at once, they would
 * be more than their partner's burst.
 */
const identifyWithinMs = 2_000;

/** The status logs and metrics give a request whose client left before it could be answered. */
const clientGoneStatus = 499;

/** The client left before its request had arrived, or before the end of its stream: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/**
 * The way of every request, whatever its protocol: `begin`, then `admit` with its head, then `call` with its message, and
 * in every case `finish` or `refuse`. The order of the checks is decided here and in the protocols' own reading, nowhere
 * else.
 */
export class Pipeline {
  readonly connectionLimits: ConnectionLimits;
  readonly #options: PipelineOptions;
  readonly #requests: RequestsUnderWay;
  readonly #log: RequestLog;
  #underWay = 0;
  #whenIdle: (() => void)[] = [];

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.connectionLimits = options.connectionLimits ?? new ConnectionLimits();
    this.#requests = options.requests ?? new RequestsUnderWay();
    this.#log = new RequestLog(options);
  }

  /** How many requests are under way in all protocols. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Resolves when no request is under way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#underWay === 0) resolve();
      else this.#whenIdle.push(resolve);
    });
  }

  /** `peer` is the address of the connection's other end. */
  begin(protocol: ProtocolName, peer?: string): RequestContext {
    this.#underWay += 1;
    return new RequestContext(protocol, peer);
  }

  /**
   * Decides who calls, whether they may, and whether there is a slot for them. `find` finds the operation: if it throws
   * `not_found` or `method_not_allowed`, that comes in its turn. Returns what it found.
   */
  async admit<Found extends { readonly operation: Operation }>(
    context: RequestContext,
    { authorization, traceParent }: Head,
    find: () => Found,
  ): Promise<Found> {
    const { limits } = this.#options;
    this.#log.begin(context, traceParent);
    context.authorization = authorization;
    const identification = await this.#identify(context);
    const { caller: known, refusal } = identification;
    context.identification = identification;
    context.isIdentified = known !== undefined && refusal === undefined;
    // A request that ends in 401 takes nothing of a partner's.
    if (known !== undefined && refusal === undefined) {
      context.holdUntilAnswered(this.#requests.take(known.partnerId));
      this.connectionLimits.note(context.clientAddress);
      await limits.takeRequest(known);
    }
    const found = find();
    const { operation } = found;
    context.operation = operation;
    const caller = permit(operation, identification);
    if (operation.kind === 'stream') context.hold(limits.takeStream(caller));
    else if (operation.takesSlot) context.giveSlotBack = context.hold(await limits.acquireSlot(caller));
    if (operation.file !== undefined) context.hold(limits.takeFile(caller));
    return found;
  }

  /**
   * Identifies the caller again, because the body may have taken long to arrive. Checks the rules of the body's fields
   * and runs the handler, whose call keeps running when the client leaves. The protocol has checked path, query and
   * Idempotency-Key before. `receive` is how it receives a file; by default the file came with the message.
   */
  async call(
    context: RequestContext,
    message: Message,
    idempotencyKey: string | undefined,
    receive?: (file: FileBody) => Promise<ReceivedFile>,
  ): Promise<Reply> {
    const { operation, caller } = context;
    if (operation?.kind !== 'unary' || caller === undefined) throw new Error('called before it was admitted');
    const current = await this.#identifyAgain(context, operation, caller);
    context.objectId = operation.objectOf(message);
    operation.checkBody(message);
    const { file, location } = operation;
    const permission = this.#permissionOf(context, operation);
    const receiveFile = file && (() => receive?.(file) ?? receiveWithMessage(file, message));
    const call = new HandlerCall(context, current, permission, idempotencyKey, this.#options.log, receiveFile);
    try {
      const answer = await operation.handler(message, call);
      const { replayed } = call.reply;
      if (location === undefined) return { message: answer, replayed, location };
      const id = operation.createdObjectOf(answer) ?? '';
      context.objectId = id;
      return { message: answer, replayed, location: replayed ? undefined : location.replace('{id}', id) };
    } finally {
      context.release();
    }
  }

  /**
   * The same for an operation that answers with a stream, which lasts until `ending` is aborted. The key that opened it
   * must be good for as long as it lasts: that is checked before every message, and now and then while there is none.
   */
  async *stream(context: RequestContext, message: Message, ending: AbortController): AsyncGenerator<Message> {
    const { operation, caller } = context;
    if (operation?.kind !== 'stream' || caller === undefined) throw new Error('called before it was admitted');
    operation.checkBody(message);
    const { log, recheckMs = 1_000 } = this.#options;
    const { signal } = ending;
    const permission = this.#permissionOf(context, operation);
    const timer = setInterval(() => permission.renew().catch((error: unknown) => ending.abort(error)), recheckMs);
    try {
      const call = new HandlerCall(context, caller, permission, undefined, log);
      for await (const answer of operation.handler(message, call, signal)) {
        await permission.renew();
        signal.throwIfAborted();
        yield answer;
        signal.throwIfAborted();
      }
      signal.throwIfAborted();
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * Ends a request for which something was thrown, and returns what it is answered with; undefined if its client has left,
   * so that there is nobody to answer.
   */
  refuse(context: RequestContext, error: unknown): ApiError | undefined {
    if (error instanceof ClientGone) {
      this.finish(context, clientGoneStatus, 'client_gone');
      return undefined;
    }
    const refusal = this.#log.failed(context, error);
    this.finish(context, refusal.status, refusal.code);
    return refusal;
  }

  /** Ends a request, once its handler has ended and its answer is decided. */
  finish(context: RequestContext, status: number, code?: EndCode): void {
    if (context.finished) return;
    context.end();
    this.#underWay -= 1;
    this.#log.ended(context, status, code);
    if (this.#underWay === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  async #identify({ authorization, clientAddress }: RequestContext): Promise<Identification> {
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
  async #identifyAgain(context: RequestContext, operation: UnaryOperation, before: Caller): Promise<Caller> {
    const caller = await this.#permitAgain(context, operation);
    if (operation.takesSlot && caller.limits.requestsUnderWay < before.limits.requestsUnderWay) {
      context.giveSlotBack();
      context.giveSlotBack = context.hold(await this.#options.limits.acquireSlot(caller));
    }
    return caller;
  }

  /**
   * Identifies the caller of an admitted request again and decides anew. A key may have been revoked, or what was agreed
   * with its partner changed, since the head of the request came. It takes no token of the rate.
   */
  async #permitAgain(context: RequestContext, operation: Operation): Promise<Caller> {
    const { identification, authorization, clientAddress } = context;
    const again = identification?.again ?? (() => this.#options.identify(authorization, clientAddress));
    context.identification = await again();
    return permit(operation, context.identification);
  }

  /** The permission of a call that was admitted. */
  #permissionOf(context: RequestContext, operation: Operation): Permission {
    return {
      renew: async () => {
        await this.#permitAgain(context, operation);
      },
      isLatest: () => context.identification?.isLatest?.() ?? true,
    };
  }
}

/** The caller, if the credential is good and lets it use the operation. */
export function permit(operation: Operation, { caller, refusal }: Identification): Caller {
  if (refusal !== undefined || caller === undefined) throw new ApiError('unauthorized');
  if (!caller.scopes.has(operation.scope)) throw new ApiError('insufficient_scope');
  const { feature } = operation;
  if (feature !== Feature.UNSPECIFIED && !caller.features.has(feature)) throw new ApiError('feature_not_enabled');
  return caller;
}

/** A call as its handler sees it. */
class HandlerCall implements Call {
  readonly reply = { replayed: false };
  readonly requestId: string;
  readonly origin: Origin;
  #log: Logger | undefined;

  constructor(
    { requestId, span }: RequestContext,
    readonly caller: Caller,
    readonly permission: Permission,
    readonly idempotencyKey: string | undefined,
    readonly root: Logger,
    private readonly receive?: () => Promise<ReceivedFile>,
  ) {
    this.requestId = requestId;
    this.origin = { partnerId: caller.partnerId, requestId, traceParent: span?.traceParent ?? null };
  }

  async receiveFile(): Promise<ReceivedFile> {
    if (this.receive === undefined) throw new Error('the operation takes no file');
    const file = await this.receive();
    await this.permission.renew();
    return file;
  }

  /** Made when it is first used: most calls log nothing of their own. */
  get log(): Logger {
    this.#log ??= this.root.child({ requestId: this.requestId, partnerId: this.caller.partnerId });
    return this.#log;
  }
}
