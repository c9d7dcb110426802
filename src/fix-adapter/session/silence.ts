/** A side that says nothing for so many times its heartbeat is tested. */
const testAfter = 1.2;
/** A side that says nothing for so many times its heartbeat is gone: the time of a test and of its answer are over. */
const goneAfter = 2.4;

/**
 * How long the other side has said nothing on one connection. Only whole messages count: bytes alone are no sign of life, because a
 * wrong length makes all that follows a part of one message. All times are of the monotonic clock, in milliseconds.
 */
export class Silence {
  #readAt: number;
  /** Whether it was tested since it said something. */
  #isTested = false;

  constructor(
    private readonly heartbeatMs: number,
    now: number,
  ) {
    this.#readAt = now;
  }

  /** A message came. */
  read(now: number): void {
    this.#readAt = now;
    this.#isTested = false;
  }

  /** Returns the action that is due now. `test`: a TestRequest, once for each silence. */
  due(now: number): 'nothing' | 'test' | 'gone' {
    const silentMs = now - this.#readAt;
    if (silentMs > this.heartbeatMs * goneAfter) return 'gone';
    if (silentMs <= this.heartbeatMs * testAfter || this.#isTested) return 'nothing';
    this.#isTested = true;
    return 'test';
  }
}
