import type { Database } from './database.ts';

/** More often than the server closes connections that are silent. */
const heartbeatMs = 20_000;

/**
 * Runs work while this process alone has a lock of that name on this database. The server gives it back when the process
 * ends, however it ends. Undefined if another process has it for longer than a few seconds. Takes one connection.
 * `isHeld` asks the server whether it is still so: it is not after the connection was lost.
 */
export async function underServerLock<T>(
  database: Database,
  name: string,
  waitSeconds: number,
  work: (isHeld: () => Promise<boolean>) => Promise<T>,
): Promise<T | undefined> {
  let outcome: { readonly result: T } | { readonly error: unknown } | undefined;
  await database.manage(async (manager) => {
    // Names are the server's, not the database's, and at most 64 characters long.
    const lock = `CONCAT('marina-', ?, '-', LEFT(SHA2(DATABASE(), 256), 32))`;
    const [row] = await manager.query(`SELECT GET_LOCK(${lock}, ?) AS taken`, [name, waitSeconds]);
    if (Number(row?.taken) !== 1) return;
    const isHeld = async () => {
      const ask = manager.query(`SELECT IS_USED_LOCK(${lock}) = CONNECTION_ID() AS held`, [name]);
      return Number((await ask.catch(() => []))[0]?.held) === 1;
    };
    const heartbeat = setInterval(isHeld, heartbeatMs);
    try {
      outcome = { result: await work(isHeld) };
    } catch (error) {
      // `manage` takes every error for one of the database.
      outcome = { error };
    } finally {
      clearInterval(heartbeat);
      // A connection that is lost has given it back.
      await manager.query(`SELECT RELEASE_LOCK(${lock})`, [name]).catch(() => {});
    }
  });
  if (outcome === undefined) return undefined;
  if ('error' in outcome) throw outcome.error;
  return outcome.result;
}
