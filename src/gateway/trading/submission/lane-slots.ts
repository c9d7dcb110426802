/** How many partners are worked on at once. */
const maxAtOnce = 4;
/** How many are worked on at once with those that wait for a lock. Each has a database connection, and requests need some too. */
const maxWithSlow = 10;
/** How many of these may be partners whose last try failed: they most likely wait for the same lock again, and others need slots. */
const maxFailed = 5;

/**
 * The work on partners' reports that may be under way at once, for all streams of a process one after another: a transaction
 * that waits for a lock outlives the stream that began it.
 */
export class LaneSlots {
  /** Those that count, because they are not known to wait for a lock. */
  #counted = 0;
  readonly #running = new Set<Promise<void>>();
  /** How many of these have failed before. */
  #failed = 0;
  readonly #whenFree = new Set<() => void>();

  /** Whether a partner may be worked on now, whose last try failed or did not. */
  isFree(hasFailed: boolean): boolean {
    if (hasFailed && this.#failed >= maxFailed) return false;
    return this.#counted < maxAtOnce && this.#running.size < maxWithSlow;
  }

  /** Calls `begin` whenever a slot may have become free, until the signal is aborted. */
  onFree(begin: () => void, signal: AbortSignal): void {
    this.#whenFree.add(begin);
    signal.addEventListener('abort', () => this.#whenFree.delete(begin), { once: true });
  }

  /** Runs work that never rejects in a slot. It no longer counts after `afterMs`. */
  run(work: () => Promise<void>, hasFailed: boolean, afterMs: number): Promise<void> {
    this.#counted += 1;
    this.#failed += Number(hasFailed);
    let isCounted = true;
    const release = () => {
      if (isCounted) this.#counted -= 1;
      isCounted = false;
    };
    const slow = setTimeout(() => {
      release();
      this.#free();
    }, afterMs);
    const running = work().then(() => {
      clearTimeout(slow);
      release();
      this.#failed -= Number(hasFailed);
      this.#running.delete(running);
      this.#free();
    });
    this.#running.add(running);
    return running;
  }

  /** Waits until nothing is under way, of no stream. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #free(): void {
    for (const begin of [...this.#whenFree]) begin();
  }
}
