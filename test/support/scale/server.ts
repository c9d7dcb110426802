import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, createConnection } from 'mysql2/promise';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { startMariaDb } from '../../../src/sandbox/servers.ts';
import { seed } from './seed.ts';

/** A connection to a gateway's database with so many orders, as an administrator. */
export interface ScaleDatabase {
  readonly connection: Connection;
  readonly name: string;
  /** Makes a further connection. */
  connect(): Promise<Connection>;
  close(): Promise<void>;
}

/**
 * Makes a gateway's database with so many orders on a server of its own. MARINA_SCALE_DATABASE_URL names another server,
 * such as a MySQL, and an account that may do everything on it.
 */
export async function openScaleDatabase(orders: number, log: (line: string) => void): Promise<ScaleDatabase> {
  const url = process.env.MARINA_SCALE_DATABASE_URL ?? (await ownServer(orders));
  const name = 'marina_scale';
  const server = await createConnection({ uri: url });
  await server.query(`DROP DATABASE IF EXISTS ${name}`);
  await server.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
  await server.end();
  await migrate(`${url}/${name}`);
  const connect = () =>
    createConnection({
      uri: `${url}/${name}`,
      multipleStatements: true,
      timezone: 'Z',
      dateStrings: true,
      supportBigNumbers: true,
      bigNumberStrings: true,
    });
  const connection = await connect();
  await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await seed(connection, orders, log);
  return {
    connection,
    name,
    connect,
    close: async () => {
      await connection.query(`DROP DATABASE ${name}`);
      await connection.end();
    },
  };
}

/** On disk, because ten million orders do not fit into memory. A crash may lose its data. */
async function ownServer(orders: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'marina-scale-'));
  sharedKeeper().removeAtEnd(folder);
  const { url } = await startMariaDb({ dataDir: folder, disposable: true });
  const connection = await createConnection({ uri: url });
  const gigabytes = orders > 2_000_000 ? 4 : 1;
  await connection.query(`SET GLOBAL innodb_buffer_pool_size = ${gigabytes * 2 ** 30}`);
  await connection.query('SET GLOBAL innodb_flush_log_at_trx_commit = 0');
  // MariaDB's name, then MySQL's.
  await connection
    .query(`SET GLOBAL innodb_log_file_size = ${2 ** 30}`)
    .catch(() => connection.query(`SET GLOBAL innodb_redo_log_capacity = ${2 ** 30}`));
  await connection.end();
  return url;
}
