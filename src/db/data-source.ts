import { createPool, type Pool } from 'mysql2';
import type { DataSource, EntitySchemaOptions, MigrationInterface } from 'typeorm';

/** The settings of each session, whatever the server's defaults. */
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
 * frozen process has locked is free in time for the others to bring an event to its readers within five seconds. MariaDB
 * can also be told to ignore checks, which guards rely on.
 */
const mariaDbSettings = '/*M!100300 , SESSION idle_transaction_timeout = 4, SESSION check_constraint_checks = ON */';

const connectTimeoutMs = 5_000;
/** How long one round trip may take. */
export const statementTimeoutMs = 10_000;
/**
 * How long the server works on a statement: less than a round trip may take, so that it ends the statement itself and says
 * so. Nothing that was given up goes on there.
 */
export const serverTimeoutMs = 9_000;
/** The same for a migration, which may build an index over a large table. */
const migrationTimeoutMs = 6 * 3_600_000;

/** The server's own limit of a statement. MariaDB reads the first comment; MySQL the second, and limits SELECT only. */
function serverLimit(ms: number): string {
  return `/*M!100300 , SESSION max_statement_time = ${ms / 1_000} */ /*!80000 , SESSION max_execution_time = ${ms} */`;
}

export interface ConnectOptions {
  readonly url: string;
  readonly poolSize: number;
  /** The tables that cold paths use through TypeORM. */
  readonly tables?: readonly EntitySchemaOptions<object>[];
  readonly migrations?: readonly (new () => MigrationInterface)[];
  /** Whether statements may take hours, as for migrations. */
  readonly isPatient?: boolean;
}

/** A database's connections: a pool for hot paths, and TypeORM on the same pool for cold paths and migrations. */
export interface Connections {
  readonly pool: Pool;
  /** TypeORM is loaded when it is first needed, because that takes 15 % of a start and some 10 MiB. */
  source(): Promise<DataSource>;
  /** Safe to call again. */
  close(): Promise<void>;
}

/** Connects. Every connection of the pool gets our session settings before its first statement. */
export async function connect(options: ConnectOptions): Promise<Connections> {
  const pool = openPool(options);
  try {
    // A database that cannot be reached is reported with the driver's own error.
    (await pool.promise().getConnection()).release();
  } catch (error) {
    await pool.promise().end();
    throw error;
  }
  let source: Promise<DataSource> | undefined;
  let ended: Promise<void> | undefined;
  return {
    pool,
    source() {
      const { url, tables = [], migrations = [], isPatient } = options;
      const timeoutMs = isPatient ? undefined : statementTimeoutMs;
      source ??= import('./typeorm.ts').then(({ openSource }) =>
        openSource({ pool, url, tables, migrations, timeoutMs }),
      );
      source.catch(() => {
        source = undefined;
      });
      return source;
    },
    close() {
      ended ??= pool.promise().end();
      return ended;
    },
  };
}

function openPool({ url, poolSize, isPatient = false }: ConnectOptions): Pool {
  const { hostname, port, username, password, pathname } = new URL(url);
  const pool = createPool({
    // An IPv6 address stands in brackets in a URL.
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 3306 : Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
    timezone: 'Z',
    charset: 'utf8mb4',
    connectTimeout: connectTimeoutMs,
    stringifyObjects: true,
    supportBigNumbers: true,
    bigNumberStrings: false,
    multipleStatements: true,
    dateStrings: ['DATE'],
    connectionLimit: poolSize,
    // Below the size of the pool, or none is ever closed for not being used.
    maxIdle: Math.max(1, poolSize - 1),
    idleTimeout: 60_000,
    queueLimit: 2_000,
    enableKeepAlive: true,
    // A prepared statement is kept per connection; ours are few, and the server's number of them is bounded.
    maxPreparedStatements: 100,
  });
  const settings = sessionSettings.map((setting) => `SESSION ${setting}`).join(', ');
  // The variable of the isolation level has two names; the statement has one.
  const limit = serverLimit(isPatient ? migrationTimeoutMs : serverTimeoutMs);
  const sql = `SET ${settings} ${mariaDbSettings} ${limit}; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`;
  pool.on('connection', (connection) => {
    connection.query({ sql, timeout: connectTimeoutMs }, (error) => {
      // Without its settings it must not be used: what waits for it fails with it.
      if (error) connection.destroy();
    });
  });
  return pool;
}
