import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocationStates } from '../../../src/gateway/trading/allocations/rules.ts';
import {
  type AllocationSettlement,
  type SettledAllocationFacts,
  settleAllocation,
} from '../../../src/gateway/trading/allocations/settlement/rules.ts';
import { applicationStates } from '../../../src/gateway/trading/applications/rules.ts';
import {
  type SettledApplicationFacts,
  type SettledApplicationState,
  settleApplication,
} from '../../../src/gateway/trading/applications/settlement/rules.ts';
import { orderStates } from '../../../src/gateway/trading/orders/rules.ts';
import { type SettledOrderState, settleOrder } from '../../../src/gateway/trading/orders/settlement/rules.ts';
import { withdrawalStates } from '../../../src/gateway/trading/withdrawals/rules.ts';
import {
  type SettledWithdrawalFacts,
  settleWithdrawal,
  type WithdrawalSettlement,
} from '../../../src/gateway/trading/withdrawals/settlement/rules.ts';
import { plainOrder } from '../../support/plain-order.ts';

const now = plainOrder.createdAt + 60_000;
const at = plainOrder.createdAt + 1_000;

/** Whether an object in a state can be settled to an outcome. */
interface Kind {
  readonly states: readonly string[];
  readonly outcomes: readonly string[];
  problem(state: string, outcome: string): string | undefined;
  /** The outcomes that each state can be settled to; a state that is not here, to none. */
  readonly settled: Readonly<Record<string, readonly string[]>>;
}

/** A withdrawal to a destination. */
function withdrawalTo(
  destination: SettledWithdrawalFacts['destination'],
  settled: Readonly<Record<string, readonly string[]>>,
): Kind {
  return {
    states: Object.keys(withdrawalStates.transitions),
    outcomes: ['completed', 'rejected', 'refused', 'returned'],
    problem(state, outcome) {
      const withdrawal: SettledWithdrawalFacts = {
        ...{ state: state as SettledWithdrawalFacts['state'], destination },
        ...{ reason: null, rejectReason: null, brokerReference: null, settlement: null, lastReport: 0n },
        ...{ createdAt: plainOrder.createdAt, updatedAt: plainOrder.createdAt },
      };
      const settling = settleWithdrawal(
        withdrawal,
        {
          state: outcome as WithdrawalSettlement['state'],
          brokerReference: outcome === 'completed' ? 'B1' : undefined,
          rejectReason: outcome === 'rejected' ? 'rejected_by_broker' : undefined,
          decidedAt: outcome === 'refused' ? undefined : at,
        },
        now,
      );
      return 'problem' in settling ? settling.problem : undefined;
    },
    settled,
  };
}

const taken = { uncertain: ['completed', 'rejected', 'refused'], processing: ['completed', 'rejected'] };

const kinds: Readonly<Record<string, Kind>> = {
  'a withdrawal to the wallet': withdrawalTo('wallet', taken),
  'a withdrawal to the bank': withdrawalTo('bank_account', { ...taken, completed: ['returned'] }),
  'an allocation': {
    states: Object.keys(allocationStates.transitions),
    outcomes: ['booked', 'rejected', 'refused'],
    problem(state, outcome) {
      const allocation: SettledAllocationFacts = {
        state: state as SettledAllocationFacts['state'],
        ...{ reason: null, rejectReason: null, brokerReference: null, settlement: null },
        ...{ createdAt: plainOrder.createdAt, updatedAt: plainOrder.createdAt },
      };
      const settling = settleAllocation(
        allocation,
        {
          state: outcome as AllocationSettlement['state'],
          brokerReference: outcome === 'booked' ? 'B1' : undefined,
          rejectReason: outcome === 'rejected' ? 'rejected_by_broker' : undefined,
          decidedAt: outcome === 'refused' ? undefined : at,
        },
        now,
      );
      return 'problem' in settling ? settling.problem : undefined;
    },
    settled: { uncertain: ['booked', 'rejected', 'refused'] },
  },
  'an application': {
    states: Object.keys(applicationStates.transitions),
    outcomes: ['opened', 'documents_required', 'submitted', 'rejected', 'unplaced'],
    problem(state, outcome) {
      const application: SettledApplicationFacts = {
        state: state as SettledApplicationFacts['state'],
        ...{ reference: null, account: null, reason: null, rejectReason: null, param: null, settlement: null },
        ...{ lastReport: 0n, updatedAt: plainOrder.createdAt },
      };
      const settling = settleApplication(
        application,
        {
          state: outcome as SettledApplicationState,
          reference: outcome === 'unplaced' ? undefined : 'R1',
          account: outcome === 'opened' ? 'ACCOUNT1' : undefined,
          rejectReason: outcome === 'rejected' ? 'rejected_by_broker' : undefined,
        },
        now,
      );
      return 'problem' in settling ? settling.problem : undefined;
    },
    settled: {
      uncertain: ['opened', 'documents_required', 'submitted', 'rejected', 'unplaced'],
      documents_required: ['opened', 'submitted', 'rejected'],
      submitted: ['opened', 'rejected'],
    },
  },
  'an order without trades': {
    states: Object.keys(orderStates.transitions).filter((state) => !state.endsWith('filled')),
    outcomes: ['refused', 'rejected', 'open', 'cancelled', 'expired'],
    problem(state, outcome) {
      const settling = settleOrder(
        { ...plainOrder, state: state as typeof plainOrder.state },
        {
          state: outcome as SettledOrderState,
          rejectReason: outcome === 'rejected' ? 'rejected_by_exchange' : undefined,
          endedAt: ['cancelled', 'expired', 'rejected'].includes(outcome) ? at : undefined,
          exchangeOrderId: outcome === 'refused' ? '' : 'X1',
          trades: [],
        },
        new Map(),
        now,
      );
      return 'problem' in settling ? settling.problem : undefined;
    },
    settled: {
      uncertain: ['refused', 'rejected', 'open', 'cancelled', 'expired'],
      // It is open already.
      pending: ['rejected', 'cancelled', 'expired'],
    },
  },
};

for (const [name, { states, outcomes, problem, settled }] of Object.entries(kinds)) {
  describe(`${name} that an operator settles by evidence`, () => {
    for (const state of states) {
      const allowed = settled[state] ?? [];
      it(`${name} is settled as ${allowed.join(', ') || 'nothing'} when it is ${state}`, () => {
        for (const outcome of outcomes) {
          const found = problem(state, outcome);
          assert.equal(found === undefined, allowed.includes(outcome), `${outcome}: ${found}`);
        }
      });
    }
  });
}
