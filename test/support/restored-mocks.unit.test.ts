import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';

describe('a method that a test has mocked', () => {
  const clock = { now: () => 1 };

  afterEach(() => assert.equal(clock.now(), 1));

  it('a method that is mocked twice in a test does as the second mock says, and after the test as before it', (context) => {
    context.mock.method(clock, 'now', () => 2);
    const second = context.mock.method(clock, 'now', () => 3);
    assert.deepEqual([clock.now(), second.mock.callCount()], [3, 1]);
    context.mock.restoreAll();
  });
});
