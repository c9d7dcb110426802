import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isOwnClockWrong } from '../../../../src/gateway/operators/telemetry/health.ts';

describe('our own clock', () => {
  it('is wrong if the clocks of the database and the broker agree and it is more than 10 s from both', () => {
    const cases: readonly (readonly [database: number | undefined, broker: number | undefined, isWrong: boolean])[] = [
      [10_001, 10_001, true],
      [10_000, 10_001, false],
      [10_001, 10_000, false],
      [-10_001, -10_001, true],
      [-10_000, -10_001, false],
      [20_000, 10_001, true],
      [20_001, 10_001, false],
      [-20_000, -10_001, true],
      [-20_001, -10_001, false],
      [60_000, 0, false],
      [60_000, -60_000, false],
      [undefined, 60_000, false],
      [60_000, undefined, false],
      [0, 0, false],
    ];
    for (const [database, broker, isWrong] of cases) {
      assert.equal(isOwnClockWrong(database, broker), isWrong, `${database} ${broker}`);
    }
  });
});
