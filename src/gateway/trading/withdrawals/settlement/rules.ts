import { type WithdrawalReport, WithdrawalReportKind } from '../../../../gen/marina/broker/v1/withdrawals_pb.ts';
import {
  type Applied,
  isBeforeStored,
  isToCome,
  type Settled,
  type Settling,
  unchanged,
} from '../../submission/rules.ts';
import { applyRecord, rejectSentences, type WithdrawalFacts } from '../rules.ts';

/** The outcome of a withdrawal by the evidence. */
export interface WithdrawalSettlement {
  readonly state: 'completed' | 'rejected' | 'refused' | 'returned';
  /** Only of one that was paid. */
  readonly brokerReference: string | undefined;
  /** Only of a rejected one. */
  readonly rejectReason: keyof typeof rejectSentences | undefined;
  /** When the broker paid or rejected it, or the bank sent it back. */
  readonly decidedAt: number | undefined;
}

export interface SettledWithdrawalFacts extends WithdrawalFacts {
  readonly createdAt: number;
  readonly settlement: string | null;
}

/** In the column `settlement`: later reports of the broker that say otherwise do not change it. */
const settled = 'settled';

/** The change that an operator's settlement makes. `now` is business time. */
export function settleWithdrawal<Row extends SettledWithdrawalFacts>(
  withdrawal: Row,
  settlement: WithdrawalSettlement,
  now: number,
): Settling<Row> {
  const problem = problemOf(withdrawal, settlement, now);
  if (problem !== undefined) return { problem };
  const { state, brokerReference, rejectReason, decidedAt } = settlement;
  const fields: Partial<SettledWithdrawalFacts> = {
    ...{ state, settlement: settled, updatedAt: Math.max(now, withdrawal.updatedAt) },
    ...(brokerReference === undefined ? {} : { brokerReference }),
    rejectReason: rejectReason ?? null,
    reason: rejectReason === undefined ? reasons[state] : rejectSentences[rejectReason],
  };
  const change: Settled<Row> = {
    fields: fields as Partial<Row>,
    detail: details[state],
    step: { upstreamAt: decidedAt },
  };
  return { changes: [change] };
}

const reasons = {
  ...{ completed: null, rejected: null },
  refused: 'It never reached the broker.',
  returned: 'The bank sent the money back to the account.',
} as const;
const details = {
  completed: 'the broker paid it',
  rejected: 'the broker rejected it',
  refused: 'it never reached the broker',
  returned: 'the bank sent it back',
} as const;

/** The states that can be settled as each outcome. One that was taken cannot be refused: the broker has it. */
const before = {
  completed: ['uncertain', 'processing'],
  rejected: ['uncertain', 'processing'],
  refused: ['uncertain'],
  returned: ['completed'],
} as const satisfies Record<WithdrawalSettlement['state'], readonly WithdrawalFacts['state'][]>;

function problemOf(
  { state: from, destination, brokerReference: known, createdAt }: SettledWithdrawalFacts,
  { state, brokerReference, rejectReason, decidedAt }: WithdrawalSettlement,
  now: number,
): string | undefined {
  if (!(before[state] as readonly string[]).includes(from)) {
    return `a withdrawal that is ${from} cannot be settled as ${state}`;
  }
  if (state === 'returned' && destination !== 'bank_account') return 'only a withdrawal to a bank account is returned';
  if (state === 'completed' && known === null && brokerReference === undefined) {
    return '`broker_reference` is needed for `completed`';
  }
  if (state !== 'completed' && brokerReference !== undefined) return '`broker_reference` is only for `completed`';
  if (brokerReference !== undefined && known !== null && brokerReference !== known) {
    return `the broker took it under the reference ${known}`;
  }
  if ((state === 'rejected') !== (rejectReason !== undefined)) {
    return '`reject_reason` is needed for `rejected`, and only then';
  }
  if ((state !== 'refused') !== (decidedAt !== undefined)) {
    return '`decided_at` is needed for what the broker or the bank decided, and only then';
  }
  if (decidedAt !== undefined && (isBeforeStored(decidedAt, createdAt, now) || isToCome(decidedAt, now))) {
    return '`decided_at` is before the withdrawal was stored, or in the future';
  }
  return undefined;
}

/**
 * Applies a report of the broker to a withdrawal that may have been settled by an operator. A report that says otherwise is
 * inconsistent with the settlement, which stays: only a bank that sends money back after it was paid changes it.
 */
export function applyReport<Row extends SettledWithdrawalFacts>(
  withdrawal: Row,
  report: WithdrawalReport,
  now: number,
): Applied<Row> | undefined {
  const applied = applyRecord(withdrawal, report, now);
  // The reason of one that was settled as refused, and that the broker has after all, is corrected as any other's.
  const isAsOthers = withdrawal.settlement === null || withdrawal.state === 'refused';
  if (isAsOthers || applied === undefined || !applied.changed) return applied;
  if (report.kind === WithdrawalReportKind.RETURNED && !applied.inconsistent) return applied;
  const seen = { ...withdrawal, lastReport: report.number };
  return { ...unchanged(seen, applied.detail), inconsistent: true };
}
