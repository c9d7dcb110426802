/** A run of the archive over a folder and a database that the test holds: what leaves the database, and when. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { archive } from '../../../../src/gateway/operators/archive/archive.ts';
import { ownFolder } from '../../../../src/gateway/operators/archive/folder.ts';
import { removals, rowsOf, sets } from '../../../../src/gateway/operators/archive/sets.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { applications } from '../../../../src/gateway/trading/applications/table.ts';
import { lookUps, objectSteps } from '../../../../src/gateway/trading/submission/table.ts';
import { temporaryFolder } from '../../../support/folders.ts';
import { storedRow } from '../../../support/stored-row.ts';

const dayMs = 86_400_000;
const now = new Date('2025-03-20T10:00:00Z');
/** The days that are due, the oldest first: the first three of them are urgent. */
const days = Array.from({ length: 26 }, (_, at) =>
  new Date(Date.UTC(2025, 1, 20) + at * dayMs).toISOString().slice(0, 10),
);
const month = '2025-01';

const rowOf = <Row extends object>(table: Parameters<typeof storedRow<Row>>[0], row: object) => {
  const nothing = Object.fromEntries(table.fields.map((field) => [field, null]));
  return storedRow(table, { ...nothing, ...row } as Row);
};
const object = { partnerId: 'par_a', objectId: 'app_a' };

class Archived {
  readonly folder = temporaryFolder();
  /** The months that the database knows to be archived. */
  months: string[] = [];
  first: Date | null = new Date('2025-01-05T00:00:00Z');
  isHeld = true;
  isTaken = true;
  isWaiting = false;
  readonly done: string[] = [];
  readonly printed: string[] = [];
  before = (_: string) => {};

  /** Leaves days in the folder as they are when nothing more is to be done. */
  leave(...names: readonly string[]): this {
    for (const name of names) {
      mkdirSync(join(this.folder, name), { recursive: true });
      const manifest = { format: 'marina-archive-1', environment: 'sandbox', period: name, files: [] };
      writeFileSync(join(this.folder, name, 'manifest.json'), JSON.stringify(manifest));
      writeFileSync(join(this.folder, name, 'removed'), '');
    }
    const owner = { format: 'marina-archive-1', environment: 'sandbox', database: 'the-database' };
    writeFileSync(join(this.folder, 'archive.json'), JSON.stringify(owner));
    return this;
  }

  #answer({ sql, values }: Statement): SqlRow[] {
    if (sql.includes('NOW(3)')) return [{ now, first: this.first }];
    if (sql.includes('FROM archive_state')) {
      return ['database', ...this.months].map((name) => ({
        name,
        value: name === 'database' ? 'the-database' : 'then',
      }));
    }
    if (sql.includes('FROM partners')) return values[0] === '' ? [{ id: 'par_a' }] : [];
    if (sql.includes('queue IN (1, 2)')) return this.isWaiting ? [{ version: 1 }] : [];
    if (sql.includes('SELECT MIN(')) {
      return sql.includes('FROM applications') ? [{ first: 'app_a', last: 'app_a', count: 1 }] : [{ count: 0 }];
    }
    if (sql.includes('FROM applications')) {
      this.before('rows');
      return [rowOf(applications, { id: 'app_a', partnerId: 'par_a', state: 'opened', updatedAt: 1, createdAt: 1 })];
    }
    if (sql.includes('SELECT DISTINCT')) return [];
    if (sql.includes('FROM object_steps'))
      return [1, 2].map((sequence) => rowOf(objectSteps, { ...object, sequence, at: 1 }));
    if (sql.includes('FROM look_ups')) return [rowOf(lookUps, { ...object, lastAt: 77, asked: 1 })];
    return [];
  }

  /** Runs the archive. Answers what failed. */
  async run(acceptLost = false): Promise<string> {
    const query = async (sql: string) => [
      { taken: this.isTaken ? 1 : 0, held: sql.includes('IS_USED_LOCK') && this.isHeld ? 1 : 0 },
    ];
    const database = {
      environment: 'sandbox',
      manage: (work: (manager: object) => Promise<void>) => work({ query }),
      read: async (statement: Statement) => this.#answer(statement),
      readAll: async (statements: readonly Statement[]) => statements.map((one) => this.#answer(one)),
      write: async ({ sql, values }: Statement) => {
        const [, table] = /(?:INTO|FROM) (\w+)/.exec(sql) ?? [];
        const what = `${sql.startsWith('DELETE') ? 'remove' : 'add'} ${table}`;
        if (values[0] === 'database') return 0;
        this.done.push(`${what} ${values[0]}`);
        if (what === 'add archive_state') this.months.push(String(values[0]));
        if (what === 'remove archive_state') this.months = this.months.filter((name) => !values.includes(name));
        this.before(what);
        return 1;
      },
    };
    const print = (line: string) => void this.printed.push(line);
    const options = { database: database as never, folder: this.folder, months: 1, acceptLost, print };
    return archive(options).then(
      () => '',
      (error: Error) => error.message,
    );
  }

  has(...path: readonly string[]): boolean {
    return existsSync(join(this.folder, ...path));
  }
}

const removed = ['add archive_state 2025-01', 'remove object_steps par_a', 'remove look_ups par_a'];

describe('a run of the archive', () => {
  it('a run of the archive removes what a verified file has, after the database knows of the month, and once', async () => {
    const archived = new Archived().leave(...days);
    archived.before = (what) => {
      if (what === 'rows') assert.ok(!archived.has(month), 'its folder has its name when it is whole');
      else assert.ok(archived.has(month, 'manifest.json') && !archived.has(month, 'removed'), what);
    };
    assert.equal(await archived.run(), '');
    assert.deepEqual(archived.done, removed);
    assert.ok(archived.has(month, 'removed'));
    assert.match(archived.printed[0] ?? '', /^2025-01: .*1 applications\.ndjson\.gz.*; removed 2 steps and look-ups/);
    assert.ok(readdirSync(archived.folder).every((name) => !name.startsWith('.writing-')));
    archived.before = () => assert.fail('nothing is left to do');
    assert.equal(await archived.run(), '');
    assert.deepEqual([archived.done.length, archived.printed.length], [3, 3]);
  });

  it('a run of the archive goes on with the files that it wrote if it died before the rows left the database', async () => {
    const archived = new Archived().leave(...days);
    archived.before = (what) => {
      if (what === 'remove object_steps') throw new Error('killed');
    };
    assert.match(await archived.run(), /2025-01: killed/);
    assert.ok(archived.has(month, 'manifest.json') && !archived.has(month, 'removed'));
    archived.done.length = 0;
    archived.before = (what) => assert.notEqual(what, 'rows', 'they are not read again');
    assert.equal(await archived.run(), '');
    assert.deepEqual(archived.done, removed);
  });

  it('a run of the archive removes nothing if a file is not what was written, and goes on with the other periods', async () => {
    const archived = new Archived().leave(...days.slice(1));
    archived.before = (what) => {
      if (what === 'remove object_steps') throw new Error('killed');
    };
    await archived.run();
    archived.before = () => {};
    archived.done.length = 0;
    const file = join(archived.folder, month, 'wallet-transfers.ndjson.gz');
    writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.from('x')]));
    assert.match(await archived.run(), /^2025-01: .*wallet-transfers\.ndjson\.gz/);
    assert.deepEqual(archived.done, ['add archive_state 2025-01']);
    assert.ok(!archived.has(month, 'removed') && archived.has(days[0] ?? '', 'removed'));
  });

  it('a run of the archive archives no month while another one is lost, unless it is accepted as lost', async () => {
    const archived = new Archived().leave(...days.slice(1));
    archived.months = ['2024-12'];
    assert.match(await archived.run(), /2024-12/);
    assert.deepEqual([archived.has(month), archived.has(days[0] ?? ''), archived.done], [false, true, []]);
    assert.equal(await archived.run(true), '');
    assert.deepEqual(archived.done, ['remove archive_state 2024-12', ...removed]);
    assert.deepEqual(archived.months, [month]);
  });

  it('a run of the archive keeps no folder and removes nothing once another run may have begun', async () => {
    const archived = new Archived().leave(...days);
    archived.isHeld = false;
    assert.match(await archived.run(), /the connection that keeps other runs out was lost/);
    assert.deepEqual([archived.has(month), archived.done], [false, []]);
    archived.isTaken = false;
    assert.match(await archived.run(), /another run archives this database/);
    assert.deepEqual(archived.done, []);
    const later = new Archived().leave(...days);
    later.before = (what) => {
      if (what === 'rows') later.isHeld = false;
    };
    assert.match(await later.run(), /was lost/);
    assert.deepEqual([later.has(month), later.done], [false, []]);
  });

  it('a run of the archive leaves a day whose deliveries wait, unless the database will soon not have them', async () => {
    const archived = new Archived().leave(...days.slice(4), ...days.slice(0, 2));
    archived.isWaiting = true;
    const failures = await archived.run();
    assert.match(failures, new RegExp(`^${days[3]}: deliveries of it still wait`));
    assert.deepEqual([archived.has(days[2] ?? ''), archived.has(days[3] ?? '')], [true, false]);
    assert.deepEqual(archived.done, removed, 'the month is archived all the same');
  });

  it('a run of the archive does nothing without a partner', async () => {
    const archived = new Archived();
    archived.first = null;
    assert.equal(await archived.run(), '');
    assert.deepEqual(readdirSync(archived.folder), ['archive.json']);
  });
});

it('a folder is the archive of one database in one environment, and loses what a run did not finish', async () => {
  const folder = join(temporaryFolder(), 'in', 'it');
  const owner = { environment: 'sandbox', database: 'the-database' };
  await ownFolder(folder, owner);
  mkdirSync(join(folder, '.writing-2025-01-x'));
  await ownFolder(folder, owner);
  assert.deepEqual(readdirSync(folder), ['archive.json']);
  await assert.rejects(ownFolder(folder, { ...owner, database: 'another' }), /the archive of another database/);
  await assert.rejects(ownFolder(folder, { ...owner, environment: 'live' }), /of the sandbox environment, not of live/);
  mkdirSync(join(folder, '.writing-2025-02-x'));
  await assert.rejects(ownFolder(folder, { ...owner, database: 'another' }), /another database/);
  assert.ok(existsSync(join(folder, '.writing-2025-02-x')), "nothing of another database's is removed");
  const other = temporaryFolder();
  writeFileSync(join(other, 'notes.txt'), 'mine');
  await assert.rejects(ownFolder(other, owner), /is not empty and not an archive/);
  assert.deepEqual(readdirSync(other), ['notes.txt']);
  const begun = temporaryFolder();
  mkdirSync(join(begun, '.writing-x'));
  await ownFolder(begun, owner);
  assert.deepEqual(readdirSync(begun), ['archive.json'], 'a run that died before it owned the folder');
});

describe('the rows of an archived set', () => {
  /** Reads a set whose table has the rows of these numbers of each partner. */
  async function read(numbers: Readonly<Record<string, readonly number[]>>, partners = Object.keys(numbers)) {
    const set = sets.day.find(({ name }) => name === 'webhook-attempts');
    assert.ok(set);
    const answer = async ({ sql, values }: Statement): Promise<Record<string, unknown>[]> => {
      if (sql.includes('FROM partners')) {
        return partners
          .filter((id) => id > String(values[0]))
          .slice(0, 500)
          .map((id) => ({ id }));
      }
      const own = numbers[String(values[0])] ?? [];
      if (sql.includes('SELECT MIN(')) {
        const page = own.filter((version) => version > Number(values[1])).slice(0, 2_000);
        return [{ first: page[0], last: page.at(-1), count: page.length }];
      }
      const [, first, last] = values.map(Number) as [number, number, number];
      const page = own.filter((version) => version >= first && version <= last);
      return page.map((version) => ({ partner_id: values[0], version, number: 1 }));
    };
    const found: string[] = [];
    for await (const page of rowsOf(answer, set, new Date(0), new Date(1))) {
      assert.ok(page.length <= 500);
      found.push(...page.map(({ partner_id: id, version }) => `${id} ${version}`));
    }
    return found;
  }

  it('the rows of an archived set are read once each, of all partners, however many they are', async () => {
    for (const count of [0, 1, 500, 1_999, 2_000, 2_001, 4_000]) {
      const some = Array.from({ length: count }, (_, at) => at);
      const found = await read({ par_a: some, par_b: [7] });
      assert.deepEqual(found, [...some.map((version) => `par_a ${version}`), 'par_b 7'], `${count}`);
    }
    const many = Array.from({ length: 1_001 }, (_, at) => `par_${String(at).padStart(4, '0')}`);
    for (const count of [499, 500, 501, 1_000, 1_001]) {
      const partners = many.slice(0, count);
      const found = await read({ [partners.at(-1) ?? '']: [1] }, partners);
      assert.deepEqual(found, [`${partners.at(-1)} 1`], `${count} partners`);
    }
  });

  it('leave the database with the values that the archive has, and the histories that partners read stay', () => {
    const step = { partner_id: 'par_a', object_id: 'x', sequence: 3 };
    const lookUp = { partner_id: 'par_a', object_id: 'x', last_at: new Date(77).toISOString() };
    const removedOf = (name: string) => {
      const set = sets.month.find((one) => one.name === name);
      assert.ok(set);
      const objects = [
        { history: [{ ...step, order_id: 'x' }], look_ups: [lookUp] },
        { history: [], look_ups: [] },
      ];
      return removals(set, objects).map(({ sql, values }) => [/FROM (\w+)/.exec(sql)?.[1], ...values]);
    };
    const ofLookUps = ['look_ups', 'par_a', 'x', new Date(77)];
    for (const [name, isKept] of [
      ['orders', true],
      ['withdrawals', true],
      ['applications', false],
      ['allocations', false],
    ] as const) {
      assert.deepEqual(removedOf(name), [...(isKept ? [] : [['object_steps', 'par_a', 'x', 3]]), ofLookUps], name);
    }
    assert.deepEqual(removedOf('wallet-transfers'), []);
    for (const { name, attached } of sets.day) assert.deepEqual(attached, [], name);
  });
});
