import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRejectReason,
  Allocations,
} from '../../../gen/marina/broker/v1/allocations_pb.ts';
import {
  type ApplicationReport,
  ApplicationReportKind,
  Applications,
  DocumentOutcome,
  DocumentPresence,
  DocumentType,
} from '../../../gen/marina/broker/v1/applications_pb.ts';
import { SubmissionSchema, Submissions } from '../../../gen/marina/broker/v1/submissions_pb.ts';
import { codeOf } from '../../../kit/grpc-client.ts';
import { ApiError } from '../../edge/errors.ts';
import type { BrokerAllocations, BrokerApplications, BrokerDocuments, BrokerSubmissions } from './broker.ts';
import { BrokerConnection, type BrokerOptions, type Closable, closeAll } from './grpc-connection.ts';
import { isReportNumber, isUpstreamId, reportsOf, withRightTexts } from './rules.ts';

const documentTypes = {
  photo: DocumentType.PHOTO,
  government_id: DocumentType.GOVERNMENT_ID,
  utility_bill: DocumentType.UTILITY_BILL,
  signature: DocumentType.SIGNATURE,
} as const;
const documentOutcomes: ReadonlyMap<DocumentOutcome, 'delivered' | 'refused'> = new Map([
  [DocumentOutcome.DELIVERED, 'delivered'],
  [DocumentOutcome.REFUSED, 'refused'],
]);

/** Applications and documents over gRPC. Submissions, documents, queries and the stream have a connection each. */
export function grpcApplications(options: BrokerOptions): BrokerApplications & BrokerDocuments & Closable {
  const submissions = new BrokerConnection(Applications, 'broker', options);
  const documents = new BrokerConnection(Applications, 'broker', options);
  const lookUps = new BrokerConnection(Applications, 'broker', options);
  return {
    submitApplication: ({ id, fields, origin, note }, notAfterMs) => {
      const request = { clientApplicationId: id, fields, notAfter: timestampFromMs(notAfterMs), note };
      return submissions.send('submitApplication', request, notAfterMs, { origin, objectId: id }, ({ report }) => {
        const { ACCEPTED, REJECTED } = ApplicationReportKind;
        const answers = report?.kind === ACCEPTED || report?.kind === REJECTED;
        return answers && isReport(report, id) ? report : undefined;
      });
    },
    lookUpApplication: (id, afterNumber, origin) => {
      const request = { clientApplicationId: id, afterNumber };
      return lookUps.lookUp('lookUpApplication', request, { origin, objectId: id }, (answer) =>
        reportsOf(answer, afterNumber, (report) => isReport(report, id)),
      );
    },
    streamApplicationReports: (afterNumber, signal) =>
      lookUps.follow(
        (client, stopping) => client.streamApplicationReports({ afterNumber }, { signal: stopping }),
        afterNumber,
        signal,
      ),
    sendDocument: ({ applicationId, type, mediaType, content, origin }, notAfterMs) => {
      const request = {
        clientApplicationId: applicationId,
        type: documentTypes[type],
        contentType: mediaType,
        content,
        notAfter: timestampFromMs(notAfterMs),
      };
      const about = { origin, objectId: applicationId };
      const read = ({ outcome }: { readonly outcome: DocumentOutcome }) => documentOutcomes.get(outcome);
      // For a document no status proves anything, not even the one that says too late.
      return documents.send('sendDocument', request, notAfterMs, about, read, false);
    },
    lookUpDocument: (id, type, origin) => {
      const request = { clientApplicationId: id, type: documentTypes[type] };
      return lookUps.lookUp('lookUpDocument', request, { origin, objectId: id }, ({ presence }) => {
        if (presence === DocumentPresence.DELIVERED) return 'delivered';
        if (presence !== DocumentPresence.MISSING) throw new ApiError('exchange_error');
        return undefined;
      });
    },
    close: () => closeAll([submissions, documents, lookUps]),
  };
}

/** Allocations over gRPC. A query that hangs delays no submission. */
export function grpcAllocations(options: BrokerOptions): BrokerAllocations & Closable {
  const submissions = new BrokerConnection(Allocations, 'broker', options);
  const lookUps = new BrokerConnection(Allocations, 'broker', options);
  return {
    submitAllocation: ({ id, account, amountKobo, origin, note }, notAfterMs) => {
      const request = { clientAllocationId: id, account, amountKobo, notAfter: timestampFromMs(notAfterMs), note };
      return submissions.send('submitAllocation', request, notAfterMs, { origin, objectId: id }, ({ record }) =>
        record !== undefined && isRecord(record, id) ? record : undefined,
      );
    },
    lookUpAllocation: (id, origin) =>
      lookUps.lookUp('lookUpAllocation', { clientAllocationId: id }, { origin, objectId: id }, ({ record }) => {
        if (record !== undefined && !isRecord(record, id)) throw new ApiError('exchange_error');
        return record;
      }),
    close: () => closeAll([submissions, lookUps]),
  };
}

/** The list of submissions over gRPC. */
export function grpcSubmissions(options: BrokerOptions): BrokerSubmissions & Closable {
  const connection = new BrokerConnection(Submissions, 'broker', options, false);
  return {
    submissionsAfter: async (number, most) => {
      try {
        const { submissions } = await connection.call('listSubmissions', { afterNumber: number, limit: most }, {});
        const isDense = submissions.every((submission, index) => submission.number === number + BigInt(index + 1));
        if (!isDense || submissions.length > most) throw new Error('the list of submissions makes no sense');
        return submissions.map((submission) => withRightTexts(SubmissionSchema, submission));
      } catch (error) {
        if (codeOf(error) === status.UNIMPLEMENTED) return undefined;
        throw error;
      }
    },
    close: () => connection.close(),
  };
}

/** Whether a report is about the application and has the fields of its kind. A later version's kind passes. */
function isReport(report: ApplicationReport, id: string): boolean {
  if (report.clientApplicationId !== id || !isReportNumber(report.number) || report.at === undefined) return false;
  if (!isUpstreamId(report.reference)) return false;
  if (report.kind === ApplicationReportKind.ACCEPTED) return report.reference !== '';
  if (report.kind === ApplicationReportKind.OPENED) return /^[A-Z0-9]{1,64}$/.test(report.account);
  return report.kind !== ApplicationReportKind.UNSPECIFIED;
}

/** Whether a record is about the allocation and has the fields of its outcome, and no others. */
function isRecord(record: AllocationRecord, allocationId: string): boolean {
  const { clientAllocationId, outcome, brokerReference, rejectReason, at } = record;
  if (clientAllocationId !== allocationId || at === undefined) return false;
  if (outcome === AllocationOutcome.REJECTED) return brokerReference === '';
  return (
    outcome === AllocationOutcome.BOOKED &&
    brokerReference !== '' &&
    isUpstreamId(brokerReference) &&
    rejectReason === AllocationRejectReason.UNSPECIFIED
  );
}
