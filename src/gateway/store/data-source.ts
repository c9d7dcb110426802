import type { PoolConnection, PoolOptions, RowDataPacket } from 'mysql2';
import type { DataSource, EntitySchemaOptions, MigrationInterface } from 'typeorm';
import type { Logger } from '../../kit/log.ts';
import { fixed, type Live } from '../../kit/watched-files.ts';
import { accessOptions, type DatabaseAccess } from './access.ts';
import { databaseAddress } from './address.ts';
import { lacksRight, NotBegunError } from './errors.ts';
import { DatabaseHosts } from './hosts.ts';
import { type OnConnection, RenewedPool } from './renewed-pool.ts';
import { askGroup, askServerKind, serverKind, whyUnsafe } from './server-kind.ts';
import {
  frameOf,
  idleTransactionSeconds,
  leaveTransactions,
  silenceSeconds,
  statementTimeoutMs,
  type TransactionFrame,
} from './transaction.ts';

/** The settings of each session, whatever the server's defaults. */
const sessionSettings = [
  "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
  "time_zone = '+00:00'",
  `wait_timeout = ${silenceSeconds}`,
  // Otherwise a statement that nobody commits would look stored, and be gone.
  'autocommit = 1',
  'completion_type = 0',
];
/**
 * MariaDB can tell a transaction that stands still from a connection that is not used; for MySQL this is a comment. So what a
 * frozen process has locked is free in time for the others to bring an event to its readers within five seconds. MariaDB
 * can also be told to ignore checks, which guards rely on.
 */
const mariaDbSettings = `/*M!100300 , SESSION idle_transaction_timeout = ${idleTransactionSeconds}, SESSION check_constraint_checks = ON */`;

/**
 * MySQL does not join by hashing: by statistics of a small table it would read the whole of a large one for that. For MariaDB
 * this is a comment.
 */
export const mySqlSettings = "/*!80000 , SESSION optimizer_switch = 'block_nested_loop=off' */";

const connectTimeoutMs = 5_000;
/**
 * How long the server works on a statement: less than a round trip may take, so that it ends the statement itself and says
 * so. Nothing that was given up goes on there.
 */
export const serverTimeoutMs = 9_000;
/** The same for a transaction that several partners share. If one of them must wait, each is tried alone. */
const sharedLimits = { serverTimeoutMs: 2_000, lockWaitSeconds: 1 };
/** The same for a migration, which may build an index over a large table. */
export const migrationTimeoutMs = 6 * 3_600_000;

/** The server's own limit of a statement. MariaDB reads the first comment; MySQL the second, and limits SELECT only. */
function serverLimit(ms: number): string {
  return `/*M!100300 , SESSION max_statement_time = ${ms / 1_000} */ /*!80000 , SESSION max_execution_time = ${ms} */`;
}

/** How a database is reached: by a URL in plain text, or as it is at each connection. */
export type Reached = { readonly url: string } | { readonly access: Live<DatabaseAccess> };

export type ConnectOptions = Reached & {
  readonly poolSize: number;
  /** The tables that cold paths use through TypeORM. */
  readonly tables?: readonly EntitySchemaOptions<object>[];
  readonly migrations?: readonly (new () => MigrationInterface)[];
  /** Whether statements may take hours, as for migrations. */
  readonly isPatient?: boolean;
  readonly log?: Logger;
};

/** A database's connections: a pool for hot paths, and TypeORM on the same pool for cold paths and migrations. */
export interface DatabasePools {
  readonly pool: RenewedPool;
  /** For transactions that several partners share: two connections with limits of their own. */
  readonly sharedTransactions: RenewedPool;
  /** Takes a connection of one of these pools, when it has its settings. */
  take: Take;
  /** The same for transactions. Their frame brings the connection to where it needs it. */
  takeForTransactions: Take;
  /** How transactions begin and end on a connection of these. A failover can bring a server of another kind. */
  frame(connection: PoolConnection): Promise<TransactionFrame>;
  readonly hosts: DatabaseHosts;
  /** Closes unused connections to other nodes of a cluster than this one. */
  keepTo(node: string): void;
  /** Whether any of these connections was to a node of a cluster in which each takes writes. */
  isCluster(): boolean;
  /** TypeORM is loaded when it is first needed, because that takes 15 % of a start and some 10 MiB. */
  source(): Promise<DataSource>;
  /** Safe to call again. */
  close(): Promise<void>;
}

/** Connects. Every connection of the pool gets our session settings before its first statement. */
export async function connect(options: ConnectOptions): Promise<DatabasePools> {
  const { isPatient = false } = options;
  const access = 'access' in options ? options.access : fixed<DatabaseAccess>({ url: options.url, tls: undefined });
  const hosts = new DatabaseHosts(access, options.log);
  await hosts.choose();
  let isCluster = false;
  let refusal: string | undefined;
  const note: Note = {
    taken({ node }) {
      isCluster ||= node !== undefined;
      refusal = undefined;
    },
    refused(reason) {
      // Each of the connections that are tried again and again is refused for the same reason.
      if (reason !== refusal) options.log?.error({ reason }, 'this database server is not used');
      refusal = reason;
    },
  };
  const limits = { serverTimeoutMs: isPatient ? migrationTimeoutMs : serverTimeoutMs, lockWaitSeconds: 5 };
  const pool = openPool(access, hosts, options.poolSize, limits, note);
  // It connects when it is first used.
  const sharedTransactions = openPool(access, hosts, 2, sharedLimits, note);
  const end = async () => {
    await Promise.all([pool.close(), sharedTransactions.close()]);
  };
  // A database that cannot be reached is reported with the driver's own error.
  const failed = await new Promise<unknown>((resolve) => {
    takeForTransactions(pool, (error, connection) => {
      connection?.release();
      resolve(error ?? undefined);
    });
  });
  if (failed !== undefined || refusal !== undefined) {
    await end();
    throw refusal === undefined ? failed : new Error(`this database server is not used: ${refusal}`, { cause: failed });
  }
  let source: Promise<DataSource> | undefined;
  let ended: Promise<void> | undefined;
  return {
    pool,
    sharedTransactions,
    take,
    takeForTransactions,
    frame: frameFor,
    hosts,
    keepTo(node) {
      for (const one of [pool, sharedTransactions]) keepTo(one, node);
    },
    isCluster: () => isCluster,
    source() {
      const { tables = [], migrations = [] } = options;
      const { database } = databaseAddress(access.current.url);
      const timeoutMs = isPatient ? undefined : statementTimeoutMs;
      source ??= import('./typeorm.ts').then(({ openSource }) =>
        openSource({ pool, take, database, tables, migrations, timeoutMs }),
      );
      source.catch(() => {
        source = undefined;
      });
      return source;
    },
    close() {
      ended ??= end();
      return ended;
    },
  };
}

/** Of each connection, asked for with its settings. */
const frames = new WeakMap<PoolConnection, Promise<TransactionFrame>>();

function frameFor(connection: PoolConnection): Promise<TransactionFrame> {
  return frames.get(connection) ?? Promise.reject(new NotBegunError('the connection is not of these pools'));
}

/**
 * The driver hands out a new connection before it has its settings. One that is closed without them answers nothing that it
 * was asked meanwhile, so nobody gets it before.
 */
function takeForTransactions(pool: RenewedPool, done: OnConnection): void {
  pool.getConnection((error, connection) => {
    if (connection === undefined) return done(error);
    frameFor(connection).then(() => done(null, connection), done);
  });
}

function take(pool: RenewedPool, done: OnConnection): void {
  pool.getConnection((error, connection) => {
    if (connection === undefined) return done(error);
    const leave = (frame: TransactionFrame) => (frame.isEntered ? leaveTransactions(connection, frame) : undefined);
    frameFor(connection)
      .then(leave)
      .then(() => done(null, connection), done);
  });
}

type Take = (pool: RenewedPool, done: OnConnection) => void;

/** What is to be known of each new connection. */
interface Note {
  taken(frame: TransactionFrame): void;
  refused(reason: string): void;
}

function openPool(
  access: Live<DatabaseAccess>,
  hosts: DatabaseHosts,
  poolSize: number,
  limits: typeof sharedLimits,
  note: Note,
): RenewedPool {
  const settings = sessionSettings.map((setting) => `SESSION ${setting}`).join(', ');
  // The variable of the isolation level has two names; the statement has one.
  const limit = `, SESSION innodb_lock_wait_timeout = ${limits.lockWaitSeconds} ${serverLimit(limits.serverTimeoutMs)}`;
  const isolation = 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED';
  const sql = `${askServerKind.sql}; SET ${settings} ${mariaDbSettings} ${mySqlSettings} ${limit}; ${isolation}`;
  const proof = access.current.tls === undefined ? '' : "; SHOW SESSION STATUS LIKE 'Ssl_cipher'";
  const options = poolOptions(databaseAddress(access.current.url).database, poolSize);
  const way = () => accessOptions(access.current, hosts.current);
  const pool = new RenewedPool(poolSize, options, way, (connection) => {
    const frame = new Promise<TransactionFrame>((resolve, reject) => {
      // Without its settings, or to a server that is not safe, it must not be used: what waits for it fails with it.
      const refuse = (message: string, cause?: unknown) => {
        connection.destroy();
        reject(new NotBegunError(message, { cause }));
      };
      let variables: RowDataPacket[] = [];
      connection.query<RowDataPacket[][]>({ sql: sql + proof, timeout: connectTimeoutMs }, (error, results) => {
        variables = error ? [] : (results[0] ?? []);
        if (error || (proof !== '' && !hasCipher(results))) {
          refuse('a new database connection did not take its settings', error);
        }
      });
      connection.query<RowDataPacket[]>({ sql: askGroup.sql, timeout: connectTimeoutMs }, (error, members) => {
        if (error && !lacksRight(error)) return refuse('a new database connection could not ask for the group', error);
        const reason = whyUnsafe(variables, error ? undefined : members);
        if (reason === undefined) return resolve(frameOf(serverKind(variables)));
        note.refused(reason);
        refuse(reason);
      });
    });
    frame.then(
      (one) => note.taken(one),
      () => {}, // Who took it hears of it.
    );
    frames.set(connection, frame);
  });
  access.onChange(() => pool.renew());
  hosts.onChange(({ isLost }) => pool.renew(isLost));
  return pool;
}

function poolOptions(database: string, poolSize: number): PoolOptions {
  return {
    database,
    timezone: 'Z',
    charset: 'utf8mb4',
    connectTimeout: connectTimeoutMs,
    stringifyObjects: true,
    supportBigNumbers: true,
    bigNumberStrings: false,
    multipleStatements: true,
    dateStrings: ['DATE'],
    // Below the size of the pool, or none is ever closed for not being used.
    maxIdle: Math.max(1, poolSize - 1),
    idleTimeout: 60_000,
    // A prepared statement is kept per connection; ours are few, and the server's number of them is bounded.
    maxPreparedStatements: 100,
  };
}

/** Closes unused connections to other nodes of a cluster than this one. */
function keepTo(pool: RenewedPool, node: string): void {
  for (const connection of pool.unused) {
    const close = (frame: TransactionFrame) =>
      frame.node !== node && pool.unused.has(connection) && connection.destroy();
    frames.get(connection)?.then(close, () => {});
  }
}

/** Whether the server says that a connection is encrypted, in the last of some results. */
function hasCipher(results: unknown): boolean {
  const rows = Array.isArray(results) ? results.at(-1) : undefined;
  return Array.isArray(rows) && Boolean((rows[0] as { Value?: string } | undefined)?.Value);
}
