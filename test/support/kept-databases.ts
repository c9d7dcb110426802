import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, createConnection, escapeId, type RowDataPacket } from 'mysql2/promise';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { SimulatorDatabase } from '../../src/simulator/store/database.ts';
import { accountOf, createAccount, createDatabase, type TestDatabase, testDatabase, testServers } from './servers.ts';

/** A use of databases by tests. All databases of a kind have the same tables. */
interface KeptKind {
  readonly name: string;
  /** Makes the tables of a new database. */
  readonly make: (url: string) => Promise<unknown>;
  /** Whether a gateway's account, with its rights, belongs to each. */
  readonly hasGateway: boolean;
}

const kinds = {
  gateway: { name: 'gateway', make: (url: string) => migrate(url), hasGateway: true },
  simulator: {
    name: 'simulator',
    make: async (url: string) => (await SimulatorDatabase.open(url)).close(),
    hasGateway: false,
  },
} satisfies Record<string, KeptKind>;

interface Kept {
  readonly name: string;
  readonly gatewayUrl: string | null;
  /** Of the definitions of its tables and triggers, and of the rights of its account. */
  readonly digest: string;
  /** The statements that leave only the rows of a new database. */
  readonly emptying: string;
}

const registry = 'marina_kept_databases';
const registryStatements = `CREATE DATABASE IF NOT EXISTS ${registry} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  CREATE TABLE IF NOT EXISTS ${registry}.kept (
    name VARCHAR(64) NOT NULL PRIMARY KEY, kind VARCHAR(32) NOT NULL, holder CHAR(36) NULL,
    gateway_url TEXT NULL, digest CHAR(64) NOT NULL, emptying MEDIUMTEXT NOT NULL)`;

/** The connections of a gateway that has ended are gone within this time. */
const maxLooks = 100;
const lookEveryMs = 5;

/**
 * Returns a database with the tables of its kind, and with no rows but those of a new one. `drop` gives it back to the next
 * test, of this process or another, because to make the tables takes longer than most tests. The database is dropped instead
 * if a test changed its tables or rights, or if somebody still uses it.
 */
export async function keptDatabase(kindName: keyof typeof kinds): Promise<TestDatabase> {
  const { databaseUrl } = await testServers();
  const kind: KeptKind = kinds[kindName];
  const kept = (await withRoot((root) => takeKept(root, kind))) ?? (await makeKept(kind));
  const { name, gatewayUrl } = kept;
  const database = testDatabase(databaseUrl, name, () => withRoot((root) => giveBack(root, kept)));
  return {
    ...database,
    grantGateway: async (user = name) =>
      user === name && gatewayUrl !== null ? gatewayUrl : database.grantGateway(user),
  };
}

async function takeKept(root: Connection, kind: KeptKind): Promise<Kept | undefined> {
  await root.query(registryStatements);
  const holder = randomUUID();
  await root.query(`UPDATE ${registry}.kept SET holder = ? WHERE kind = ? AND holder IS NULL LIMIT 1`, [
    holder,
    kind.name,
  ]);
  const [rows] = await root.query<RowDataPacket[]>(
    `SELECT name, gateway_url AS gatewayUrl, digest, emptying FROM ${registry}.kept WHERE holder = ?`,
    [holder],
  );
  return rows[0] as Kept | undefined;
}

async function makeKept(kind: KeptKind): Promise<Kept> {
  const { databaseUrl } = await testServers();
  const name = await createDatabase(databaseUrl);
  await kind.make(`${databaseUrl}/${name}`);
  const gatewayUrl = kind.hasGateway ? await createAccount(databaseUrl, name, name) : null;
  return withRoot(async (root) => {
    const { tables, digest } = await definitionsOf(root, name);
    const refills = await Promise.all(tables.map((table) => refill(root, `${name}.${escapeId(table)}`)));
    const emptying = ['START TRANSACTION', ...refills, 'COMMIT'].join(';\n');
    const values = [name, kind.name, randomUUID(), gatewayUrl, digest, emptying];
    await root.query(`INSERT INTO ${registry}.kept VALUES (?)`, [values]);
    return { name, gatewayUrl, digest, emptying };
  });
}

/** The statements that leave only those rows in a table that it has now. */
async function refill(root: Connection, table: string): Promise<string> {
  const [rows] = await root.query<RowDataPacket[]>(`SELECT * FROM ${table}`);
  const inserts = rows.map((row) => root.format(`INSERT INTO ${table} SET ?`, [row]));
  return [`DELETE FROM ${table}`, ...inserts].join(';\n');
}

/** Makes it as it was when it was new, and free. Returns false if that cannot be, and forgets it. */
async function giveBack(root: Connection, { name, digest, emptying }: Kept): Promise<boolean> {
  const isFree = await isUnused(root, name);
  const now = isFree ? await definitionsOf(root, name) : undefined;
  if (now?.digest !== digest) {
    await root.query(`DELETE FROM ${registry}.kept WHERE name = ?`, [name]);
    return false;
  }
  await root.query(emptying);
  for (const table of now.counting) await root.query(`ALTER TABLE ${name}.${escapeId(table)} AUTO_INCREMENT = 1`);
  await root.query(`UPDATE ${registry}.kept SET holder = NULL WHERE name = ?`, [name]);
  return true;
}

/** Waits until no connection is to it. */
async function isUnused(root: Connection, name: string): Promise<boolean> {
  for (let looks = 0; looks < maxLooks; looks += 1) {
    const [rows] = await root.query<RowDataPacket[]>(
      'SELECT 1 FROM information_schema.processlist WHERE db = ? LIMIT 1',
      [name],
    );
    if (rows.length === 0) return true;
    await delay(lookEveryMs);
  }
  return false;
}

/** Its tables, those that have counted rows, and a digest of everything but rows. */
async function definitionsOf(root: Connection, name: string) {
  const [listed] = await root.query<RowDataPacket[]>(`SHOW TABLES IN ${name}`);
  const tables = listed.map((row) => String(Object.values(row)[0])).sort();
  const { databaseUrl } = await testServers();
  const [definitions] = await root.query<RowDataPacket[][]>(
    [
      `SHOW TRIGGERS IN ${name}`,
      `SELECT table_name, privilege_type FROM information_schema.table_privileges WHERE table_schema = '${name}' AND grantee = ${root.escape(accountOf(databaseUrl, name))} ORDER BY 1, 2`,
      ...tables.map((table) => `SHOW CREATE TABLE ${name}.${escapeId(table)}`),
    ].join(';\n'),
  );
  const text = JSON.stringify(definitions);
  const counting = definitions
    .slice(2)
    .flatMap(([row]) => (/ AUTO_INCREMENT=\d/.test(JSON.stringify(row)) ? [String(row?.Table)] : []));
  const digest = createHash('sha256')
    .update(text.replaceAll(/ AUTO_INCREMENT=\d+/g, ''))
    .digest('hex');
  return { tables, counting, digest };
}

async function withRoot<T>(work: (root: Connection) => Promise<T>): Promise<T> {
  const { databaseUrl } = await testServers();
  const root = await createConnection({ uri: databaseUrl, multipleStatements: true });
  try {
    return await work(root);
  } finally {
    await root.end();
  }
}
