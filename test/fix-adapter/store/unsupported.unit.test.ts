import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Finding, UnsupportedType } from '../../../src/fix-adapter/store/table.ts';
import { type UnsupportedMessage, unsupportedWrites } from '../../../src/fix-adapter/store/unsupported.ts';

const dayMs = 86_400_000;
const message = (type: string, at = 1, day = dayMs): UnsupportedMessage => {
  const about = { orderId: '', execId: '', detail: '', facts: null, bytes: null };
  return { day, type, finding: { ...about, what: 'unsupported', at } as Finding };
};
const row = (type: string, messages = 4n, day = dayMs): UnsupportedType => ({
  ...{ day, type, findingId: 9n, messages, lastAt: 0 },
});

/** The findings of messages, by when they came, and each row that is written, as `INSERT` or `UPDATE` with its values. */
function countOf(messages: readonly UnsupportedMessage[], before: readonly UnsupportedType[]) {
  const { findings, writes } = unsupportedWrites(messages, before);
  const rows = writes
    .filter(({ sql }) => sql.includes('fix_unsupported'))
    .map(
      ({ sql, values }) =>
        `${sql.slice(0, 6)} ${values.map((one) => (one instanceof Date ? +one : String(one))).join(' ')}`,
    );
  return { found: findings.map(({ at }) => at), rows };
}

describe('messages of types that are not supported', () => {
  it('messages of one type in a session day are one finding, and all of them are counted, over any number of writes', () => {
    assert.deepEqual(countOf([message('B', 1), message('e', 2), message('B', 3)], []), {
      found: [1, 2],
      rows: [`INSERT ${dayMs} B 2 1`, `INSERT ${dayMs} e 1 2`],
    });
    const { found, rows } = countOf([message('B', 8), message('B', 8), message('f', 8)], [row('B')]);
    assert.deepEqual(found, [8], 'of the new type alone');
    assert.match(rows[0] ?? '', /^UPDATE 6 8 /, 'the row has 6 messages, the last one at 8');
    assert.equal(rows[1], `INSERT ${dayMs} f 1 8`);
  });

  it('messages of a session day are not counted with those of another day', () => {
    const { found, rows } = countOf([message('B', 1, dayMs), message('B', 2, 2 * dayMs)], [row('B')]);
    assert.deepEqual(found, [2]);
    assert.match(rows[0] ?? '', /^UPDATE 5 /);
    assert.equal(rows[1], `INSERT ${2 * dayMs} B 1 2`);
  });

  it('messages of more than 200 types are counted as one type, and those of the first 200 by themselves', () => {
    const types = Array.from({ length: 199 }, (_, at) => row(`t${at}`));
    const { found, rows } = countOf(
      ['last', 'over', 'more', 't7', 'last'].map((type) => message(type)),
      types,
    );
    assert.deepEqual([found.length, rows.length], [2, 3]);
    assert.deepEqual([rows[0], rows[1]], [`INSERT ${dayMs} last 2 1`, `INSERT ${dayMs} * 2 1`]);
    const later = countOf([message('over'), message('last')], [...types, row('last'), row('*')]);
    assert.deepEqual([later.found, later.rows.length], [[], 2]);
  });

  it('a message of a long or unprintable type is counted by what the table can keep of it', () => {
    assert.deepEqual(countOf([message('abcdefghij'), message('abcdefgh'), message('a \x01é')], []).rows, [
      `INSERT ${dayMs} abcdefgh 2 1`,
      `INSERT ${dayMs} a??? 1 1`,
    ]);
  });
});
