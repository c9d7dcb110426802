import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type SettledAllocationFacts,
  settleAllocation,
} from '../../../../src/gateway/trading/allocations/settlement/rules.ts';
import {
  type DocumentFacts,
  longestLeaseMs,
  stateNow,
} from '../../../../src/gateway/trading/applications/documents/rules.ts';
import { type OrderSettlement, settleOrder } from '../../../../src/gateway/trading/orders/settlement/rules.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const { createdAt, quantity: ordered } = plainOrder;
const now = createdAt + 86_400_000;
/** Clocks may differ by ten minutes. */
const marginMs = 600_000;

const none = { state: undefined, rejectReason: undefined, endedAt: undefined, exchangeOrderId: '', trades: [] };
function problemOf(settlement: Partial<OrderSettlement>): string | undefined {
  const order = { ...plainOrder, state: 'uncertain' as const };
  const settling = settleOrder(order, { ...none, ...settlement }, new Map() as never, now, now);
  return 'problem' in settling ? settling.problem : undefined;
}
const instants = [
  [createdAt - marginMs - 1, false],
  [createdAt - marginMs, true],
  [now + marginMs, true],
  [now + marginMs + 1, false],
] as const;

describe('the bounds of a settlement by operators', () => {
  it('operators may settle a trade from ten minutes before the order was stored to ten minutes from now', () => {
    for (const [at, isRight] of instants) {
      const trade = { step: undefined, quantity: 1n, priceKobo: 1n, at };
      const problem = problemOf({ state: 'open', trades: [trade] });
      assert.equal(/before the order was stored|in the future/.test(problem ?? ''), !isRight, `${at}: ${problem}`);
    }
  });

  it('operators may settle a trade of as many shares as the order, from 1 kobo to 100 million naira', () => {
    for (const [quantity, priceKobo, isRight] of [
      [1n, 0n, false],
      [1n, 1n, true],
      [1n, 10_000_000_000n, true],
      [1n, 10_000_000_001n, false],
      [-1n, 1n, false],
      [ordered, 1n, true],
      [ordered + 1n, 1n, false],
    ] as const) {
      const trade = { step: undefined, quantity, priceKobo, at: createdAt };
      const problem = problemOf({ state: 'open', trades: [trade] });
      assert.equal(/cannot be/.test(problem ?? ''), !isRight, `${quantity} at ${priceKobo}: ${problem}`);
    }
  });

  it("operators may settle an order's end from ten minutes before it was stored to ten minutes from now", () => {
    for (const [endedAt, isRight] of instants) {
      const problem = problemOf({ state: 'cancelled', endedAt });
      assert.equal(/`ended_at` is before/.test(problem ?? ''), !isRight, `${endedAt}: ${problem}`);
    }
  });

  it('operators may settle an allocation from ten minutes before it was stored to ten minutes from now', () => {
    const allocation = { state: 'uncertain', createdAt, updatedAt: createdAt, amountKobo: 1n };
    for (const [decidedAt, isRight] of instants) {
      const booked = { state: 'booked', brokerReference: 'B1', rejectReason: undefined, decidedAt } as const;
      const settling = settleAllocation(allocation as unknown as SettledAllocationFacts, booked, now);
      const problem = 'problem' in settling ? settling.problem : '';
      assert.equal(/`decided_at` is before/.test(problem), !isRight, `${decidedAt}: ${problem}`);
    }
  });
});

describe('the lease under which a document is sent', () => {
  it('the lease of a document holds until its last millisecond, if no wrong clock set it', () => {
    for (const [aheadMs, state] of [
      [-1, 'unconfirmed'],
      [0, 'unconfirmed'],
      [1, 'sending'],
      [longestLeaseMs, 'sending'],
      [longestLeaseMs + 1, 'unconfirmed'],
    ] as const) {
      const document = { state: 'sending', leaseUntil: now + aheadMs } as unknown as DocumentFacts;
      assert.equal(stateNow(document, now), state, `${aheadMs} ms`);
    }
  });
});
