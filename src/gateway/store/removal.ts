import type { RemovalTime } from '../../kit/clock.ts';
import { pause, type Worker } from '../../kit/worker.ts';
import type { Database } from './database.ts';
import { underLease } from './lease.ts';
import type { Statement } from './statement.ts';

/** Rows in a batch. It doubles while batches are short, and halves after a long one. */
const rows = { first: 500, least: 100, most: 4_000 };
/** A batch is short below the first and long above the second, in milliseconds. */
const batchMs = { short: 40, long: 120 };
/**
 * While more is old, the worker rests so many times as long as its batch took. So removal never takes more than a tenth of
 * one connection's time, however slow the server is.
 */
const restsFor = 9;
/** How long it rests while it may not remove anything, in milliseconds: at the start the broker has not stated its time for a moment. */
const unsureMs = 1_000;

/** Rows that a worker removes. */
export interface RemovedRows {
  /** The name of the worker. */
  readonly name: string;
  /** How long they are kept, in milliseconds. */
  readonly keptMs: number;
  /** Finds the instant `oldest` of the oldest of them; null or no row if there is none. */
  readonly oldest: Statement;
  /** Whether `oldest` is in real time; by default it is in business time. */
  readonly isReal?: boolean;
}

export interface RemovalOptions {
  readonly database: Database;
  readonly holder: string;
  readonly timeOf: RemovalTime;
  /** Of the worker and its lease. */
  readonly name: string;
  /** How long it rests when nothing more is old. */
  readonly restMs: number;
}

/**
 * A worker that removes old rows, in one process at a time, while clocks agree. `remove` removes a batch of at most so many
 * rows by the given time, in short transactions. It answers how many it found: fewer mean that nothing more is old.
 */
export function removalWorker(
  { database, holder, timeOf, name, restMs }: RemovalOptions,
  remove: (now: number, most: number) => Promise<number>,
): Worker {
  return underLease(database, name, holder, async ({ signal }) => {
    let most = rows.first;
    while (!signal.aborted) {
      const now = await timeOf(name);
      if (now === undefined) {
        await pause(Math.min(unsureMs, restMs), signal);
        continue;
      }
      const startedAt = performance.now();
      const found = await remove(now, most);
      const tookMs = performance.now() - startedAt;
      await pause(found < most ? restMs : tookMs * restsFor, signal);
      if (tookMs > batchMs.long) most = Math.max(rows.least, most / 2);
      else if (tookMs < batchMs.short) most = Math.min(rows.most, most * 2);
    }
  });
}
