import { WithdrawalRejectReason } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { WireFault, WithdrawalOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { Magic } from './magic.ts';

/** The behaviour of a withdrawal. */
export interface WithdrawalBehaviour {
  readonly outcome: WithdrawalOutcome;
  readonly rejectReason?: WithdrawalRejectReason;
}

/** The last six digits of an amount in kobo whose withdrawals always behave in one way. */
export interface MagicWithdrawal extends Magic, WithdrawalBehaviour {
  readonly endsIn: number;
}

const { UNSPECIFIED, PAY_AT_ONCE, PAY_LATER, REJECT, REJECT_LATER, HOLD, RETURN } = WithdrawalOutcome;
const reasons = WithdrawalRejectReason;

function rejects(endsIn: number, rejectReason: WithdrawalRejectReason, does: string): MagicWithdrawal {
  return { endsIn, outcome: REJECT, rejectReason, does };
}

/** The magic amounts of withdrawals. None of them is a magic amount of allocations, and the other way round. */
export const magicWithdrawals: readonly MagicWithdrawal[] = [
  { endsIn: 998_001, outcome: PAY_AT_ONCE, does: 'Paid at once, to a bank account too.' },
  { endsIn: 998_002, outcome: PAY_LATER, does: 'Accepted; paid a moment later, to the wallet too.' },
  rejects(
    998_003,
    reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS,
    'Rejected: the account has less money that is settled and free.',
  ),
  rejects(998_004, reasons.ACCOUNT_RESTRICTED, 'Rejected: no money may leave the account now.'),
  rejects(998_005, reasons.NO_BANK_ACCOUNT, 'Rejected: the broker has no bank account of the customer.'),
  rejects(998_006, reasons.BANK_ACCOUNT_MISMATCH, 'Rejected: the bank account is not in the customer’s name.'),
  rejects(998_007, reasons.ACCOUNT_NOT_AT_BROKER, 'Rejected: the broker does not have the account.'),
  rejects(998_008, reasons.REJECTED_BY_BROKER, 'Rejected by the broker for another reason.'),
  {
    endsIn: 998_009,
    outcome: REJECT_LATER,
    rejectReason: reasons.REJECTED_BY_BROKER,
    does: 'Accepted; rejected by the broker a moment later.',
  },
  { endsIn: 998_010, outcome: HOLD, does: 'Accepted; stays `processing` until it is [decided](#steer-what-is-yours).' },
  {
    endsIn: 998_011,
    outcome: RETURN,
    does: 'To a bank account: accepted, paid a moment later, returned on the second trading day after.',
  },
  { endsIn: 998_012, outcome: UNSPECIFIED, wire: WireFault.HANG, does: 'Never taken and never answered.' },
  { endsIn: 998_013, outcome: PAY_AT_ONCE, wire: WireFault.LOSE_ANSWER, does: 'Paid; the answer is lost.' },
  {
    endsIn: 998_014,
    outcome: REJECT,
    rejectReason: reasons.REJECTED_BY_BROKER,
    wire: WireFault.LOSE_ANSWER,
    does: 'Rejected by the broker; the answer is lost.',
  },
  {
    endsIn: 998_015,
    outcome: UNSPECIFIED,
    wire: WireFault.RESET_BEFORE,
    does: 'The connection is reset before it is taken.',
  },
  {
    endsIn: 998_016,
    outcome: PAY_AT_ONCE,
    wire: WireFault.RESET_AFTER,
    does: 'Paid; the connection is reset before the answer.',
  },
  { endsIn: 998_017, outcome: PAY_AT_ONCE, wire: WireFault.LATE_ANSWER, does: 'Paid; answered after 30 seconds.' },
  { endsIn: 998_018, outcome: PAY_AT_ONCE, wire: WireFault.NONSENSE, does: 'Paid; the answer makes no sense.' },
  {
    endsIn: 998_019,
    outcome: UNSPECIFIED,
    wire: WireFault.TOO_LATE,
    does: 'Never taken, and the broker proves it: `withdrawal_not_sent`.',
  },
  { endsIn: 998_020, outcome: HOLD, wire: WireFault.LOSE_ANSWER, does: 'Accepted like `…998010`; the answer is lost.' },
];

const byEnding = new Map(magicWithdrawals.map((magic) => [BigInt(magic.endsIn), magic]));

/** The magic of a withdrawal's amount in kobo, if it has any. */
export function withdrawalMagic(amountKobo: bigint): MagicWithdrawal | undefined {
  return byEnding.get(amountKobo % 1_000_000n);
}
