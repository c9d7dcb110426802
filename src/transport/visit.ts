import { randomUUID } from 'node:crypto';
import type { Call, Caller } from '../auth/call.ts';
import type { Logger } from '../lib/log.ts';
import type { Operation } from './operations.ts';

/** Where a request came in. */
export type Door = 'rest' | 'grpc' | 'connect';

/** One request on its way through a door, from its first line to its answer. */
export class Visit {
  readonly requestId = randomUUID();
  readonly startedMs = performance.now();
  operation: Operation | undefined;
  caller: Caller | undefined;
  /** With what the caller was identified, for streams, whose caller is looked at again. */
  credential: Credential | undefined;
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

/** What a request says of who sends it. */
export interface Credential {
  /** The one Authorization header; undefined when it is absent or repeated. */
  readonly authorization: string | undefined;
  readonly clientAddress: string;
}

/** A call as its handler sees it. */
export class HandlerCall implements Call {
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
