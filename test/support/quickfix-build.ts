import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { Advice } from '../../src/sandbox/advice.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { libraryPath, type PackageSet, unpackPackages } from '../../src/sandbox/packages.ts';
import { findInstalled, wantsPackages } from '../../src/sandbox/programs.ts';

export interface AcceptorProgram {
  readonly path: string;
  readonly libraries: string;
  readonly dictionaries: string;
}

const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu';

/** The library, its headers, and the data dictionaries, which only the source package has. */
const quickFixPackages: PackageSet = {
  what: 'QuickFIX',
  choose: (existing) => {
    const names = existing('libquickfix').filter((name) => /^libquickfix(-dev|\d+(t64)?)$/.test(name));
    return names.length === 2 ? names : [];
  },
  programs: [`usr/lib/${triplet}/libquickfix.so`],
  sources: { package: 'quickfix', files: '*/spec/*.xml' },
  advice: 'Debian 12, Ubuntu 24.04 and newer have the packages libquickfix-dev and libquickfix17.',
};

const compilerVersions = [10, 11, 12, 13, 14, 15, 16];

/** The newest g++, with what it needs to compile and link. */
const compilerPackages: PackageSet = {
  what: 'g++',
  choose: (existing) => {
    const version = compilerVersions.findLast((each) => existing(`g++-${each}`).includes(`g++-${each}`));
    if (version === undefined) return [];
    const target = triplet.replace('_', '-');
    const parts = ['g++', 'gcc', 'cpp'].flatMap((name) => [`${name}-${version}`, `${name}-${version}-${target}`]);
    const libraries = [`libgcc-${version}-dev`, `libstdc++-${version}-dev`, 'libc6-dev', 'linux-libc-dev'];
    const names = [...parts, ...libraries, 'binutils', `binutils-${target}`];
    return names.filter((name) => existing(name).includes(name));
  },
  programs: [
    ...compilerVersions.flatMap((version) =>
      ['lib', 'libexec'].map((folder) => `usr/${folder}/gcc/${triplet}/${version}/cc1plus`),
    ),
    ...['as', 'ld.bfd'].map((name) => `usr/bin/${triplet}-${name}`),
  ],
  advice: 'Install a C++ compiler (Debian, Ubuntu: sudo apt install g++).',
};

/** Libraries that a program is linked with and that every system has; packages for compiling only point to them. */
const systemLibraries = [
  ...['libc.so.6', 'libm.so.6', 'libmvec.so.1', 'libstdc++.so.6', 'libgcc_s.so.1'],
  ...['ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'],
];

interface Compiler {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

let found: Promise<AcceptorProgram> | undefined;

/** Builds the acceptor, unless this version of it is there already. */
export function findAcceptor(): Promise<AcceptorProgram> {
  found ??= buildAcceptor();
  return found;
}

async function buildAcceptor(): Promise<AcceptorProgram> {
  const root = localFolder('quickfix');
  await unpackPackages(root, quickFixPackages);
  const library = join(root, 'usr', 'lib', triplet, 'libquickfix.so');
  const sources = resolve(import.meta.dirname, './quickfix');
  const hash = createHash('sha256').update(readFileSync(library)).update(root);
  for (const name of readdirSync(sources).sort()) hash.update(name).update(readFileSync(join(sources, name)));
  const path = localFolder('fix-acceptor', hash.digest('hex').slice(0, 16));
  const program = {
    path,
    libraries: libraryPath(root),
    dictionaries: join(root, 'usr', 'share', 'quickfix', 'spec'),
  };
  if (existsSync(path)) return program;
  const compiler = await findCompiler();
  mkdirSync(localFolder('fix-acceptor'), { recursive: true });
  // Several processes may build at once: each has a folder of its own, and the last one's program stays.
  const work = mkdtempSync(`${path}.new-`);
  try {
    await sharedKeeper().run({
      name: 'the compiler of the FIX acceptor',
      command: compiler.command,
      args: [
        ...compiler.args,
        ...['-std=c++17', '-O1', '-isystem', join(root, 'usr', 'include')],
        ...['-o', join(work, 'acceptor'), join(sources, 'acceptor.cpp'), library, '-pthread'],
        // The loader finds the libraries that the library itself needs when the program starts.
        '-Wl,--allow-shlib-undefined',
      ],
      env: compiler.env,
      logPath: join(work, 'compiler.log'),
    });
    renameSync(join(work, 'acceptor'), path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return program;
}

/** The compiler that is installed, else the distribution's, unpacked into the folder of the sandbox. */
async function findCompiler(): Promise<Compiler> {
  const installed = wantsPackages({}) ? undefined : findInstalled(['g++', 'clang++']);
  if (installed !== undefined) return { command: installed.path, args: [], env: process.env };
  const root = localFolder('compiler');
  await unpackPackages(root, compilerPackages);
  for (const name of systemLibraries) addSystemLibrary(root, name);
  const programs = join(root, 'usr', 'bin');
  const command = readdirSync(programs).find((name) => /(^|-)g\+\+-\d+$/.test(name));
  if (command === undefined) throw new Advice(`There is no g++ in ${programs}.`, compilerPackages.advice);
  // Its own assembler and linker are found by their path.
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, LD_LIBRARY_PATH: libraryPath(root) };
  return { command: join(programs, command), args: [`--sysroot=${root}`], env };
}

/** Lets the unpacked linker find a library of the system where it would be if everything were unpacked. */
function addSystemLibrary(root: string, name: string): void {
  for (const folder of [`lib/${triplet}`, 'lib64', 'lib', `usr/lib/${triplet}`]) {
    if (!existsSync(join('/', folder, name)) || existsSync(join(root, folder, name))) continue;
    mkdirSync(join(root, folder), { recursive: true });
    try {
      symlinkSync(join('/', folder, name), join(root, folder, name));
    } catch (error) {
      // Another process was quicker.
      if (!existsSync(join(root, folder, name))) throw error;
    }
  }
}

/** In the folder of `make run`, as other packages that tests unpack. */
function localFolder(...names: string[]): string {
  return resolve(process.env.MARINA_DATA_DIR || '.local', ...names);
}
