import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { paidAloneToday } from '../../../../src/gateway/operators/calls/payments-alone.ts';

describe('the payments of today that needed no second operator', () => {
  for (const [now, since] of [
    ['2026-03-01T22:59:59.999Z', '2026-02-28T23:00:00.000Z'],
    ['2026-03-01T23:00:00.000Z', '2026-03-01T23:00:00.000Z'],
    ['2026-03-02T00:30:00.000Z', '2026-03-01T23:00:00.000Z'],
  ] as const) {
    it(`the payments of today are at ${now} those since midnight in Lagos, which was ${since}`, () => {
      const parts = { clock: { now: () => Date.parse(now), realNow: () => 0 }, fourEyesAboveKobo: 700n };
      const { reads, value } = paidAloneToday(parts, 'par_a', 'credit');
      assert.equal(reads.length, 1);
      const values = reads.flatMap((one) => one.values);
      const instants = values.filter((one) => one instanceof Date).map((one) => (one as Date).toISOString());
      assert.deepEqual(instants, [since]);
      assert.ok(values.includes('par_a') && values.some((one) => String(one) === '700'));
      assert.deepEqual([value([[{ kobo: '12' }]]), value([[{ kobo: null }]]), value([[]])], [12n, 0n, 0n]);
    });
  }

  it('no payment of today is summed if none needs a second operator', () => {
    const parts = { clock: { now: () => 0, realNow: () => 0 }, fourEyesAboveKobo: undefined };
    const { reads, value } = paidAloneToday(parts, 'par_a', 'credit');
    assert.deepEqual([reads, value([])], [[], 0n]);
  });
});
