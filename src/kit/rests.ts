/** Failures after each of which something is left alone for a while. Times are milliseconds of a monotonic clock. */
export class Rests {
  readonly #until = new Map<string, number>();

  constructor(
    private readonly restMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** The number of those that failed when they were last tried. */
  get size(): number {
    return this.#until.size;
  }

  /** The ids that failed when they were last tried. */
  get failed(): readonly string[] {
    return [...this.#until.keys()];
  }

  /** Of these, the ones that are not tried again yet. */
  get resting(): readonly string[] {
    return this.failed.filter((id) => this.isResting(id));
  }

  hasFailed(id: string): boolean {
    return this.#until.has(id);
  }

  isResting(id: string): boolean {
    return (this.#until.get(id) ?? Number.NEGATIVE_INFINITY) > this.now();
  }

  /** It failed, for the first time or again: it rests from now on. */
  rest(id: string): void {
    this.#until.set(id, this.now() + this.restMs);
  }

  /** It did not fail. */
  end(id: string): void {
    this.#until.delete(id);
  }
}
