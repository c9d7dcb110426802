import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PartnerLimits } from '../../../../src/gateway/edge/auth/caller.ts';
import { defaultLimits, toDayLimits, toStoredKey } from '../../../../src/gateway/edge/auth/store.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';

const none: SqlRow = {
  ...{ id: 'key_a', partner_id: 'par_a', state: 'active', features: '', scopes: 'read', addresses: '[]' },
  ...{ requests_per_second: null, requests_burst: null, requests_under_way: null },
  ...{ orders_kobo_per_day: null, allocations_kobo_per_day: null },
};

/** The limits that a partner with this row has. */
const limitsOf = (row: SqlRow) => toStoredKey(row, { accepts: () => true } as never).limits;

describe('the limits of a partner', () => {
  it('are the defaults if none is agreed', () => {
    assert.deepEqual(limitsOf(none), defaultLimits);
  });

  for (const name of Object.keys(defaultLimits) as (keyof PartnerLimits)[]) {
    const column = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const standard = defaultLimits[name];
    const toValue = (value: number) => (typeof standard === 'bigint' ? BigInt(value) : value);

    it(`have ${name} as it is agreed, also if that is 0 or more than the default`, () => {
      for (const agreed of [0, 1, Number(standard), Number(standard) + 1]) {
        const row = { ...none, [column]: toValue(agreed) };
        const expected = { ...defaultLimits, [name]: toValue(agreed) };
        assert.deepEqual(limitsOf(row), expected);
        const { ordersKoboPerDay, allocationsKoboPerDay } = expected;
        assert.deepEqual(toDayLimits(row), { ordersKoboPerDay, allocationsKoboPerDay }, 'as of the locked row');
      }
    });
  }
});
