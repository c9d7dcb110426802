import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { placesOf } from './scale/places.ts';
import { shapesOf } from './statement-shapes.ts';

describe('the shape of a statement', () => {
  it('is the same for lists, pages and rows of any length', () => {
    const find = (marks: string, limit: number) => `SELECT id FROM orders WHERE id IN (${marks}) LIMIT ${limit}`;
    assert.deepEqual(shapesOf(find('?, ?, ?', 26)), shapesOf(find('?', 101)));
    assert.deepEqual(
      shapesOf('INSERT INTO t (a, b) VALUES ?'),
      shapesOf('INSERT INTO `t` (a, b)  VALUES (?, ?)').map(bare),
    );
    assert.notDeepEqual(shapesOf(find('?', 1)), shapesOf(find('?', 2)));
  });

  it('is the same for any number of parts above one, and for any columns that are set', () => {
    const parts = (count: number) => `SELECT 1 FROM t WHERE ${Array(count).fill('(a = ? AND b IN (?))').join(' OR ')}`;
    assert.deepEqual(shapesOf(parts(2)), ['SELECT 1 FROM t WHERE (a = ? AND b IN (?)) ...']);
    assert.deepEqual(shapesOf(parts(3)), shapesOf(parts(2)));
    assert.deepEqual(shapesOf('UPDATE t SET a = ?, b = ? WHERE id = ?'), ['UPDATE t SET * WHERE id = ?']);
    assert.deepEqual(shapesOf('UPDATE t SET a = a + ? WHERE id = ?'), ['UPDATE t SET a = a + ? WHERE id = ?']);
  });

  it('the shape of a guard is one for each condition', () => {
    const guard = 'INSERT INTO guards (ok) SELECT 0 FROM DUAL WHERE ((a = (SELECT 1)) AND (b = ?)) IS NOT TRUE';
    assert.deepEqual(shapesOf(guard), ['GUARD a = (SELECT 1)', 'GUARD b = ?']);
  });

  it('is none for what begins and ends transactions', () => {
    for (const sql of ['START TRANSACTION', 'COMMIT', "SET SESSION sql_mode = ''"]) assert.deepEqual(shapesOf(sql), []);
  });
});

describe('what a value of a statement stands for', () => {
  const columnsOf = new Map([
    [
      'orders',
      new Map([
        ['id', 'varchar'],
        ['steps', 'int'],
        ['partner_id', 'varchar'],
      ]),
    ],
    [
      'partners',
      new Map([
        ['id', 'varchar'],
        ['version', 'bigint'],
      ]),
    ],
  ]);
  const kinds = (sql: string) =>
    placesOf(sql, columnsOf).map((place) =>
      place.kind === 'compared'
        ? `${place.column.table}.${place.column.column}${place.isRange ? ' range' : ''}`
        : place.kind === 'list'
          ? place.columns.map(({ table, column }) => `${table}.${column}`).join(' and ')
          : place.kind,
    );

  it('follows from the column next to it, of the innermost table that has one', () => {
    const inner = 'SELECT 1 FROM partners WHERE id = ? AND version BETWEEN ? AND ?';
    assert.deepEqual(kinds(`SELECT * FROM orders o WHERE o.id > ? AND EXISTS (${inner}) AND steps = ? LIMIT ?`), [
      'orders.id range',
      'partners.id',
      'partners.version range',
      'partners.version range',
      'orders.steps',
      'limit',
    ]);
  });

  it('is known in lists, of one column and of several', () => {
    assert.deepEqual(kinds('DELETE FROM orders WHERE (partner_id, id) IN (?) OR id NOT IN (?)'), [
      'orders.partner_id and orders.id',
      'orders.id',
    ]);
  });

  it('is something else where it is stored or calculated with', () => {
    assert.deepEqual(kinds('UPDATE orders SET steps = ? WHERE id = ? AND COALESCE(steps, 0) = ?'), [
      'other',
      'orders.id',
      'other',
    ]);
  });
});

function bare(shape: string): string {
  return shape.replaceAll('`', '');
}
