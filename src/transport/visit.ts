import { randomUUID } from 'node:crypto';
import type { Call, Caller, Identification, Permission, ReceivedFile } from '../auth/call.ts';
import type { Limit } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Origin } from '../lib/origin.ts';
import type { Span } from '../lib/trace.ts';
import type { Operation } from './operations.ts';

/** Where a request came in. */
export type Door = 'rest' | 'grpc' | 'connect';

/** One request on its way through a door, from its first line to its answer. */
export class Visit {
  readonly requestId = randomUUID();
  readonly startedMs = performance.now();
  operation: Operation | undefined;
  /** What was found out of the caller when it was last looked at. */
  identification: Identification | undefined;
  /** With what the caller was identified, because it is looked at again. */
  credential: Credential | undefined;
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
  #isLeaving = false;
  readonly #givePlacesBack: (() => void)[] = [];
  readonly #giveBackAtEnd: (() => void)[] = [];
  #giveSlotBack: (() => void) | undefined;

  constructor(
    readonly door: Door,
    /** Where it came from: the other end of its connection, until a trusted proxy names the client. */
    public clientAddress = '',
  ) {}

  /** Whose request it is, as far as that is known. */
  get caller(): Caller | undefined {
    return this.identification?.caller;
  }

  /** Keeps a slot of the limit of requests in progress, as a place that can be given back by itself. */
  holdSlot(giveBack: () => void): void {
    this.#giveSlotBack = giveBack;
    this.holdPlace(() => this.giveSlotBack());
  }

  /** Gives the slot back, if the request holds one; the second time does nothing. */
  giveSlotBack(): void {
    const giveBack = this.#giveSlotBack;
    this.#giveSlotBack = undefined;
    giveBack?.();
  }

  /** Keeps a place for as long as the visit lasts, which may have ended while the place was waited for. */
  holdPlace(giveBack: () => void): void {
    if (this.finished) giveBack();
    else this.#givePlacesBack.push(giveBack);
  }

  /** Keeps something until the visit has ended and its answer has left. */
  holdWhileUnderWay(giveBack: () => void): void {
    this.#giveBackAtEnd.push(giveBack);
    this.#giveBackWhenOver();
  }

  /** Tells the visit that its answer takes time to leave. Call what it returns when the answer has left or nobody takes it. */
  leaves(): () => void {
    this.#isLeaving = true;
    return () => {
      this.#isLeaving = false;
      this.#giveBackWhenOver();
    };
  }

  /** The handler has ended, and the answer is decided. */
  end(): void {
    this.finished = true;
    this.releasePlace();
    this.#giveBackWhenOver();
  }

  #giveBackWhenOver(): void {
    if (!this.finished || this.#isLeaving) return;
    for (const giveBack of this.#giveBackAtEnd.splice(0)) giveBack();
  }

  /** Gives the partner's places back, if the request holds any; the second time does nothing. */
  releasePlace(): void {
    for (const giveBack of this.#givePlacesBack.splice(0)) giveBack();
  }
}

/** What a request says of who sends it. */
export interface Credential {
  /** The one Authorization header; undefined when it is absent or repeated. */
  readonly authorization: string | undefined;
  readonly clientAddress: string;
}

/** A call as its handler sees it. */
export class HandlerCall implements Call {
  readonly reply = { replayed: false };
  readonly requestId: string;
  readonly origin: Origin;
  #log: Logger | undefined;

  constructor(
    { requestId, span }: Visit,
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
