import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Advice } from '../../src/sandbox/advice.ts';
import { lockFolder } from '../../src/sandbox/lock.ts';
import { findAsked, startMariaDb } from '../../src/sandbox/mariadb.ts';
import { freePort } from '../../src/sandbox/ports.ts';
import { writeProgram } from '../support/fake-programs.ts';
import { temporaryFolder } from '../support/folders.ts';

const path = process.env.PATH;
const root = temporaryFolder();
after(() => {
  process.env.PATH = path;
  rmSync(root, { recursive: true });
});

/**
 * A server that notes its arguments, makes its data folder unless there is a file `full`, and ends at its start with a word
 * in its log.
 */
function writeServer(program: string, version: string): () => string[] {
  const calls = `${program}.calls`;
  writeProgram(
    program,
    `[ "$1" = --version ] && echo "${version}" && exit 0
echo "$*" >> ${calls}
case "$*" in *--initialize-insecure*) [ -e ${root}/full ] && echo "no space is left" && exit 1; exit 0;; esac
cat "$(echo "$*" | tr ' ' '\\n' | sed -n 's/--init-file=//p')" >> ${calls}.sql
echo "the tables are damaged"
exit 1`,
  );
  return () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []);
}

describe('the private database server of a sandbox', () => {
  it('MySQL is taken if it was asked for, and MariaDB if it was, whichever is installed under the name of the other', async () => {
    const [mysql, mariadb] = ['mysql', 'mariadb'].map((name) => join(root, name, 'bin'));
    writeServer(join(String(mysql), 'mysqld'), 'mysqld Ver 9.1 for Linux (MySQL Community Server)');
    writeServer(join(String(mariadb), 'mysqld'), 'mysqld Ver 10.11-MariaDB');
    const packagesFolder = join(root, 'both');
    writeServer(join(packagesFolder, 'usr/sbin/mariadbd'), 'unpacked MariaDB');
    writeServer(join(root, 'both-mysql', 'usr/sbin/mysqld'), 'unpacked MySQL');
    for (const [asked, installed, expected] of [
      ['mysql', mysql, /^mysqld Ver 9/],
      ['mysql', mariadb, /^unpacked MySQL$/],
      ['mariadb', mariadb, /^mysqld Ver 10/],
      ['mariadb', mysql, /^unpacked MariaDB$/],
    ] as const) {
      process.env.PATH = `${installed}:${path}`;
      assert.match((await findAsked(asked, { packagesFolder, source: 'any' })).version, expected);
      const unpacked = await findAsked(asked, { packagesFolder, source: 'packages' });
      assert.match(unpacked.version, asked === 'mysql' ? /^unpacked MySQL$/ : /^unpacked MariaDB$/);
    }
    process.env.PATH = path;
  });

  it('a server that does not start says why, and leaves its data, its folder and no password in a file of SQL', async () => {
    const packagesFolder = join(root, 'broken');
    const calls = writeServer(join(`${packagesFolder}-mysql`, 'usr/sbin/mysqld'), 'mysqld Ver 9.1 (MySQL)');
    const dataDir = join(root, 'data');
    const port = await freePort();
    const start = (disposable: boolean) =>
      startMariaDb({ dataDir, packagesFolder, source: 'packages', server: 'mysql', port, disposable });
    for (const disposable of [false, true]) {
      await assert.rejects(start(disposable), (error: Advice) => {
        assert.match(error.message, /The database server did not start:\n {4}the tables are damaged/);
        assert.match(error.advice, /mysql\.log$/);
        return error instanceof Advice;
      });
      lockFolder(dataDir, 'A test').release();
      assert.ok(!existsSync(join(dataDir, 'init.sql')));
    }
    const [initialised, ...starts] = calls();
    assert.match(initialised ?? '', / --initialize-insecure$/);
    assert.match(initialised ?? '', new RegExp(`--datadir=${dataDir}/data\\.new `));
    assert.equal(starts.length, 2, 'the data are made once');
    const [kept, disposed] = starts;
    for (const argument of [
      ...[
        `--port=${port}`,
        '--bind-address=127.0.0.1',
        `--datadir=${dataDir}/data`,
        `--pid-file=${dataDir}/mariadb.pid`,
      ],
      ...['--transaction-isolation=READ-COMMITTED', '--default-time-zone=+00:00', '--innodb-flush-log-at-trx-commit=1'],
    ])
      assert.ok(kept?.split(' ').includes(argument), argument);
    assert.ok(disposed?.includes('--innodb-flush-log-at-trx-commit=2'));

    const sql = readFileSync(join(`${packagesFolder}-mysql`, 'usr/sbin/mysqld.calls.sql'), 'utf8');
    const password = readFileSync(join(dataDir, 'root-password'), 'utf8').trim();
    assert.ok(sql.includes(`ALTER USER 'root'@'127.0.0.1' IDENTIFIED BY '${password}'`));
    assert.match(sql, /DROP USER IF EXISTS 'root'@'localhost', 'root'@'::1', ''@'localhost'/);
  });

  it('a data folder that was not made whole is made anew at the next start', async () => {
    const packagesFolder = join(root, 'full-disk');
    const calls = writeServer(join(`${packagesFolder}-mysql`, 'usr/sbin/mysqld'), 'mysqld Ver 9.1 (MySQL)');
    const dataDir = join(root, 'half-made');
    const start = () => startMariaDb({ dataDir, packagesFolder, source: 'packages', server: 'mysql' });
    writeFileSync(join(root, 'full'), '');
    for (const times of [1, 2]) {
      await assert.rejects(start(), /no space is left/);
      assert.equal(calls().length, times);
      assert.ok(!existsSync(join(dataDir, 'data')));
      writeFileSync(join(dataDir, 'data.new', 'half-written'), '');
    }
    rmSync(join(root, 'full'));
    await assert.rejects(start(), /the tables are damaged/);
    assert.deepEqual(readdirSync(join(dataDir, 'data')), [], 'nothing is left of the attempts before');
  });

  it('an installed server that may not write there is passed over for an unpacked one, with a note', async () => {
    const installed = join(root, 'forbidden/bin');
    const packagesFolder = join(root, 'instead');
    writeProgram(
      join(installed, 'mysqld'),
      '[ "$1" = --version ] && echo "mysqld Ver 8.0 (Ubuntu)" && exit 0\necho "permission denied"; exit 1',
    );
    const calls = writeServer(join(packagesFolder, 'usr/sbin/mysqld'), 'mysqld Ver 8.0 (unpacked)');
    const given = [process.env.MARINA_DATABASE_SERVER, process.env.MARINA_TEST_SERVER];
    delete process.env.MARINA_DATABASE_SERVER;
    delete process.env.MARINA_TEST_SERVER;
    process.env.PATH = `${installed}:/usr/bin:/bin`;
    const notes: string[] = [];
    const progress = { note: (line: string) => notes.push(line), step: <T>(_: string, work: Promise<T>) => work };
    const hasMariaDb = existsSync('/usr/sbin/mariadbd');
    try {
      const start = startMariaDb({ dataDir: join(root, 'noted'), packagesFolder, source: 'any', progress });
      // A machine with MariaDB takes that.
      if (hasMariaDb) await (await start).kill();
      else await assert.rejects(start, /the tables are damaged/);
    } finally {
      process.env.PATH = path;
      for (const [at, name] of ['MARINA_DATABASE_SERVER', 'MARINA_TEST_SERVER'].entries())
        if (given[at] !== undefined) process.env[name] = given[at];
    }
    if (hasMariaDb) return;
    assert.equal(calls().length, 2);
    assert.match(notes.join(), /forbidden\/bin\/mysqld cannot be used here/);
  });
});
