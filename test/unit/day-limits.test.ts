import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LockedPartner } from '../../src/db/locked-partner.ts';
import { statement } from '../../src/db/statement.ts';
import { refusalOf } from '../../src/lib/errors.ts';
import { checkDayLimit, remaining } from '../../src/limits/rules.ts';
import { toUsedKobo } from '../../src/limits/usage.ts';

/** 23:00 in Lagos: the limit is fresh in an hour. */
const elevenPm = Date.UTC(2026, 2, 2, 22);

function check(limit: bigint, used: bigint, wanted: bigint): void {
  checkDayLimit('order value per day', limit, used, wanted, elevenPm);
}

describe('a daily limit', () => {
  it('passes what comes exactly to it, and refuses one kobo more', () => {
    for (const [used, wanted, passes] of [
      [0n, 1_000n, true],
      [999n, 1n, true],
      [1_000n, 0n, true],
      [0n, 1_001n, false],
      [1_000n, 1n, false],
      // It was lowered since.
      [5_000n, 1n, false],
    ] as const) {
      const asked = () => check(1_000n, used, wanted);
      if (passes) assert.doesNotThrow(asked, `${wanted} kobo with ${used} of 1000 used was refused`);
      else assert.equal(refusalOf(asked).code, 'limit_exceeded', `${wanted} kobo with ${used} of 1000 used`);
    }
  });

  it('is refused with what is used, what remains and when it resets', () => {
    const { message } = refusalOf(() => check(1_000n, 400n, 601n));
    assert.match(message, /order value per day of 1000 kobo/);
    assert.match(message, /400 kobo are used, 600 remain/);
    assert.match(message, /needs 601/);
    assert.match(message, /resets at 2026-03-02T23:00:00Z/);
    assert.equal(remaining(1_000n, 5_000n), 0n, 'never less than nothing remains');
    assert.equal(remaining(1_000n, 1_000n), 0n);
    assert.equal(remaining(1_000n, 999n), 1n);
  });
});

describe('what shares a transaction under the lock of a partner', () => {
  const day = '2026-03-02';
  const partner = () =>
    new LockedPartner({ id: 'par_1', version: '7', orders_kobo_per_day: '1', allocations_kobo_per_day: '1' });
  const used = (locked: LockedPartner, kind: 'orders' | 'allocations' = 'orders', of = day) =>
    toUsedKobo(locked, of, kind, [{ used_kobo: '100' }]);

  it('sees what the work before it used, by day and kind', () => {
    const locked = partner();
    assert.equal(toUsedKobo(locked, day, 'orders', []), 0n);
    locked.addUsage('orders', day, 30n);
    locked.addUsage('orders', day, 5n);
    locked.addUsage('orders', '2026-03-03', 1_000n);
    assert.deepEqual([used(locked), used(locked, 'allocations')], [135n, 100n]);
    locked.addUsage('orders', day, -35n);
    assert.equal(used(locked), 100n, 'what is given back counts as little as what was never used');
  });

  it('gives versions out once each, without a gap', () => {
    const locked = partner();
    assert.deepEqual([locked.takeVersions(2), locked.takeVersions(1), locked.version], [8n, 10n, 10n]);
  });

  it('leaves nothing of what is refused: no version, no use, nothing kept', () => {
    const locked = partner();
    locked.addUsage('orders', day, 30n);
    locked.takeVersions(1);
    const refused = () =>
      locked.attempt(() => {
        locked.addUsage('orders', day, 50n);
        locked.takeVersions(3);
        locked.keep('wallet', { save: () => [] });
        throw new Error('refused');
      });
    assert.throws(refused, /refused/);
    assert.deepEqual([locked.version, used(locked), locked.kept('wallet')], [8n, 130n, undefined]);
    assert.equal(
      locked.attempt(() => locked.takeVersions(1)),
      9n,
      'the next work takes the next version',
    );
  });

  it('is written once at the end, with how much may be used where nobody read it', () => {
    const locked = partner();
    assert.deepEqual(locked.save(), [], 'nothing was changed');
    locked.addUsage('orders', day, 0n);
    assert.deepEqual(locked.save(), [], 'nothing was used');
    locked.addUsage('orders', day, 30n, 1_000n);
    locked.addUsage('orders', day, 5n);
    locked.takeVersions(2);
    const written = locked.save().map(({ sql, values }) => [sql.split(' ', 3).join(' '), values]);
    assert.deepEqual(written, [
      ['UPDATE partners SET', [9n, 'par_1']],
      ['INSERT INTO usage_days', ['par_1', day, 'orders', 35n, 1_000n, 35n, 35n, 1_000n, 35n]],
    ]);
  });

  it('is written with what the work kept for the rest, the last of each name', () => {
    const locked = partner();
    for (const wallet of ['first', 'second']) locked.keep(wallet, { save: () => [statement(`SAVE ${wallet}`)] });
    locked.keep('first', { save: () => [statement('SAVE first again')] });
    assert.notEqual(locked.kept('second'), undefined);
    const saved = () => locked.save().map(({ sql }) => sql.split(' (', 1)[0]);
    assert.deepEqual(saved(), ['SAVE first again', 'SAVE second']);
    locked.addUsage('orders', day, 5n);
    locked.takeVersions(1);
    const all = ['UPDATE partners SET version = ? WHERE id = ?', 'INSERT INTO usage_days'];
    assert.deepEqual(saved(), [...all, 'SAVE first again', 'SAVE second']);
    const [, usage] = locked.save();
    assert.deepEqual(usage?.values, ['par_1', day, 'orders', 5n], 'who read what was used says nothing of a limit');
  });

  it('begins, where nothing was read, with the row as it is believed to be, whole numbers as such', () => {
    const locked = new LockedPartner({
      id: 'par_1',
      version: '7',
      orders_kobo_per_day: null,
      allocations_kobo_per_day: 5,
    });
    const { sql, values } = locked.lockAssumed();
    assert.deepEqual(values, [7n, null, 5n, 'par_1']);
    assert.match(sql, /version <=> \? AND orders_kobo_per_day <=> \? AND allocations_kobo_per_day <=> \?/);
    locked.takeVersions(2);
    assert.deepEqual(locked.saved, { ...locked.row, version: 9n }, 'the row to believe in next');
  });
});
