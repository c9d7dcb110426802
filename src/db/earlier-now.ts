import type { Clock } from '../lib/clock.ts';
import type { Database } from './database.ts';
import { statement } from './statement.ts';

/**
 * Business time by this process's clock or by the database's, whichever is earlier. What is removed for its age is gone for
 * good. So a process whose own clock is ahead must not remove what is not old yet.
 */
export async function earlierNow(database: Database, clock: Clock): Promise<number> {
  const [row] = await database.read(statement('SELECT NOW(3) AS now'));
  if (row === undefined) throw new Error('the database does not tell the time');
  return Math.min(clock.now(), (row.now as Date).getTime() + clock.now() - clock.realNow());
}
