import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { Advice } from './advice.ts';
import { lastLines } from './exits.ts';
import { type KeptProcess, sharedKeeper } from './keeper.ts';
import { createDataFolder, isOracle, serverArguments } from './mariadb-data.ts';
import { mySqlPackages } from './packages.ts';
import { type Run, type Server, type ServerOptions, startServer } from './private-server.ts';
import {
  findInstalled,
  findProgram,
  findUnpacked,
  type Program,
  type ProgramOptions,
  wantsPackages,
} from './programs.ts';
import { keptSecret } from './secrets.ts';

const names = ['mariadbd', 'mysqld'];

type AskedServer = 'mariadb' | 'mysql';

/** A setting that asks for one of the two servers: of `make run`, and of tests. */
const choices = ['MARINA_DATABASE_SERVER', 'MARINA_TEST_SERVER'];

/** The server that was asked for. Undefined: MariaDB, or a MySQL that is installed without it. */
export function askedServer(environment: NodeJS.ProcessEnv = process.env): AskedServer | undefined {
  const name = choices.find((each) => environment[each]);
  const asked = name === undefined ? undefined : environment[name];
  if (asked === undefined || asked === 'mariadb' || asked === 'mysql') return asked;
  throw new Advice(`${name} is ${asked}, which is no server it knows.`, 'Use mariadb or mysql.');
}

/** Starts a private MariaDB on 127.0.0.1, or MySQL if it was asked for. Their data folders cannot be exchanged. */
export async function startMariaDb(options: ServerOptions & { readonly server?: AskedServer }): Promise<Server> {
  const asked = options.server ?? askedServer();
  const ready = asked === undefined ? prepare : (each: ServerOptions) => prepareAsked(asked, each);
  const name = asked === 'mysql' ? 'MySQL' : 'MariaDB';
  return startServer({ name, pidFile: 'mariadb.pid', prepare: ready, launch }, options);
}

async function prepareAsked(asked: AskedServer, options: ServerOptions): Promise<Program> {
  const program = await findAsked(asked, options);
  await createDataFolder(program, options.dataDir);
  return program;
}

/** The program of the server that was asked for and of no other, installed or unpacked. */
export async function findAsked(asked: AskedServer, options: ProgramOptions = {}): Promise<Program> {
  const isMySql = asked === 'mysql';
  const installed = wantsPackages(options) ? undefined : findInstalled(isMySql ? ['mysqld'] : names);
  if (installed !== undefined && isOracle(installed) === isMySql) return installed;
  return findUnpacked(names, isMySql ? { ...options, packages: mySqlPackages } : options);
}

/** Finds a program that manages to make the data folder: a system's mysqld can be forbidden to write where we ask it. */
async function prepare(options: ServerOptions): Promise<Program> {
  const installed = wantsPackages(options) ? undefined : findInstalled(names);
  if (installed !== undefined && isOracle(installed)) {
    try {
      await createDataFolder(installed, options.dataDir);
      return installed;
    } catch (error) {
      options.progress?.note(`${installed.path} cannot be used here (${String(error).split('\n')[0]})`);
      const unpacked = await findUnpacked(names, options);
      await createDataFolder(unpacked, options.dataDir);
      return unpacked;
    }
  }
  const program = await findProgram(names, options);
  await createDataFolder(program, options.dataDir);
  return program;
}

async function launch(program: Program, port: number, options: ServerOptions, run: Run): Promise<string> {
  const { dataDir, disposable, further = [] } = options;
  const password = keptSecret(join(dataDir, 'root-password'), 16);
  const initFile = join(dataDir, 'init.sql');
  writeFileSync(initFile, accountStatements(password), { mode: 0o600 });
  const url = `mysql://root:${password}@127.0.0.1:${port}`;
  try {
    const mariadb = await run([
      ...serverArguments(program, join(dataDir, 'data')),
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${socketPath(dataDir)}`,
      `--pid-file=${join(dataDir, 'mariadb.pid')}`,
      `--init-file=${initFile}`,
      ...(disposable === true
        ? ['--innodb-flush-log-at-trx-commit=2', '--innodb-doublewrite=OFF']
        : ['--innodb-flush-log-at-trx-commit=1']),
      ...further,
    ]);
    await untilItAnswers(url, mariadb);
    return url;
  } finally {
    rmSync(initFile, { force: true });
  }
}

/** Run before the first connection is taken, so that there is no moment without a password. */
function accountStatements(password: string): string {
  return [
    `CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY '${password}';`,
    `ALTER USER 'root'@'127.0.0.1' IDENTIFIED BY '${password}';`,
    "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;",
    "DROP USER IF EXISTS 'root'@'localhost', 'root'@'::1', ''@'localhost';",
    '',
  ].join('\n');
}

async function untilItAnswers(url: string, mariadb: KeptProcess): Promise<void> {
  let ended = false;
  void mariadb.exited.then(() => {
    ended = true;
  });
  const deadline = performance.now() + 60_000;
  while (performance.now() < deadline) {
    if (ended)
      throw new Advice(
        `The database server did not start:\n${lastLines(mariadb.logPath)}`,
        `Its log: ${mariadb.logPath}`,
      );
    try {
      const connection = await createConnection({ uri: url, connectTimeout: 2_000 });
      await connection.end();
      return;
    } catch {
      await sleep(20);
    }
  }
  throw new Advice(
    `The database server did not answer within a minute:\n${lastLines(mariadb.logPath)}`,
    `Its log: ${mariadb.logPath}`,
  );
}

/** The kernel takes at most 107 characters. */
function socketPath(dataDir: string): string {
  const path = join(dataDir, 'mariadb.sock');
  if (Buffer.byteLength(path) <= 107) return path;
  const folder = mkdtempSync(join(tmpdir().length > 80 ? '/tmp' : tmpdir(), 'marina-'));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  sharedKeeper().removeAtEnd(folder);
  return join(folder, 's');
}
