import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Advice } from './advice.ts';
import { lastLines } from './exits.ts';
import { sharedKeeper } from './keeper.ts';

/** Packages that are unpacked together. */
export interface PackageSet {
  /** Their description, as in "the packages of MariaDB and NATS". */
  readonly what: string;
  /** The names of the packages, of those there are; none: the release does not have them. */
  readonly choose: (existing: (prefix: string) => string[]) => string[];
  /** The programs, whose libraries are brought too. */
  readonly programs: readonly string[];
  /** The advice where they cannot be had. */
  readonly advice: string;
  /** The end of the folder's name, if it is not the one of MariaDB and NATS. */
  readonly suffix?: string;
  /**
   * Where the system's release does not have the packages, they come from Debian's sid, with the C library and loader they
   * were built for. A script next to each program starts it with these.
   */
  readonly ownLoader?: true;
  /** Files that only a source package has, by their pattern in its archive. They come to `usr/share/<source package>`. */
  readonly sources?: { readonly package: string; readonly files: string };
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
    if (set.ownLoader) await addSid(apt);
    let wanted = set.choose((prefix) => candidates(apt, prefix));
    if (wanted.length === 0) {
      throw new Error(`the package sources cannot be read, or have none.\n${lastLines(join(apt.work, 'apt.log'), 4)}`);
    }
    const taken = new Set<string>();
    // Their dependencies are unpacked, one step further each time, and only while a library is missing.
    for (let depth = 0; depth < 5 && wanted.length > 0; depth++) {
      await unpack(apt, wanted, root);
      for (const name of wanted) taken.add(name);
      if (missingLibraries(root, set).length === 0) break;
      const needed = dependencies(apt, wanted).filter((name) => !taken.has(name));
      wanted = set.ownLoader ? needed : needed.filter((name) => !isInstalled(name));
    }
    const missing = missingLibraries(root, set);
    if (missing.length > 0) throw new Error(`no package brought ${missing.join(', ')}`);
    if (set.ownLoader) for (const program of set.programs) writeStarter(root, program);
    if (set.sources !== undefined) await addSources(apt, set.sources, root);
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

/** The advice if no server is found and none can be unpacked. */
const installAdvice = [
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

/** Where the package galera-4 has its library. */
export const galeraLibrary = 'usr/lib/galera/libgalera_smm.so';

/** MySQL's server, of Debian's sid: the releases have MariaDB in its place. */
export const mySqlPackages: PackageSet = {
  what: 'MySQL',
  suffix: '-mysql',
  ownLoader: true,
  choose: (existing) => existing('mysql-server-core').filter((name) => name === 'mysql-server-core'),
  programs: ['usr/sbin/mysqld'],
  advice:
    'Either install MySQL, so that mysqld is found, or leave out the setting that asks for it: MariaDB is taken then.',
};

/** MariaDB and the library by which it joins a Galera cluster, for tests. An unpacked server runs with that library only. */
export const galeraPackages: PackageSet = {
  what: 'MariaDB and Galera',
  suffix: '-galera',
  choose: (existing) => {
    const wanted = ['galera-4', 'mariadb-server-core'];
    const found = wanted.filter((name) => existing(name).includes(name));
    return found.length === wanted.length ? found : [];
  },
  programs: ['usr/sbin/mariadbd', galeraLibrary],
  advice: 'Debian 12, Ubuntu 24.04 and newer have the packages galera-4 and mariadb-server-core.',
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

/** Adds sid to what an apt of our own reads, at the place where the system's sources have Debian. */
async function addSid(apt: Apt): Promise<void> {
  const format = '$(LABEL)|$(REPO_URI)|$(SIGNED_BY)';
  const targets = capture('apt-get', ['-c', apt.config, 'indextargets', '--format', format, 'Identifier: Packages']);
  const debian = targets
    .split('\n')
    .map((line) => line.split('|'))
    .find(([label]) => label === 'Debian');
  if (debian === undefined) return;
  const [, uri = '', signedBy = ''] = debian;
  const keys = existsSync(signedBy) ? signedBy : '/usr/share/keyrings/debian-archive-keyring.gpg';
  const list = join(apt.work, 'sid.list');
  writeFileSync(list, `deb [signed-by=${keys}] ${uri} sid main\n`);
  appendFileSync(apt.config, `Dir::Etc::sourcelist "${list}";\nDir::Etc::sourceparts "/dev/null";\n`);
  await aptGet(apt, ['update']);
}

/** Unpacks files of a source package, which apt finds where it finds the packages. Changes what this apt reads. */
async function addSources(
  apt: Apt,
  sources: { readonly package: string; readonly files: string },
  root: string,
): Promise<void> {
  const format = '$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)';
  const targets = capture('apt-get', ['-c', apt.config, 'indextargets', '--format', format, 'Identifier: Packages']);
  const lines = targets.split('\n').flatMap((line) => {
    const [uri = '', release = '', component = '', signedBy = ''] = line.split('|');
    if (uri === '') return [];
    return `deb-src ${existsSync(signedBy) ? `[signed-by=${signedBy}] ` : ''}${uri} ${release} ${component}`;
  });
  const list = join(apt.work, 'sources.list');
  writeFileSync(list, [...new Set(lines), ''].join('\n'));
  appendFileSync(apt.config, `Dir::Etc::sourcelist "${list}";\nDir::Etc::sourceparts "/dev/null";\n`);
  await aptGet(apt, ['update']);
  const folder = mkdtempSync(join(apt.work, 'sources-'));
  await aptGet(apt, ['source', '--download-only', sources.package], folder);
  const archive = readdirSync(folder).find((name) => name.includes('.orig.tar.') && !name.endsWith('.asc'));
  if (archive === undefined) throw new Error(`the source package ${sources.package} has no archive`);
  const into = join(root, 'usr', 'share', sources.package);
  mkdirSync(into, { recursive: true });
  await sharedKeeper().run({
    name: `tar -xf ${archive}`,
    command: 'tar',
    args: ['-xf', join(folder, archive), '-C', into, '--wildcards', '--strip-components=1', sources.files],
    logPath: join(folder, 'tar.log'),
  });
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

const loader = 'usr/lib64/ld-linux-x86-64.so.2';

/** Puts a script in a program's place that starts it with the unpacked loader and libraries, whichever place the folder has. */
function writeStarter(root: string, program: string): void {
  const path = join(root, program);
  renameSync(path, `${path}.bin`);
  const up = program
    .split('/')
    .slice(1)
    .map(() => '..')
    .join('/');
  const libraries = libraryPath(root).replaceAll(root, '$root');
  const lines = [
    `root=$(cd "$(dirname "$0")/${up}" && pwd)`,
    `exec "$root/${loader}" --library-path "${libraries}" "$0.bin" "$@"`,
  ];
  writeFileSync(path, ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 });
}

/** The libraries the unpacked programs ask for and do not find. */
function missingLibraries(root: string, { programs, ownLoader }: PackageSet): string[] {
  const found = programs.map((program) => join(root, program)).filter((program) => existsSync(program));
  if (ownLoader && !existsSync(join(root, loader))) return [loader];
  const libraries = libraryPath(root);
  const environment = { ...process.env, LD_LIBRARY_PATH: libraries };
  const list = ownLoader
    ? (program: string) => capture(join(root, loader), ['--library-path', libraries, '--list', program])
    : (program: string) => capture('ldd', [program], environment);
  const output = found.map(list).join('\n');
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

/** Returns the output of a quick command; a failure has the command's own message. */
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
