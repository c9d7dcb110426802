import assert from 'node:assert/strict';
import { test } from 'node:test';

test('an assertion that fails without a message says what the value was, and reads no source for it', () => {
  assert.throws(() => assert.ok([].length), { name: 'AssertionError', message: '0 is not true', actual: 0 });
  assert.throws(() => assert.ok(undefined, 'said by the test'), { message: 'said by the test' });
  assert.throws(() => assert.ok('', new RangeError('own')), RangeError);
});
