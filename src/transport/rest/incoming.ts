import { type BodyBound, checkSize, discardBody, jsonBound, readBody } from './body.ts';
import type { Exchange } from './connection.ts';
import type { RequestHead } from './head.ts';
import type { RestLimits } from './limits.ts';

/** A request whose head was read. */
export class Incoming {
  constructor(
    readonly exchange: Exchange,
    readonly head: RequestHead,
    readonly clientAddress: string,
    private readonly limits: RestLimits,
  ) {}

  get method(): string {
    return this.exchange.request.method ?? '';
  }

  /**
   * Reads the body whole. Throws `request_too_large`, or what else the bound says, if the head says so before any of it
   * is asked for.
   */
  async readBody(bound: BodyBound = jsonBound): Promise<Buffer> {
    const { exchange } = this;
    checkSize(this.head, bound);
    if (exchange.awaitsContinue) exchange.response.writeContinue();
    const body = await readBody(exchange, this.limits.bodyTimeoutMs, bound);
    exchange.hasUnreadBody = false;
    return body;
  }

  /** A body where none belongs: taken off the connection if it is small, else the connection ends with the answer. */
  passOver(): void {
    const { exchange, head, limits } = this;
    if (!head.hasBody || exchange.awaitsContinue || (head.contentLength ?? 0) > limits.passedOverBytes) return;
    exchange.hasUnreadBody = false;
    discardBody(exchange.request);
  }
}
