import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sharedKeeper } from './keeper.ts';
import type { Program } from './programs.ts';

/** Makes the server's own tables, unless they are there. A folder appears complete or not at all. */
export async function createDataFolder(program: Program, dataDir: string): Promise<void> {
  const final = join(dataDir, 'data');
  if (existsSync(final)) return;
  const draft = join(dataDir, 'data.new');
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  const logPath = join(dataDir, 'init.log');
  const common = { name: 'making the data folder', command: program.path, env: program.env, logPath };
  if (isOracle(program)) {
    await sharedKeeper().run({ ...common, args: [...serverArguments(program, draft), '--initialize-insecure'] });
  } else {
    const inputPath = join(dataDir, 'init.sql');
    writeFileSync(inputPath, systemTables(program), { mode: 0o600 });
    await sharedKeeper().run({
      ...common,
      inputPath,
      args: [
        ...serverArguments(program, draft),
        '--bootstrap',
        '--enforce-storage-engine=',
        '--max-allowed-packet=8M',
        '--innodb-flush-log-at-trx-commit=0',
      ],
    });
    rmSync(inputPath);
  }
  renameSync(draft, final);
}

/** The arguments of every start of the server, the first included. */
export function serverArguments(program: Program, data: string): string[] {
  const plugins = ['lib/mysql/plugin', 'lib/mariadb/plugin']
    .map((folder) => join(program.base, folder))
    .find(existsSync);
  const messages = shareFolder(program);
  // Not the folder that servers share: each removes what it finds there when it starts, and that can be another's.
  const temporary = join(dirname(data), 'tmp');
  mkdirSync(temporary, { recursive: true, mode: 0o700 });
  return [
    '--no-defaults',
    // It refuses to run as root unless told to; as an ordinary user there is nothing to change to.
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
    `--basedir=${program.base}`,
    `--datadir=${data}`,
    `--tmpdir=${temporary}`,
    ...(messages === undefined ? [] : [`--lc-messages-dir=${messages}`]),
    ...(plugins === undefined ? [] : [`--plugin-dir=${plugins}`]),
    '--skip-name-resolve',
    '--skip-log-bin',
    '--performance-schema=OFF',
    '--innodb-buffer-pool-size=256M',
    '--character-set-server=utf8mb4',
    '--default-time-zone=+00:00',
    '--transaction-isolation=READ-COMMITTED',
    '--max-connections=500',
    // MySQL's second protocol wants a port of its own, and its packages name a folder that only installing them makes.
    // Its 8.0.30 renamed the size of the redo log, and 9 refuses the former name; before, `loose-` skips what is unknown.
    ...(isOracle(program)
      ? ['--mysqlx=OFF', '--secure-file-priv=NULL', '--loose-innodb-redo-log-capacity=128M']
      : ['--innodb-log-file-size=128M']),
  ];
}

/** Whether it is MySQL and not MariaDB: their data folders are made in different ways. */
export function isOracle(program: Program): boolean {
  return !program.version.includes('MariaDB');
}

/** Returns the SQL that `mariadb-install-db` feeds the server, without the script, which wants more packages. */
function systemTables(program: Program): string {
  const share = shareFolder(program);
  if (share === undefined) throw new Error(`${program.path} comes without its system tables`);
  const parts = ['system_tables', 'performance_tables', 'system_tables_data', 'gis', 'sys_schema'].map((part) => {
    const files = part === 'gis' ? ['maria_add_gis_sp_bootstrap.sql'] : [`mariadb_${part}.sql`, `mysql_${part}.sql`];
    const path = files.map((file) => join(share, file)).find(existsSync);
    if (path === undefined) throw new Error(`${share} has no ${files.join(' or ')}`);
    return readFileSync(path, 'utf8');
  });
  return ['CREATE DATABASE mysql;', 'USE mysql;', 'SET @auth_root_socket=NULL;', ...parts, dropAccounts].join('\n');
}

/** Accounts without a password; the server's start makes the one that is used. */
const dropAccounts = "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\nDELETE FROM mysql.proxies_priv;\n";

function shareFolder(program: Program): string | undefined {
  const folders = ['share/mysql', 'share/mariadb', 'share'].map((folder) => join(program.base, folder));
  return folders.find((folder) => existsSync(join(folder, 'english', 'errmsg.sys')));
}
