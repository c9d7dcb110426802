import { createHash } from 'node:crypto';
import mysql, { type Connection, type ConnectionOptions, type Pool, type RowDataPacket } from 'mysql2/promise';
import { laterColumns, laterKeys, schema } from './tables.ts';

/** The longest statement, or batch of statements. */
const statementTimeoutMs = 10_000;
/** How long to wait until a stopping or killed simulator releases the database. */
const lockTimeoutSeconds = 5;
const connectTimeoutMs = 3_000;
const sessionSettings =
  "SET sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'; " +
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED';

/** The simulator's database: a pool for reading, and one connection that writes. */
export class SimulatorDatabase {
  readonly #options: ConnectionOptions;
  readonly #name: string;
  readonly #pool: Pool;

  private constructor(url: string) {
    const { options, name } = parseUrl(url);
    this.#options = options;
    this.#name = name;
    this.#pool = mysql.createPool({ ...options, connectionLimit: 4, maxIdle: 4, queueLimit: 10_000 });
  }

  /** Opens the database, and creates it and its tables if they are missing. */
  static async open(url: string): Promise<SimulatorDatabase> {
    const database = new SimulatorDatabase(url);
    try {
      await database.#create();
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /** Reads committed rows, outside the writer's transactions. */
  async read<Row extends RowDataPacket>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    const [rows] = await this.#pool.query<Row[]>({ sql, values: [...values], timeout: statementTimeoutMs });
    return rows;
  }

  /**
   * Opens the only connection that writes. Its lock ends with its session, so the batch of a killed process is committed
   * or gone before the next process reads the last numbers.
   */
  async openWriter(): Promise<WriterConnection> {
    const connection = await mysql.createConnection(this.#options);
    const writer = new WriterConnection(connection);
    try {
      await connection.query({ sql: sessionSettings, timeout: statementTimeoutMs });
      const [rows] = await connection.query<RowDataPacket[]>({
        sql: 'SELECT GET_LOCK(?, ?) AS locked',
        values: [lockName(this.#name), lockTimeoutSeconds],
        timeout: statementTimeoutMs,
      });
      if (rows[0]?.locked !== 1) throw new Error(`Another simulator uses the database ${this.#name}`);
      return writer;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.race([this.#pool.end().catch(() => {}), new Promise((resolve) => setTimeout(resolve, 500).unref())]);
  }

  async #create(): Promise<void> {
    const connection = await this.#connectOrCreate();
    try {
      await connection.query({ sql: [sessionSettings, ...schema].join('; '), timeout: statementTimeoutMs });
      for (const { table, column, change } of laterColumns) {
        const [found] = await connection.query<RowDataPacket[]>(
          'SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?',
          [table, column],
        );
        if (found.length === 0) await connection.query(`ALTER TABLE ${table} ${change}`);
      }
      for (const { table, key, change } of laterKeys) {
        const [found] = await connection.query<RowDataPacket[]>(
          'SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ?',
          [table, key],
        );
        if (found.length === 0) await connection.query(`ALTER TABLE ${table} ${change}`);
      }
    } finally {
      connection.destroy();
    }
  }

  async #connectOrCreate(): Promise<Connection> {
    try {
      return await mysql.createConnection(this.#options);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ER_BAD_DB_ERROR') throw error;
    }
    const connection = await mysql.createConnection({ ...this.#options, database: undefined });
    const name = mysql.escapeId(this.#name, true);
    await connection.query(`CREATE DATABASE IF NOT EXISTS ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
    await connection.query(`USE ${name}`);
    return connection;
  }
}

/** The connection that writes. After any error it is unusable, because the outcome of the batch is unknown. */
export class WriterConnection {
  readonly #connection: Connection;
  #lost = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    // The server closes an idle connection. The next commit must not be the first to notice.
    connection.on('error', () => {
      this.#lost = true;
    });
  }

  get lost(): boolean {
    return this.#lost;
  }

  async read<Row extends RowDataPacket>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    const [rows] = await this.#connection.query<Row[]>({ sql, values: [...values], timeout: statementTimeoutMs });
    return rows;
  }

  /** Commits statements as one transaction in one round trip. */
  async commit(statements: readonly string[]): Promise<void> {
    const sql = ['START TRANSACTION', ...statements, 'COMMIT'].join('; ');
    await this.#connection.query({ sql, timeout: statementTimeoutMs });
  }

  destroy(): void {
    this.#connection.destroy();
  }
}

/** Parses `mysql://user:password@host:port/database`. An error describes the problem without showing the text. */
function parseUrl(text: string): { options: ConnectionOptions; name: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const name = decodeURIComponent(url?.pathname.slice(1) ?? '');
  if (url?.protocol !== 'mysql:' || url.hostname === '' || name === '' || name.includes('/')) {
    throw new Error("The simulator's database must be given as mysql://user:password@host:port/database");
  }
  const options: ConnectionOptions = {
    host: url.hostname,
    port: url.port === '' ? 3306 : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: name,
    charset: 'utf8mb4_bin',
    connectTimeout: connectTimeoutMs,
    multipleStatements: true,
    supportBigNumbers: true,
  };
  return { options, name };
}

/** Lock names belong to the server, not to the database, and have at most 64 characters. */
function lockName(database: string): string {
  return `marina-simulator-${createHash('sha256').update(database).digest('hex').slice(0, 32)}`;
}
