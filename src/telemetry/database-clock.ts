import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import type { Clock } from '../lib/clock.ts';

/** What the database's clock says, beside ours. */
export interface DatabaseClock {
  /** How far it is ahead of ours, as near as half a round trip lets it be told. */
  readonly aheadMs: number;
  readonly roundTripMs: number;
  /** The server's version. */
  readonly version: string;
}

/** Compares the database's clock, by which leases go, with this process's. */
export async function readDatabaseClock(database: Database, clock: Clock): Promise<DatabaseClock> {
  const askedAt = clock.realNow();
  const startedAt = performance.now();
  const [row] = await database.read(statement('SELECT NOW(3) AS now, VERSION() AS version'));
  if (row === undefined) throw new Error('the database does not tell the time');
  const roundTripMs = Math.round(performance.now() - startedAt);
  const aheadMs = (row.now as Date).getTime() - (askedAt + Math.round(roundTripMs / 2));
  return { aheadMs, roundTripMs, version: String(row.version) };
}
