import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { Advice } from './advice.ts';
import { lastLines } from './exits.ts';
import { type KeptProcess, sharedKeeper } from './keeper.ts';
import { endLeftoverServer } from './leftover.ts';
import { lockFolder } from './lock.ts';
import { createDataFolder, isOracle, serverArguments } from './mariadb-data.ts';
import { freePort } from './ports.ts';
import {
  findInstalled,
  findProgram,
  findUnpacked,
  type Program,
  type ProgramOptions,
  wantsPackages,
} from './programs.ts';
import { keptSecret } from './secrets.ts';

/** A server of its own, which ends with the process that started it. */
export interface Server {
  /** How clients reach it; MariaDB's carries the administrator's password. */
  url: string;
  port: number;
  pid: number;
  /** The program's own words for its version. */
  version: string;
  process: KeptProcess;
  /** Stops it in bounded time and lets the folder go. */
  stop(): Promise<void>;
  /** Ends it as a crash would; the data stay. */
  kill(): Promise<void>;
}

export interface MariaDbOptions extends ProgramOptions {
  /** The folder for everything it writes; kept data are used again. */
  dataDir: string;
  /** Absent: a free one. */
  port?: number;
  /**
   * The data are thrown away afterwards: commits survive a crash of the server but not of the machine, and stopping is
   * killing.
   */
  disposable?: boolean;
}

const names = ['mariadbd', 'mysqld'];

/** Starts a private MariaDB (or MySQL 8) on 127.0.0.1. */
export async function startMariaDb(asked: MariaDbOptions): Promise<Server> {
  const options = { ...asked, dataDir: resolve(asked.dataDir) };
  const lock = lockFolder(options.dataDir, 'MariaDB');
  try {
    await endLeftoverServer(join(options.dataDir, 'mariadb.pid'), options.dataDir);
    const program = await prepare(options);
    for (let attempt = 1; ; attempt++) {
      const port = options.port ?? (await freePort());
      try {
        return await launch(program, port, options, () => lock.release());
      } catch (error) {
        // Between finding a free port and using it another process can take it.
        if (options.port !== undefined || attempt === 3 || !String(error).includes('ddress already in use'))
          throw error;
      }
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Finds a program that manages to make the data folder: a system's mysqld can be forbidden to write where we ask it. */
async function prepare(options: MariaDbOptions): Promise<Program> {
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

async function launch(program: Program, port: number, options: MariaDbOptions, release: () => void): Promise<Server> {
  const { dataDir } = options;
  const password = keptSecret(join(dataDir, 'root-password'), 16);
  const socket = socketPath(dataDir);
  const initFile = join(dataDir, 'init.sql');
  writeFileSync(initFile, accountStatements(password), { mode: 0o600 });
  const logPath = join(dataDir, 'mariadb.log');
  const mariadb = await sharedKeeper().start({
    name: 'MariaDB',
    command: program.path,
    args: [
      ...serverArguments(program, join(dataDir, 'data')),
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${socket}`,
      `--pid-file=${join(dataDir, 'mariadb.pid')}`,
      `--init-file=${initFile}`,
      ...(options.disposable === true
        ? ['--innodb-flush-log-at-trx-commit=2', '--innodb-doublewrite=OFF']
        : ['--innodb-flush-log-at-trx-commit=1']),
    ],
    env: program.env,
    logPath,
    stopSignal: options.disposable === true ? 'SIGKILL' : 'SIGTERM',
  });
  const url = `mysql://root:${password}@127.0.0.1:${port}`;
  try {
    await untilItAnswers(url, mariadb);
  } catch (error) {
    await mariadb.kill();
    throw error;
  } finally {
    rmSync(initFile, { force: true });
  }
  return {
    url,
    port,
    pid: mariadb.pid,
    version: program.version,
    process: mariadb,
    stop: async () => {
      await mariadb.stop();
      release();
    },
    kill: async () => {
      await mariadb.kill();
      release();
    },
  };
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
    if (ended) throw new Advice(`MariaDB did not start:\n${lastLines(mariadb.logPath)}`, `Its log: ${mariadb.logPath}`);
    try {
      const connection = await createConnection({ uri: url, connectTimeout: 2_000 });
      await connection.end();
      return;
    } catch {
      await sleep(20);
    }
  }
  throw new Advice(
    `MariaDB did not answer within a minute:\n${lastLines(mariadb.logPath)}`,
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
