import type { Database } from '../db/database.ts';
import { defineTable, instant, optional, small, text, whole } from '../db/table.ts';
import type { SystemClock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import { Wakeup, type Worker } from '../lib/worker.ts';

/** How long a change made by another process can stay unknown when the message about it is lost. */
const pollMs = 500;

/** One row: which environment the database belongs to, and what holds for all partners. */
export const environments = defineTable({
  name: 'environment',
  columns: {
    id: small(),
    name: text(16),
    clockOffsetMs: whole(),
    tradingPausedAt: optional(instant()),
  },
  primary: ['id'],
});

/** What of it changes. */
export const environmentState = environments.only('clockOffsetMs', 'tradingPausedAt');

/** What holds for the whole environment, read again and again: whether trading is paused, how far the clock is ahead. */
export class EnvironmentState {
  readonly wakeup = new Wakeup();
  readonly worker: Worker;
  #begun = 0;
  #used = 0;
  #paused = false;

  constructor(
    private readonly database: Pick<Database, 'read'>,
    private readonly clock: SystemClock,
    log: Logger,
  ) {
    this.worker = {
      name: 'environment',
      run: async (signal) => {
        while (!signal.aborted) {
          await this.refresh().catch((error: unknown) => log.warn({ err: error }, 'the environment could not be read'));
          await this.wakeup.wait(pollMs, signal);
        }
      },
    };
  }

  /** Whether trading is paused, as far as this process knows. What is stored is decided in its transaction instead. */
  get paused(): boolean {
    return this.#paused;
  }

  /** Reads the environment now. A read that began earlier and ends later changes nothing. */
  async refresh(): Promise<void> {
    this.#begun += 1;
    const number = this.#begun;
    const [row] = await this.database.read(environments.find({ id: 1 }, environmentState));
    if (row === undefined || number < this.#used) return;
    this.#used = number;
    const { tradingPausedAt, clockOffsetMs } = environmentState.read(row);
    this.#paused = tradingPausedAt !== null;
    this.clock.moveTo(Number(clockOffsetMs));
  }
}
