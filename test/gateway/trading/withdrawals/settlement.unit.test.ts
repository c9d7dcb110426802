import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { isPaidToWallet } from '../../../../src/gateway/trading/withdrawals/rules.ts';
import {
  applyReport,
  type SettledWithdrawalFacts,
  settleWithdrawal,
  type WithdrawalSettlement,
} from '../../../../src/gateway/trading/withdrawals/settlement/rules.ts';
import {
  WithdrawalRejectReason,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../../../src/gen/marina/broker/v1/withdrawals_pb.ts';

const createdAt = 1_763_650_600_000;
const now = createdAt + 86_400_000;
/** Clocks may differ by ten minutes. */
const marginMs = 600_000;

const uncertain: SettledWithdrawalFacts = {
  ...{ state: 'uncertain', destination: 'bank_account', settlement: null, brokerReference: null },
  ...{ reason: 'unclear', rejectReason: null, lastReport: 0n, createdAt, updatedAt: createdAt },
};
const completed: SettledWithdrawalFacts = { ...uncertain, state: 'completed', brokerReference: 'B1' };

const none = { brokerReference: undefined, rejectReason: undefined, decidedAt: undefined };
const paid: WithdrawalSettlement = { ...none, state: 'completed', brokerReference: 'B1', decidedAt: createdAt };
const rejected: WithdrawalSettlement = {
  ...none,
  ...{ state: 'rejected', rejectReason: 'no_bank_account', decidedAt: createdAt },
};
const refused: WithdrawalSettlement = { ...none, state: 'refused' };
const returned: WithdrawalSettlement = { ...none, state: 'returned', decidedAt: createdAt };

function problemOf(withdrawal: SettledWithdrawalFacts, settlement: WithdrawalSettlement): string | undefined {
  const settling = settleWithdrawal(withdrawal, settlement, now);
  return 'problem' in settling ? settling.problem : undefined;
}

function settle(withdrawal: SettledWithdrawalFacts, settlement: WithdrawalSettlement): SettledWithdrawalFacts {
  const settling = settleWithdrawal(withdrawal, settlement, now);
  assert.ok('changes' in settling, 'problem' in settling ? settling.problem : '');
  return { ...withdrawal, ...settling.changes[0]?.fields };
}

describe('settling a withdrawal by evidence', () => {
  for (const [what, withdrawal, settlement, problem] of [
    ['paid, with a reference', uncertain, paid, undefined],
    ['paid, without a reference', uncertain, { ...paid, brokerReference: undefined }, /broker_reference. is needed/],
    ['paid, under the reference that is known', { ...uncertain, brokerReference: 'B1' }, paid, undefined],
    [
      'paid, without a reference while one is known',
      { ...uncertain, brokerReference: 'B1' },
      { ...paid, brokerReference: undefined },
      undefined,
    ],
    ['paid, under another reference', { ...uncertain, brokerReference: 'B0' }, paid, /under the reference B0/],
    ['paid, without an instant', uncertain, { ...paid, decidedAt: undefined }, /decided_at. is needed/],
    ['paid, with a reject reason', uncertain, { ...paid, rejectReason: 'no_bank_account' }, /reject_reason. is needed/],
    ['rejected, with a reason', uncertain, rejected, undefined],
    ['rejected, without a reason', uncertain, { ...rejected, rejectReason: undefined }, /reject_reason. is needed/],
    ['rejected, with a reference', uncertain, { ...rejected, brokerReference: 'B1' }, /only for .completed/],
    ['rejected, without an instant', uncertain, { ...rejected, decidedAt: undefined }, /decided_at. is needed/],
    ['refused', uncertain, refused, undefined],
    ['refused, with an instant', uncertain, { ...refused, decidedAt: createdAt }, /decided_at. is needed/],
    ['refused, with a reference', uncertain, { ...refused, brokerReference: 'B1' }, /only for .completed/],
    [
      'refused, while the broker has it',
      { ...uncertain, state: 'processing' },
      refused,
      /processing cannot be settled/,
    ],
    ['returned by the bank', completed, returned, undefined],
    ['returned, without an instant', completed, { ...returned, decidedAt: undefined }, /decided_at. is needed/],
    ['returned, with a reference', completed, { ...returned, brokerReference: 'B1' }, /only for .completed/],
    ['returned to the wallet', { ...completed, destination: 'wallet' }, returned, /only a withdrawal to a bank/],
  ] as readonly (readonly [string, SettledWithdrawalFacts, WithdrawalSettlement, RegExp | undefined])[]) {
    it(`a withdrawal ${problem === undefined ? 'can' : 'cannot'} be settled as ${what}`, () => {
      const found = problemOf(withdrawal, settlement);
      if (problem === undefined) assert.equal(found, undefined);
      else assert.match(found ?? '', problem);
    });
  }

  it('operators may settle a withdrawal from ten minutes before it was stored to ten minutes from now', () => {
    for (const [decidedAt, isRight] of [
      [createdAt - marginMs - 1, false],
      [createdAt - marginMs, true],
      [now + marginMs, true],
      [now + marginMs + 1, false],
    ] as const) {
      for (const [withdrawal, settlement] of [
        [uncertain, paid],
        [uncertain, rejected],
        [completed, returned],
      ] as const) {
        const problem = problemOf(withdrawal, { ...settlement, decidedAt });
        assert.equal(/`decided_at` is before/.test(problem ?? ''), !isRight, `${decidedAt}: ${problem}`);
      }
    }
  });

  it('a withdrawal that a clock stored in the future can be settled with an instant of today', () => {
    const ahead = { ...uncertain, createdAt: now + 30 * 86_400_000 };
    assert.equal(problemOf(ahead, { ...paid, decidedAt: now - marginMs }), undefined);
    assert.match(problemOf(ahead, { ...paid, decidedAt: now - marginMs - 1 }) ?? '', /`decided_at` is before/);
  });

  it('a settled withdrawal shows what it would show if the broker had reported its outcome', () => {
    for (const [from, settlement, shown] of [
      [uncertain, paid, ['completed', null, null, 'B1']],
      [
        uncertain,
        rejected,
        ['rejected', 'The broker has no bank account of the customer on file.', 'no_bank_account', null],
      ],
      [uncertain, refused, ['refused', 'It never reached the broker.', null, null]],
      [completed, returned, ['returned', 'The bank sent the money back to the account.', null, 'B1']],
    ] as const) {
      const { state, reason, rejectReason, brokerReference, settlement: mark, updatedAt } = settle(from, settlement);
      assert.deepEqual([state, reason, rejectReason, brokerReference], shown);
      assert.deepEqual([mark, updatedAt], ['settled', now]);
    }
    assert.equal(settle({ ...uncertain, updatedAt: now + 1 }, paid).updatedAt, now + 1, '`updated_at` went back');
  });

  it('a withdrawal to the wallet is credited when it is settled as paid, and only then', () => {
    for (const [destination, settlement, isPaid] of [
      ['wallet', paid, true],
      ['wallet', rejected, false],
      ['wallet', refused, false],
      ['bank_account', paid, false],
    ] as const) {
      const before = { ...uncertain, destination };
      assert.equal(isPaidToWallet(before, settle(before, settlement)), isPaid, `${destination}, ${settlement.state}`);
    }
  });
});

const { ACCEPTED, PAID, REJECTED, RETURNED } = WithdrawalReportKind;

/**
 * The state after each report about a settled withdrawal; `=`: it agrees; `!`: it contradicts the settlement, which stays; `~`:
 * that too, and the partner learns that it was not so.
 */
const laterReports = [
  {
    from: uncertain,
    settlement: paid,
    after: { [ACCEPTED]: '=', [PAID]: '=', [REJECTED]: '!', [RETURNED]: 'returned' },
  },
  { from: uncertain, settlement: rejected, after: { [ACCEPTED]: '!', [PAID]: '!', [REJECTED]: '=', [RETURNED]: '!' } },
  { from: uncertain, settlement: refused, after: { [ACCEPTED]: '~', [PAID]: '~', [REJECTED]: '=', [RETURNED]: '~' } },
  { from: completed, settlement: returned, after: { [ACCEPTED]: '=', [PAID]: '=', [REJECTED]: '!', [RETURNED]: '=' } },
] as const;

function report(kind: WithdrawalReportKind, brokerReference = 'B1') {
  const rejectReason = kind === REJECTED ? WithdrawalRejectReason.NO_BANK_ACCOUNT : 0;
  const fields = { number: 4n, clientWithdrawalId: 'wdr_a', kind, brokerReference, rejectReason };
  return create(WithdrawalReportSchema, { ...fields, at: timestampFromMs(createdAt) });
}

describe('a report about a withdrawal that an operator settled', () => {
  for (const { from, settlement, after } of laterReports) {
    for (const kind of [ACCEPTED, PAID, REJECTED, RETURNED] as const) {
      const outcome = after[kind];
      const says = {
        ...{ '=': 'changes nothing', '!': 'contradicts it and changes nothing', returned: 'returns it' },
        '~': 'contradicts it and corrects its reason',
      };
      it(`a report ${WithdrawalReportKind[kind]} of one that was settled as ${settlement.state} ${says[outcome]}`, () => {
        const row = settle(from, settlement);
        const applied = applyReport(row, report(kind), now);
        assert.ok(applied !== undefined);
        assert.equal(applied.row.state, outcome === 'returned' ? 'returned' : row.state);
        const changes = outcome === 'returned' || outcome === '~';
        assert.deepEqual([applied.changed, applied.inconsistent], [changes, outcome === '!' || outcome === '~']);
        const isCorrected = /^It was reported as never having reached the broker. That was wrong. /;
        assert.equal(isCorrected.test(applied.row.reason ?? ''), outcome === '~', applied.row.reason ?? 'no reason');
        if (outcome === '~') assert.equal(applied.row.brokerReference, 'B1', "the broker's reference was dropped");
        assert.equal(applied.row.lastReport, 4n, 'it was not counted as applied');
        assert.equal(isPaidToWallet({ ...row, state: row.state }, applied.row), false, 'it is credited twice');
        assert.equal(applyReport(applied.row, report(kind), now), undefined, 'it is applied again');
      });
    }
  }

  it('a payment under another reference than the settled one contradicts the settlement', () => {
    const applied = applyReport(settle(uncertain, paid), report(PAID, 'B2'), now);
    assert.deepEqual([applied?.inconsistent, applied?.changed, applied?.row.brokerReference], [true, false, 'B1']);
  });
});
