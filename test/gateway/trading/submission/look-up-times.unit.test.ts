import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isKeyOld, keyKeptMs } from '../../../../src/gateway/trading/submission/key-retention.ts';
import {
  isFarAhead,
  isSendingOver,
  mayStillBeTaken,
  mostBehindMs,
  nextLookUpAt,
  waitAfter,
} from '../../../../src/gateway/trading/submission/look-up-times.ts';
import { inSequence } from '../../../../src/gateway/trading/submission/reports.ts';
import { farAheadMs } from '../../../../src/gateway/trading/submission/rules.ts';

const now = Date.UTC(2026, 2, 2, 9, 30);
const skewMs = 2_000;

describe('the look-up of an object with an unknown outcome', () => {
  it('a look-up waits 0.5 s at first, twice as long after each, and 30 s at most', () => {
    const waits = [0, 1, 2, 5, 6, 7, 10, 11, 1_000].map(waitAfter);
    assert.deepEqual(waits, [500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000, 30_000, 30_000]);
  });

  it('a look-up may begin when the time to send is over by more than clocks may differ, to the millisecond', () => {
    for (const [realNow, isOver] of [
      [now + skewMs - 1, false],
      [now + skewMs, true],
      [now + skewMs + 1, true],
    ] as const) {
      assert.equal(isSendingOver(now, skewMs, realNow), isOver, `${realNow - now} ms after not_after`);
    }
  });

  it('an object may still be taken until its time and the difference of clocks are over, but for a clock that was ahead', () => {
    for (const [notAfter, may] of [
      [now - skewMs, false],
      [now - skewMs + 1, true],
      [now + farAheadMs, true],
      [now + farAheadMs + 1, false],
    ] as const) {
      assert.equal(mayStillBeTaken({ notAfter }, skewMs, now), may, `not_after is ${notAfter - now} ms from now`);
    }
  });

  it("a look-up's time is taken for one of a wrong clock only if it is further ahead than any sender sets it", () => {
    for (const [aheadMs, isFar] of [
      [farAheadMs - 1, false],
      [farAheadMs, false],
      [farAheadMs + 1, true],
    ] as const) {
      assert.equal(isFarAhead(now + aheadMs, now), isFar, `${aheadMs} ms ahead`);
    }
    assert.equal(isFarAhead(null, now), false);
  });

  it('a clock counts as behind from not_after to the first look-up that found nothing', () => {
    assert.equal(mostBehindMs(now + 1, now, now + 9), 1);
    assert.equal(mostBehindMs(now - 1, now, now + 9), 0);
    assert.equal(mostBehindMs(null, now, now + 9), 9);
    assert.equal(mostBehindMs(null, now, now - 9), 0);
  });

  it('a look-up comes again at the first millisecond that can prove an absence, but never later than after 30 s', () => {
    const next = (notAfter: number, missingSince: number | null, checks = 0) =>
      nextLookUpAt({ checks, notAfter, missingSince }, skewMs, now) - now;
    for (const [notAfter, expected] of [
      [now - skewMs, 500],
      [now - skewMs + 499, 500],
      [now - skewMs + 500, 501],
      [now - skewMs + 29_999, 30_000],
      [now - skewMs + 30_000, 30_000],
    ] as const) {
      assert.equal(next(notAfter, now), expected, `not_after is ${notAfter - now} ms ahead`);
      assert.equal(next(notAfter, null), 500, 'an object that was missing for the first time');
    }
    assert.equal(next(now - 60_000, now, 3), 4_000);
  });
});

describe('an Idempotency-Key', () => {
  it('an Idempotency-Key may be freed when 30 days are over, and not at the instant itself or a day earlier', () => {
    assert.equal(keyKeptMs, 2_592_000_000);
    for (const [ageMs, isOld] of [
      [keyKeptMs - 86_400_000, false],
      [keyKeptMs - 1, false],
      [keyKeptMs, false],
      [keyKeptMs + 1, true],
    ] as const) {
      assert.equal(isKeyOld(now - ageMs, now), isOld, `${ageMs} ms`);
    }
  });
});

describe('reports in a stream', () => {
  it('reports are taken up to the first gap; those that were applied before are left out', () => {
    const reports = (...numbers: number[]) => numbers.map((number) => ({ number: BigInt(number) }));
    for (const [numbers, fresh, gapBefore] of [
      [[], [], undefined],
      [[4, 5], [], undefined],
      [[5, 6, 7], [6, 7], undefined],
      [[6], [6], undefined],
      [[7], [], 7n],
      [[6, 8, 9], [6], 8n],
      [[6, 6, 7, 5], [6, 7], undefined],
    ] as const) {
      const found = inSequence(reports(...numbers), 5n);
      assert.deepEqual(found, { fresh: reports(...fresh), gapBefore }, `${numbers} after 5`);
    }
  });
});
