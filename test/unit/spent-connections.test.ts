import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isUsable } from '../../src/db/batch.ts';
import { ApiError } from '../../src/lib/errors.ts';

const answer = (errno: number, message = 'as the server says it') =>
  Object.assign(new Error(message), { errno, sqlState: 'HY000' });

it('a connection that the server has ended, or whose account has no right any more, is not used again', () => {
  for (const errno of [4031, 1053, 1927, 1142]) assert.equal(isUsable(answer(errno)), false, `${errno}`);
  assert.equal(isUsable(new Error('the connection was lost')), false);
  // Versions whose account may not write guards go on without them.
  assert.equal(isUsable(answer(1142, "INSERT command denied to user 'gateway' for table 'guards'")), true);
  for (const errno of [1062, 1205, 1213, 1969]) assert.equal(isUsable(answer(errno)), true, `${errno}`);
  assert.equal(isUsable(new ApiError('duplicate_order')), true);
});
