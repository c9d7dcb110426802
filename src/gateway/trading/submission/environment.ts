import type { SystemClock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import { Wakeup, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import type { Fact } from '../../store/facts.ts';
import { statement } from '../../store/statement.ts';
import { defineTable, instant, optional, small, text, whole } from '../../store/table.ts';

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
        let failed = false;
        while (!signal.aborted) {
          try {
            await this.refresh();
            if (failed) log.info('the environment is read again');
            failed = false;
          } catch (error) {
            if (!failed) log.warn({ err: error }, 'the environment cannot be read, and is tried again until it can');
            failed = true;
          }
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

const row = 'environment WHERE id = 1';

/**
 * Whether trading is paused, inside a partner's transaction. The shared lock makes the transaction and `PauseTrading` wait
 * for each other: every commit after that call's answer was decided with the pause in force. The partner's row is
 * always locked before this row, and `PauseTrading` locks only this row, so they cannot deadlock. A database without the
 * row counts as paused.
 */
export const tradingPause: Fact<boolean> = {
  reads: [statement(`SELECT trading_paused_at FROM ${row} LOCK IN SHARE MODE`)],
  value: ([rows]) => rows?.[0]?.trading_paused_at !== null,
  expected: {
    value: false,
    // NOWAIT on MariaDB only: MySQL reads it as a comment.
    locks: [statement(`SELECT id FROM ${row} LOCK IN SHARE MODE /*M!100300 NOWAIT */`)],
    guards: [statement(`(SELECT trading_paused_at IS NULL FROM ${row})`)],
  },
};

/** Why nothing was sent, if a pause began between the store and the send. */
export const pausedBeforeSend = {
  outcome: 'never-left',
  evidence: 'trading was paused before it was sent',
  reason: 'Trading was paused before it was sent: it never left the gateway.',
} as const;
