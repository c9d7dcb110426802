import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Rests } from '../../src/kit/rests.ts';

describe('rests after failures', () => {
  let now = 0;
  const restMs = 10;

  it('rests leave alone what failed until its time is up, after each failure anew', () => {
    now = 1_000;
    const rests = new Rests(restMs, () => now);
    assert.equal(rests.isResting('a'), false);
    for (let failures = 1; failures <= 3; failures += 1) {
      rests.rest('a');
      for (const [laterMs, isResting] of [
        [0, true],
        [restMs - 1, true],
        [restMs, false],
        [restMs + 1, false],
      ] as const) {
        const began = now;
        now += laterMs;
        assert.equal(rests.isResting('a'), isResting, `failure ${failures}, ${laterMs} ms later`);
        assert.deepEqual([rests.failed, rests.resting], [['a'], isResting ? ['a'] : []]);
        now = began;
      }
      now += restMs;
    }
  });

  it('rests end for what did not fail, and for nothing else', () => {
    now = 1_000;
    const rests = new Rests(restMs, () => now);
    rests.rest('a');
    rests.rest('b');
    rests.end('a');
    rests.end('c');
    assert.deepEqual([rests.failed, rests.resting, rests.size], [['b'], ['b'], 1]);
    assert.deepEqual([rests.hasFailed('a'), rests.isResting('a')], [false, false]);
  });
});
