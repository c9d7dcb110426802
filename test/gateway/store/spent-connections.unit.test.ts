import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { isOutcomeUnknown, toRefusal } from '../../../src/gateway/store/errors.ts';
import { isUsable } from '../../../src/gateway/store/transaction.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

const answer = (errno: number, message = 'as the server says it') =>
  Object.assign(new Error(message), { errno, sqlState: 'HY000' });

it('a connection that the server has ended, or whose account has no right any more, is not used again', () => {
  for (const errno of [4031, 1053, 1927, 1142, 1158, 3032]) assert.equal(isUsable(answer(errno)), false, `${errno}`);
  assert.equal(isUsable(new Error('the connection was lost')), false);
  // MySQL 9 has numbers of its own where it says why.
  assert.equal(isUsable(answer(6_001, 'The server is currently in offline mode since 2026, reason: …')), false);
  // Versions whose account may not write guards go on without them.
  assert.equal(isUsable(answer(1142, "INSERT command denied to user 'gateway' for table 'guards'")), true);
  assert.equal(isUsable(answer(1142, "INSERT command denied to user 'gateway' for table 'writer_guards'")), false);
  for (const errno of [1062, 1205, 1213, 1969]) assert.equal(isUsable(answer(errno)), true, `${errno}`);
  assert.equal(isUsable(new ApiError('duplicate_order')), true);
});

it('whether a transaction was committed is not known if its member of a group undid it, or its connection broke', () => {
  for (const errno of [3100, 3101, 1158, 1161, 1180]) assert.ok(isOutcomeUnknown(answer(errno)), `${errno}`);
  for (const errno of [1213, 1205, 1290, 1047, 3796]) assert.ok(!isOutcomeUnknown(answer(errno)), `${errno}`);
});

it('a group that cannot serve now is unavailable, and no defect', () => {
  for (const errno of [1158, 3032, 3100, 3101, 3781, 3783, 3796, 3799]) {
    assert.ok(toRefusal(answer(errno)) instanceof UnavailableError, `${errno}`);
  }
});
