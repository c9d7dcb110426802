import { toJsonString } from '@bufbuild/protobuf';
import { wrongText } from '../../gateway/trading/broker/rules.ts';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  type WithdrawalReport,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { shown } from '../exchange.ts';

const { UNSPECIFIED, ACCEPTED, PAID, REJECTED, RETURNED } = WithdrawalReportKind;
const longestReference = 64;

/** The kinds of reports that may follow a report. */
const next: Readonly<Record<WithdrawalReportKind, readonly WithdrawalReportKind[]>> = {
  [UNSPECIFIED]: [ACCEPTED, PAID, REJECTED],
  [ACCEPTED]: [PAID, REJECTED],
  [PAID]: [RETURNED],
  [REJECTED]: [],
  [RETURNED]: [],
};

export function isSameReport(one: WithdrawalReport, other: WithdrawalReport): boolean {
  return toJsonString(WithdrawalReportSchema, one) === toJsonString(WithdrawalReportSchema, other);
}

export function shownReport(report: WithdrawalReport): unknown {
  return shown(WithdrawalReportSchema, report);
}

/** Returns the error in a report by itself. */
export function reportProblem(report: WithdrawalReport): string | undefined {
  const { number, clientWithdrawalId, kind, at, brokerReference, rejectReason } = report;
  if (number < 1n) return `its number is ${number}`;
  if (clientWithdrawalId === '') return 'it names no withdrawal';
  if (kind === UNSPECIFIED || !(kind in WithdrawalReportKind)) return 'it has no kind';
  if (at === undefined) return 'it has no time';
  if (brokerReference.length > longestReference) return `its reference is longer than ${longestReference}`;
  if (kind !== REJECTED && brokerReference === '') return 'it is no rejection, and has no reference';
  if (kind !== REJECTED && rejectReason !== WithdrawalRejectReason.UNSPECIFIED) {
    return 'it is no rejection, and has a reason to reject it';
  }
  const field = wrongText(WithdrawalReportSchema, report);
  return field === undefined ? undefined : `its ${field} is not printable`;
}

/** Returns the error in the order of one withdrawal's reports. */
export function lifeProblem(
  reports: readonly WithdrawalReport[],
  destination: WithdrawalDestination | undefined,
): string | undefined {
  let before: WithdrawalReport | undefined;
  for (const report of reports) {
    const kind = before?.kind ?? UNSPECIFIED;
    if (!next[kind].includes(report.kind)) {
      return `a report ${WithdrawalReportKind[report.kind]} comes ${
        before === undefined ? 'first' : `after ${WithdrawalReportKind[kind]}`
      }`;
    }
    if (report.kind === RETURNED && destination === WithdrawalDestination.WALLET) return 'the wallet returned it';
    if (before !== undefined && report.brokerReference !== before.brokerReference) return 'its reference changed';
    before = report;
  }
  return undefined;
}
