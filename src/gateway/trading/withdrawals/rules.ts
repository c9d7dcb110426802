import {
  type WithdrawalRejectReason as BrokersReason,
  WithdrawalRejectReasonSchema as BrokersReasonSchema,
  type WithdrawalReport,
  WithdrawalReportKind,
} from '../../../gen/marina/broker/v1/withdrawals_pb.ts';
import type {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalState,
} from '../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import type { EnumName } from '../../../kit/enums.ts';
import { type Applied, changed, inconsistent, rejectReasons, statesOf, unchanged } from '../submission/rules.ts';

export type WithdrawalStateName = EnumName<typeof WithdrawalState>;
export type DestinationName = EnumName<typeof WithdrawalDestination>;

/** The fields of a withdrawal that decide its outcome. */
export interface WithdrawalFacts {
  readonly state: WithdrawalStateName;
  readonly destination: DestinationName;
  readonly brokerReference: string | null;
  readonly reason: string | null;
  readonly rejectReason: string | null;
  /** The number of the last report applied. */
  readonly lastReport: bigint;
  readonly updatedAt: number;
}

/**
 * The next states of each state. A completed one counts as final, because nothing more is expected of it: its bank may send
 * the money back, which `mayReturn` allows to a bank account only.
 */
export const withdrawalStates = statesOf<WithdrawalStateName>(
  'a withdrawal',
  {
    sending: ['processing', 'completed', 'rejected', 'refused', 'uncertain'],
    uncertain: ['processing', 'completed', 'rejected', 'refused'],
    processing: ['completed', 'rejected'],
    completed: ['returned'],
    rejected: [],
    refused: [],
    returned: [],
  },
  ['completed'],
);

const { move, transitions } = withdrawalStates;

/** Whether a withdrawal's change of state brings its amount into the wallet. */
export function isPaidToWallet(before: Pick<WithdrawalFacts, 'state'>, after: WithdrawalFacts): boolean {
  return after.destination === 'wallet' && before.state !== 'completed' && after.state === 'completed';
}

/** Applies one report of the broker. Undefined when the withdrawal has seen it already. */
export function applyRecord<Row extends WithdrawalFacts>(
  withdrawal: Row,
  report: WithdrawalReport,
  now: number,
): Applied<Row> | undefined {
  if (report.number <= withdrawal.lastReport) return undefined;
  const seen = { ...withdrawal, lastReport: report.number };
  if (!isReport(report)) return contradiction(seen, 'a report that lacks what its kind needs');
  const { to, what, correction } = meanings[report.kind];
  if (report.brokerReference !== '' && seen.brokerReference !== null && report.brokerReference !== seen.brokerReference)
    return contradiction(seen, `${what}, under another reference`);
  const known = { ...seen, brokerReference: seen.brokerReference ?? (report.brokerReference || null) };
  if (known.state === 'refused') {
    // The partner learned that it never arrived, and may have withdrawn again. The state is final; the reason is corrected.
    if (to === 'rejected') return unchanged(known, what);
    const reason = `It was reported as never having reached the broker. That was wrong. ${correction}`;
    const corrected = { ...known, reason, updatedAt: Math.max(now, known.updatedAt) };
    return { ...contradiction(known, what), row: corrected, changed: true };
  }
  if (isThere(known.state, to)) return unchanged(known, what);
  if (!transitions[known.state].includes(to) || (to === 'returned' && known.destination !== 'bank_account')) {
    return contradiction(known, what);
  }
  if (to === 'processing') return changed(move(known, to, 'The broker has taken it and not paid yet.', now), what);
  if (to === 'returned') return changed(move(known, to, 'The bank sent the money back to the account.', now), what);
  if (to === 'completed') return changed(move(known, to, null, now), what);
  const { word, sentence } = rejectReasonOf(report.rejectReason);
  const rejected = { ...move(known, to, sentence, now), rejectReason: word };
  return changed(rejected, `${what}: ${word}`);
}

/** Whether a report has what its kind needs. */
export function isReport(report: WithdrawalReport): report is WithdrawalReport & { kind: KnownKind } {
  const { number, at, kind, brokerReference } = report;
  if (number <= 0n || at === undefined || brokerReference.length > 64) return false;
  if (kind === WithdrawalReportKind.REJECTED) return true;
  return Object.hasOwn(meanings, kind) && brokerReference !== '';
}

type KnownKind = Exclude<WithdrawalReportKind, WithdrawalReportKind.UNSPECIFIED>;

/** Where a kind of report leads, what it says, and the sentence for a partner who had learned that it never arrived. */
interface Meaning {
  readonly to: 'processing' | 'completed' | 'rejected' | 'returned';
  readonly what: string;
  readonly correction: string;
}

const meanings: Readonly<Record<KnownKind, Meaning>> = {
  [WithdrawalReportKind.ACCEPTED]: {
    to: 'processing',
    what: 'the broker took it',
    correction: 'The broker has it.',
  },
  [WithdrawalReportKind.PAID]: { to: 'completed', what: 'the broker paid it', correction: 'The broker paid it.' },
  [WithdrawalReportKind.REJECTED]: {
    to: 'rejected',
    what: 'the broker rejected it',
    correction: 'The broker rejected it.',
  },
  [WithdrawalReportKind.RETURNED]: {
    to: 'returned',
    what: 'the bank sent it back',
    correction: 'The bank sent it back.',
  },
};

/** Whether a withdrawal is where a report leads, or further. */
function isThere(state: WithdrawalStateName, to: Meaning['to']): boolean {
  if (state === to) return true;
  if (to === 'processing') return state === 'completed' || state === 'returned';
  return to === 'completed' && state === 'returned';
}

function contradiction<Row extends WithdrawalFacts>(withdrawal: Row, what: string): Applied<Row> {
  return inconsistent(withdrawal, 'broker', what);
}

/** The sentence of each reject reason, ours and the broker's, which have the same names. */
export const rejectSentences: Readonly<Record<EnumName<typeof WithdrawalRejectReason>, string>> = {
  insufficient_withdrawable_funds: 'The account has less money that is settled and free than the amount.',
  account_restricted: 'No money may leave the account now.',
  no_bank_account: 'The broker has no bank account of the customer on file.',
  bank_account_mismatch: "The bank account on file is not in the customer's name.",
  account_not_at_broker: 'The broker does not have the account.',
  rejected_by_broker: 'The broker rejected the withdrawal.',
};

/** Our name and sentence for a rejection. */
export const rejectReasonOf = rejectReasons<typeof BrokersReason, keyof typeof rejectSentences>(
  BrokersReasonSchema,
  rejectSentences,
  'rejected_by_broker',
);
