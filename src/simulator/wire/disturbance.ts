/** How a stream misbehaves: the number of its next reports, or pairs of them, for each kind. */
export interface Disturbance {
  readonly repeat: number;
  readonly swap: number;
  readonly omit: number;
}

/** The misbehaviour of one stream. It changes what is sent, never what is recorded. */
export class Disturber<T> {
  #repeat = 0;
  #swap = 0;
  #omit = 0;
  /** The first of a pair, held back until the second comes. */
  #held: T | undefined;

  add(disturbance: Disturbance): void {
    this.#repeat += disturbance.repeat;
    this.#swap += disturbance.swap;
    this.#omit += disturbance.omit;
  }

  get holds(): boolean {
    return this.#held !== undefined;
  }

  /** Returns the reports to send: first some are dropped, then pairs are swapped, then some are repeated. */
  apply(reports: readonly T[]): T[] {
    const sent: T[] = [];
    for (const report of reports) {
      if (this.#omit > 0) {
        this.#omit -= 1;
      } else if (this.#held !== undefined) {
        const first = this.#held;
        this.#held = undefined;
        this.#swap -= 1;
        this.#send(report, sent);
        this.#send(first, sent);
      } else if (this.#swap > 0) {
        this.#held = report;
      } else {
        this.#send(report, sent);
      }
    }
    return sent;
  }

  /** Stops waiting for the second of a pair. The first is sent alone and counts as one. */
  release(): T[] {
    const sent: T[] = [];
    if (this.#held === undefined) return sent;
    this.#send(this.#held, sent);
    this.#held = undefined;
    this.#swap -= 1;
    return sent;
  }

  #send(report: T, sent: T[]): void {
    sent.push(report);
    if (this.#repeat === 0) return;
    this.#repeat -= 1;
    sent.push(report);
  }
}
