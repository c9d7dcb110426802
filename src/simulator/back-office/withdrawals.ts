import { AccountActivity } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus } from '../../gen/marina/broker/v1/orders_pb.ts';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalReportKind,
} from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { WithdrawalOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import { forbids } from '../clearing/account-states.ts';
import type { SubmissionResult } from '../model.ts';
import { seededRandom } from '../random.ts';
import type { UnitOfWork } from '../store/unit-of-work.ts';
import type { World } from '../world.ts';
import type { BackOfficeSettings } from './operations.ts';
import { type WithdrawalBehaviour, withdrawalMagic } from './withdrawal-magic.ts';
import type { Withdrawal, WithdrawalEvent, WithdrawalSubmission } from './withdrawal-model.ts';
import { dutyOn, returnAtMs } from './withdrawal-rules.ts';

const { ACCEPTED, PAID, REJECTED, RETURNED } = WithdrawalReportKind;
const { PAY_AT_ONCE, PAY_LATER, REJECT, REJECT_LATER, HOLD, RETURN } = WithdrawalOutcome;

/** The result of a control that decides a withdrawal. */
export type WithdrawalDecision =
  | { readonly outcome: 'decided'; readonly report: WithdrawalEvent }
  | { readonly outcome: 'unknown' | 'not_possible' };

/** Accepts, pays or rejects a withdrawal: once, and not after its `not_after`. Its first report is the answer. */
export function submitWithdrawal(
  unit: UnitOfWork,
  submission: WithdrawalSubmission,
  notAfterMs: number | undefined,
  settings: BackOfficeSettings,
): SubmissionResult<WithdrawalEvent> {
  const { world } = unit;
  if (unit.withdrawals.withdrawal(submission.clientWithdrawalId) !== undefined) return { outcome: 'seen_before' };
  if (world.isTooLate(notAfterMs)) return { outcome: 'too_late' };
  unit.payOutSales();
  const behaviour =
    settings.directives.takeWithdrawal(submission.account) ?? withdrawalMagic(BigInt(submission.amountKobo));
  const course = courseOf(submission, behaviour);
  const rejectReason = behaviour?.rejectReason || WithdrawalRejectReason.REJECTED_BY_BROKER;
  const refused = course === REJECT ? rejectReason : reasonToReject(world, submission);
  const isDelayed = refused === undefined && course !== PAY_AT_ONCE && course !== HOLD;
  const withdrawal = unit.withdrawals.add(
    {
      ...submission,
      course,
      state: WithdrawalReportKind.UNSPECIFIED,
      rejectReason: refused ?? (course === REJECT_LATER ? rejectReason : WithdrawalRejectReason.UNSPECIFIED),
      dutyKobo: 0,
      decideAtMs: isDelayed ? world.clock.realNow() + usualDelayMs(world, settings) : null,
      returnAtMs: null,
    },
    refused === undefined,
  );
  if (refused !== undefined) return { outcome: 'taken', result: unit.withdrawals.report(withdrawal, REJECTED) };
  takeMoney(unit, withdrawal);
  return {
    outcome: 'taken',
    result: course === PAY_AT_ONCE ? pay(unit, withdrawal) : unit.withdrawals.report(withdrawal, ACCEPTED),
  };
}

/** Pays or rejects an accepted withdrawal whose time has come. Returns when it is due; null: no further step. */
export function decideWithdrawalIfDue(unit: UnitOfWork, id: string): number | null {
  const withdrawal = unit.withdrawals.withdrawal(id);
  if (withdrawal?.decideAtMs == null) return null;
  if (withdrawal.decideAtMs > unit.world.clock.realNow()) return withdrawal.decideAtMs;
  decideWithdrawal(unit, id, withdrawal.course === REJECT_LATER ? REJECTED : PAID, withdrawal.rejectReason);
  return null;
}

/** Returns a paid withdrawal whose time has come. */
export function returnWithdrawalIfDue(unit: UnitOfWork, id: string): void {
  const withdrawal = unit.withdrawals.withdrawal(id);
  if (withdrawal?.returnAtMs == null || withdrawal.returnAtMs > unit.world.clock.now()) return;
  decideWithdrawal(unit, id, RETURNED);
}

/** Pays, rejects or returns a withdrawal now, if its state allows it. */
export function decideWithdrawal(
  unit: UnitOfWork,
  id: string,
  kind: WithdrawalReportKind,
  rejectReason = WithdrawalRejectReason.UNSPECIFIED,
): WithdrawalDecision {
  const withdrawal = unit.withdrawals.withdrawal(id);
  if (withdrawal === undefined) return { outcome: 'unknown' };
  if (!isPossible(withdrawal, kind)) return { outcome: 'not_possible' };
  if (kind === PAID) return { outcome: 'decided', report: pay(unit, withdrawal) };
  withdrawal.decideAtMs = null;
  withdrawal.returnAtMs = null;
  if (kind === REJECTED) {
    withdrawal.rejectReason = rejectReason || WithdrawalRejectReason.REJECTED_BY_BROKER;
    unit.world.funds.setAside(withdrawal.account, -dutyOn(withdrawal));
  }
  unit.backOffice.bookWithdrawal(withdrawal, 'given_back');
  return { outcome: 'decided', report: unit.withdrawals.report(withdrawal, kind) };
}

function isPossible({ state, destination }: Withdrawal, kind: WithdrawalReportKind): boolean {
  if (kind === RETURNED) return state === PAID && destination === WithdrawalDestination.BANK_ACCOUNT;
  return state === ACCEPTED && (kind === PAID || kind === REJECTED);
}

/** Takes the amount at once, so that nothing else can use it. The duty is only set aside until it is due. */
function takeMoney(unit: UnitOfWork, withdrawal: Withdrawal): void {
  unit.backOffice.bookWithdrawal(withdrawal, 'taken');
  unit.world.funds.setAside(withdrawal.account, dutyOn(withdrawal));
}

/** Pays a withdrawal whose money is taken, and takes the duty. */
function pay(unit: UnitOfWork, withdrawal: Withdrawal): WithdrawalEvent {
  const { world } = unit;
  const duty = dutyOn(withdrawal);
  world.funds.setAside(withdrawal.account, -duty);
  withdrawal.decideAtMs = null;
  withdrawal.dutyKobo = Number(duty);
  const returns = withdrawal.course === RETURN && withdrawal.destination === WithdrawalDestination.BANK_ACCOUNT;
  withdrawal.returnAtMs = returns ? returnAtMs(world.calendar, world.clock.now()) : null;
  unit.backOffice.bookWithdrawal(withdrawal, 'duty');
  return unit.withdrawals.report(withdrawal, PAID);
}

/** A withdrawal to the wallet is paid at once, and one to a bank account later, unless a directive or the amount decides. */
function courseOf(
  { destination }: WithdrawalSubmission,
  behaviour: WithdrawalBehaviour | undefined,
): WithdrawalOutcome {
  const isToWallet = destination === WithdrawalDestination.WALLET;
  const usual = isToWallet ? PAY_AT_ONCE : PAY_LATER;
  if (behaviour === undefined || (behaviour.outcome === RETURN && isToWallet)) return usual;
  return behaviour.outcome || usual;
}

function reasonToReject(
  world: World,
  { account, amountKobo, destination }: WithdrawalSubmission,
): WithdrawalRejectReason | undefined {
  const accountStatus = world.accounts.get(account) ?? AccountStatus.NOT_AT_BROKER;
  if (accountStatus === AccountStatus.NOT_AT_BROKER) return WithdrawalRejectReason.ACCOUNT_NOT_AT_BROKER;
  if (forbids(world.stateOf(account), AccountActivity.WITHDRAW)) return WithdrawalRejectReason.ACCOUNT_RESTRICTED;
  if (!world.withdrawals.destinations.includes(destination)) return WithdrawalRejectReason.REJECTED_BY_BROKER;
  const neededKobo = BigInt(amountKobo) + dutyOn({ amountKobo, destination });
  const freeKobo = world.funds.withdrawableKobo(account, lagosDay(world.clock.now()));
  if (freeKobo !== undefined) {
    return neededKobo <= freeKobo ? undefined : WithdrawalRejectReason.INSUFFICIENT_WITHDRAWABLE_FUNDS;
  }
  const balance = (world.cash.get(account) ?? 0) - Number(neededKobo);
  return Number.isSafeInteger(balance) ? undefined : WithdrawalRejectReason.REJECTED_BY_BROKER;
}

function usualDelayMs(world: World, { decisionDelay }: BackOfficeSettings): number {
  const random = seededRandom(world.seed, 'withdrawal', world.withdrawals.lastSequence + 1);
  return random.whole(decisionDelay.min, decisionDelay.max);
}
