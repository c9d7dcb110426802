import { createHash } from 'node:crypto';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { migrations } from '../../../migrations/index.ts';
import { connect, migrationTimeoutMs, type Reached } from './data-source.ts';
import type { Database } from './database.ts';
import { isRetryable } from './errors.ts';
import { statement } from './statement.ts';

/** How often a process that waits for another one's migration says so. */
const reportSeconds = 60;
/** How often it does until it gives up: as long as a migration may take. */
const maxReports = migrationTimeoutMs / 1_000 / reportSeconds;

/**
 * Brings a database's tables up to date. Safe to call again, also after a run that was killed, and while an older version
 * runs; of several processes that call it at once, one migrates and the others wait for it. `only` are the first of the
 * migrations, for tests of what later ones do.
 */
export async function migrate(
  database: string | Reached,
  only: readonly (new () => MigrationInterface)[] = migrations,
  log: (line: string) => void = () => {},
): Promise<void> {
  // One connection holds the lock while others migrate.
  const repeatable = only.map((Migration) => toRepeatable(Migration, log));
  const reached = typeof database === 'string' ? { url: database } : database;
  const connections = await connect({ ...reached, poolSize: 3, migrations: repeatable, isPatient: true });
  try {
    const source = await connections.source();
    await underLock(source, log, async () => {
      // The lock is of one node. Processes at several nodes repeat each other's statements, which is as good.
      const isCluster = connections.isCluster();
      if (isCluster) await source.query(makeNotes);
      await source.runMigrations({ transaction: 'none' });
      if (isCluster) await retried(() => source.query(noteOnce));
    });
  } finally {
    await connections.close();
  }
}

/** As TypeORM makes it, which fails if the table comes to be between its look and its statement. */
const makeNotes = `CREATE TABLE IF NOT EXISTS migrations
  (id int NOT NULL AUTO_INCREMENT, timestamp bigint NOT NULL, name varchar(255) NOT NULL, PRIMARY KEY (id)) ENGINE=InnoDB`;

/** Each process notes what it did: of the notes with one name the first stays. */
const noteOnce =
  'DELETE later FROM migrations later JOIN migrations earlier ON earlier.name = later.name AND earlier.id < later.id';

const maxTries = 5;

/** Tries a statement again that a write at another node undid. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries >= maxTries || !isRetryable(error)) throw error;
    }
  }
}

/**
 * The server's errors for a table, a column or an index that is there already, and for a column or an index that is to be
 * removed and is gone.
 */
const isDone = new Set([1050, 1060, 1061, 1091]);

/**
 * A migration that takes what is there for its own. A server commits each statement that changes tables by itself, so a run
 * that was killed can have left some of a migration's statements done, and the migration not noted.
 */
function toRepeatable(
  Migration: new () => MigrationInterface,
  log: (line: string) => void,
): new () => MigrationInterface {
  class Repeatable extends Migration {
    override async up(runner: QueryRunner): Promise<void> {
      const query: QueryRunner['query'] = async (statement: string, values?: unknown[]) => {
        try {
          return await retried(() => runner.query(statement, values));
        } catch (error) {
          if (!isDone.has((error as { errno?: number }).errno ?? 0)) throw error;
          log(`${this.name}: ${(error as Error).message}: done by a run that did not end, or at another node`);
          return undefined;
        }
      };
      await super.up(Object.create(runner, { query: { value: query } }));
    }
  }
  return Repeatable;
}

/** The names of migrations this version needs and the database has not had. */
export async function missingMigrations(database: Database): Promise<string[]> {
  const rows = await database.read(statement('SELECT name FROM migrations'));
  const done = new Set(rows.map(({ name }) => String(name)));
  return migrations.map(({ name }) => name).filter((name) => !done.has(name));
}

async function underLock(source: DataSource, log: (line: string) => void, work: () => Promise<void>): Promise<void> {
  const runner = source.createQueryRunner();
  await runner.connect();
  try {
    // It is silent while another connection works, for as long as that takes.
    await runner.query('SET SESSION wait_timeout = 86400');
    const name = await lockName(runner);
    await takeLock(runner, name, log);
    try {
      await work();
    } finally {
      await runner.query('SELECT RELEASE_LOCK(?)', [name]);
    }
  } finally {
    await runner.release();
  }
}

async function takeLock(runner: QueryRunner, name: string, log: (line: string) => void): Promise<void> {
  for (let reports = 0; reports < maxReports; reports += 1) {
    const [row] = await runner.query('SELECT GET_LOCK(?, ?) AS taken', [name, reportSeconds]);
    if (Number(row?.taken) === 1) return;
    log(`waiting for another process that has been migrating this database for ${reports + 1} min`);
  }
  throw new Error('another process has been migrating this database for too long');
}

/** Lock names are the server's, not the database's, and at most 64 characters long. */
async function lockName(runner: QueryRunner): Promise<string> {
  const [row] = await runner.query('SELECT DATABASE() AS name');
  return `marina-migrate-${createHash('sha256').update(String(row?.name)).digest('hex').slice(0, 32)}`;
}
