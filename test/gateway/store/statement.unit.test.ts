import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { joined, sql, statement } from '../../../src/gateway/store/statement.ts';

describe('a statement written as a template', () => {
  it('holds a mark for each value, whatever its type', () => {
    const values = ['text', 1, 2n, true, new Date(0), Buffer.from('bytes'), null, ['a', 'b']] as const;
    const [text, number, whole, flag, instant, bytes, nothing, list] = values;
    const written = sql`${text} ${number} ${whole} ${flag} ${instant} ${bytes} ${nothing} IN (${list})`;
    assert.deepEqual(written, { sql: '? ? ? ? ? ? ? IN (?)', values: [...values] });
  });

  it('has the statements in it as parts, with their values in the order of their marks', () => {
    const inner = sql`b = ${2} AND ${joined([sql`c = ${3}`, sql`d = ${4}`], ' OR ')}`;
    const written = sql`SELECT ${statement('a, b')} FROM t WHERE a = ${1} AND ${inner} LIMIT ${5}`;
    assert.deepEqual(written, {
      sql: 'SELECT a, b FROM t WHERE a = ? AND b = ? AND c = ? OR d = ? LIMIT ?',
      values: [1, 2, 3, 4, 5],
    });
  });

  it('takes no text of a value for SQL', () => {
    assert.deepEqual(sql`name = ${"' OR 1 = 1"}`, { sql: 'name = ?', values: ["' OR 1 = 1"] });
  });
});
