/** How many cancels of jobs are under way at once: few, because partners' orders go over the same connection. */
const maxAtOnce = 4;
/** The waits after failures in a row. */
const restMs = { first: 1_000, longest: 30_000 };

/**
 * The rate at which jobs send cancels. After a cancel without a clear answer, or while the broker is away, they wait, and send
 * one at a time until the broker answers again: otherwise each order of a job would be left unconfirmed. Times are milliseconds
 * of a monotonic clock.
 */
export class Pace {
  #nextAt = Number.NEGATIVE_INFINITY;
  #failures = 0;

  constructor(
    private readonly perSecond: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  get atOnce(): number {
    return this.#failures === 0 ? maxAtOnce : 1;
  }

  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** How long to wait before the next cancel. */
  get waitMs(): number {
    return Math.max(0, this.#nextAt - this.now());
  }

  /** Takes the next turn to send. The cancel may be sent after so long. */
  take(): number {
    const at = Math.max(this.#nextAt, this.now());
    this.#nextAt = at + 1_000 / this.perSecond;
    return at - this.now();
  }

  /** The broker gave a clear answer. */
  answered(): void {
    this.#failures = 0;
  }

  /** The broker is away, or gave no clear answer. */
  failed(): void {
    const waitMs = Math.min(restMs.longest, restMs.first * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 10);
    this.#nextAt = Math.max(this.#nextAt, this.now() + waitMs);
  }
}
