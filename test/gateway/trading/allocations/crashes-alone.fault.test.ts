import assert from 'node:assert/strict';
import { it } from 'node:test';
import { crashPoints } from '../../../support/fault/crash-points.ts';
import { allocations, describeMoneyCrashes, killedAt } from '../../../support/fault/money-crashes.ts';

describeMoneyCrashes(allocations, 'a gateway that allocates, killed at any point, alone', false);

it('no crash point of allocations is without a test', () => {
  const ofAllocations = crashPoints.filter((point) => point.startsWith('allocation'));
  assert.deepEqual(killedAt(allocations), ofAllocations.sort());
});
