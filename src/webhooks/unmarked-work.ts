import type { Database } from '../db/database.ts';
import { findUnmarked, markDue } from './endpoint-store.ts';

const mostReadAtOnce = 500;

/**
 * Marks the endpoints that have something to be sent now and are not marked so, because an earlier version queued it, or
 * a clock that was ahead put it off. Only marked endpoints are found by the poll for work. To mark one twice, or one whose
 * work was just done, changes nothing.
 */
export async function markUnmarkedWork(database: Database, now: number, signal?: AbortSignal): Promise<void> {
  for (let after = ''; signal?.aborted !== true; ) {
    const rows = await database.read(findUnmarked(after, now, mostReadAtOnce));
    const unmarked = rows.filter((row) => Number(row.is_unmarked) === 1).map((row) => String(row.partner_id));
    if (unmarked.length > 0) await database.write(markDue(unmarked, now));
    if (rows.length < mostReadAtOnce) return;
    after = String(rows.at(-1)?.partner_id);
  }
}
