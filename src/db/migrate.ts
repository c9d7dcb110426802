import { createHash } from 'node:crypto';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { migrations } from '../../migrations/index.ts';
import { connect } from './data-source.ts';
import type { Database } from './database.ts';
import { statement } from './statement.ts';

/** How long one process may wait for another that migrates the same database. */
const longestWaitSeconds = 600;

/**
 * Brings a database's tables up to date. Safe to call again, and while an older version runs; of several processes that
 * call it at once, one migrates and the others wait for it. `only` are the first of the migrations, for tests of what
 * later ones do.
 */
export async function migrate(
  url: string,
  only: readonly (new () => MigrationInterface)[] = migrations,
): Promise<void> {
  // One connection holds the lock while others migrate.
  const connections = await connect({ url, poolSize: 3, migrations: only, isPatient: true });
  try {
    const source = await connections.source();
    await underLock(source, async () => {
      await source.runMigrations({ transaction: 'none' });
    });
  } finally {
    await connections.close();
  }
}

/** The names of migrations this version needs and the database has not had. */
export async function missingMigrations(database: Database): Promise<string[]> {
  const rows = await database.read(statement('SELECT name FROM migrations'));
  const done = new Set(rows.map(({ name }) => String(name)));
  return migrations.map(({ name }) => name).filter((name) => !done.has(name));
}

async function underLock(source: DataSource, work: () => Promise<void>): Promise<void> {
  const runner = source.createQueryRunner();
  await runner.connect();
  try {
    // It is silent while another connection works, for as long as that takes.
    await runner.query('SET SESSION wait_timeout = 86400');
    const name = await lockName(runner);
    const [row] = await runner.query('SELECT GET_LOCK(?, ?) AS taken', [name, longestWaitSeconds]);
    if (Number(row?.taken) !== 1) throw new Error('another process has been migrating this database for too long');
    try {
      await work();
    } finally {
      await runner.query('SELECT RELEASE_LOCK(?)', [name]);
    }
  } finally {
    await runner.release();
  }
}

/** Lock names are the server's, not the database's, and at most 64 characters long. */
async function lockName(runner: QueryRunner): Promise<string> {
  const [row] = await runner.query('SELECT DATABASE() AS name');
  return `marina-migrate-${createHash('sha256').update(String(row?.name)).digest('hex').slice(0, 32)}`;
}
