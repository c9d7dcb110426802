import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { checkInRange, dayRange } from '../../../../src/gateway/trading/accounts/rules.ts';

describe('the days a list asks for', () => {
  // In Lagos it is 00:30 of the third.
  const now = Date.UTC(2026, 2, 2, 23, 30);

  it('are the 30 before today in Lagos, or before the last one asked for', () => {
    assert.deepEqual(dayRange({}, now), { from: '2026-02-01', to: '2026-03-03' });
    assert.deepEqual(dayRange({ to: '2026-02-28' }, now), { from: '2026-01-29', to: '2026-02-28' });
    assert.deepEqual(dayRange({ from: '2026-03-03' }, now), { from: '2026-03-03', to: '2026-03-03' });
    assert.deepEqual(dayRange({ from: '2020-01-01', to: '2020-01-01' }, now), { from: '2020-01-01', to: '2020-01-01' });
  });

  it('are refused for the first of the two that cannot be', () => {
    const cases: [asked: Parameters<typeof dayRange>[0], param: string, message: RegExp][] = [
      [{ from: '2026-02-30' }, 'from', /must be a date/],
      [{ from: 'x', to: 'y' }, 'from', /must be a date/],
      [{ from: '2026-03-04' }, 'from', /must not be after today in Lagos\./],
      [{ from: '2026-03-02', to: '2026-03-01' }, 'from', /must not be after `to`/],
      [{ from: '2026-03-02', to: '2026-02-30' }, 'to', /must be a date/],
      [{ to: '2026-02-30' }, 'to', /must be a date/],
      [{ to: '2026-03-04' }, 'to', /must not be after today in Lagos, 2026-03-03\./],
    ];
    for (const [asked, param, message] of cases) {
      assert.throws(
        () => dayRange(asked, now),
        (error: unknown) => {
          assert.ok(error instanceof ApiError);
          assert.deepEqual([error.code, error.param], ['invalid_request', param], JSON.stringify(asked));
          assert.match(error.message, message);
          return true;
        },
      );
    }
  });

  it('may have 1,000 records and no more', () => {
    checkInRange(1_000);
    assert.throws(() => checkInRange(1_001), /there are more than 1,000 records/);
  });
});
