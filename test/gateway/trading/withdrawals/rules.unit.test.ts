import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { isPaidToWallet, type WithdrawalStateName } from '../../../../src/gateway/trading/withdrawals/rules.ts';
import { applyReport } from '../../../../src/gateway/trading/withdrawals/settlement/rules.ts';
import {
  WithdrawalRejectReason,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../../../src/gen/marina/broker/v1/withdrawals_pb.ts';

const { ACCEPTED, PAID, REJECTED, RETURNED } = WithdrawalReportKind;
const kinds = [ACCEPTED, PAID, REJECTED, RETURNED] as const;
const destinations = ['wallet', 'bank_account'] as const;

function stored(state: WithdrawalStateName, destination: 'wallet' | 'bank_account', settlement: string | null = null) {
  return {
    ...{ state, destination, settlement, brokerReference: null, reason: null, rejectReason: null },
    ...{ lastReport: 3n, createdAt: 0, updatedAt: 5 },
  };
}

function report(kind: WithdrawalReportKind, number = 4n, brokerReference = 'R1') {
  const rejectReason = kind === REJECTED ? WithdrawalRejectReason.NO_BANK_ACCOUNT : 0;
  const fields = { number, clientWithdrawalId: 'wdr_a', kind, brokerReference, rejectReason };
  return create(WithdrawalReportSchema, { ...fields, at: timestampFromMs(7) });
}

/** The state that a report leads to; `=`: it says nothing new; `!`: it contradicts the state, which stays. */
const rows: Readonly<
  Record<WithdrawalStateName, readonly [accepted: string, paid: string, rejected: string, returned: string]>
> = {
  sending: ['processing', 'completed', 'rejected', '!'],
  uncertain: ['processing', 'completed', 'rejected', '!'],
  processing: ['=', 'completed', 'rejected', '!'],
  completed: ['=', '=', '!', 'returned'],
  rejected: ['!', '!', '=', '!'],
  refused: ['!', '!', '=', '!'],
  returned: ['=', '=', '!', '='],
};

describe('a report about a withdrawal', () => {
  for (const [state, outcomes] of Object.entries(rows) as [WithdrawalStateName, readonly string[]][]) {
    for (const [at, kind] of kinds.entries()) {
      for (const destination of destinations) {
        // Only a bank sends money back.
        const isReturnedWallet = destination === 'wallet' && outcomes[at] === 'returned';
        const outcome = isReturnedWallet ? '!' : outcomes[at];
        it(`a report ${WithdrawalReportKind[kind]} of one to a ${destination} that is ${state} is ${outcome}`, () => {
          const before = stored(state, destination);
          const applied = applyReport(before, report(kind), 9);
          assert.ok(applied !== undefined);
          assert.equal(applied.row.lastReport, 4n);
          assert.equal(applied.row.state, outcome === '!' || outcome === '=' ? state : outcome);
          assert.equal(applied.inconsistent, outcome === '!');
          const isPaid = isPaidToWallet(before, applied.row);
          assert.equal(
            isPaid,
            destination === 'wallet' && outcome === 'completed',
            'it is credited once, when it is paid',
          );
        });
      }
    }
  }

  it('a report that was applied, or has an earlier number, is ignored in every state', () => {
    for (const state of Object.keys(rows) as WithdrawalStateName[]) {
      for (const number of [1n, 3n]) {
        assert.equal(applyReport(stored(state, 'wallet'), report(PAID, number), 9), undefined, state);
      }
    }
  });

  it('a report under another reference than the first contradicts it, and nothing is credited', () => {
    const before = { ...stored('processing', 'wallet'), brokerReference: 'R0' };
    const applied = applyReport(before, report(PAID), 9);
    assert.deepEqual([applied?.inconsistent, applied?.row.state], [true, 'processing']);
  });

  it('a report without a reference proves nothing, unless it rejects', () => {
    for (const kind of [ACCEPTED, PAID]) {
      const applied = applyReport(stored('sending', 'wallet'), report(kind, 4n, ''), 9);
      assert.deepEqual([applied?.inconsistent, applied?.row.state], [true, 'sending']);
    }
    assert.equal(applyReport(stored('sending', 'wallet'), report(REJECTED, 4n, ''), 9)?.row.state, 'rejected');
  });

  it('a report that says otherwise than an operator settled contradicts it, but for money that a bank sends back', () => {
    for (const state of ['rejected', 'refused', 'completed'] as const) {
      const other = state === 'completed' ? REJECTED : PAID;
      const applied = applyReport(stored(state, 'wallet', 'settled'), report(other), 9);
      // The reason of one that was settled as refused is corrected.
      const isCorrected = state === 'refused';
      assert.deepEqual([applied?.inconsistent, applied?.row.state, applied?.changed], [true, state, isCorrected]);
    }
    const returned = applyReport(stored('completed', 'bank_account', 'settled'), report(RETURNED), 9);
    assert.deepEqual([returned?.inconsistent, returned?.row.state], [false, 'returned']);
  });
});
