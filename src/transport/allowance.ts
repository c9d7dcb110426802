/** How much of something is allowed: some at once, and some more each second. Times are in milliseconds, never going back. */
export class Allowance {
  #left: number;

  constructor(
    private readonly most: number,
    private readonly perSecond: number,
    private filledAt = performance.now(),
  ) {
    this.#left = most;
  }

  /** Takes some. Returns false when there is not so much; then nothing is left. */
  take(amount: number, now = performance.now()): boolean {
    // More than the most may have been given: that stays until it is used.
    const filled = this.#left + ((now - this.filledAt) * this.perSecond) / 1_000;
    this.#left = Math.max(this.#left, Math.min(this.most, filled)) - amount;
    this.filledAt = now;
    if (this.#left >= 0) return true;
    this.#left = 0;
    return false;
  }

  /** Allows some more. */
  give(amount: number): void {
    this.#left += amount;
  }
}
