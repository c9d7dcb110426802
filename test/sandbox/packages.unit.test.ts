import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Advice } from '../../src/sandbox/advice.ts';
import {
  galeraLibrary,
  galeraPackages,
  libraryPath,
  mySqlPackages,
  type PackageSet,
  serverPackages,
  unpackPackages,
} from '../../src/sandbox/packages.ts';
import { writeProgram } from '../support/fake-programs.ts';
import { temporaryFolder } from '../support/folders.ts';

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** The packages of a release. A program's file has the names of the libraries that it needs. */
interface Release {
  readonly files?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly depends?: Readonly<Record<string, readonly string[]>>;
  readonly installed?: readonly string[];
  readonly fails?: 'update' | 'download' | 'dpkg-deb';
}

/** Puts a release below `root`, where the programs of the tests find it, and returns the packages that were downloaded. */
function publish(root: string, { files = {}, depends = {}, installed = [], fails }: Release): () => string[][] {
  rmSync(join(root, 'release'), { recursive: true, force: true });
  mkdirSync(join(root, 'release', 'archive'), { recursive: true });
  for (const [name, own] of Object.entries(files)) {
    write(join(root, 'release', 'names', name), '');
    for (const [path, text] of Object.entries(own)) write(join(root, 'release', 'archive', name, path), text);
  }
  for (const [name, others] of Object.entries(depends)) {
    const lines = others.map((other) => `  Depends: ${other}\n`).join('');
    write(join(root, 'release', 'depends', name), `${name}\n${lines}  Depends: <virtual>\n  Depends: base\n`);
  }
  for (const name of installed) write(join(root, 'release', 'installed', name), '');
  if (fails !== undefined) write(join(root, 'release', `fails-${fails}`), '');
  const calls = join(root, 'release', 'downloads');
  return () =>
    existsSync(calls)
      ? readFileSync(calls, 'utf8')
          .trim()
          .split('\n')
          .map((line) => line.split(' '))
      : [];
}

/** The tools of a distribution, for the release below `root`. */
function writeTools(root: string): void {
  const release = join(root, 'release');
  const tool = (name: string, lines: string) =>
    writeProgram(join(root, 'bin', name), `cd_release=${release}\n${lines}`);
  tool(
    'apt-get',
    `[ "$1" = --version ] && exit 0
shift 3; action=$1; shift
echo "apt-get $action"
[ -e $cd_release/fails-$action ] && exit 100
if [ "$action" = download ]; then
  echo "$*" >> $cd_release/downloads
  for name in "$@"; do [ -d $cd_release/archive/$name ] && echo "$name" > $name.deb || exit 100; done
fi
exit 0`,
  );
  tool(
    'apt-cache',
    `[ "$1" = --version ] && exit 0
shift 2
if [ "$1" = pkgnames ]; then ls $cd_release/names 2>/dev/null | grep "^$2"; exit 0; fi
for name in "$@"; do [ -e $cd_release/depends/$name ] && cat $cd_release/depends/$name; done
exit 0`,
  );
  tool(
    'dpkg-deb',
    `[ "$1" = --version ] && exit 0
[ -e $cd_release/fails-dpkg-deb ] && echo "broken archive" && exit 2
cp -r "$cd_release/archive/$(cat $2)/." "$3"`,
  );
  tool('dpkg-query', `[ "$1" = --version ] && exit 0\n[ -e $cd_release/installed/$4 ] && echo "ii "`);
  tool(
    'ldd',
    `while read library; do
  found=no
  for folder in $(echo "$LD_LIBRARY_PATH" | tr : ' '); do [ -e "$folder/$library" ] && found=yes; done
  [ $found = no ] && echo "	$library => not found" || echo "	$library => /there"
done < "$1"`,
  );
}

const set: PackageSet = {
  what: 'Stand-in',
  choose: (existing) => existing('stand').filter((name) => name === 'stand-in'),
  programs: ['usr/bin/stand-in', 'usr/sbin/not-in-every-release'],
  advice: 'Install it.',
};
const lib = 'usr/lib/x86_64-linux-gnu';
const deep: Release = {
  files: {
    'stand-in': { 'usr/bin/stand-in': 'liba.so\nlibb.so\nlibc.so\n' },
    'stand-in-doc': { 'usr/share/doc': '' },
    liba: { [`${lib}/liba.so`]: '' },
    libb: { [`${lib}/libb.so`]: '' },
    libc: { 'lib/libc.so': '' },
    libfurther: { [`${lib}/libfurther.so`]: '' },
  },
  depends: { 'stand-in': ['liba'], liba: ['libb', 'liba'], libb: ['libc'], libc: ['libfurther'] },
};
/** A program with the library that it needs. */
const flat: Release = { files: { 'stand-in': { 'usr/bin/stand-in': 'liba.so\n', [`${lib}/liba.so`]: '' } } };

describe('packages that are unpacked', () => {
  const root = temporaryFolder();
  const path = process.env.PATH;
  before(() => {
    writeTools(root);
    process.env.PATH = `${join(root, 'bin')}:${path}`;
  });
  after(() => {
    process.env.PATH = path;
    rmSync(root, { recursive: true });
  });
  const newFolder = () => join(temporaryFolder(), 'packages');
  /** The names next to a folder: no half-made folder may stay. */
  const around = (folder: string) => readdirSync(dirname(folder));

  it('the libraries that a program lacks are unpacked step by step, and no library that it does not need', async () => {
    const downloads = publish(root, deep);
    const folder = newFolder();
    await unpackPackages(folder, set);
    assert.deepEqual(downloads(), [['stand-in'], ['liba'], ['libb'], ['libc']]);
    assert.ok(existsSync(join(folder, 'usr/bin/stand-in')));
    assert.deepEqual(around(folder), ['packages']);
    await unpackPackages(folder, set);
    assert.equal(downloads().length, 4, 'what is there is not unpacked again');
  });

  it('a library that is installed is not unpacked', async () => {
    const downloads = publish(root, {
      files: { ...deep.files, 'stand-in': { 'usr/bin/stand-in': 'libb.so\n' } },
      depends: { 'stand-in': ['liba', 'libb'] },
      installed: ['liba'],
    });
    await unpackPackages(newFolder(), set);
    assert.deepEqual(downloads(), [['stand-in'], ['libb']]);
  });

  it('packages without a library that their program needs are not kept, and are tried again at the next start', async () => {
    publish(root, { files: { 'stand-in': { 'usr/bin/stand-in': 'libc.so\n' } } });
    const folder = newFolder();
    for (const _ of [1, 2]) {
      await assert.rejects(unpackPackages(folder, set), (error: Advice) => {
        assert.match(error.message, /The packages of Stand-in could not be unpacked: no package brought libc\.so$/);
        return error instanceof Advice && error.advice === 'Install it.';
      });
      assert.deepEqual(around(folder), []);
    }
    publish(root, flat);
    await unpackPackages(folder, set);
    assert.deepEqual(around(folder), ['packages']);
  });

  it('a download or an archive that fails leaves nothing behind', async () => {
    for (const fails of ['download', 'dpkg-deb'] as const) {
      publish(root, { ...flat, fails });
      const folder = newFolder();
      await assert.rejects(unpackPackages(folder, set), /^Advice: The packages of Stand-in could not be unpacked/);
      assert.deepEqual(around(folder), []);
    }
  });

  it('one package source that cannot be read is no reason to stop, and no package at all is one', async () => {
    publish(root, { ...flat, fails: 'update' });
    const folder = newFolder();
    await unpackPackages(folder, set);
    assert.ok(existsSync(folder));
    publish(root, { files: { 'stand-in-doc': {} } });
    const none = newFolder();
    await assert.rejects(
      unpackPackages(none, set),
      /the package sources cannot be read, or have none\.\n {4}apt-get update/,
    );
    assert.deepEqual(around(none), []);
  });

  it('two starts that unpack at once both have the packages', async () => {
    publish(root, flat);
    const folder = newFolder();
    await Promise.all([unpackPackages(folder, set), unpackPackages(folder, set)]);
    assert.deepEqual(around(folder), ['packages']);
    assert.ok(existsSync(join(folder, lib, 'liba.so')));
  });

  it('a system without the tools is told what to do', async () => {
    rmSync(join(root, 'bin', 'apt-cache'));
    process.env.PATH = join(root, 'bin');
    try {
      const folder = newFolder();
      await assert.rejects(unpackPackages(folder, set), /There is no Stand-in here, and no apt-cache to unpack it/);
      assert.deepEqual(around(folder), []);
    } finally {
      process.env.PATH = `${join(root, 'bin')}:${path}`;
      writeTools(root);
    }
  });
});

describe('the packages of the servers', () => {
  const chosen = ({ choose }: PackageSet, ...names: readonly string[]) =>
    choose((prefix) => names.filter((name) => name.startsWith(prefix)));

  it('MariaDB is taken under its plain name, else in its highest version, and NATS if the release has it', () => {
    for (const [names, expected] of [
      [
        ['mariadb-server-core', 'mariadb-server-core-10.6', 'nats-server'],
        ['mariadb-server-core', 'nats-server'],
      ],
      [
        ['mariadb-server-core-10.11', 'mariadb-server-core-10.6', 'mariadb-server-core-10.3'],
        ['mariadb-server-core-10.11'],
      ],
      [['mariadb-server-core-10.6', 'mariadb-server-core-dbgsym'], ['mariadb-server-core-10.6']],
      [['nats-server', 'nats-server-dev'], ['nats-server']],
      [['nats-server-dev', 'mariadb-server'], []],
    ] as const)
      assert.deepEqual(chosen(serverPackages, ...names), expected);
  });

  it('MariaDB with Galera is taken only if the release has both', () => {
    const both = ['galera-4', 'mariadb-server-core'];
    assert.deepEqual(chosen(galeraPackages, ...both, 'galera-4-dbgsym'), both);
    for (const one of both) assert.deepEqual(chosen(galeraPackages, one), []);
    assert.ok(galeraPackages.programs.includes(galeraLibrary), 'its libraries are brought too');
  });

  it('MySQL is taken from the package of its server only', () => {
    assert.deepEqual(chosen(mySqlPackages, 'mysql-server-core', 'mysql-server-core-8.0'), ['mysql-server-core']);
    assert.deepEqual(chosen(mySqlPackages, 'mysql-server-core-8.0'), []);
    const suffixes = [serverPackages, mySqlPackages, galeraPackages].map(({ suffix }) => suffix);
    assert.equal(new Set(suffixes).size, 3, 'each has a folder of its own');
  });

  it('an unpacked program finds the libraries of the release, and those in a folder of their own', () => {
    const root = temporaryFolder();
    for (const file of [
      ...['lib/libc.so', 'lib/x86_64-linux-gnu/libz.so.1', 'usr/lib/x86_64-linux-gnu/libssl.so.3'],
      ...[
        'usr/lib/x86_64-linux-gnu/pulseaudio/libown.so',
        'usr/lib/x86_64-linux-gnu/perl/readme.txt',
        'usr/lib/mysql/x',
      ],
    ])
      write(join(root, file), '');
    const folders = libraryPath(root).split(':');
    for (const folder of ['lib', 'lib/x86_64-linux-gnu', 'usr/lib', lib, `${lib}/pulseaudio`])
      assert.ok(folders.includes(join(root, folder)), folder);
    for (const folder of [`${lib}/perl`, 'usr/lib/mysql']) assert.ok(!folders.includes(join(root, folder)), folder);
    rmSync(root, { recursive: true });
  });
});
