import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { earlierTime } from '../../../../src/gateway/operators/telemetry/database-clock.ts';

describe('the time by which old rows are removed', () => {
  it('old rows are removed by the earlier of both clocks, and not at all if they are an hour apart', () => {
    const [now, hourMs] = [Date.UTC(2026, 2, 2), 3_600_000];
    for (const [aheadMs, expected] of [
      [-hourMs, undefined],
      [-hourMs + 1, now - hourMs + 1],
      [-1, now - 1],
      [0, now],
      [1, now],
      [hourMs - 1, now],
      [hourMs, undefined],
    ] as const) {
      assert.equal(earlierTime(now, aheadMs), expected, `the database is ${aheadMs} ms ahead`);
    }
  });
});
