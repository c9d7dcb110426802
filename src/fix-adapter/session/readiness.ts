const prefix = 'ready-';

/**
 * The TestRequests that show when orders may be sent. The Heartbeat that answers one comes behind everything that the other side
 * sends before it reads the test, its own ResendRequest included. So an order that is written afterwards does not fall into
 * numbers that the other side is about to ask for.
 *
 * No other sign counts. A Heartbeat without the test's TestReqID may have been sent before the test was read, and so may any
 * message: numbers show what was sent before, not what was read. An order behind a wrong sign could be gap-filled although it
 * was read, and would stay in doubt.
 */
export class Readiness {
  #last = 0;
  #firstValid = 1;
  #isProven = false;

  /** Whether a test was answered. */
  get isProven(): boolean {
    return this.#isProven;
  }

  /** The TestReqID of a further test. Answers to the earlier ones still count. */
  nextTest(): string {
    this.#last += 1;
    return `${prefix}${this.#last}`;
  }

  /** A gap fill of ours passed over the tests until now: the other side does not read them any more. */
  testsPassedOver(): void {
    this.#firstValid = this.#last + 1;
    this.#isProven = false;
  }

  /** A Heartbeat came. */
  heartbeat(testReqId: string | undefined): void {
    const [, digits] = /^ready-(\d{1,9})$/.exec(testReqId ?? '') ?? [];
    const test = Number(digits ?? 0);
    if (test >= this.#firstValid && test <= this.#last) this.#isProven = true;
  }
}
