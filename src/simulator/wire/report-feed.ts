import { Waiters } from '../../kit/worker.ts';

/** How many of the newest reports are in memory. Slower streams read the table. */
const maxHeld = 20_000;

/** Reads recorded reports above a number, up to the last that readers may see. */
export type ReadReports<Report> = (number: number, last: number, limit: number) => Promise<Report[]>;

/** The committed reports of one kind in the order of their numbers, for any number of readers. */
export class ReportFeed<Report extends { readonly number: number }> {
  #held: Report[] = [];
  #last = 0;
  readonly #waiters = new Waiters();

  constructor(private readonly recorded: ReadReports<Report>) {}

  /** The number of the newest committed report. */
  get last(): number {
    return this.#last;
  }

  publish(reports: readonly Report[]): void {
    const newest = reports.at(-1);
    if (newest === undefined) return;
    for (const report of reports) this.#held.push(report);
    if (this.#held.length > maxHeld) this.#held = this.#held.slice(-maxHeld / 2);
    this.#moveTo(newest.number);
  }

  /** Continues from the table's last number: after a start, or after a commit with an unknown outcome. */
  restart(lastNumber: number): void {
    this.#held = [];
    this.#moveTo(lastNumber);
  }

  /** The next reports above a number, if there are any yet. */
  async after(number: number, limit: number): Promise<Report[]> {
    if (number >= this.#last) return [];
    const first = this.#held[0]?.number;
    if (first !== undefined && number + 1 >= first) {
      const from = number + 1 - first;
      return this.#held.slice(from, from + limit);
    }
    return this.recorded(number, this.#last, limit);
  }

  /** Waits for a report above a number, at most the given time or until the signal is aborted. */
  changed(number: number, timeoutMs: number, signal: AbortSignal): Promise<void> {
    return number < this.#last ? Promise.resolve() : this.#waiters.wait(timeoutMs, signal);
  }

  #moveTo(number: number): void {
    this.#last = number;
    this.#waiters.wakeAll();
  }
}
