import type { Message } from '@bufbuild/protobuf';
import { Feature } from '../../gen/marina/options/v1/options_pb.ts';
import { atMost } from '../../kit/at-most.ts';
import type { Logger } from '../../kit/log.ts';
import type { Caller, Identification, Identify, Permission } from './auth/caller.ts';
import { ConnectionLimits, RequestsUnderWay } from './bounds.ts';
import type { Call, ReceivedFile } from './call.ts';
import { ApiError } from './errors.ts';
import type { KeptRequests } from './kept-requests/kept-requests.ts';
import type { CallerLimits } from './limits/caller-limits.ts';
import type { ApiOperation, UnaryOperation } from './operations.ts';
import { type FileBody, receiveWithMessage } from './operations.ts';
import type { Origin } from './origin.ts';
import { type EndCode, type ProtocolName, RequestContext, RequestLog, type RequestLogOptions } from './request.ts';

export interface ProtocolOptions {
  readonly pipeline: Pipeline;
  readonly operations: readonly ApiOperation[];
  /** The partners' URL, for links to the documentation. Read it at each answer: it is known once the port is open. */
  readonly baseUrl: string;
  readonly slowReaderMs?: number;
}

/** A request's credential and trace, each undefined if its header is absent or repeated. */
export interface Head {
  readonly authorization: string | undefined;
  readonly traceParent?: string | undefined;
}

/** An operation's answer, before a protocol encodes it. */
export interface Reply {
  readonly message: Message;
  /** Repeats the result of an earlier request with the same Idempotency-Key. */
  readonly replayed: boolean;
  /** The path of the object that this request created. */
  readonly location: string | undefined;
}

export type CallLimits = Pick<CallerLimits, 'takeRequest' | 'acquireSlot' | 'takeStream' | 'takeFile'>;

export interface PipelineOptions extends RequestLogOptions {
  readonly identify: Identify;
  readonly limits: CallLimits;
  /** Limits the requests in progress in all protocols. */
  readonly requests?: RequestsUnderWay;
  /** Limits the connections of all partners' ports. */
  readonly connectionLimits?: ConnectionLimits;
  /** How often an open stream's permission is checked. */
  readonly recheckMs?: number;
  /** Keeps requests for their partners. By default none is kept. */
  readonly kept?: Pick<KeptRequests, 'keep'> | undefined;
}

/**
 * How long a request waits while its key is read. In a longer time, more requests could gather than the partner's
 * burst, and all would continue at once.
 */
const identifyWithinMs = 2_000;

/** A refused gRPC call counts as so many requests: hundreds can come in one packet. */
const grpcGuessCost = 10;

/** The status in logs and metrics if the client left before its answer. */
const clientGoneStatus = 499;

/** The client left before its request arrived or before its stream ended, so nobody can be answered. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/**
 * The steps of every request in every protocol: `begin`, `admit` with its head, `call` with its message, and always
 * `finish` or `refuse`. Only here and in the protocols' reading is the order of checks decided.
 */
export class Pipeline {
  readonly connectionLimits: ConnectionLimits;
  readonly #options: PipelineOptions;
  readonly #requests: RequestsUnderWay;
  readonly #log: RequestLog;
  #underWay = 0;
  #whenIdle: (() => void)[] = [];
  /** The kinds of errors in keeping requests that are logged, each once. */
  readonly #loggedKeepFailures = new Set<string>();

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.connectionLimits = options.connectionLimits ?? new ConnectionLimits();
    this.#requests = options.requests ?? new RequestsUnderWay();
    this.#log = new RequestLog(options);
  }

  /** Requests in progress in all protocols. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Resolves when no request is in progress. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#underWay === 0) resolve();
      else this.#whenIdle.push(resolve);
    });
  }

  /** Whether protocols note what passes in a request's `exchanged`. */
  get keepsRequests(): boolean {
    return this.#options.kept !== undefined;
  }

  /** `peer` is the address of the connection's other end. */
  begin(protocol: ProtocolName, peer?: string): RequestContext {
    this.#underWay += 1;
    const context = new RequestContext(protocol, peer);
    context.isProxied = peer !== undefined && this.connectionLimits.isProxy(peer);
    return context;
  }

  /**
   * Identifies the caller, takes a token of its rate, checks its permission and acquires its slots. `find` finds the operation.
   * If it throws `not_found` or `method_not_allowed`, that comes in its turn.
   */
  async admit<Found extends { readonly operation: ApiOperation }>(
    context: RequestContext,
    { authorization, traceParent }: Head,
    find: () => Found,
  ): Promise<Found> {
    const { limits } = this.#options;
    context.authorization = authorization;
    const identification = await this.#identifyFirst(context).finally(() => this.#log.begin(context, traceParent));
    const { caller: known, refusal } = identification;
    // A request that gets 401 uses nothing of a partner's limits.
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
   * Identifies the caller again, because the body may have taken long, checks the body's fields and runs the handler.
   * The handler runs on if the client leaves. The protocol has checked path, query and Idempotency-Key. `receive`
   * receives a file; by default it is in the message.
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
    if (operation.hasObjectInPath) context.objectId = operation.objectOf(message);
    if (context.exchanged !== undefined) context.exchanged.message = message;
    operation.checkBody(message);
    // An id that was not checked could be anything, and would be logged.
    context.objectId ??= operation.objectOf(message);
    const { file, location } = operation;
    const permission = this.#permissionOf(context, operation);
    const receiveFile = file && (() => receive?.(file) ?? receiveWithMessage(file, message));
    const call = new HandlerCall(context, current, permission, idempotencyKey, this.#options.log, receiveFile);
    try {
      const answer = await operation.handler(message, call);
      if (context.exchanged !== undefined) context.exchanged.reply = answer;
      const { replayed } = call.reply;
      if (location === undefined) return { message: answer, replayed, location };
      const id = operation.createdObjectOf(answer) ?? '';
      context.objectId = id;
      return { message: answer, replayed, location: replayed ? undefined : location.replace('{id}', id) };
    } finally {
      context.release();
    }
  }

  /** The same for a stream, until `ending` is aborted. Checks the permission per message and every `recheckMs`. */
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

  /** Ends a request that failed, and returns the error to answer; undefined if its client has left. */
  refuse(context: RequestContext, error: unknown): ApiError | undefined {
    if (error instanceof ClientGone) {
      this.finish(context, clientGoneStatus, 'client_gone');
      return undefined;
    }
    const refusal = this.#log.failed(context, error);
    if (context.exchanged !== undefined) context.exchanged.error = refusal;
    this.finish(context, refusal.status, refusal.code);
    return refusal;
  }

  /** Ends a request whose handler has ended and whose answer is decided. */
  finish(context: RequestContext, status: number, code?: EndCode): void {
    if (context.finished) return;
    context.end();
    this.#underWay -= 1;
    this.#log.ended(context, status, code);
    if (this.#underWay === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    if (context.exchanged !== undefined) this.#keep(context, status, code);
  }

  /** Keeps a request for its partner. A defect in that must not change the request's answer. */
  #keep(context: RequestContext, status: number, code: EndCode | undefined): void {
    try {
      this.#options.kept?.keep(context, status, code);
    } catch (error) {
      const kind = error instanceof Error ? error.name : typeof error;
      if (this.#loggedKeepFailures.has(kind)) return;
      this.#loggedKeepFailures.add(kind);
      // Without the error, whose message may quote the request.
      const { requestId, operation } = context;
      this.#options.log.error({ kind, requestId, operation: operation?.name }, 'a request could not be kept');
    }
  }

  /** Identifies the caller by the head, unless too many without a valid key came from its address through a proxy. */
  async #identifyFirst(context: RequestContext): Promise<Identification> {
    const { isProxied, clientAddress, protocol } = context;
    if (isProxied && !this.connectionLimits.mayGuess(clientAddress)) {
      throw new ApiError('service_unavailable', { limit: 'refused_keys' });
    }
    const identification = await this.#identify(context);
    const { caller, refusal } = identification;
    context.identification = identification;
    context.isIdentified = caller !== undefined && refusal === undefined;
    if (isProxied && !context.isIdentified) {
      this.connectionLimits.guessed(clientAddress, protocol === 'grpc' ? grpcGuessCost : 1);
    }
    return identification;
  }

  async #identify({ authorization, clientAddress }: RequestContext): Promise<Identification> {
    const identified = this.#requests.identify(clientAddress);
    try {
      const identification = this.#options.identify(authorization, clientAddress);
      // A timer for each request would take more than to find a known key.
      if (!(identification instanceof Promise)) return identification;
      if (!(await atMost(identifyWithinMs, identification))) throw new ApiError('service_unavailable');
      return await identification;
    } finally {
      identified();
    }
  }

  /**
   * Identifies the caller once the body has come. If its limit of requests in progress was lowered since, the request
   * exchanges its slot for one under the new limit.
   */
  async #identifyAgain(context: RequestContext, operation: UnaryOperation, before: Caller): Promise<Caller> {
    const caller = await this.#permitAgain(context, operation);
    if (operation.takesSlot && caller.limits.requestsUnderWay < before.limits.requestsUnderWay) {
      context.giveSlotBack();
      context.giveSlotBack = context.hold(await this.#options.limits.acquireSlot(caller));
    }
    return caller;
  }

  /** Identifies the caller again: its key or partner may have changed since the head came. Takes no rate token. */
  async #permitAgain(context: RequestContext, operation: ApiOperation): Promise<Caller> {
    const { identification, authorization, clientAddress } = context;
    const again = identification?.again ?? (() => this.#options.identify(authorization, clientAddress));
    context.identification = await again();
    return permit(operation, context.identification);
  }

  #permissionOf(context: RequestContext, operation: ApiOperation): Permission {
    return {
      renew: async () => {
        await this.#permitAgain(context, operation);
      },
      isLatest: () => context.identification?.isLatest?.() ?? true,
    };
  }
}

/** The caller, if its credential is valid and permits the operation. */
export function permit(operation: ApiOperation, { caller, refusal }: Identification): Caller {
  if (refusal !== undefined || caller === undefined) throw new ApiError('unauthorized');
  if (!caller.scopes.has(operation.scope)) throw new ApiError('insufficient_scope');
  const { feature } = operation;
  if (feature !== Feature.UNSPECIFIED && !caller.features.has(feature)) throw new ApiError('feature_not_enabled');
  return caller;
}

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

  /** Made at its first use, because most calls log nothing. */
  get log(): Logger {
    this.#log ??= this.root.child({ requestId: this.requestId, partnerId: this.caller.partnerId });
    return this.#log;
  }
}
