import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeCrashes, killedAt } from '../../support/fault/crash-cases.ts';
import { crashPoints } from '../../support/fault/crash-points.ts';

describeCrashes('a gateway killed at any point, alone', false);

it('no crash point is without a test', () => {
  // Those of the other kinds are killed at in files of their own.
  const ofOrders = crashPoints.filter(
    (point) => !/^(application|document|allocation|withdrawal|reconciliation)[.-]/.test(point),
  );
  assert.deepEqual([...killedAt].sort(), ofOrders.sort());
});
