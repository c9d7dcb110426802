import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { farAheadMs, isHeldBack, type SimilarObjects } from '../../../../src/gateway/trading/submission/rules.ts';

const now = Date.UTC(2026, 10, 26, 12);
const none: SimilarObjects = { hasUnknown: false, firstLeaseEnd: null, lastNotAfter: null };

describe('an object like earlier ones', () => {
  const cases: readonly [name: string, similar: Partial<SimilarObjects>, isHeld: boolean][] = [
    ['is free if there are none', {}, false],
    ['is held back by one with an unknown outcome', { hasUnknown: true }, true],
    ['is free while each sender has 1 ms left', { firstLeaseEnd: now + 1, lastNotAfter: now }, false],
    ["is held back at the end of a sender's time", { firstLeaseEnd: now, lastNotAfter: now }, true],
    ["is held back 1 ms after the end of a sender's time", { firstLeaseEnd: now - 1, lastNotAfter: now }, true],
    [
      'is free if the end is as far ahead as any can be',
      { firstLeaseEnd: now + farAheadMs, lastNotAfter: now + farAheadMs },
      false,
    ],
    [
      'is held back if the end is further ahead than any can be',
      { firstLeaseEnd: now + farAheadMs, lastNotAfter: now + farAheadMs + 1 },
      true,
    ],
  ];
  for (const [name, similar, isHeld] of cases) {
    it(name, () => assert.equal(isHeldBack({ ...none, ...similar }, now), isHeld));
  }

  it('stays held back as time goes on, unless only a clock that was ahead held it back', () => {
    const instant = fc.option(fc.integer({ min: now - 2 * farAheadMs, max: now + 2 * farAheadMs }), { nil: null });
    const similar = fc.record({ hasUnknown: fc.boolean(), firstLeaseEnd: instant, lastNotAfter: instant });
    fc.assert(
      fc.property(similar, fc.nat(farAheadMs), (objects, laterMs) => {
        fc.pre(isHeldBack(objects, now) && (objects.lastNotAfter ?? 0) <= now + farAheadMs);
        assert.ok(isHeldBack(objects, now + laterMs), `it is free ${laterMs} ms later`);
      }),
    );
  });
});
