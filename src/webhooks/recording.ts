import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { crash } from '../lib/crash.ts';
import type { Logger } from '../lib/log.ts';
import { pause, Wakeup } from '../lib/worker.ts';
import { type EndpointsAfter, type Result, recordResults } from './results.ts';

const mostAtOnce = 500;
/** How long the first of some attempts waits for others, so that under load they are recorded together. */
const lingerMs = 4;
const idleMs = 1_000;
const firstRetryMs = 50;
const longestRetryMs = 1_000;

export interface RecordingOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when results were recorded, or were another's to record, with their endpoints as they are since. */
  readonly onRecorded: (results: readonly Result[], endpoints: EndpointsAfter) => void;
}

/**
 * Records attempts in batches, in the order in which they ended. What cannot be recorded now is tried again until it is
 * or the process stops; how many wait is bounded by those who make attempts, who stop at a number.
 */
export class Recording {
  #waiting: Result[] = [];
  readonly #wakeup = new Wakeup();

  constructor(private readonly options: RecordingOptions) {}

  add(result: Result): void {
    this.#waiting.push(result);
    if (this.#waiting.length === 1 || this.#waiting.length >= mostAtOnce) this.#wakeup.wake();
  }

  /** Runs until the signal is aborted; then what waits is tried once more. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let retryMs = firstRetryMs;
    for (;;) {
      if (this.#waiting.length === 0) {
        if (signal.aborted) return;
        await this.#wakeup.wait(idleMs, signal);
        continue;
      }
      if (this.#waiting.length < mostAtOnce) await pause(lingerMs, signal);
      const batch = this.#waiting.slice(0, mostAtOnce);
      const isLast = signal.aborted;
      try {
        const endpoints = await recordResults(this.options.database, batch, this.options.clock.now());
        this.#waiting = this.#waiting.slice(batch.length);
        retryMs = firstRetryMs;
        crash('delivery.recorded');
        this.options.onRecorded(batch, endpoints);
      } catch (error) {
        this.options.log.warn({ err: error, count: batch.length }, 'webhook attempts could not be recorded');
        if (isLast) return;
        await pause(retryMs, signal);
        retryMs = Math.min(retryMs * 2, longestRetryMs);
      }
    }
  }
}
