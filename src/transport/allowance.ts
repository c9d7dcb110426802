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

  /** Takes some. Returns false when there is not so much; then nothing is taken. */
  take(amount: number, now = performance.now()): boolean {
    this.#fill(now);
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }

  /** Whether there is so much. Nothing is taken. */
  has(amount: number, now = performance.now()): boolean {
    this.#fill(now);
    return this.#left >= amount;
  }

  /** Takes some, or all that is left. */
  lose(amount: number, now = performance.now()): void {
    this.#fill(now);
    this.#left = Math.max(0, this.#left - amount);
  }

  /** Allows some more, also more than the most: it stays until it is used. */
  give(amount: number): void {
    this.#left += amount;
  }

  #fill(now: number): void {
    const filled = this.#left + ((now - this.filledAt) * this.perSecond) / 1_000;
    this.#left = Math.max(this.#left, Math.min(this.most, filled));
    this.filledAt = now;
  }
}
