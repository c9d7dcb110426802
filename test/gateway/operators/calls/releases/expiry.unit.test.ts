import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyExpiry } from '../../../../../src/gateway/operators/calls/releases/expiry.ts';
import type { StoredWithdrawal } from '../../../../../src/gateway/trading/withdrawals/table.ts';
import { withdrawalKind } from '../../../../support/kinds.ts';

const now = Date.UTC(2026, 2, 9, 9, 30);
const held = { id: 'wdr_a', partnerId: 'p', state: 'sending', heldUntil: now, createdAt: 0, updatedAt: 0 };

describe('a withdrawal whose time for a release is over', () => {
  for (const [name, withdrawal, isRefused] of [
    ['whose time ends now is refused', held, true],
    ['whose time ended on an earlier day is refused', { ...held, heldUntil: 1 }, true],
    ['that has a millisecond left waits on', { ...held, heldUntil: now + 1 }, false],
    ['that was released meanwhile, and is being sent, is left alone', { ...held, heldUntil: null }, false],
    ['that an operator refused meanwhile is left alone', { ...held, state: 'refused', heldUntil: null }, false],
    ['that was released and paid meanwhile is left alone', { ...held, state: 'completed', heldUntil: null }, false],
  ] as const) {
    it(`a withdrawal ${name}`, () => {
      const change = applyExpiry(withdrawalKind, withdrawal as unknown as StoredWithdrawal, now, now + 5);
      assert.equal(change?.after.state, isRefused ? 'refused' : undefined);
      assert.equal(change?.after.heldUntil, isRefused ? null : undefined);
    });
  }
});
