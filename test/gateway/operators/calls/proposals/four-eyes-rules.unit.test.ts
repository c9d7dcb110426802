import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { movesMoney } from '../../../../../src/gateway/operators/calls/key-scopes.ts';
import {
  type AgreedLimits,
  opensWithdrawals,
  raisedLimits,
} from '../../../../../src/gateway/operators/calls/partner-rights.ts';
import { isAbove } from '../../../../../src/gateway/operators/calls/proposals/rules.ts';
import { isLoosened } from '../../../../../src/gateway/operators/calls/releases/service.ts';
import { Feature, Scope, ScopeSchema } from '../../../../../src/gen/marina/options/v1/options_pb.ts';

describe('a second operator', () => {
  it('is needed for a payment of one kobo more than the amount, and for none while four eyes are off', () => {
    const cases: [amount: bigint, above: bigint | undefined, isNeeded: boolean][] = [
      [1_000_000_000n, 1_000_000_000n, false],
      [1_000_000_001n, 1_000_000_000n, true],
      [1n, 0n, true],
      [1_000_000_000_000_000n, 1_000_000_000_000_000n, false],
      [1_000_000_000_000_000n, undefined, false],
    ];
    for (const [amount, above, isNeeded] of cases) assert.equal(isAbove(amount, above), isNeeded, `${amount} ${above}`);
  });

  it('is needed for a limit of money that is one kobo higher than the one in force, agreed or default', () => {
    const cases: [before: AgreedLimits, after: AgreedLimits, raised: string[]][] = [
      [{}, { ordersKoboPerDay: 1_000_000_000n }, []],
      [{}, { ordersKoboPerDay: 1_000_000_001n }, ['ordersKoboPerDay']],
      [{}, { allocationsKoboPerDay: 5_000_000_001n }, ['allocationsKoboPerDay']],
      [{ ordersKoboPerDay: 7n }, { ordersKoboPerDay: 8n }, ['ordersKoboPerDay']],
      [{ ordersKoboPerDay: 7n }, { ordersKoboPerDay: 6n }, []],
      [{ ordersKoboPerDay: 999_999_999n }, {}, ['ordersKoboPerDay']],
      [{ ordersKoboPerDay: 1_000_000_001n }, {}, []],
      [{ ordersKoboPerDay: 0n, allocationsKoboPerDay: 0n }, {}, ['ordersKoboPerDay', 'allocationsKoboPerDay']],
      [{}, { requestsPerSecond: 1_000_000, requestsBurst: 1_000_000, requestsUnderWay: 10_000 }, []],
    ];
    for (const [before, after, raised] of cases) assert.deepEqual(raisedLimits(before, after), raised);
  });

  it('is needed to enable withdrawals, and not to keep or to disable them', () => {
    const [withdrawals, opening] = [Feature.WITHDRAWALS, Feature.ACCOUNT_OPENING];
    assert.equal(opensWithdrawals(new Set(), [withdrawals]), true);
    assert.equal(opensWithdrawals(new Set([opening]), [opening, withdrawals]), true);
    assert.equal(opensWithdrawals(new Set([withdrawals]), [opening, withdrawals]), false);
    assert.equal(opensWithdrawals(new Set([withdrawals]), [opening]), false);
    assert.equal(opensWithdrawals(new Set(), [opening]), false);
  });

  it('is needed when fewer withdrawals wait for their release, and not when more do', () => {
    const cases: [before: bigint | null, after: bigint | null, isNeeded: boolean][] = [
      [null, 0n, false],
      [null, 10_000_000_000n, false],
      [5n, 5n, false],
      [5n, 4n, false],
      [5n, 6n, true],
      [0n, null, true],
    ];
    for (const [before, after, isNeeded] of cases) assert.equal(isLoosened(before, after), isNeeded);
  });

  it('is needed for the scopes fund and withdraw alone', () => {
    const scopes = ScopeSchema.values.map(({ number }) => number as Scope);
    assert.deepEqual(scopes.filter(movesMoney), [Scope.FUND, Scope.WITHDRAW]);
  });
});
