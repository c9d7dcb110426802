import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { Advice } from './advice.ts';
import { libraryPath, type PackageSet, serverPackages, unpackPackages } from './packages.ts';
import type { StartProgress } from './progress.ts';

/** A server program and what it needs to run from where it lies. */
export interface Program {
  path: string;
  /** The output of `--version`. */
  version: string;
  /** The folder that holds `bin`, `share` and so on: `/usr`, or `usr` of the unpacked packages. */
  base: string;
  env: NodeJS.ProcessEnv;
}

export interface ProgramOptions {
  /** Where packages are unpacked when nothing is installed. */
  packagesFolder?: string;
  /** `packages` passes over what is installed, to try the other way. */
  source?: 'any' | 'packages';
  /** Those that hold the program; absent: those of MariaDB and NATS. */
  packages?: PackageSet;
  progress?: StartProgress;
}

/** The installed program, or undefined. */
export function findInstalled(names: readonly string[]): Program | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/usr/local/bin'];
  for (const name of names) {
    for (const folder of folders) {
      const program = folder === '' ? undefined : describe(join(folder, name), process.env);
      if (program !== undefined) return program;
    }
  }
  return undefined;
}

/** The program from the distribution's packages, unpacked first when they are not yet. */
export async function findUnpacked(names: readonly string[], options: ProgramOptions): Promise<Program> {
  const { packages = serverPackages, progress } = options;
  const folder = `${options.packagesFolder ?? defaultPackagesFolder()}${packages.suffix ?? ''}`;
  if (!existsSync(folder)) await unpackOnce(folder, packages, progress);
  // The script that starts a program of another release names its libraries; they are not for the shell that reads it.
  const env = packages.ownLoader ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath(folder) };
  for (const name of names) {
    for (const place of ['usr/sbin', 'usr/bin']) {
      const program = describe(join(folder, place, name), env);
      if (program !== undefined) return program;
    }
  }
  throw new Advice(`The packages in ${folder} hold no ${names[0]} that runs here.`, packages.advice);
}

/** Installed, or else unpacked. */
export async function findProgram(names: readonly string[], options: ProgramOptions = {}): Promise<Program> {
  const installed = wantsPackages(options) ? undefined : findInstalled(names);
  return installed ?? findUnpacked(names, options);
}

/** Whether what is installed is passed over. */
export function wantsPackages(options: ProgramOptions): boolean {
  return (options.source ?? process.env.MARINA_SERVERS) === 'packages';
}

const unpackings = new Map<string, Promise<void>>();

/** MariaDB and NATS, started together, need the same packages. */
function unpackOnce(folder: string, packages: PackageSet, progress: StartProgress | undefined): Promise<void> {
  const begun = unpackings.get(folder);
  if (begun !== undefined) return begun;
  const unpacking = unpackPackages(folder, packages).finally(() => unpackings.delete(folder));
  const shown = progress?.step(`unpacking the packages of ${packages.what}`, unpacking) ?? unpacking;
  unpackings.set(folder, shown);
  return shown;
}

/** Next to the data of `make run`, so that tests and runs share one copy. */
function defaultPackagesFolder(): string {
  return resolve(process.env.MARINA_DATA_DIR || '.local', 'packages');
}

/** A program that is there and runs. */
function describe(path: string, env: NodeJS.ProcessEnv): Program | undefined {
  try {
    accessSync(path, constants.X_OK);
    const version = execFileSync(path, ['--version'], { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] });
    return { path, version: version.trim(), base: dirname(dirname(realpathSync(path))), env };
  } catch {
    return undefined;
  }
}
