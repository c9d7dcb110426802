import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RowDataPacket } from 'mysql2/promise';
import { type AllocationRecord, AllocationRecordSchema } from '../../gen/marina/broker/v1/allocations_pb.ts';
import { type ApplicationReport, ApplicationReportSchema } from '../../gen/marina/broker/v1/applications_pb.ts';
import type { ColumnValue } from '../rows.ts';
import type { Allocation, Application, ApplicationEvent, CashEntry, ReceivedFile } from './model.ts';

export const applicationColumns =
  'sequence, client_application_id, reference, course, decide_after_ms, magic_name, state, account, reject_reason, ' +
  'param, decide_at_ms';
export const applicationReportColumns =
  'number, client_application_id, kind, at_ms, reference, account, reject_reason, param';
export const documentColumns =
  'client_application_id, type, sha256, size_bytes, times_received, delivered, first_received';
export const allocationColumns =
  'sequence, client_allocation_id, account, amount_kobo, outcome, broker_reference, reject_reason, at_ms';
export const cashEntryColumns = 'number, account, amount_kobo, balance_kobo, client_allocation_id, at_ms';

export interface ApplicationRow extends RowDataPacket {
  sequence: number;
  client_application_id: string;
  reference: string;
  course: number;
  decide_after_ms: number;
  magic_name: string;
  state: number;
  account: string;
  reject_reason: number;
  param: string;
  decide_at_ms: number | null;
}

export interface ApplicationReportRow extends RowDataPacket {
  number: number;
  client_application_id: string;
  kind: number;
  at_ms: number;
  reference: string;
  account: string;
  reject_reason: number;
  param: string;
}

export interface DocumentRow extends RowDataPacket {
  client_application_id: string;
  type: number;
  sha256: string;
  size_bytes: number;
  times_received: number;
  delivered: number;
  first_received: number;
}

export interface AllocationRow extends RowDataPacket {
  sequence: number;
  client_allocation_id: string;
  account: string;
  amount_kobo: number;
  outcome: number;
  broker_reference: string;
  reject_reason: number;
  at_ms: number;
}

/** An application from its row. */
export function applicationFromRow(row: ApplicationRow): Application {
  return {
    sequence: row.sequence,
    clientApplicationId: row.client_application_id,
    reference: row.reference,
    course: row.course,
    decideAfterMs: row.decide_after_ms,
    magicName: row.magic_name,
    state: row.state,
    account: row.account,
    rejectReason: row.reject_reason,
    param: row.param,
    decideAtMs: row.decide_at_ms,
  };
}

/** An application's values in the order of `applicationColumns`. */
export function applicationValues(application: Application): ColumnValue[] {
  return [
    application.sequence,
    application.clientApplicationId,
    application.reference,
    application.course,
    application.decideAfterMs,
    application.magicName,
    application.state,
    application.account,
    application.rejectReason,
    application.param,
    application.decideAtMs,
  ];
}

/** A report from its row. */
export function applicationReportFromRow(row: ApplicationReportRow): ApplicationEvent {
  return {
    number: row.number,
    clientApplicationId: row.client_application_id,
    kind: row.kind,
    atMs: row.at_ms,
    reference: row.reference,
    account: row.account,
    rejectReason: row.reject_reason,
    param: row.param,
  };
}

/** A report's values in the order of `applicationReportColumns`. */
export function applicationReportValues(report: ApplicationEvent): ColumnValue[] {
  return [
    report.number,
    report.clientApplicationId,
    report.kind,
    report.atMs,
    report.reference,
    report.account,
    report.rejectReason,
    report.param,
  ];
}

/** A received file from its row. */
export function fileFromRow(row: DocumentRow): ReceivedFile {
  return {
    clientApplicationId: row.client_application_id,
    type: row.type,
    sha256: row.sha256,
    sizeBytes: row.size_bytes,
    timesReceived: row.times_received,
    delivered: row.delivered === 1,
    firstReceived: row.first_received,
  };
}

/** A received file's values in the order of `documentColumns`. */
export function fileValues(file: ReceivedFile): ColumnValue[] {
  return [
    file.clientApplicationId,
    file.type,
    file.sha256,
    file.sizeBytes,
    file.timesReceived,
    file.delivered ? 1 : 0,
    file.firstReceived,
  ];
}

/** An allocation from its row. */
export function allocationFromRow(row: AllocationRow): Allocation {
  return {
    sequence: row.sequence,
    clientAllocationId: row.client_allocation_id,
    account: row.account,
    amountKobo: row.amount_kobo,
    outcome: row.outcome,
    brokerReference: row.broker_reference,
    rejectReason: row.reject_reason,
    atMs: row.at_ms,
  };
}

/** An allocation's values in the order of `allocationColumns`. */
export function allocationValues(allocation: Allocation): ColumnValue[] {
  return [
    allocation.sequence,
    allocation.clientAllocationId,
    allocation.account,
    allocation.amountKobo,
    allocation.outcome,
    allocation.brokerReference,
    allocation.rejectReason,
    allocation.atMs,
  ];
}

/** A change of cash in the order of `cashEntryColumns`. */
export function cashEntryValues(entry: CashEntry): ColumnValue[] {
  return [entry.number, entry.account, entry.amountKobo, entry.balanceKobo, entry.clientAllocationId, entry.atMs];
}

/** A report as it goes over the wire. */
export function applicationReportMessage(report: ApplicationEvent): ApplicationReport {
  return create(ApplicationReportSchema, {
    number: BigInt(report.number),
    clientApplicationId: report.clientApplicationId,
    kind: report.kind,
    at: timestampFromMs(report.atMs),
    reference: report.reference,
    account: report.account,
    rejectReason: report.rejectReason,
    param: report.param,
  });
}

/** An allocation as it goes over the wire. */
export function allocationRecordMessage(allocation: Allocation): AllocationRecord {
  return create(AllocationRecordSchema, {
    clientAllocationId: allocation.clientAllocationId,
    outcome: allocation.outcome,
    brokerReference: allocation.brokerReference,
    rejectReason: allocation.rejectReason,
    at: timestampFromMs(allocation.atMs),
  });
}
