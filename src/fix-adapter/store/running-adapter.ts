import { fixMigrations } from '../../../migrations/fix/index.ts';
import type { Database } from '../../gateway/store/database.ts';
import { hasNotRunOut, statement } from '../../gateway/store/statement.ts';
import { leaseName } from './store.ts';

/**
 * Throws if the database lacks migrations of this version while an adapter has the session. That one is of the version before: it
 * would go on writing rows by rules that do not hold any more.
 */
export async function checkNoAdapterRuns(database: Database): Promise<void> {
  const tables = await database.read(
    statement(
      `SELECT LOWER(table_name) AS found FROM information_schema.tables
       WHERE table_schema = DATABASE() AND table_name IN ('leases', 'migrations')`,
    ),
  );
  if (tables.length < 2) return;
  const [done = [], leases = []] = await database.readAll([
    statement('SELECT name FROM migrations'),
    statement(`SELECT holder, ${hasNotRunOut('expires_at')} AS is_held FROM leases WHERE name = ?`, leaseName),
  ]);
  const names = new Set(done.map(({ name }) => String(name)));
  const isUpToDate = fixMigrations.every((Migration) => names.has(new Migration().name));
  const [lease] = leases;
  if (isUpToDate || lease === undefined || Number(lease.is_held) === 0) return;
  throw new Error(
    `the adapter ${String(lease.holder)}, of the version before, has the session: stop all adapters first, also those that wait, and migrate then`,
  );
}
