import type { AllocationOutcome, AllocationRejectReason } from '../../gen/marina/broker/v1/allocations_pb.ts';
import type {
  ApplicationRejectReason,
  ApplicationReportKind,
  DocumentType,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import type { ApplicationOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';

/** An application as the broker has it. Nothing about the customer is kept. */
export interface Application {
  readonly sequence: number;
  readonly clientApplicationId: string;
  /** Empty when it was rejected at once. */
  readonly reference: string;
  /** What becomes of it once its documents are there. */
  readonly course: ApplicationOutcome;
  /** How long after the fourth document that is. */
  readonly decideAfterMs: number;
  /** The first name, where it is a magic one; else empty. */
  readonly magicName: string;
  /** What the last report said. */
  state: ApplicationReportKind;
  /** Empty until it is open. */
  account: string;
  rejectReason: ApplicationRejectReason;
  param: string;
  /** The real time of the decision; null while documents are missing and when it is decided. */
  decideAtMs: number | null;
}

/** One thing the broker said about one application. */
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

/** A file received as a document, without the file. */
export interface ReceivedFile {
  readonly clientApplicationId: string;
  readonly type: DocumentType;
  /** In hexadecimal digits. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** The number of the message it first came with. */
  readonly firstReceived: number;
  timesReceived: number;
  delivered: boolean;
}

/** What an allocation was asked to be. */
export interface AllocationSubmission {
  readonly clientAllocationId: string;
  readonly account: string;
  readonly amountKobo: number;
}

/** An allocation as the broker has it. It never changes. */
export interface Allocation extends AllocationSubmission {
  readonly sequence: number;
  readonly outcome: AllocationOutcome;
  /** Empty on a rejection. */
  readonly brokerReference: string;
  readonly rejectReason: AllocationRejectReason;
  readonly atMs: number;
}

/** One change of an account's cash. */
export interface CashEntry {
  readonly number: number;
  readonly account: string;
  /** What the account has more. */
  readonly amountKobo: number;
  /** What it has then. */
  readonly balanceKobo: number;
  readonly clientAllocationId: string;
  readonly atMs: number;
}
