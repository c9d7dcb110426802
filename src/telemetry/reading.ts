import { atMost } from '../lib/at-most.ts';

/** How old what was read may be: many who scrape cost no more than one. */
const usableMs = 1_000;

/**
 * Reads a figure from outside the process and shows it. Nobody waits long for it: while the read is late, the figure is
 * absent. A read that hangs is not begun a second time.
 */
export class Reading<T> {
  #startedAt = Number.NEGATIVE_INFINITY;
  #underWay: Promise<void> | undefined;

  constructor(
    private readonly read: () => Promise<T>,
    /** Shows what was read; undefined: it could not be read, or not yet. */
    private readonly show: (value: T | undefined) => void,
  ) {}

  /** Shows the figure as it is now, or that it is late. Never throws. */
  async refresh(withinMs: number): Promise<void> {
    if (this.#underWay === undefined) {
      if (performance.now() - this.#startedAt < usableMs) return;
      this.#startedAt = performance.now();
      this.#underWay = this.#read();
    }
    if (!(await atMost(withinMs, this.#underWay))) this.show(undefined);
  }

  async #read(): Promise<void> {
    try {
      this.show(await this.read());
    } catch {
      this.show(undefined);
    } finally {
      this.#underWay = undefined;
    }
  }
}
