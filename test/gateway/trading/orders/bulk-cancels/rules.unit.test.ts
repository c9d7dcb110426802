import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Pace } from '../../../../../src/gateway/trading/orders/bulk-cancels/pace.ts';
import { nextStep, waitAfter } from '../../../../../src/gateway/trading/orders/bulk-cancels/rules.ts';

const now = 1_000_000_000;
const clockSkewMs = 2_000;

describe('the next step of a job about an order', () => {
  type Facts = Parameters<typeof nextStep>[0];
  const plain: Facts = {
    item: { sentAt: null },
    order: { state: 'pending', cancelUntil: null },
    isKnown: true,
    beganAt: now - 1_000,
    realNow: now,
    clockSkewMs,
  };
  const step = (facts: Partial<Facts>) => {
    const next = nextStep({ ...plain, ...facts });
    if (next.do === 'end') return [next.do, next.result];
    return next.do === 'wait' ? [next.do, next.until] : [next.do];
  };
  const sent = { item: { sentAt: now - 30_000 } };

  for (const [name, facts, expected] of [
    ['sends the cancel of an open order', {}, ['send']],
    [
      'sends one after a cancel of somebody else whose outcome is unknown',
      { order: { state: 'pending', cancelUntil: now } },
      ['send'],
    ],
    [
      'waits while a cancel of somebody else is under way',
      { order: { state: 'partially_filled', cancelUntil: now + 5_000 } },
      ['wait', now + 5_000],
    ],
    ['waits for an uncertain order', { order: { state: 'uncertain', cancelUntil: null } }, ['wait', now + 1_000]],
    [
      'waits for an order that is being sent',
      { order: { state: 'sending', cancelUntil: null } },
      ['wait', now + 1_000],
    ],
    ['waits for an order that is not stored', { order: undefined }, ['wait', now + 1_000]],
    ['leaves an order alone that another version stored', { isKnown: false }, ['wait', now + 1_000]],
    ['counts a cancelled order', { order: { state: 'cancelled', cancelUntil: null } }, ['end', 'cancelled']],
    ['counts a filled order', { order: { state: 'filled', cancelUntil: null } }, ['end', 'not_cancelable']],
    [
      'counts a filled order whose cancel it sent',
      { ...sent, order: { state: 'filled', cancelUntil: null } },
      ['end', 'not_cancelable'],
    ],
    [
      'sends no second cancel, and waits until the first is over by every clock',
      { ...sent, order: { state: 'pending', cancelUntil: now - 500 } },
      ['wait', now + 1_500],
    ],
    ['asks the record then', { ...sent, order: { state: 'pending', cancelUntil: now - clockSkewMs } }, ['ask']],
    [
      'asks for ten minutes at most',
      { item: { sentAt: now - 600_000 }, order: { state: 'pending', cancelUntil: now - 60_000 } },
      ['end', 'unconfirmed'],
    ],
    [
      'leaves an order unconfirmed whose record has no cancel',
      { ...sent, order: { state: 'pending', cancelUntil: null } },
      ['end', 'unconfirmed'],
    ],
  ] satisfies [string, Partial<Facts>, unknown[]][]) {
    it(name, () => assert.deepEqual(step(facts), expected));
  }

  it('waits the longer the longer it has waited, between a second and a minute', () => {
    assert.deepEqual([0, 8_000, 80_000, 8_000_000].map(waitAfter), [1_000, 2_000, 20_000, 60_000]);
  });
});

describe('the pace of jobs', () => {
  it('sends so many cancels in a second, four at once', () => {
    let at = 0;
    const pace = new Pace(20, () => at);
    assert.deepEqual([pace.waitMs, pace.atOnce], [0, 4]);
    assert.deepEqual([pace.take(), pace.take(), pace.take()], [0, 50, 100], 'each has a turn of its own');
    assert.equal(pace.waitMs, 150);
    at = 170;
    assert.deepEqual([pace.waitMs, pace.take()], [0, 0]);
    assert.equal(pace.waitMs, 50, 'time that passed unused is not made up for');
  });

  it('sends one at a time and ever later after failures, and as before after a clear answer', () => {
    let at = 0;
    const pace = new Pace(20, () => at);
    const waits = Array.from({ length: 7 }, () => {
      pace.failed();
      const { waitMs } = pace;
      at += waitMs;
      return waitMs;
    });
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    assert.deepEqual([pace.atOnce, pace.isFailing], [1, true]);
    pace.answered();
    assert.deepEqual([pace.atOnce, pace.isFailing], [4, false]);
  });
});
