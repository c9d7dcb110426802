import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PageReader, RowReader } from '../../../../src/gateway/store/batcher.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { withDatabase } from '../../../support/database.ts';
import { insertRows } from '../../../support/insert-rows.ts';

describe('rows asked for at the same time', () => {
  let database: Database;
  let reader: RowReader;
  withDatabase(async (opened) => {
    database = opened;
    const columns =
      'partner_id VARCHAR(24) NOT NULL, id VARCHAR(24) NOT NULL, number INT, PRIMARY KEY (partner_id, id)';
    await database.write(statement(`CREATE TABLE things (${columns}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`));
    const rows = ['one', 'two'].flatMap((partner) => Array.from({ length: 150 }, (_, at) => [partner, String(at), at]));
    await database.write(insertRows('things', ['partner_id', 'id', 'number'], rows));
    reader = new RowReader(database, 'things', 'partner_id, id');
  });

  it('come to those who asked: each its own, none of another partner, and nothing where there is none', async () => {
    const ids = Array.from({ length: 200 }, (_, at) => String(at));
    const asked = ['one', 'two', 'three'].flatMap((partner) => [...ids, ...ids].map((id) => ({ partner, id })));
    const rows = await Promise.all(asked.map(({ partner, id }) => reader.read(partner, id)));
    for (const [at, { partner, id }] of asked.entries()) {
      const exists = partner !== 'three' && Number(id) < 150;
      assert.deepEqual(rows[at] && { ...rows[at] }, exists ? { partner_id: partner, id } : undefined);
    }
  });

  it('come page by page to those who asked, each in order and no longer than it may be', async () => {
    const pages = new PageReader(database, 'things', 'id', 'number');
    const asked = ['one', 'two', 'three'].flatMap((partner) =>
      Array.from({ length: 40 }, (_, at) => ({ partner, after: at * 5, most: at % 2 === 0 ? 3 : 26 })),
    );
    const read = await Promise.all(
      [...asked, ...asked].map(({ partner, after, most }) => pages.read(partner, String(after), most)),
    );
    for (const [at, { partner, after, most }] of [...asked, ...asked].entries()) {
      const left = partner === 'three' ? 0 : Math.max(0, 149 - after);
      const expected = Array.from({ length: Math.min(left, most) }, (_, place) => String(after + 1 + place));
      assert.deepEqual(
        read[at]?.map(({ id }) => id),
        expected,
        `${most} of ${partner} after ${after}`,
      );
    }
  });

  it('are all refused when the database cannot be asked', async () => {
    const broken = new RowReader(database, 'nowhere', 'id');
    const answers = await Promise.allSettled([
      broken.read('one', '1'),
      broken.read('one', '2'),
      broken.read('two', '1'),
      new PageReader(database, 'nowhere', 'id', 'number').read('one', '0', 3),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected', 'rejected'],
    );
  });
});
