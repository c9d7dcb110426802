import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeAllocationCrashes, killedAt } from '../../../support/fault/allocation-crashes.ts';
import { crashPoints } from '../../../support/fault/crash-points.ts';

describeAllocationCrashes('a gateway that allocates, killed at any point, alone', false);

it('no crash point of allocations is without a test', () => {
  const ofAllocations = crashPoints.filter((point) => point.startsWith('allocation'));
  assert.deepEqual([...killedAt].sort(), ofAllocations.sort());
});
