import { StoreLostError } from './counter-store.ts';
import { UntrustedEntryError } from './sealed-entry.ts';

/**
 * How long all replicas keep to their shares after an entry that is not believed. It doubles with each further one that comes
 * soon after, because each new start holds requests for a moment.
 */
const firstMs = 30_000;
const longestMs = 600_000;
/** A bucket that is lost again within this time is taken away by somebody. */
const lostAgainMs = 60_000;

/** When replicas keep to their shares because what they share makes no sense. Times are on the monotonic clock. */
export class SharedPause {
  #until = Number.NEGATIVE_INFINITY;
  #ms = 0;
  #storeLostAt = Number.NEGATIVE_INFINITY;

  isOn(now: number): boolean {
    return now < this.#until;
  }

  /** Whether a failure needs a pause: an entry that is not believed, or a bucket that is lost again and again. */
  isNeededFor(error: unknown, now: number): boolean {
    if (error instanceof UntrustedEntryError) return true;
    if (!(error instanceof StoreLostError)) return false;
    const isAgain = now - this.#storeLostAt < lostAgainMs;
    this.#storeLostAt = now;
    return isAgain;
  }

  /** How long the next pause is, in milliseconds. */
  next(now: number): number {
    const isSoonAfter = now - this.#until < longestMs;
    return isSoonAfter ? Math.min(2 * this.#ms, longestMs) : firstMs;
  }

  begin(now: number, ms: number): void {
    this.#ms = Math.min(ms, longestMs);
    this.#until = Math.max(this.#until, now + this.#ms);
  }
}
