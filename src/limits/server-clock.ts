/** What a clock says that is seen from afar, in milliseconds: between the two. */
export interface Instant {
  readonly atLeast: number;
  readonly atMost: number;
}

interface Look {
  readonly said: number;
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** A look that is older says nothing more: clocks run apart. */
const keptMs = 30_000;
/** The server's times are cut to whole milliseconds. */
const grainMs = 1;

/**
 * The NATS server's clock, so that replicas agree on a time without comparing their own clocks. It is known as exactly
 * as the fastest answer of the last half minute was fast.
 */
export class ServerClock {
  #best: Look | undefined;

  constructor(private readonly monotonicNow: () => number = () => performance.now()) {}

  /**
   * Takes note of what the server said the time was.
   *
   * @param said The server's time, in milliseconds.
   * @param sentAt When the question was sent, on this process's monotonic clock.
   * @param answeredAt When it had the answer.
   */
  learn(said: number, sentAt: number, answeredAt: number): void {
    const best = this.#best;
    const isOld = best === undefined || answeredAt - best.answeredAt > keptMs;
    // One that contradicts what was known is from a clock that was set, or from another server.
    const known = best && this.#instantBy(best, answeredAt);
    const contradicts =
      known !== undefined && (said - known.atMost > 0 || known.atLeast - (said + grainMs + (answeredAt - sentAt)) > 0);
    if (isOld || contradicts || answeredAt - sentAt <= best.answeredAt - best.sentAt) {
      this.#best = { said, sentAt, answeredAt };
    }
  }

  /** Forgets what it knows: there may be another server. */
  forget(): void {
    this.#best = undefined;
  }

  /** What the server's clock says now. Throws where that is not known. */
  now(): Instant {
    if (this.#best === undefined) throw new Error("the server's clock is not known");
    return this.#instantBy(this.#best, this.monotonicNow());
  }

  #instantBy({ said, sentAt, answeredAt }: Look, now: number): Instant {
    return { atLeast: said + (now - answeredAt), atMost: said + grainMs + (now - sentAt) };
  }
}
