import { pause } from '../../lib/worker.ts';

/** Spreads messages over time: so many in a second as the exchange takes, in the order in which they came. */
export class Throttle {
  /** When the next message may be sent, by the monotonic clock. */
  #nextAt = 0;

  constructor(
    private readonly perSecond: number,
    readonly stopping: AbortSignal,
  ) {}

  /** Waits for a turn. False, at once, if it would not come within this time. */
  async take(withinMs: number): Promise<boolean> {
    const now = performance.now();
    // What was not used for a second is lost, so that no burst is longer than a second's messages.
    this.#nextAt = Math.max(this.#nextAt, now - 1_000);
    const waitMs = Math.max(0, this.#nextAt - now);
    if (waitMs > withinMs || this.stopping.aborted) return false;
    this.#nextAt += 1_000 / this.perSecond;
    if (waitMs > 0) await pause(waitMs, this.stopping);
    return !this.stopping.aborted;
  }
}
