import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { withoutOurs } from '../../src/sandbox/processes.ts';
import { extractRelease, type Release } from '../../src/tools/release.ts';

const execute = promisify(execFile);

/** Installs a release in a folder of its own, as it was then, and returns its built `main.js`. */
export async function installRelease(release: Release, folder: string): Promise<string> {
  await extractRelease('.', release, folder);
  const { MAKEFLAGS: _flags, MAKELEVEL: _level, ...env } = process.env;
  if (lockedIn(folder) === lockedIn('.') && existsSync('node_modules/.package-lock.json')) {
    // The packages it locks are those that are installed here.
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  } else {
    await execute('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, env });
  }
  await execute('make', ['-o', 'node_modules/.package-lock.json', 'build'], { cwd: folder, env });
  return join(folder, 'dist/src/main.js');
}

/** The packages that a lock file names, without the project itself. */
function lockedIn(folder: string): string {
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, unknown>;
  };
  const { '': _project, ...locked } = packages;
  return JSON.stringify(locked);
}

/** Migrates a database as an operator does: by the command of a version's own `main`. */
export async function migrateBy(main: readonly string[], databaseUrl: string): Promise<void> {
  const env = { ...withoutOurs(process.env), MARINA_DATABASE_URL: databaseUrl };
  await execute(process.execPath, [...main, 'migrate'], { env });
}
