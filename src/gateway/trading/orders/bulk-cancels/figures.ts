import type { Clock } from '../../../../kit/clock.ts';
import type { Database } from '../../../store/database.ts';
import { milliseconds } from '../../../store/statement.ts';
import { countRunning } from './table.ts';

export type RunningFigures = Awaited<ReturnType<typeof readRunning>>;

/** The jobs that run, the orders that they have left, and for how long no order of one of them got a result. */
export async function readRunning(database: Database, clock: Clock) {
  const [row] = await database.read(countRunning);
  const oldest = milliseconds(row?.oldest ?? null);
  return {
    jobs: Number(row?.jobs),
    ordersLeft: Number(row?.orders_left),
    idleMs: oldest === null ? 0 : Math.max(0, clock.now() - oldest),
  };
}
