import type { Database } from '../../store/database.ts';
import type { Statement } from '../../store/statement.ts';
import { newestRun } from './store.ts';
import { type ComparedDay, comparedDay, reconciliationRuns, type StoredRun } from './table.ts';

/** A run to start. */
export interface RunStart {
  readonly startedBy: string | null;
  readonly now: number;
  /** Only if the day has no run yet. */
  readonly onlyFirst?: boolean;
}

/**
 * Starts a run of a day, or goes on with the one that has not ended. `alsoWrites` is in the same transaction. Answers the run as
 * it was then.
 */
export function startRun(
  database: Database,
  of: ComparedDay,
  { startedBy, now, onlyFirst = false }: RunStart,
  alsoWrites: readonly Statement[] = [],
): Promise<StoredRun | undefined> {
  return database.transaction<StoredRun | undefined>([newestRun(of, true)], ([rows = []]) => {
    const [row] = rows;
    const before = row && reconciliationRuns.all.read(row);
    if (before !== undefined && onlyFirst) return { writes: [], result: undefined };
    if (before !== undefined && before.nextAt !== null) {
      const again = { ...before, nextAt: Math.min(before.nextAt, now) };
      return { writes: [...alsoWrites, ...reconciliationRuns.update(before, again)], result: again };
    }
    const run = newRun(of, (before?.number ?? 0) + 1, startedBy, now);
    // Of two that start the first run of a day at once, one starts it, and the other goes on with it.
    return { writes: [...alsoWrites, reconciliationRuns.put(run, 'nextAt')], result: run };
  });
}

function newRun(of: ComparedDay, number: number, startedBy: string | null, now: number): StoredRun {
  return {
    ...{
      ...comparedDay(of),
      number,
      startedBy,
      state: 'waiting',
      startedAt: now,
      endedAt: null,
      nextAt: now,
      tries: 0,
      problem: '',
    },
    ...{ step: 'clear', position: '', periodFrom: null, periodTo: null },
    ...{ records: 0n, objects: 0n, breaks: 0n, tookMs: 0n },
  };
}
