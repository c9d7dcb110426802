import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SqlValue, Statement } from '../../../src/gateway/store/statement.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import {
  count,
  day,
  defineTable,
  exactText,
  flag,
  instant,
  optional,
  shortened,
  text,
  whole,
} from '../../../src/gateway/store/table.ts';
import { orders } from '../../../src/gateway/trading/orders/table.ts';
import { fc } from '../../support/properties.ts';

const things = defineTable({
  name: 'things',
  columns: {
    partnerId: text(24),
    number: whole(),
    aName: optional(text(9)),
    priceKobo: optional(whole()),
    steps: count(),
    at: optional(instant()),
    isOpen: flag(),
    note: shortened(3),
  },
  primary: ['partnerId', 'number'],
});
const row = {
  ...{ partnerId: 'par_a', number: 1n, aName: 'a', priceKobo: null, steps: 2, at: 5, isOpen: true, note: 'abc' },
};

/** A statement as text, with its values in their places. */
const shown = ({ sql, values }: Statement) => {
  const given = [...values];
  return sql.replace(/\?/g, () => {
    const value = given.shift();
    return value instanceof Date ? `@${value.getTime()}` : String(value);
  });
};

describe('a statement of a table', () => {
  it('a statement of a table finds rows whose fields have the given values, one of a list of values, or none', () => {
    assert.equal(shown(things.where({ partnerId: 'par_a', aName: null })), 'partner_id = par_a AND a_name IS NULL');
    assert.equal(shown(things.where({ number: [1n, 2n], isOpen: false })), 'number IN (1, 2) AND is_open = false');
    assert.equal(shown(things.where({ at: 7 })), 'at = @7');
    const found = things.find({ partnerId: 'par_a' }, things.only('aName', 'at'), statement('AND number > ?', 3n));
    assert.equal(shown(found), 'SELECT a_name, at FROM things WHERE partner_id = par_a AND number > 3');
  });

  it('a statement of a table is never made without one of its values, because it would then find or change other rows', () => {
    for (const make of [
      () => things.where({ partnerId: undefined as never }),
      () => things.remove({ partnerId: undefined as never }),
      () => things.set({ partnerId: undefined as never }, { steps: 1 }),
      () => things.set({ partnerId: 'a' }, { steps: undefined as never }),
      () => things.where({ aName: ['a', null] }),
      () => things.insert({ ...row, steps: undefined as never }),
      () => things.insert({ ...row, steps: null as never }),
      () => things.insertIfMissing({ ...row, number: null as never }),
      () => things.update(row, { ...row, isOpen: null as never }),
    ]) {
      assert.throws(make, /things (is asked|is given|cannot)/);
    }
    assert.equal(
      shown(things.set({ partnerId: 'a' }, { aName: null })),
      'UPDATE things SET a_name = null WHERE partner_id = a',
    );
  });

  it('a statement of a table saves exactly the fields that changed, of the row with the same key', () => {
    const others = { aName: 'b', priceKobo: 7n, steps: 3, at: null, isOpen: false, note: 'x' };
    const names = Object.keys(others) as (keyof typeof others)[];
    fc.assert(
      fc.property(fc.subarray(names), (changed) => {
        const after = { ...row, ...Object.fromEntries(changed.map((name) => [name, others[name]])) };
        const [update, ...more] = things.update(row, after);
        assert.deepEqual(more, []);
        if (changed.length === 0) return assert.equal(update, undefined);
        const sets = changed.map(
          (name) => `${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)} = ${others[name]}`,
        );
        const text = `UPDATE things SET ${sets.join(', ')} WHERE partner_id = par_a AND number = 1`;
        return assert.equal(update && shown(update), text);
      }),
    );
  });

  it('a statement of a table tells exactly one row by all of its columns, also by those that have no value', () => {
    assert.equal(
      shown(things.isRow(row)),
      'partner_id = par_a AND number = 1 AND a_name <=> a AND price_kobo <=> null AND steps <=> 2 AND at <=> @5' +
        ' AND is_open <=> true AND note <=> abc',
    );
  });

  it('a statement of a table inserts rows, or saves or adds to the one that is there', () => {
    const values = [['par_a', 1n, 'a', null, 2, new Date(5), true, 'abc']];
    assert.deepEqual([things.insert(row, row).values].flat(2), [...values, ...values]);
    assert.match(
      things.put(row, 'steps', 'aName').sql,
      / ON DUPLICATE KEY UPDATE steps = VALUES\(steps\), a_name = VALUES\(a_name\)$/,
    );
    assert.match(things.addTo(row, 'steps').sql, / ON DUPLICATE KEY UPDATE steps = steps \+ VALUES\(steps\)$/);
    const missing = things.insertIfMissing(row);
    assert.match(missing.sql, /WHERE NOT EXISTS \(SELECT 1 FROM things WHERE partner_id = \? AND number = \?\)$/);
    assert.deepEqual(missing.values, [...(values[0] as SqlValue[]), 'par_a', 1n]);
  });

  it('a statement of a table reads a list of keys by the primary key, and leaves the server its choice otherwise', () => {
    for (const [where, isForced] of [
      [{ partnerId: 'a', number: [1n, 2n] }, true],
      [{ partnerId: ['a', 'b'] }, true],
      [{ partnerId: 'a', number: 1n }, false],
      [{ number: [1n, 2n] }, false],
      [{ partnerId: 'a', steps: [1, 2] }, false],
      [{ partnerId: 'a', number: [1n], steps: 1 }, true],
    ] as const) {
      assert.equal(things.find(where).sql.includes('FORCE INDEX (PRIMARY)'), isForced, things.find(where).sql);
    }
    assert.match(things.find({ number: [1n] }, things.all, undefined, 'other').sql, /FORCE INDEX \(other\)/);
  });
});

describe('a row of a table', () => {
  it('a row of a table is read as it was written', () => {
    const stored = { partner_id: 'par_a', number: '9007199254740993', a_name: null, price_kobo: 7, steps: '2' };
    const read = things.all.read({ ...stored, at: new Date(5), is_open: 1, note: 'abc' });
    const values = { partnerId: 'par_a', number: 9_007_199_254_740_993n, aName: null, priceKobo: 7n, steps: 2 };
    assert.deepEqual(read, { ...values, at: 5, isOpen: true, note: 'abc' });
    assert.equal(things.all.read({ ...stored, at: null, is_open: 0, note: '' }).isOpen, false);
  });

  it('a row of a table is JSON with exact numbers, instants in UTC, and bytes in hex', () => {
    const stored = { partner_id: 'par_a', number: 9_007_199_254_740_993n, a_name: null, steps: 2, at: new Date(5) };
    assert.deepEqual(things.toJson({ ...stored, is_open: 1, note: 'abc' }), {
      ...{ partner_id: 'par_a', number: '9007199254740993', a_name: null, price_kobo: null, steps: 2 },
      ...{ at: '1970-01-01T00:00:00.005Z', is_open: true, note: 'abc' },
    });
  });

  it('a row of a table has texts that are cut off at the length of their column, and days and exact texts as they are', () => {
    assert.equal(shortened(3).write('abcd'), 'abc');
    assert.equal(shortened(3).write('ab'), 'ab');
    assert.deepEqual([day().read('2026-03-02'), exactText(9).read(Buffer.from('a '))], ['2026-03-02', 'a ']);
    assert.deepEqual(exactText(9).write('a '), Buffer.from('a '));
  });

  it('a row of a table is one of another version if it has a name that this version does not know', () => {
    const known = { side: 'buy', type: 'limit', timeInForce: 'day', state: 'pending' };
    assert.equal(orders.isKnown(known as never), true);
    for (const name of ['side', 'type', 'timeInForce', 'state']) {
      assert.equal(orders.isKnown({ ...known, [name]: 'a later name' } as never), false, name);
    }
    const states = orders.hasKnownName('state', 'filled');
    assert.ok(states.includes("'pending'") && !states.includes("'filled'") && states.startsWith('state IN ('));
    for (const name of ['side', 'type', 'time_in_force', 'state'])
      assert.ok(orders.isKnownSql.includes(`${name} IN (`));
  });
});
