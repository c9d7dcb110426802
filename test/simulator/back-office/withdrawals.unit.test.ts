import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
  TransactionType,
} from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalReportKind,
} from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { WithdrawalOutcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import type { WithdrawalSubmission } from '../../../src/simulator/back-office/withdrawal-model.ts';
import {
  decideWithdrawal,
  decideWithdrawalIfDue,
  returnWithdrawalIfDue,
  submitWithdrawal,
} from '../../../src/simulator/back-office/withdrawals.ts';
import { dayMs, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const { WALLET, BANK_ACCOUNT } = WithdrawalDestination;
const { ACCEPTED, PAID, REJECTED, RETURNED } = WithdrawalReportKind;
const { PAY_AT_ONCE, PAY_LATER, REJECT, REJECT_LATER, HOLD, RETURN, UNSPECIFIED } = WithdrawalOutcome;
const reasons = WithdrawalRejectReason;
/** A bank account's amount with duty. */
const large = 2_000_000;
const duty = 5_000;
const delays = { min: 1_000, max: 2_000 };

class Office {
  constructor(readonly broker: SimulatedBroker) {}

  /** An office with an account, with or without money that is counted. */
  static async start(startCashKobo?: bigint): Promise<Office> {
    const funds = startCashKobo === undefined ? undefined : { startCashKobo, sharesElsewhere: 0n };
    const office = new Office(await SimulatedBroker.start(funds));
    await office.broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
    return office;
  }

  submit(changes: Partial<WithdrawalSubmission> = {}, notAfterMs?: number) {
    const submission = {
      clientWithdrawalId: 'wdr_1',
      account: 'A1',
      amountKobo: large,
      destination: BANK_ACCOUNT,
      ...changes,
    };
    const settings = { decisionDelay: delays, directives: this.broker.directives };
    return this.broker.change({ withdrawals: [submission.clientWithdrawalId] }, (unit) =>
      submitWithdrawal(unit, submission, notAfterMs, settings),
    );
  }

  force(outcome: WithdrawalOutcome, rejectReason = reasons.UNSPECIFIED): void {
    this.broker.directives.addWithdrawal({ account: 'A1', behaviour: { outcome, rejectReason } }, 1);
  }

  decide(kind: WithdrawalReportKind, rejectReason?: WithdrawalRejectReason, id = 'wdr_1') {
    return this.broker.change({ withdrawals: [id] }, (unit) => decideWithdrawal(unit, id, kind, rejectReason));
  }

  decideIfDue(id = 'wdr_1') {
    return this.broker.change({ withdrawals: [id] }, (unit) => decideWithdrawalIfDue(unit, id));
  }

  returnIfDue(id = 'wdr_1') {
    return this.broker.change({ withdrawals: [id] }, (unit) => returnWithdrawalIfDue(unit, id));
  }

  row(id = 'wdr_1') {
    return this.broker.database.rows('withdrawals').find((each) => each.client_withdrawal_id === id);
  }

  reports(id = 'wdr_1'): string[] {
    const own = this.broker.database.rows('withdrawal_reports').filter((each) => each.client_withdrawal_id === id);
    return own.map(({ kind, reject_reason: reason }) => {
      return [WithdrawalReportKind[Number(kind)], ...(reason === 0 ? [] : [reasons[Number(reason)]])].join(' ');
    });
  }

  /** The bookings on the account, each with its kind. */
  booked(): [TransactionType, number][] {
    return this.broker.database
      .rows('account_transactions')
      .map(({ type, amount_kobo: kobo }) => [Number(type), Number(kobo)]);
  }

  /** The cash, and the money that is set aside. */
  money(): [cash: number | undefined, promised: bigint] {
    return [this.broker.world.cash.get('A1'), this.broker.world.funds.promisedKobo('A1')];
  }
}

describe('the submission of a withdrawal to the simulated broker', () => {
  it('a withdrawal is taken once, until its not_after', async () => {
    const office = await Office.start();
    assert.deepEqual(await office.submit({}, wednesday - 1), { outcome: 'too_late' });
    assert.equal(office.row(), undefined);
    assert.equal((await office.submit({}, wednesday)).outcome, 'taken');
    assert.deepEqual(await office.submit({ amountKobo: 1 }, wednesday - 1), { outcome: 'seen_before' });
    assert.deepEqual([office.reports(), office.money()[0]], [['ACCEPTED'], -large]);
  });

  it('a withdrawal behaves as its destination, a directive and its amount decide', async () => {
    const cases: [WithdrawalSubmission['destination'], WithdrawalOutcome | undefined, number, string[], boolean][] = [
      [WALLET, undefined, large, ['PAID'], false],
      [BANK_ACCOUNT, undefined, large, ['ACCEPTED'], true],
      [WALLET, UNSPECIFIED, large, ['PAID'], false],
      [WALLET, PAY_LATER, large, ['ACCEPTED'], true],
      [BANK_ACCOUNT, PAY_AT_ONCE, large, ['PAID'], false],
      [BANK_ACCOUNT, HOLD, large, ['ACCEPTED'], false],
      [BANK_ACCOUNT, REJECT, large, ['REJECTED REJECTED_BY_BROKER'], false],
      [BANK_ACCOUNT, REJECT_LATER, large, ['ACCEPTED'], true],
      [BANK_ACCOUNT, RETURN, large, ['ACCEPTED'], true],
      [WALLET, RETURN, large, ['PAID'], false],
      [WALLET, undefined, 998_005, ['REJECTED NO_BANK_ACCOUNT'], false],
      [WALLET, PAY_LATER, 998_005, ['ACCEPTED'], true],
      [BANK_ACCOUNT, undefined, 998_001, ['PAID'], false],
    ];
    const office = await Office.start(10_000_000_000n);
    for (const [at, [destination, outcome, amountKobo, expected, isDelayed]] of cases.entries()) {
      const id = `wdr_${at}`;
      if (outcome !== undefined) office.force(outcome);
      await office.submit({ clientWithdrawalId: id, destination, amountKobo });
      assert.deepEqual(office.reports(id), expected, id);
      const decideAt = office.row(id)?.decide_at_ms;
      assert.equal(decideAt !== null, isDelayed, id);
      const delay = Number(decideAt) - wednesday;
      if (isDelayed) assert.ok(delay >= delays.min && delay <= delays.max, String(delay));
    }
  });

  it('a withdrawal takes the amount at once, and sets the duty aside until it is paid', async () => {
    const office = await Office.start(2_500_000n);
    await office.submit();
    assert.deepEqual(office.money(), [-large, BigInt(duty)]);
    assert.equal(office.row()?.duty_kobo, 0);
    assert.match(String(office.row()?.broker_reference), /^WDL0+1$/);
    await office.decide(PAID);
    assert.deepEqual(office.money(), [-large - duty, 0n]);
    assert.equal(office.row()?.duty_kobo, duty);
    assert.deepEqual(office.booked(), [
      [TransactionType.WITHDRAWAL, -large],
      [TransactionType.FEE, -duty],
    ]);
  });

  it('only a transfer to a bank of more than ₦10,000 has a duty', async () => {
    for (const [destination, amountKobo, expected] of [
      [BANK_ACCOUNT, 1_000_000, 0],
      [BANK_ACCOUNT, 1_000_001, duty],
      [WALLET, 1_000_001, 0],
    ] as const) {
      const office = await Office.start(10_000_000n);
      office.force(PAY_AT_ONCE);
      await office.submit({ destination, amountKobo });
      assert.deepEqual([office.row()?.duty_kobo, office.money()], [expected, [-amountKobo - expected, 0n]]);
    }
  });

  it('a withdrawal of just what is free with its duty is accepted, and one of a kobo more is rejected without a trace in the money', async () => {
    for (const [startCashKobo, expected] of [
      [BigInt(large + duty), 'ACCEPTED'],
      [BigInt(large + duty - 1), 'REJECTED INSUFFICIENT_WITHDRAWABLE_FUNDS'],
    ] as const) {
      const office = await Office.start(startCashKobo);
      await office.submit();
      assert.deepEqual(office.reports(), [expected]);
      if (expected !== 'ACCEPTED') {
        assert.deepEqual([office.money(), office.booked(), office.row()?.broker_reference], [[undefined, 0n], [], '']);
      }
    }
  });

  it('what two withdrawals take is not free twice', async () => {
    const office = await Office.start(BigInt(2 * large + 2 * duty - 1));
    await office.submit();
    await office.submit({ clientWithdrawalId: 'wdr_2' });
    assert.deepEqual(office.reports('wdr_2'), ['REJECTED INSUFFICIENT_WITHDRAWABLE_FUNDS']);
    assert.equal(office.money()[1], BigInt(duty));
  });

  it('a withdrawal is rejected where the account, its restrictions or the destination do not allow it', async () => {
    const office = await Office.start();
    const restrict = (forbids: AccountActivity[]) =>
      office.broker.change({}, (unit) =>
        unit.clearing.setState({
          ...{ account: 'A1', state: AccountState.RESTRICTED },
          restrictions: [{ code: AccountRestrictionCode.OTHER, forbids, sinceMs: 0 }],
        }),
      );
    await office.submit({ account: 'A9' });
    assert.deepEqual(office.reports(), ['REJECTED ACCOUNT_NOT_AT_BROKER']);
    await restrict([AccountActivity.FUND]);
    await office.submit({ clientWithdrawalId: 'wdr_2' });
    assert.deepEqual(office.reports('wdr_2'), ['ACCEPTED']);
    await restrict([AccountActivity.WITHDRAW]);
    await office.submit({ clientWithdrawalId: 'wdr_3' });
    assert.deepEqual(office.reports('wdr_3'), ['REJECTED ACCOUNT_RESTRICTED']);
    await restrict([AccountActivity.FUND]);
    await office.broker.change({}, (unit) => unit.withdrawals.setTaken(WALLET, false));
    await office.submit({ clientWithdrawalId: 'wdr_4', destination: WALLET });
    await office.submit({ clientWithdrawalId: 'wdr_5' });
    assert.deepEqual(
      [office.reports('wdr_4'), office.reports('wdr_5')],
      [['REJECTED REJECTED_BY_BROKER'], ['ACCEPTED']],
    );
  });

  it('an account whose money is not counted may owe any amount that is counted exactly', async () => {
    const office = await Office.start();
    await office.submit({ destination: WALLET, amountKobo: Number.MAX_SAFE_INTEGER });
    await office.submit({ clientWithdrawalId: 'wdr_2', destination: WALLET, amountKobo: 1 });
    assert.deepEqual([office.reports(), office.reports('wdr_2')], [['PAID'], ['REJECTED REJECTED_BY_BROKER']]);
  });

  it('proceeds that go to the customer’s bank by themselves are paid out before a withdrawal can use them', async () => {
    const office = await Office.start(0n);
    await office.broker.change({}, (unit) => {
      unit.clearing.directSales.setOn(true);
      const terms = { account: 'A1', clientOrderId: '', symbol: 'UBA', name: 'UBA', executedAtMs: wednesday };
      unit.clearing.book({ ...terms, side: 2, quantity: 10_000, priceKobo: 1_000 });
    });
    office.broker.passTime(7 * dayMs);
    await office.submit();
    assert.deepEqual(office.reports(), ['REJECTED INSUFFICIENT_WITHDRAWABLE_FUNDS']);
  });
});

describe('the decision of a withdrawal', () => {
  it('a withdrawal is paid at its time, not a millisecond before, and once', async () => {
    const office = await Office.start();
    await office.submit();
    const due = Number(office.row()?.decide_at_ms);
    office.broker.realNowMs = due - 1;
    // Business time decides nothing here.
    office.broker.nowMs += dayMs;
    assert.equal(await office.decideIfDue(), due);
    assert.deepEqual(office.reports(), ['ACCEPTED']);
    office.broker.realNowMs = due;
    for (let times = 0; times < 2; times += 1) assert.equal(await office.decideIfDue(), null);
    assert.deepEqual([office.reports(), office.row()?.decide_at_ms], [['ACCEPTED', 'PAID'], null]);
    assert.equal(await office.decideIfDue('wdr_9'), null);
  });

  it('a withdrawal that is to be rejected later is, with its reason, and its money and duty are free again', async () => {
    const office = await Office.start(5_000_000n);
    office.force(REJECT_LATER, reasons.BANK_ACCOUNT_MISMATCH);
    await office.submit();
    office.broker.passTime(delays.max);
    assert.equal(await office.decideIfDue(), null);
    assert.deepEqual(office.reports(), ['ACCEPTED', 'REJECTED BANK_ACCOUNT_MISMATCH']);
    assert.deepEqual(office.money(), [0, 0n]);
    assert.deepEqual(office.booked(), [
      [TransactionType.WITHDRAWAL, -large],
      [TransactionType.WITHDRAWAL_RETURN, large],
    ]);
  });

  it('each decision is possible only in its state, and changes nothing otherwise', async () => {
    const impossible = { outcome: 'not_possible' };
    const cases: [WithdrawalSubmission['destination'], WithdrawalOutcome, WithdrawalReportKind[], string[]][] = [
      [
        BANK_ACCOUNT,
        HOLD,
        [RETURNED, ACCEPTED, PAID, PAID, REJECTED, RETURNED, RETURNED],
        ['ACCEPTED', 'PAID', 'RETURNED'],
      ],
      [BANK_ACCOUNT, HOLD, [REJECTED, PAID, REJECTED, RETURNED], ['ACCEPTED', 'REJECTED REJECTED_BY_BROKER']],
      [WALLET, HOLD, [PAID, RETURNED, REJECTED], ['ACCEPTED', 'PAID']],
      [BANK_ACCOUNT, REJECT, [PAID, REJECTED, RETURNED], ['REJECTED REJECTED_BY_BROKER']],
    ];
    for (const [destination, outcome, kinds, expected] of cases) {
      const office = await Office.start(5_000_000n);
      office.force(outcome);
      await office.submit({ destination });
      let count = office.reports().length;
      for (const kind of kinds) {
        const result = await office.decide(kind);
        if (office.reports().length === count) assert.deepEqual(result, impossible);
        else assert.equal(result.outcome, 'decided');
        count = office.reports().length;
      }
      assert.deepEqual(office.reports(), expected);
    }
    const office = await Office.start();
    assert.deepEqual(await office.decide(PAID), { outcome: 'unknown' });
  });

  it('a return gives the amount back and keeps the duty', async () => {
    const office = await Office.start(5_000_000n);
    office.force(PAY_AT_ONCE);
    await office.submit();
    await office.decide(RETURNED);
    assert.deepEqual(office.money(), [-duty, 0n]);
    assert.equal(office.row()?.duty_kobo, duty);
  });

  it('a bank returns a withdrawal at the start of the second trading day after, and once', async () => {
    const office = await Office.start();
    office.force(RETURN);
    await office.submit();
    office.broker.passTime(delays.max);
    await office.decideIfDue();
    const friday = Date.UTC(2026, 6, 2, 23);
    assert.equal(office.row()?.return_at_ms, friday);
    office.broker.nowMs = friday - 1;
    await office.returnIfDue();
    assert.deepEqual(office.reports(), ['ACCEPTED', 'PAID']);
    office.broker.nowMs = friday;
    for (let times = 0; times < 2; times += 1) await office.returnIfDue();
    await office.returnIfDue('wdr_9');
    assert.deepEqual([office.reports(), office.row()?.return_at_ms], [['ACCEPTED', 'PAID', 'RETURNED'], null]);
    assert.equal(office.money()[0], -duty);
  });

  it('a withdrawal that is not to be returned has no time for that', async () => {
    const office = await Office.start();
    await office.submit();
    await office.decide(PAID);
    assert.equal(office.row()?.return_at_ms, null);
    office.broker.nowMs += 30 * dayMs;
    await office.returnIfDue();
    assert.deepEqual(office.reports(), ['ACCEPTED', 'PAID']);
  });
});
