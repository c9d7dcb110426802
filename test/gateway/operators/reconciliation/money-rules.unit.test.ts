import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stateBefore } from '../../../../src/gateway/operators/reconciliation/money-rules.ts';

/** The end of the day in Lagos that is compared. */
const end = Date.UTC(2026, 2, 2, 23);
const dayMs = 86_400_000;
const paid = { state: 'completed', at: end - dayMs };

describe('the state of a withdrawal in the comparison of a day', () => {
  for (const [name, reports, state] of [
    ['by which it was settled is what the operator knew if the broker reported nothing', [], 'returned'],
    [
      'is that of a report a millisecond before the end of the day',
      [paid, { state: 'returned', at: end - 1 }],
      'returned',
    ],
    ['is not that of a report exactly at the end of the day', [paid, { state: 'returned', at: end }], 'completed'],
    ['is not that of a report on a later day', [paid, { state: 'returned', at: end + 1 }], 'completed'],
    ['is not known before its first report', [{ state: 'completed', at: end }], 'not reported yet'],
    [
      'is that of the last report of the day, also if a later one tells of an earlier moment',
      [paid, { state: 'returned', at: end }, { state: 'rejected', at: end - 2 * dayMs }],
      'rejected',
    ],
  ] as const) {
    it(`the state of a withdrawal ${name}`, () => assert.equal(stateBefore(end, reports, 'returned'), state));
  }
});
