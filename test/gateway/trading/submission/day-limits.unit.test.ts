import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusalOf } from '../../../../src/gateway/edge/errors.ts';
import type { Shared } from '../../../../src/gateway/store/facts.ts';
import { PartnerTransaction, partnerGuard } from '../../../../src/gateway/store/partner-transaction.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { usage, usedOf } from '../../../../src/gateway/trading/submission/day-limit.ts';
import { checkDayLimit, remaining } from '../../../../src/gateway/trading/submission/rules.ts';
import { orderKind } from '../../../support/kinds.ts';
import { plainOrder } from '../../../support/plain-order.ts';

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

describe('the day that an object counts for', () => {
  it('the day of an object is the one of its creation in Lagos, whenever it changes and by whatever clock', () => {
    const { dayLimit: limit } = orderKind;
    assert.ok(limit !== undefined);
    const counted = { ...plainOrder, countedDay: '2026-03-01' };
    const yesterday = usage(plainOrder.partnerId, '2026-03-01', 'orders').name;
    for (const at of [elevenPm - 2 * 86_400_000, elevenPm - 86_400_000, elevenPm, elevenPm + 86_400_000]) {
      assert.equal(usedOf(limit, { ...counted, updatedAt: at, filledAt: at, checkAt: at }).name, yesterday);
    }
  });
});

describe('what shares a transaction of a partner', () => {
  const day = '2026-03-02';
  const row = { id: 'par_1', version: '7', orders_kobo_per_day: '1', allocations_kobo_per_day: '1' };
  const orders = usage('par_1', day, 'orders');
  const allocations = usage('par_1', day, 'allocations');
  const sticky: Shared<string> = {
    name: 'sticky',
    read: statement('READ sticky'),
    value: () => '',
    guard: (value) => statement('sticky = ?', value),
    save: (before, after) => [statement('SAVE sticky', before, after)],
  };
  const begin = () =>
    new PartnerTransaction({
      row,
      shared: new Map<string, unknown>([
        [orders.name, 100n],
        [allocations.name, 100n],
        [sticky.name, 'first'],
      ]),
    });

  it('sees what the work before it used, by day and kind', () => {
    const partner = begin();
    partner.add(orders, 30n);
    partner.add(orders, 5n);
    partner.add(usage('par_1', '2026-03-03', 'orders'), 1_000n);
    assert.deepEqual([partner.get(orders), partner.get(allocations)], [135n, 100n]);
    partner.add(orders, -35n);
    assert.equal(partner.get(orders), 100n, 'what is given back counts as little as what was never used');
  });

  it('cannot be asked for what nobody read', () => {
    assert.throws(() => begin().get(usage('par_1', '2026-03-03', 'orders')), /was not read/);
  });

  it('gives versions out once each, without a gap', () => {
    const partner = begin();
    assert.deepEqual([partner.takeVersions(2), partner.takeVersions(1), partner.version], [8n, 10n, 10n]);
  });

  it('leaves nothing of what is refused: no version, no use, no changed value', () => {
    const partner = begin();
    partner.add(orders, 30n);
    partner.takeVersions(1);
    const refused = () =>
      partner.attempt(() => {
        partner.add(orders, 50n);
        partner.takeVersions(3);
        partner.set(sticky, 'second');
        throw new Error('refused');
      });
    assert.throws(refused, /refused/);
    assert.deepEqual([partner.version, partner.get(orders), partner.get(sticky)], [8n, 130n, 'first']);
    assert.equal(
      partner.attempt(() => partner.takeVersions(1)),
      9n,
      'the next work takes the next version',
    );
  });

  it('is written once at the end, the last of each value', () => {
    const partner = begin();
    assert.deepEqual(partner.save(), [], 'nothing was changed');
    partner.add(orders, 0n);
    assert.deepEqual(partner.save(), [], 'nothing was used');
    partner.add(orders, 30n);
    partner.add(orders, 5n);
    partner.set(sticky, 'second');
    partner.set(sticky, 'third');
    partner.takeVersions(2);
    const written = partner.save().map(({ sql, values }) => [sql.split(' ', 3).join(' '), values]);
    assert.deepEqual(written, [
      ['UPDATE partners SET', [9n, 'par_1']],
      ['INSERT INTO usage_days', [[['par_1', day, 'orders', 35n]]]],
      ['SAVE sticky', ['first', 'third']],
    ]);
  });

  it('is remembered as it is after the commit, with what was known and not asked for', () => {
    const partner = begin();
    const yesterday = usage('par_1', '2026-03-01', 'orders');
    partner.add(orders, 35n);
    partner.add(yesterday, -7n);
    partner.set(sticky, 'second');
    partner.takeVersions(2);
    const after = partner.after(new Map([[yesterday.name, 50n]]));
    assert.deepEqual(Object.fromEntries(after.shared), {
      [yesterday.name]: 43n,
      [orders.name]: 135n,
      [allocations.name]: 100n,
      sticky: 'second',
    });
    assert.deepEqual(after.row, { ...row, version: 9n });
  });

  it('is proven by the whole row and its values, whole numbers as such', () => {
    const state = { row: { ...row, orders_kobo_per_day: null, allocations_kobo_per_day: 5 }, shared: new Map() };
    const { sql, values } = partnerGuard(state);
    assert.deepEqual(values, ['par_1', 7n, null, 5n]);
    assert.match(sql, /version <=> \? AND orders_kobo_per_day <=> \? AND allocations_kobo_per_day <=> \?/);
    assert.deepEqual(orders.guard(135n).values, ['par_1', day, 'orders', 135n]);
  });
});
