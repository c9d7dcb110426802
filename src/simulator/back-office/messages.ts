import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type AllocationRecord, AllocationRecordSchema } from '../../gen/marina/broker/v1/allocations_pb.ts';
import { type ApplicationReport, ApplicationReportSchema } from '../../gen/marina/broker/v1/applications_pb.ts';
import type { Allocation, ApplicationEvent } from './model.ts';

/** Converts a report to its message. */
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

/** Converts an allocation to its message. */
export function allocationRecordMessage(allocation: Allocation): AllocationRecord {
  return create(AllocationRecordSchema, {
    clientAllocationId: allocation.clientAllocationId,
    outcome: allocation.outcome,
    brokerReference: allocation.brokerReference,
    rejectReason: allocation.rejectReason,
    at: timestampFromMs(allocation.atMs),
  });
}
