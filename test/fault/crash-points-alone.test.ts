import assert from 'node:assert/strict';
import { it } from 'node:test';
import { crashPoints } from '../../src/lib/crash.ts';
import { describeCrashes, killedAt } from './support/crash-cases.ts';

describeCrashes('a gateway killed at any point, alone', false);

it('no crash point is without a test', () => {
  assert.deepEqual([...killedAt].sort(), [...crashPoints].sort());
});
