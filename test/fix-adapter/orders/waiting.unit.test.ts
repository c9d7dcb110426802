import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KeyedWaiters } from '../../../src/fix-adapter/orders/waiting.ts';

describe('those who wait by a key', () => {
  it('waiters get what comes for them, also who began to wait in the moment in which it came for others', async () => {
    const waiters = new KeyedWaiters<string>();
    const first = waiters.wait('key', 10_000);
    waiters.resolve('key', 'one');
    const second = waiters.wait('key', 10_000);
    assert.equal(await first, 'one');
    waiters.resolve('key', 'two');
    assert.equal(await second, 'two');
  });

  it('waiters get what comes together, and nothing after their time', async () => {
    const waiters = new KeyedWaiters<string>();
    const late = waiters.wait('key', 0);
    assert.equal(await late, undefined);
    const both = [waiters.wait('key', 10_000), waiters.wait('key', 10_000), waiters.wait('other', 1)];
    waiters.resolve('key', 'one');
    assert.deepEqual(await Promise.all(both), ['one', 'one', undefined]);
  });
});
