import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { archiveRightsFile, fixRightsFile, grantRights } from '../../src/sandbox/databases.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { type Server, startMariaDb, startNats } from '../../src/sandbox/servers.ts';
import { temporaryFolder } from './folders.ts';

export interface TestServers {
  /** An administrator's mysql:// URL without a database. */
  databaseUrl: string;
  natsUrl: string;
}

export interface TestDatabase {
  name: string;
  /** An administrator's mysql:// URL of this database. */
  url: string;
  /** Makes an account that has the gateway's rights on the tables that are there now, and returns its URL. */
  grantGateway(user?: string): Promise<string>;
  /** The same for the archive's rights. */
  grantArchive(): Promise<string>;
  /** The same for the FIX adapter. */
  grantFix(): Promise<string>;
  /** Drops it, or gives it back; what a test does not drop is dropped when its process ends. */
  drop(): Promise<void>;
}

/**
 * The servers of this test run. `test/run.ts` starts them once and names them in the environment; a file run alone
 * starts its own, which end with it.
 */
export function testServers(): Promise<TestServers> {
  servers ??= findServers();
  return servers;
}

/** Where the tests' gateways are, as the database sees it. */
export const accountHost = '127.0.0.1';

/** A fresh database of its own for a test, on the server of the test run or another. */
export async function createTestDatabase(serverUrl?: string): Promise<TestDatabase> {
  const databaseUrl = serverUrl ?? (await testServers()).databaseUrl;
  return testDatabase(databaseUrl, await createDatabase(databaseUrl));
}

/** Makes an empty database that nobody drops, and returns its name. */
export async function createDatabase(databaseUrl: string): Promise<string> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  await execute(databaseUrl, `CREATE DATABASE ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
  return name;
}

/** A database that is there. `giveBack` runs when the test is done with it, and tells if another may have it after that. */
export function testDatabase(databaseUrl: string, name: string, giveBack = async () => false): TestDatabase {
  const accounts: string[] = [];
  const grant = (user: string, rights?: URL) => {
    accounts.push(accountOf(databaseUrl, user));
    return createAccount(databaseUrl, name, user, rights);
  };
  const drop = async () => {
    if (!undropped.delete(drop)) return;
    for (const account of accounts) await execute(databaseUrl, `DROP USER IF EXISTS ${account}`);
    if (await giveBack()) return;
    await execute(databaseUrl, `DROP DATABASE IF EXISTS ${name}`);
    await execute(databaseUrl, `DROP USER IF EXISTS ${accountOf(databaseUrl, name)}`);
  };
  if (undropped.size === 0) process.once('beforeExit', dropAll);
  undropped.add(drop);
  return {
    name,
    url: `${databaseUrl}/${name}`,
    grantGateway: (user = name) => grant(user),
    grantArchive: () => grant(`${name}_archive`, archiveRightsFile),
    grantFix: () => grant(`${name}_fix`, fixRightsFile),
    drop,
  };
}

/** Makes an account with the gateway's rights on a database, or those of another file, and returns its URL. */
export async function createAccount(databaseUrl: string, name: string, user: string, rights?: URL): Promise<string> {
  const password = randomBytes(12).toString('hex');
  await execute(databaseUrl, `CREATE USER ${accountOf(databaseUrl, user)} IDENTIFIED BY '${password}'`);
  await grantRights(`${databaseUrl}/${name}`, user, hostOf(databaseUrl), rights);
  const url = new URL(`${databaseUrl}/${name}`);
  url.username = user;
  url.password = password;
  return url.href;
}

function hostOf(databaseUrl: string): string {
  return new URL(databaseUrl).hostname === '127.0.0.1' ? accountHost : '%';
}

/** The account of a user, where tests' gateways are. */
export function accountOf(databaseUrl: string, user: string): string {
  return `'${user}'@'${hostOf(databaseUrl)}'`;
}

/** A server that a test may stop and start again, on the same port. */
export interface RestartableServer {
  readonly url: string;
  readonly port: number;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  /** Ends it in order. */
  stop(): Promise<void>;
  /** Starts it again, with what it had stored or, where it can do without, with nothing. */
  restart(options?: { empty?: boolean }): Promise<void>;
}

/** A NATS of a test's own, for tests that must not meet another's streams, or that crash it. */
export async function startTestNats(further: readonly string[] = []): Promise<RestartableServer> {
  return restartable((dataDir, port) => startNats({ dataDir, port, disposable: true, further }));
}

/** A MariaDB of a test's own, for tests that stop it or change its settings. */
export async function startTestMariaDb(further: readonly string[] = []): Promise<RestartableServer> {
  return restartable((dataDir, port) => startMariaDb({ dataDir, port, further }));
}

async function restartable(
  start: (dataDir: string, port: number | undefined) => Promise<Server>,
): Promise<RestartableServer> {
  let folder = newFolder();
  let server = await start(folder, undefined);
  const { url, port } = server;
  return {
    url,
    port,
    kill: () => server.kill(),
    stop: () => server.stop(),
    restart: async ({ empty = false } = {}) => {
      if (empty) folder = newFolder();
      server = await start(folder, port);
    },
  };
}

function newFolder(): string {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  return folder;
}

let servers: Promise<TestServers> | undefined;
const undropped = new Set<() => Promise<void>>();

async function findServers(): Promise<TestServers> {
  const { MARINA_TEST_DATABASE_URL: databaseUrl, MARINA_TEST_NATS_URL: natsUrl } = process.env;
  if (databaseUrl && natsUrl) return { databaseUrl: databaseUrl.replace(/\/+$/, ''), natsUrl };
  const folder = newFolder();
  const [mariadb, nats] = await Promise.all([
    startMariaDb({ dataDir: join(folder, 'mariadb'), disposable: true }),
    startNats({ dataDir: join(folder, 'nats'), disposable: true }),
  ]);
  return { databaseUrl: mariadb.url, natsUrl: nats.url };
}

async function dropAll(): Promise<void> {
  for (const drop of undropped) await drop().catch(() => undefined);
}

export async function execute(url: string, statement: string): Promise<void> {
  const connection = await createConnection(url);
  try {
    await connection.query(statement);
  } finally {
    await connection.end();
  }
}
