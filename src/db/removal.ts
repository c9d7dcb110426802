import type { RemovalTime } from '../lib/clock.ts';
import { pause, type Worker } from '../lib/worker.ts';
import type { Database } from './database.ts';
import { underLease } from './lease.ts';

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
 * A worker that removes what is old, in one process at a time and in small batches, while clocks agree. `remove` removes a
 * batch by the given time, and answers whether there may be more.
 */
export function removalWorker(options: RemovalOptions, remove: (now: number) => Promise<boolean>): Worker {
  const { database, holder, timeOf, name, restMs } = options;
  return underLease(database, name, holder, async ({ signal }) => {
    while (!signal.aborted) {
      const now = await timeOf(name);
      const hasMore = now !== undefined && (await remove(now));
      if (!hasMore) await pause(restMs, signal);
    }
  });
}
