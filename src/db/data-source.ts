import 'reflect-metadata';
import { DataSource, type MigrationInterface } from 'typeorm';
import { migrations } from '../../migrations/index.ts';

/** What every session of ours says of itself, whatever the server's defaults are. */
const sessionSettings = [
  "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
  "time_zone = '+00:00'",
  'innodb_lock_wait_timeout = 5',
  // A machine that vanishes closes nothing, and its locks would stay for as long as the server believes in it. Longer
  // than a connection is kept unused.
  'wait_timeout = 90',
];
/**
 * MariaDB can tell a transaction that stands still from a connection that is not used; for MySQL this is a comment. So what a
 * frozen process has locked is free in time for the others to bring an event to its readers within five seconds.
 */
const mariaDbSettings = '/*M!100300 , SESSION idle_transaction_timeout = 4 */';

const connectTimeoutMs = 5_000;

interface NewConnection {
  query(options: { sql: string; timeout: number }, done: (error: unknown) => void): void;
  destroy(): void;
}

interface PoolOfConnections {
  on(event: 'connection', listener: (connection: NewConnection) => void): void;
  getConnection(done: (error: unknown, connection: NewConnection) => void): void;
}

/** The data source of a database: its pool of connections, its migrations. Not connected yet. */
export function createDataSource(
  url: string,
  poolSize: number,
  known: readonly (new () => MigrationInterface)[] = migrations,
): DataSource {
  return new DataSource({
    type: 'mysql',
    url,
    timezone: 'Z',
    charset: 'utf8mb4',
    connectTimeout: connectTimeoutMs,
    supportBigNumbers: true,
    bigNumberStrings: false,
    multipleStatements: true,
    dateStrings: ['DATE'],
    poolSize,
    migrations: [...known],
    migrationsTableName: 'migrations',
    extra: {
      // Below the size of the pool, or none is ever closed for not being used.
      maxIdle: poolSize - 1,
      idleTimeout: 60_000,
      queueLimit: 2_000,
      enableKeepAlive: true,
      // A prepared statement is kept per connection; ours are few, and the server's number of them is bounded.
      maxPreparedStatements: 100,
    },
  });
}

/** Connects a data source; every connection it makes gets our session settings before its first statement. */
export async function connect(source: DataSource): Promise<DataSource> {
  await source.initialize();
  const { pool } = source.driver as unknown as { pool: PoolOfConnections };
  const settings = sessionSettings.map((setting) => `SESSION ${setting}`).join(', ');
  // The variable of the isolation level has two names; the statement has one.
  const sql = `SET ${settings} ${mariaDbSettings}; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`;
  pool.on('connection', (connection) => {
    connection.query({ sql, timeout: connectTimeoutMs }, (error) => {
      // Without its settings it must not be used: what waits for it fails with it.
      if (error) connection.destroy();
    });
  });
  // The one it was initialized with has no settings.
  await new Promise<void>((resolve) =>
    pool.getConnection((error, connection) => {
      if (!error) connection.destroy();
      resolve();
    }),
  );
  return source;
}
