import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { PartnerRests } from '../../../../src/gateway/trading/submission/partner-rests.ts';

describe('partners whose rows are locked', () => {
  let now: number;
  let rests: PartnerRests;
  beforeEach(() => {
    now = 1_000;
    rests = new PartnerRests(() => now);
  });

  it('are left alone for 5 s after a failure, and others are not', () => {
    rests.begin('a')(true);
    now += 4_999;
    assert.deepEqual([rests.mayTry('a'), rests.mayTry('b'), rests.all], [false, true, ['a']]);
    now += 1;
    assert.deepEqual([rests.mayTry('a'), rests.all], [true, []]);
  });

  it('are tried with one object at a time after that, and with any number once a change succeeded', () => {
    rests.begin('a')(true);
    now += 5_000;
    const first = rests.begin('a');
    assert.deepEqual([rests.mayTry('a'), rests.all], [false, ['a']]);
    first(true);
    assert.equal(rests.mayTry('a'), false, 'it failed again');
    now += 5_000;
    rests.begin('a')(false);
    const under = [rests.begin('a'), rests.begin('a')];
    assert.equal(rests.mayTry('a'), true);
    for (const ended of under) ended(false);
  });

  it('are four at a time at most, so that there is room for others', () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) rests.begin(name)(true);
    now += 5_000;
    const tried = names.slice(0, 4).map((name) => rests.begin(name));
    assert.deepEqual([rests.mayTry('e'), rests.mayTry('f'), rests.all], [false, true, names]);
    tried[0]?.(true);
    assert.deepEqual([rests.mayTry('e'), rests.mayTry('a')], [true, false]);
  });

  it('rest from the last of several failures at once', () => {
    const ended = [rests.begin('a'), rests.begin('a')];
    ended[0]?.(true);
    now += 4_000;
    ended[1]?.(true);
    now += 1_000;
    assert.equal(rests.mayTry('a'), false);
  });
});
