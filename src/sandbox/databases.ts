import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { Advice } from './advice.ts';
import { keptSecret } from './secrets.ts';
import type { RunSettings } from './settings.ts';

/** The databases of a sandbox, each by the account that uses it. */
export interface Databases {
  /** For the gateway: it reads and writes rows. */
  gatewayUrl: string;
  /** For migrations and for seeding: it also makes and changes tables. */
  ownerUrl: string;
  simulatorUrl: string;
  /** Gives the gateway's account its rights on the tables that are there now; to be called after migrating. */
  grant(): Promise<void>;
}

/** Says which rights the gateway's account gets; operators give it them by the same file. */
const rightsFile = new URL('../../docs/deploy/rights.sql', import.meta.url);
export const archiveRightsFile = new URL('../../docs/deploy/archive-rights.sql', import.meta.url);
export const fixRightsFile = new URL('../../docs/deploy/fix-rights.sql', import.meta.url);

/** Makes databases and accounts on a private server, each account with the rights it needs and no more. */
export async function createDatabases(rootUrl: string, dataDir: string): Promise<Databases> {
  const passwords = {
    marina_owner: keptSecret(join(dataDir, 'owner-password'), 16),
    marina: keptSecret(join(dataDir, 'gateway-password'), 16),
    marina_simulator: keptSecret(join(dataDir, 'simulator-password'), 16),
  };
  await connected(rootUrl, async (connection) => {
    for (const name of ['marina', 'marina_simulator']) {
      await connection.query(`CREATE DATABASE IF NOT EXISTS ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
    }
    for (const [user, password] of Object.entries(passwords)) {
      await connection.query(`CREATE USER IF NOT EXISTS '${user}'@'127.0.0.1' IDENTIFIED BY '${password}'`);
      await connection.query(`ALTER USER '${user}'@'127.0.0.1' IDENTIFIED BY '${password}'`);
    }
    await connection.query("GRANT ALL PRIVILEGES ON marina.* TO 'marina_owner'@'127.0.0.1'");
    await connection.query("GRANT ALL PRIVILEGES ON marina_simulator.* TO 'marina_simulator'@'127.0.0.1'");
  });
  const url = (user: keyof typeof passwords, database: string) =>
    withDatabase(rootUrl, database, { user, password: passwords[user] });
  return {
    gatewayUrl: url('marina', 'marina'),
    ownerUrl: url('marina_owner', 'marina'),
    simulatorUrl: url('marina_simulator', 'marina_simulator'),
    grant: () => grantRights(withDatabase(rootUrl, 'marina'), 'marina', '127.0.0.1'),
  };
}

/** The databases on a server that was named in the settings: the accounts and rights there are its owner's business. */
export async function useDatabases(gatewayUrl: string, settings: RunSettings): Promise<Databases> {
  const ownerUrl = settings.ownerDatabaseUrl ?? gatewayUrl;
  const simulatorUrl = settings.simulatorDatabaseUrl ?? withDatabase(ownerUrl, 'marina_simulator');
  await ensureDatabase(ownerUrl, 'MARINA_DATABASE_URL');
  await ensureDatabase(simulatorUrl, 'MARINA_SIMULATOR_DATABASE_URL');
  return { gatewayUrl, ownerUrl, simulatorUrl, grant: async () => undefined };
}

/** Gives an account the gateway's rights, or those of another file, on the tables of the database that an administrator's URL names. */
export async function grantRights(databaseUrl: string, user: string, host: string, file = rightsFile): Promise<void> {
  await connected(databaseUrl, async (connection) => {
    await connection.query('SET @user = ?, @host = ?', [user, host]);
    const [rows] = await connection.query<RowDataPacket[]>(readFileSync(file, 'utf8'));
    for (const { statement } of rows) await connection.query(statement);
  });
}

/** The server and its version, as in "MySQL 9.7.4". */
export async function serverVersion(url: string): Promise<string> {
  return connected(url, async (connection) => {
    const [rows] = await connection.query<RowDataPacket[]>('SELECT VERSION() AS version');
    const version = String(rows[0]?.version);
    return `${version.includes('MariaDB') ? 'MariaDB' : 'MySQL'} ${version.split('-')[0]}`;
  });
}

/** Makes the database a URL names where its account may; fails with advice when it cannot be used. */
async function ensureDatabase(url: string, variable: string): Promise<void> {
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  try {
    if (!/^\w+$/.test(name)) throw new Error('it must name a database of letters, digits and underscores');
    if (await canUse(url)) return;
    await connected(withDatabase(url, ''), (connection) =>
      connection.query(`CREATE DATABASE IF NOT EXISTS ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`),
    );
  } catch (error) {
    throw new Advice(
      `The database ${name} cannot be used: ${error instanceof Error ? error.message : error}`,
      `Create it, and name it and an account that may make tables in it in ${variable} (mysql://user:password@host:3306/${name || 'marina'}).`,
    );
  }
}

async function canUse(url: string): Promise<boolean> {
  return connected(url, async () => true).catch((error: unknown) => {
    if ((error as { code?: string }).code === 'ER_BAD_DB_ERROR') return false;
    throw error;
  });
}

async function connected<T>(url: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await createConnection({ uri: url, connectTimeout: 5_000 });
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}

function withDatabase(url: string, database: string, account?: { user: string; password: string }): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  if (account !== undefined) {
    changed.username = account.user;
    changed.password = account.password;
  }
  return changed.href;
}
