import assert from 'node:assert/strict';
import { it } from 'node:test';
import { crashPoints } from '../../../support/fault/crash-points.ts';
import { describeMoneyCrashes, killedAt, withdrawals } from '../../../support/fault/money-crashes.ts';

describeMoneyCrashes(withdrawals, 'a gateway that withdraws, killed at any point, alone', false);

it('no crash point of withdrawals is without a test', () => {
  const ofWithdrawals = crashPoints.filter((point) => point.startsWith('withdrawal'));
  assert.deepEqual(killedAt(withdrawals), ofWithdrawals.sort());
});
