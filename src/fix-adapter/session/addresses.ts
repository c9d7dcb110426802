/**
 * Which of several addresses of one session is tried: the first one at the begin of each session day; the same one again after a
 * session over it had come up; the next one, and the first after the last, after a try that did not come up.
 */
export class SessionAddresses {
  #at = 0;
  #startedAt: number | undefined;

  constructor(private readonly all: readonly string[]) {}

  /** The address of the next try, on the session day that began then. */
  next(startedAt: number): string {
    if (this.#startedAt !== startedAt) this.#at = 0;
    this.#startedAt = startedAt;
    return this.all[this.#at % this.all.length] ?? '';
  }

  /** A try is over. */
  ended(wasUp: boolean): void {
    if (!wasUp) this.#at = (this.#at + 1) % this.all.length;
  }
}
