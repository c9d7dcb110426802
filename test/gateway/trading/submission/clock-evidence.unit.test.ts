import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isAgainstBroker } from '../../../../src/gateway/trading/submission/clock-watch.ts';

const skewMs = 2_000;
const limit = skewMs + 1_000;

describe("a report from before its order was stored, as evidence against the broker's clock", () => {
  const cases: readonly [name: string, afterMs: number, storedAheadMs: number, isEvidence: boolean][] = [
    ['counts if it is earlier than clocks may differ by', -limit - 1, -5_000, true],
    ['does not count at what clocks may differ by', -limit, -5_000, false],
    ['does not count if it came after the storing', 1, -5_000, false],
    ['counts if the order was stored just now', -limit - 1, 0, true],
    ['counts if the order was stored ahead by what clocks may differ by', -limit - 1, skewMs, true],
    ['does not count if the clock that stored the order was ahead', -limit - 1, skewMs + 1, false],
    ['does not count if the clock that stored the order was a quarter of an hour ahead', -900_000, 899_000, false],
  ];
  for (const [name, afterMs, storedAheadMs, isEvidence] of cases) {
    it(name, () => assert.equal(isAgainstBroker(afterMs, storedAheadMs, skewMs), isEvidence));
  }
});
