import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test';
import { archive } from '../../../../src/gateway/operators/archive/archive.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import { type ArchiveRows, archivedRows, dayMs, openArchiveDatabase, type Stored } from '../../../support/archive.ts';
import { temporaryFolder } from '../../../support/folders.ts';

/** In the last month that is due. */
const old = Date.now() - 440 * dayMs;
const month = new Date(old).toISOString().slice(0, 7);

/** An end of a run, as if its process were killed. */
class Killed extends Error {}

describe('a run of the archive', () => {
  let opened: Awaited<ReturnType<typeof openArchiveDatabase>>;
  let database: Database;
  let own: Database;
  let rows: ArchiveRows;
  let folder: string;
  let objects: Stored[];
  before(async () => {
    opened = await openArchiveDatabase();
    ({ database, own, rows } = opened);
  });
  after(() => opened.close());
  beforeEach(async () => {
    const tables = ['partners', 'applications', 'allocations', 'object_steps', 'look_ups', 'archive_state'];
    for (const table of tables) await database.write(statement(`DELETE FROM ${table}`));
    const partnerId = await rows.newPartner();
    await database.write(statement('UPDATE partners SET created_at = ?', new Date(old)));
    folder = temporaryFolder();
    objects = [await rows.application(partnerId, 'opened', old), await rows.allocation(partnerId, 'booked', old)];
  });

  const run = () => archive({ database: own, folder, months: 13, print: () => {} });

  /** Runs until a write is about to be made, or was made, and dies then. Answers whether there was such a write. */
  async function runUntil(t: TestContext, isLast: (change: Statement, count: number) => boolean, isMade: boolean) {
    const [write, readAll] = [own.write.bind(own), own.readAll.bind(own)];
    let count = 0;
    let isDead = false;
    const checkAlive = () => {
      if (isDead) throw new Killed();
    };
    t.mock.method(own, 'write', async (change: Statement) => {
      checkAlive();
      count += 1;
      if (!isLast(change, count)) return write(change);
      if (isMade) await write(change);
      isDead = true;
      throw new Killed();
    });
    t.mock.method(own, 'readAll', async (queries: readonly Statement[]) => {
      checkAlive();
      return readAll(queries);
    });
    try {
      await run();
      return false;
    } catch {
      return true;
    } finally {
      t.mock.restoreAll();
    }
  }

  async function stored(): Promise<string[]> {
    const found = await database.read(statement('SELECT object_id, sequence FROM object_steps'));
    return found.map(({ object_id: id, sequence }) => `${id} ${sequence}`);
  }

  const archived = () =>
    ['applications', 'allocations']
      .flatMap((name) => archivedRows(folder, name))
      .flatMap(({ id, history }) => history.map(({ sequence }: { sequence: number }) => `${id} ${sequence}`));

  async function has(table: string): Promise<number> {
    const [row] = await database.read(statement(`SELECT COUNT(*) AS count FROM ${table}`));
    return Number(row?.count);
  }

  it('an archive run can be gone on with after it died at any of its writes, and misses a month that is lost if a step of it had left', async (t) => {
    const all = await stored();
    assert.equal(all.length, 5);
    for (const isMade of [false, true]) {
      for (let last = 1; ; last += 1) {
        const name = `killed ${isMade ? 'after' : 'before'} write ${last}`;
        folder = temporaryFolder();
        await database.write(statement('DELETE FROM archive_state'));
        for (const table of ['object_steps', 'look_ups']) await database.write(statement(`DELETE FROM ${table}`));
        for (const [at, object] of objects.entries()) await rows.steps(object, at === 0 ? 3 : 2, old);
        const wasKilled = await runUntil(t, (_, count) => count === last, isMade);
        assert.deepEqual(new Set([...(await stored()), ...archived()]), new Set(all), `${name}: a step is nowhere`);
        const hasLeft = (await has('object_steps')) + (await has('look_ups')) < all.length + objects.length;
        if (hasLeft && wasKilled) {
          rmSync(join(folder, month), { recursive: true });
          await assert.rejects(
            run(),
            new RegExp(`lacks.* ${month}`),
            `${name}: it was written again without its steps`,
          );
        } else {
          await run();
          assert.deepEqual([archived().sort(), await stored()], [all.sort(), []], name);
        }
        if (!wasKilled) break;
      }
    }
  });

  it('an archive run removes nothing while any file of the period is damaged, whichever it is', async (t) => {
    await runUntil(t, ({ sql }) => sql.startsWith('DELETE'), false);
    const before = await stored();
    const path = join(folder, month);
    const files = readdirSync(path).filter((name) => name.endsWith('.gz'));
    assert.equal(files.length, 5);
    for (const name of files) {
      const good = readFileSync(join(path, name));
      const bad = Buffer.from(good);
      bad[bad.length - 6] = (bad[bad.length - 6] ?? 0) ^ 1;
      writeFileSync(join(path, name), bad);
      await assert.rejects(run(), new RegExp(name.replaceAll('.', '\\.')));
      assert.deepEqual([await stored(), await has('look_ups')], [before, objects.length], name);
      writeFileSync(join(path, name), good);
    }
    await run();
    assert.deepEqual([await stored(), await has('look_ups')], [[], 0]);
  });
});

describe('the archive of a day', () => {
  it('an archive has each attempt once, wherever a read of 2,000 rows ends within the attempts of a delivery', async () => {
    const { database, own, rows, close } = await openArchiveDatabase();
    try {
      const at = Date.now() - 10 * dayMs;
      const counts: readonly (readonly number[])[] = [
        [...Array(400).fill(5)],
        [...Array(400).fill(5), 5],
        [1, ...Array(400).fill(5)],
        [4, ...Array(401).fill(5)],
        [1_995, 12, 1_999, 1],
      ];
      const expected: string[] = [];
      for (const each of counts) {
        const partnerId = await rows.newPartner();
        await rows.attempts(partnerId, at, each);
        for (const [index, count] of each.entries()) {
          for (let number = 1; number <= count; number += 1) expected.push(`${partnerId} ${index + 1} ${number}`);
        }
      }
      await database.write(statement('UPDATE partners SET created_at = ?', new Date(at)));
      const folder = temporaryFolder();
      await archive({ database: own, folder, months: 13, print: () => {} });
      const found = archivedRows(folder, 'webhook-attempts').map(
        ({ partner_id: partnerId, version, number }) => `${partnerId} ${version} ${number}`,
      );
      assert.deepEqual(found.sort(), expected.sort());
    } finally {
      await close();
    }
  });
});
