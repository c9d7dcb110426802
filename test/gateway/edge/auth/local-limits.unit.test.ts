import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Caller } from '../../../../src/gateway/edge/auth/caller.ts';
import { ApiError, refusalOf } from '../../../../src/gateway/edge/errors.ts';
import { CallerLimits } from '../../../../src/gateway/edge/limits/caller-limits.ts';
import { slotsOfOne } from '../../../support/slots.ts';

const caller = (partnerId: string) => ({ partnerId }) as Caller;

/** Takes as often as it may be taken, and answers with what was taken. */
function takeAll(take: () => () => void): (() => void)[] {
  const taken: (() => void)[] = [];
  try {
    for (;;) taken.push(take());
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 'rate_limited', String(error));
    return taken;
  }
}

describe('what one process holds for partners', () => {
  it('is 10 open streams of a partner and 500 of all, and a closed one makes room for one', () => {
    const limits = new CallerLimits(slotsOfOne(), { take: () => true });
    const own = takeAll(() => limits.takeStream(caller('a')));
    assert.equal(own.length, 10, 'streams of one partner');
    own[0]?.();
    own[0]?.();
    assert.equal(takeAll(() => limits.takeStream(caller('a'))).length, 1, 'one was closed, once');
    for (let partner = 0; partner < 60; partner += 1) takeAll(() => limits.takeStream(caller(`p${partner}`)));
    assert.equal(limits.streams, 500);
    assert.equal(refusalOf(() => limits.takeStream(caller('new'))).code, 'rate_limited');
    own[1]?.();
    assert.equal(limits.streams, 499);
    assert.equal(takeAll(() => limits.takeStream(caller('new'))).length, 1);
  });

  it('is 40 files of a partner and 160 of all, of which nobody has more than there is room left', () => {
    const limits = new CallerLimits(slotsOfOne(), { take: () => true });
    const first = takeAll(() => limits.takeFile(caller('a')));
    const counts = ['b', 'c', 'd', 'e'].map((partner) => takeAll(() => limits.takeFile(caller(partner))).length);
    assert.deepEqual([first.length, ...counts], [40, 40, 40, 20, 10], 'half of what is left, and 40 at most');
    assert.equal(limits.files, 150);
    for (const release of first) {
      release();
      release();
    }
    assert.equal(limits.files, 110);
    assert.equal(takeAll(() => limits.takeFile(caller('a'))).length, 25);
    const { message } = refusalOf(() => limits.takeFile(caller('a')));
    assert.match(message, /limit of 25 files at once is used up: 25 are being received/);
  });

  it('is forgotten of idle partners only', () => {
    const limits = new CallerLimits(slotsOfOne(), { take: () => true });
    const open = takeAll(() => limits.takeStream(caller('busy')));
    for (let partner = 0; partner < 10_100; partner += 1) limits.takeFile(caller(`p${partner}`))();
    assert.equal(takeAll(() => limits.takeStream(caller('busy'))).length, 0, 'its 10 streams are still counted');
    assert.equal(open.length, 10);
  });
});
