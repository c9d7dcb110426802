import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../db/database.ts';
import { type Statement, statement } from '../db/statement.ts';
import { defineTable, instant, optional, type ShownBy, small, text, whole } from '../db/table.ts';
import { Clock } from '../gen/marina/admin/v1/clock_pb.ts';
import { Trading } from '../gen/marina/admin/v1/trading_pb.ts';
import type { SystemClock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import { Wakeup, type Worker } from '../lib/worker.ts';
import { audit } from './audit.ts';
import { type AdminCall, AdminError, type AdminParts, adminService, invalidField } from './call.ts';

/** How long a change made by another process can stay unknown when the message about it is lost. */
const pollMs = 500;
const longestAdvanceMs = 400 * 86_400_000;

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

const state = environments.only('clockOffsetMs', 'tradingPausedAt');

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
    const [row] = await this.database.read(environments.find({ id: 1 }, state));
    if (row === undefined || number < this.#used) return;
    this.#used = number;
    const { tradingPausedAt, clockOffsetMs } = state.read(row);
    this.#paused = tradingPausedAt !== null;
    this.clock.moveTo(Number(clockOffsetMs));
  }
}

export interface EnvironmentParts extends AdminParts {
  readonly clock: SystemClock;
  readonly environment: EnvironmentState;
  /** Notifies the other processes. */
  readonly changed: () => void;
  /** Moves the simulator's clock to an offset; undefined where there is no simulator. */
  readonly moveSimulator: ((offsetMs: bigint) => Promise<void>) | undefined;
}

/** The operators' calls that pause trading, and that advance the clock of a sandbox. */
export function environmentServices({ database, clock, environment, changed, moveSimulator }: EnvironmentParts) {
  /** Changes the environment. This process knows at once, the others when the notification comes or when they poll. */
  async function change<T>(decide: (before: ShownBy<typeof state>) => { writes: Statement[]; result: T }) {
    const lock = environments.find({ id: 1 }, state, statement('FOR UPDATE'));
    const result = await database.transaction([lock], ([rows]) => {
      const row = rows?.[0];
      if (row === undefined) throw new Error('the database has no environment');
      return decide(state.read(row));
    });
    await environment.refresh();
    changed();
    return result;
  }

  async function setPaused(paused: boolean, { reason }: { readonly reason: string }, call: AdminCall) {
    const isChanged = await change(({ tradingPausedAt }) => {
      const isPaused = tradingPausedAt !== null;
      if (isPaused === paused) return { writes: [], result: false };
      const at = clock.now();
      const entry = { detail: { reason }, before: { paused: isPaused }, after: { paused } };
      const set = environments.set({ id: 1 }, { tradingPausedAt: paused ? at : null });
      return { writes: [set, audit(call, at, entry)], result: true };
    });
    return { changed: isChanged };
  }

  const trading = adminService(Trading, {
    pauseTrading: (request, call) => setPaused(true, request, call),
    resumeTrading: (request, call) => setPaused(false, request, call),
  });

  const advance = adminService(Clock, {
    async advanceClock({ by }, call) {
      const { seconds, nanos } = by ?? { seconds: 0n, nanos: 0 };
      const byMs = Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
      if (seconds < 0n || nanos < 0 || nanos > 999_999_999 || byMs > longestAdvanceMs) {
        throw invalidField('by', 'must be 0 to 400 days.');
      }
      const offsetMs = await change(({ clockOffsetMs: before }) => {
        const after = before + BigInt(byMs);
        const entry = { detail: { byMs }, before: { offsetMs: Number(before) }, after: { offsetMs: Number(after) } };
        const writes = [environments.set({ id: 1 }, { clockOffsetMs: after }), audit(call, clock.now(), entry)];
        return { writes, result: after };
      });
      try {
        await moveSimulator?.(offsetMs);
      } catch (error) {
        throw new AdminError(
          status.UNAVAILABLE,
          'the gateway moved, and the simulator did not: advance by 0 to try again',
          { cause: error },
        );
      }
      return { now: timestampFromMs(clock.now()), offsetMs };
    },
  });

  return { trading, clock: advance };
}
