import type { SystemClock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import { Wakeup, type Worker } from '../../../kit/worker.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Database } from '../../store/database.ts';
import type { Fact } from '../../store/facts.ts';
import { statement } from '../../store/statement.ts';
import { defineTable, instant, optional, small, text, whole } from '../../store/table.ts';
import { type Affected, type OpenStop, stopOf, stopSentence } from '../stops/rules.ts';
import { openStop, readOpenStops } from '../stops/table.ts';

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
    /** Grows whenever a stop begins or ends. */
    stopsVersion: whole(),
  },
  primary: ['id'],
});

/** What of it changes. */
export const environmentState = environments.only('clockOffsetMs', 'tradingPausedAt', 'stopsVersion');

/** The pause and the stops that operators have begun. */
export interface InForce {
  readonly paused: boolean;
  /** The open stops. */
  readonly stops: readonly OpenStop[];
}

/** One statement, so that the stops are those of the version, whichever server answers. */
const readEnvironment = statement(
  `SELECT e.clock_offset_ms, e.trading_paused_at, e.stops_version, s.id, s.target, s.value, s.actions, s.ends_at
    FROM environment e LEFT JOIN stops s FORCE INDEX (stops_ended_at) ON s.ended_at IS NULL WHERE e.id = 1`,
);

/** What holds for the whole environment, read again and again: what is paused or stopped, how far the clock is ahead. */
export class EnvironmentState {
  readonly wakeup = new Wakeup();
  readonly worker: Worker;
  #begun = 0;
  #used = 0;
  #inForce: InForce = { paused: false, stops: [] };
  #stopsVersion = 0n;

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
    return this.#inForce.paused;
  }

  /** The open stops that this process knows. */
  get stops(): readonly OpenStop[] {
    return this.#inForce.stops;
  }

  /** The version of these stops. */
  get stopsVersion(): bigint {
    return this.#stopsVersion;
  }

  /** Why something that is stored must not be sent, as far as this process knows; undefined: it may be. */
  obstacleTo(affected: Affected): typeof pausedBeforeSend | ReturnType<typeof stoppedBeforeSend> | undefined {
    if (this.#inForce.paused) return pausedBeforeSend;
    const stop = stopOf(this.#inForce.stops, affected, this.clock.now());
    return stop && stoppedBeforeSend(stop);
  }

  /** Reads the environment now. A read that began earlier and ends later changes nothing. */
  async refresh(): Promise<void> {
    this.#begun += 1;
    const number = this.#begun;
    const rows = await this.database.read(readEnvironment);
    const [row] = rows;
    if (row === undefined || number < this.#used) return;
    this.#used = number;
    const { tradingPausedAt, clockOffsetMs, stopsVersion } = environmentState.read(row);
    const stops = rows.flatMap((each) => (each.id === null ? [] : openStop.read(each)));
    this.#inForce = { paused: tradingPausedAt !== null, stops };
    this.#stopsVersion = stopsVersion;
    this.clock.moveTo(Number(clockOffsetMs));
  }
}

const row = 'environment WHERE id = 1';

/**
 * The pause and the stops, inside a partner's transaction. The shared lock makes the transaction and `PauseTrading` or
 * `AddStop` wait for each other: every commit after that call's answer was decided with the pause or stop in force. The
 * partner's row is always locked before this row, and these calls lock only this row and stops, so they cannot deadlock. A
 * database without the row counts as paused.
 */
export function inForceFact(known: Pick<EnvironmentState, 'stops' | 'stopsVersion'>): Fact<InForce> {
  return {
    reads: [statement(`SELECT trading_paused_at FROM ${row} LOCK IN SHARE MODE`), readOpenStops],
    value: ([rows, open = []]) => ({
      paused: rows?.[0]?.trading_paused_at !== null,
      stops: open.map(openStop.read),
    }),
    get expected() {
      const { stops, stopsVersion } = known;
      return {
        value: { paused: false, stops },
        // NOWAIT on MariaDB only: MySQL reads it as a comment.
        locks: [statement(`SELECT id FROM ${row} LOCK IN SHARE MODE /*M!100300 NOWAIT */`)],
        guards: [statement(`(SELECT trading_paused_at IS NULL AND stops_version = ? FROM ${row})`, stopsVersion)],
      };
    },
  };
}

/** The refusal of what is paused or stopped; undefined: it may be stored. `now` is business time. */
export function refusalBy({ paused, stops }: InForce, affected: Affected, now: number): ApiError | undefined {
  if (paused) return new ApiError('trading_paused');
  const stop = stopOf(stops, affected, now);
  return stop && new ApiError('trading_paused', { message: stopSentence(stop, affected) });
}

/** Why nothing was sent, if a pause began between the store and the send. */
export const pausedBeforeSend = {
  outcome: 'never-left',
  evidence: 'trading was paused before it was sent',
  reason: 'Trading was paused before it was sent: it never left the gateway.',
} as const;

/** The same for a stop. */
function stoppedBeforeSend({ id }: OpenStop) {
  return {
    outcome: 'never-left',
    evidence: `the stop ${id} began before it was sent`,
    reason: 'It was stopped before it was sent: it never left the gateway.',
  } as const;
}
