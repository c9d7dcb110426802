import { randomUUID } from 'node:crypto';
import type { Call, Caller, Identification, Permission, ReceivedFile } from '../auth/call.ts';
import type { Limit } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Origin } from '../lib/origin.ts';
import type { Span } from '../lib/trace.ts';
import type { Operation } from './operations.ts';

export type ProtocolName = 'rest' | 'grpc' | 'connect';

/** What is known of one request, from its first line to its answer, and what it holds meanwhile. */
export class RequestContext {
  readonly requestId = randomUUID();
  readonly startedMs = performance.now();
  operation: Operation | undefined;
  /** The one Authorization header; undefined when it is absent or repeated. */
  authorization: string | undefined;
  /** What was found out of the caller when it was last identified. */
  identification: Identification | undefined;
  /** Which limit refused it, if one did. */
  limit: Limit | undefined;
  /** Its span, from when its head was read. */
  span: Span | undefined;
  /** The object it is about or made, once that is known. */
  objectId: string | undefined;
  /** Whether it came with a good key. */
  isIdentified = false;
  /** Its handler has ended, and its answer is decided. */
  finished = false;
  /** Gives back its slot of the limit of requests in progress, if it holds one. */
  giveSlotBack: () => void = nothing;
  #isLeaving = false;
  readonly #held = new Set<() => void>();
  readonly #heldUntilAnswered: (() => void)[] = [];

  constructor(
    readonly protocol: ProtocolName,
    /** Where it came from: the other end of its connection, until a trusted proxy names the client. */
    public clientAddress = '',
  ) {}

  /** Whose request it is, as far as that is known. */
  get caller(): Caller | undefined {
    return this.identification?.caller;
  }

  /**
   * Holds something until the handler has ended, which it may have while this was waited for. Call what it returns to give
   * it back before; the second time does nothing.
   */
  hold(giveBack: () => void): () => void {
    const giveBackOnce = () => {
      if (this.#held.delete(giveBackOnce)) giveBack();
    };
    this.#held.add(giveBackOnce);
    if (this.finished) giveBackOnce();
    return giveBackOnce;
  }

  /** Gives back all that is held until the handler has ended. */
  release(): void {
    for (const giveBack of this.#held) giveBack();
  }

  /** Holds something until the handler has ended and the answer has left. */
  holdUntilAnswered(giveBack: () => void): void {
    this.#heldUntilAnswered.push(giveBack);
    this.#releaseWhenAnswered();
  }

  /** Notes that the answer takes time to leave. Call what it returns when it has left or nobody takes it. */
  leaves(): () => void {
    this.#isLeaving = true;
    return () => {
      this.#isLeaving = false;
      this.#releaseWhenAnswered();
    };
  }

  /** Notes that the handler has ended, and the answer is decided. */
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

/** A call as its handler sees it. */
export class HandlerCall implements Call {
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
