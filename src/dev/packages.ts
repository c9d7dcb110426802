import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Advice } from './advice.ts';
import { lastLines } from './exits.ts';
import { sharedKeeper } from './keeper.ts';

/** Packages that are unpacked together. */
export interface PackageSet {
  /** What they are, as in "the packages of MariaDB and NATS". */
  readonly what: string;
  /** The names of the packages, of those there are; none: the release does not have them. */
  readonly choose: (existing: (prefix: string) => string[]) => string[];
  /** The programs, whose libraries are brought too. */
  readonly programs: readonly string[];
  /** What to do where they cannot be had. */
  readonly advice: string;
}

/**
 * Downloads packages of the distribution and unpacks them into a folder: no root, no installed package, no touched
 * service. The folder appears when it is complete and its programs find all their libraries.
 */
export async function unpackPackages(folder: string, set: PackageSet): Promise<void> {
  if (existsSync(folder)) return;
  for (const tool of ['apt-get', 'apt-cache', 'dpkg-deb', 'dpkg-query']) requireTool(tool, set);
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  const work = mkdtempSync(`${folder}.new-`);
  sharedKeeper().removeAtEnd(work);
  try {
    const root = join(work, 'root');
    mkdirSync(root);
    const apt = await openApt(work);
    let wanted = set.choose((prefix) => candidates(apt, prefix));
    if (wanted.length === 0) {
      throw new Error(`the package sources cannot be read, or have none.\n${lastLines(join(apt.work, 'apt.log'), 4)}`);
    }
    const taken = new Set<string>();
    // What the packages depend on, one step further each time, and only while a library is missing.
    for (let depth = 0; depth < 5 && wanted.length > 0; depth++) {
      await unpack(apt, wanted, root);
      for (const name of wanted) taken.add(name);
      if (missingLibraries(root, set).length === 0) break;
      wanted = dependencies(apt, wanted).filter((name) => !taken.has(name) && !isInstalled(name));
    }
    const missing = missingLibraries(root, set);
    if (missing.length > 0) throw new Error(`no package brought ${missing.join(', ')}`);
    moveInto(root, folder);
  } catch (error) {
    if (error instanceof Advice) throw error;
    throw new Advice(
      `The packages of ${set.what} could not be unpacked: ${error instanceof Error ? error.message : error}`,
      set.advice,
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** What to do where no server is found and none can be unpacked. */
export const installAdvice = [
  'Either install them (Debian 12, Ubuntu 24.04 and newer: sudo apt install mariadb-server-core nats-server),',
  'or use servers you have: set MARINA_DATABASE_URL=mysql://user:password@host:3306/marina and MARINA_NATS_URL=nats://host:4222.',
].join('\n');

/**
 * MariaDB (under the plain name, else the highest version, as `mariadb-server-core-10.6`) and NATS, which older releases
 * lack.
 */
export const serverPackages: PackageSet = {
  what: 'MariaDB and NATS',
  choose: (existing) => {
    const names = existing('mariadb-server-core').filter((name) => /^mariadb-server-core(-[\d.]+)?$/.test(name));
    names.sort((left, right) => left.localeCompare(right, 'en', { numeric: true }));
    const mariadb = names.includes('mariadb-server-core') ? 'mariadb-server-core' : names.at(-1);
    const nats = existing('nats-server').find((name) => name === 'nats-server');
    return [mariadb, nats].filter((name) => name !== undefined);
  },
  programs: ['usr/sbin/mariadbd', 'usr/sbin/nats-server', 'usr/bin/nats-server'],
  advice: installAdvice,
};

/** The environment that lets an unpacked program find its unpacked libraries. */
export function libraryPath(root: string): string {
  const folders = ['lib', 'usr/lib'].flatMap((folder) => {
    const path = join(root, folder);
    return [path, ...list(path).map((name) => join(path, name))].filter((each) => each.match(/(lib|-linux-gnu\w*)$/));
  });
  // Some packages keep the libraries only they use in a folder of their own, such as `pulseaudio`.
  const own = folders.flatMap((folder) => list(folder).map((name) => join(folder, name)));
  return [...folders, ...own.filter((folder) => list(folder).some((name) => /^lib.*\.so/.test(name)))].join(':');
}

interface Apt {
  work: string;
  config: string;
}

/** An apt with lists and cache of its own, which runs none of the system's hooks. */
async function openApt(work: string): Promise<Apt> {
  mkdirSync(join(work, 'lists', 'partial'), { recursive: true });
  mkdirSync(join(work, 'cache', 'archives', 'partial'), { recursive: true });
  const config = join(work, 'apt.conf');
  writeFileSync(
    config,
    [
      '#clear APT::Update::Post-Invoke;',
      '#clear APT::Update::Post-Invoke-Success;',
      `Dir::State::Lists "${join(work, 'lists')}";`,
      `Dir::Cache "${join(work, 'cache')}";`,
      'APT::Sandbox::User "";',
      'Acquire::Languages "none";',
      'Acquire::Retries "2";',
      'Acquire::http::Timeout "20";',
      'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";',
      'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";',
      'Debug::NoLocking "1";',
      '',
    ].join('\n'),
  );
  const apt = { work, config };
  // One unreachable source among several is no reason to stop: what is really missing shows when it is asked for.
  await aptGet(apt, ['update']).catch(() => undefined);
  return apt;
}

async function aptGet(apt: Apt, args: string[], cwd?: string): Promise<void> {
  await sharedKeeper().run({
    name: `apt-get ${args[0]}`,
    command: 'apt-get',
    args: ['-c', apt.config, '-q', ...args],
    logPath: join(apt.work, 'apt.log'),
    ...(cwd === undefined ? {} : { cwd }),
  });
}

async function unpack(apt: Apt, names: string[], root: string): Promise<void> {
  const folder = mkdtempSync(join(apt.work, 'debs-'));
  await aptGet(apt, ['download', ...names], folder);
  await Promise.all(
    list(folder).map((file) =>
      sharedKeeper().run({
        name: `dpkg-deb -x ${file}`,
        command: 'dpkg-deb',
        args: ['-x', join(folder, file), root],
        logPath: join(folder, `${file}.log`),
      }),
    ),
  );
}

function candidates(apt: Apt, prefix: string): string[] {
  return capture('apt-cache', ['-c', apt.config, 'pkgnames', prefix]).split('\n').filter(Boolean);
}

function dependencies(apt: Apt, names: string[]): string[] {
  const args = ['-c', apt.config, 'depends', '--no-recommends', '--no-suggests', '--no-conflicts', '--no-breaks'];
  const output = capture('apt-cache', [...args, '--no-replaces', '--no-enhances', ...names]);
  return [...output.matchAll(/^ [ |](?:Pre)?Depends: (lib[^\s<>]+)/gm)].flatMap(([, name]) => name ?? []);
}

function isInstalled(name: string): boolean {
  return capture('dpkg-query', ['-W', '-f', '$' + '{db:Status-Abbrev}', name]).startsWith('ii');
}

/** The libraries the unpacked programs ask for and do not find. */
function missingLibraries(root: string, { programs }: PackageSet): string[] {
  const found = programs.map((program) => join(root, program)).filter((program) => existsSync(program));
  const environment = { ...process.env, LD_LIBRARY_PATH: libraryPath(root) };
  const output = found.map((program) => capture('ldd', [program], environment)).join('\n');
  return [...output.matchAll(/^\s*(\S+) => not found/gm)].flatMap(([, name]) => name ?? []);
}

/** Two that unpack at once both finish; the first one's folder stays. */
function moveInto(root: string, folder: string): void {
  try {
    renameSync(root, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

function requireTool(tool: string, { what, advice }: PackageSet): void {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
  } catch {
    throw new Advice(`There is no ${what} here, and no ${tool} to unpack it.`, advice);
  }
}

/** What a quick command says; a failure says what it said. */
function capture(command: string, args: string[], env?: NodeJS.ProcessEnv): string {
  try {
    return execFileSync(command, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 30_000,
      ...(env && { env }),
    });
  } catch (error) {
    const { stdout } = error as { stdout?: unknown };
    return typeof stdout === 'string' ? stdout : '';
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
