import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createConnection } from 'mysql2/promise';
import { libraryPath, type PackageSet, unpackPackages } from '../../src/sandbox/packages.ts';
import { findInstalled } from '../../src/sandbox/programs.ts';

/** The names of the programs in MySQL. */
const clients = { mariadb: 'mysql', 'mariadb-dump': 'mysqldump' } as const;

const clientPackages: PackageSet = {
  what: "MariaDB's clients",
  choose: (existing) => ['mariadb-client', 'mariadb-client-core'].filter((name) => existing(name).includes(name)),
  programs: Object.keys(clients).map((name) => join('usr/bin', name)),
  advice: 'Install mariadb-client, for mariadb and mariadb-dump.',
};

/** MariaDB's clients cannot sign in to MySQL. */
const mySqlClientPackages: PackageSet = {
  what: "MySQL's clients",
  ownLoader: true,
  choose: (existing) => existing('mysql-client-core').filter((name) => name === 'mysql-client-core'),
  programs: [join('usr/bin', 'mysqldump')],
  advice: 'They are packages of Debian sid, which must be reachable.',
};

/** Dumps a database to a file as docs/operations/backup.md says, while it is used. */
export async function dump(url: string, file: string): Promise<void> {
  const isMySql = process.env.MARINA_TEST_SERVER === 'mysql';
  const { path, env } = isMySql ? await unpacked(mySqlClientPackages, 'mysqldump') : await findClient('mariadb-dump');
  const { hostname, port, username, password, pathname } = new URL(url);
  const args = ['--single-transaction', '--hex-blob', `--host=${hostname}`, `--port=${port}`, `--user=${username}`];
  const dumping = spawn(path, [...args, pathname.slice(1)], {
    env: { ...env, MYSQL_PWD: decodeURIComponent(password) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  dumping.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = new Promise<number | null>((done) => dumping.once('close', done));
  await pipeline(dumping.stdout, createWriteStream(file));
  const code = await ended;
  if (code !== 0) throw new Error(`${path} ended with ${code}: ${said}`);
}

/** Reads a dump into a database. */
export async function restore(file: string, url: string): Promise<void> {
  const connection = await createConnection({ uri: url, multipleStatements: true });
  try {
    await connection.query(await readFile(file, 'utf8'));
  } finally {
    await connection.end();
  }
}

/** The one that is installed, else the distribution's, unpacked next to the sandbox's data. */
export async function findClient(name: keyof typeof clients): Promise<{ path: string; env: NodeJS.ProcessEnv }> {
  const installed = findInstalled([name, clients[name]]);
  if (installed !== undefined) return installed;
  const { path, env } = await unpacked(clientPackages, name);
  return { path, env: { ...env, LD_LIBRARY_PATH: libraryPath(resolve(path, '../../..')) } };
}

async function unpacked(set: PackageSet, name: string): Promise<{ path: string; env: NodeJS.ProcessEnv }> {
  const folder = resolve(
    process.env.MARINA_DATA_DIR || '.local',
    set === clientPackages ? 'mariadb-clients' : 'mysql-clients',
  );
  await unpackPackages(folder, set);
  return { path: join(folder, 'usr/bin', name), env: process.env };
}
