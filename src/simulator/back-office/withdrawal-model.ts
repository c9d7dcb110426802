import type {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalReportKind,
} from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import type { WithdrawalOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';

export interface WithdrawalSubmission {
  readonly clientWithdrawalId: string;
  readonly account: string;
  readonly amountKobo: number;
  readonly destination: WithdrawalDestination;
}

export interface Withdrawal extends WithdrawalSubmission {
  readonly sequence: number;
  /** Empty if it was rejected at once. */
  readonly brokerReference: string;
  /** Its outcome after it is accepted. */
  readonly course: WithdrawalOutcome;
  /** The kind of its last report. */
  state: WithdrawalReportKind;
  /** Why it is rejected, or will be. */
  rejectReason: WithdrawalRejectReason;
  /** The duty that the account paid for it. */
  dutyKobo: number;
  /** The real time at which it is paid or rejected; null if no time is planned. */
  decideAtMs: number | null;
  /** The business time at which the bank returns it; null if it does not. */
  returnAtMs: number | null;
}

/** One report about one withdrawal. */
export interface WithdrawalEvent {
  readonly number: number;
  readonly clientWithdrawalId: string;
  readonly kind: WithdrawalReportKind;
  readonly atMs: number;
  readonly brokerReference: string;
  readonly rejectReason: WithdrawalRejectReason;
}
