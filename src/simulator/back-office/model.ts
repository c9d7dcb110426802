import type { AllocationOutcome, AllocationRejectReason } from '../../gen/marina/broker/v1/allocations_pb.ts';
import type {
  ApplicationRejectReason,
  ApplicationReportKind,
  DocumentType,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import type { ApplicationOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';

/** An application. Nothing about the customer is kept. */
export interface Application {
  readonly sequence: number;
  readonly clientApplicationId: string;
  /** Empty if it was rejected at once. */
  readonly reference: string;
  /** Its outcome after all four documents. */
  readonly course: ApplicationOutcome;
  /** The delay of the decision after the fourth document. */
  readonly decideAfterMs: number;
  /** The first name if it is magic, else empty. */
  readonly magicName: string;
  state: ApplicationReportKind;
  /** Empty until it is open. */
  account: string;
  rejectReason: ApplicationRejectReason;
  param: string;
  /** The real time of the decision; null while documents are missing, and after the decision. */
  decideAtMs: number | null;
}

/** One report about one application. */
export interface ApplicationEvent {
  readonly number: number;
  readonly clientApplicationId: string;
  readonly kind: ApplicationReportKind;
  readonly atMs: number;
  readonly reference: string;
  readonly account: string;
  readonly rejectReason: ApplicationRejectReason;
  readonly param: string;
}

/** A received document, without its file. */
export interface DocumentFile {
  readonly clientApplicationId: string;
  readonly type: DocumentType;
  /** In hexadecimal digits. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** The number of the message in which it came first. */
  readonly firstReceived: number;
  timesReceived: number;
  delivered: boolean;
}

export interface AllocationSubmission {
  readonly clientAllocationId: string;
  readonly account: string;
  readonly amountKobo: number;
}

/** An allocation, which never changes. */
export interface Allocation extends AllocationSubmission {
  readonly sequence: number;
  readonly outcome: AllocationOutcome;
  /** Empty for a rejection. */
  readonly brokerReference: string;
  readonly rejectReason: AllocationRejectReason;
  readonly atMs: number;
}

/** One change of an account's cash. */
export interface CashEntry {
  readonly number: number;
  readonly account: string;
  readonly amountKobo: number;
  readonly balanceKobo: number;
  readonly clientAllocationId: string;
  readonly atMs: number;
}
