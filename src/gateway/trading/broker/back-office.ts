import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRejectReason,
  Allocations,
} from '../../../gen/marina/broker/v1/allocations_pb.ts';
import {
  type ApplicationFields,
  type ApplicationReport,
  ApplicationReportKind,
  Applications,
  DocumentOutcome,
  DocumentPresence,
  DocumentType,
} from '../../../gen/marina/broker/v1/applications_pb.ts';
import { SubmissionSchema, Submissions } from '../../../gen/marina/broker/v1/submissions_pb.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import { BrokerConnection, type BrokerOptions, codeOf } from './connection.ts';
import { isReportNumber, isUpstreamId, type LookedUp, type Noted, reportsOf, type Sent } from './port.ts';
import { withRightTexts } from './rules.ts';

/** An application to submit. */
export interface ApplicationToSend {
  readonly id: string;
  readonly fields: ApplicationFields;
  readonly origin: Origin;
}

/** A file for the broker. */
export interface DocumentToSend {
  readonly applicationId: string;
  readonly type: 'photo' | 'government_id' | 'utility_bill' | 'signature';
  /** `image/jpeg` or `image/png`. */
  readonly mediaType: string;
  readonly content: Buffer;
  readonly origin: Origin;
}

/** An allocation to submit. */
export interface AllocationToSend {
  readonly id: string;
  readonly account: string;
  readonly amountKobo: bigint;
  readonly origin: Origin;
}

/** A submission that the broker took, with its number among all. */
export interface Taken {
  readonly number: bigint;
  readonly clientId: string;
  /** The note it was sent with. */
  readonly note: Uint8Array;
}

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

/** The broker's applications and documents. Submissions, documents, queries and the stream have a connection each. */
export class ApplicationBroker {
  readonly #submissions: BrokerConnection<typeof Applications>;
  readonly #documents: BrokerConnection<typeof Applications>;
  readonly #lookUps: BrokerConnection<typeof Applications>;

  constructor(options: BrokerOptions) {
    this.#submissions = new BrokerConnection(Applications, 'broker', options);
    this.#documents = new BrokerConnection(Applications, 'broker', options);
    this.#lookUps = new BrokerConnection(Applications, 'broker', options);
  }

  /** Sends once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  submitApplication(application: ApplicationToSend & Noted, notAfterMs: number): Promise<Sent<ApplicationReport>> {
    const { id, fields, origin, note } = application;
    const request = { clientApplicationId: id, fields, notAfter: timestampFromMs(notAfterMs), note };
    return this.#submissions.send('submitApplication', request, notAfterMs, { origin, objectId: id }, ({ report }) => {
      const { ACCEPTED, REJECTED } = ApplicationReportKind;
      const answers = report?.kind === ACCEPTED || report?.kind === REJECTED;
      return answers && isReport(report, id) ? report : undefined;
    });
  }

  /** Throws if the broker does not answer, or the answer makes no sense. */
  lookUpApplication(id: string, afterNumber: bigint, origin: Origin): Promise<LookedUp<readonly ApplicationReport[]>> {
    const request = { clientApplicationId: id, afterNumber };
    return this.#lookUps.lookUp('lookUpApplication', request, { origin, objectId: id }, (answer) =>
      reportsOf(answer, afterNumber, (report) => isReport(report, id)),
    );
  }

  /** Like `Broker.streamReports`, for reports about applications, which have their own numbers. */
  streamApplicationReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly ApplicationReport[]> {
    return this.#lookUps.follow(
      (client, stopping) => client.streamApplicationReports({ afterNumber }, { signal: stopping }),
      afterNumber,
      signal,
    );
  }

  /** Sends a file once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  sendDocument(document: DocumentToSend, notAfterMs: number): Promise<Sent<'delivered' | 'refused'>> {
    const { applicationId, type, mediaType, content, origin } = document;
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
    return this.#documents.send('sendDocument', request, notAfterMs, about, read, false);
  }

  /** Whether the broker has a document of a type. Throws if the broker gives no answer that makes sense. */
  lookUpDocument(id: string, type: DocumentToSend['type'], origin: Origin): Promise<LookedUp<'delivered'>> {
    const request = { clientApplicationId: id, type: documentTypes[type] };
    return this.#lookUps.lookUp('lookUpDocument', request, { origin, objectId: id }, ({ presence }) => {
      if (presence === DocumentPresence.DELIVERED) return 'delivered';
      if (presence !== DocumentPresence.MISSING) throw new ApiError('exchange_error');
      return undefined;
    });
  }

  close(): void {
    for (const connection of [this.#submissions, this.#documents, this.#lookUps]) connection.close();
  }
}

/** The broker's allocations. A query that hangs delays no submission. */
export class AllocationBroker {
  readonly #submissions: BrokerConnection<typeof Allocations>;
  readonly #lookUps: BrokerConnection<typeof Allocations>;

  constructor(options: BrokerOptions) {
    this.#submissions = new BrokerConnection(Allocations, 'broker', options);
    this.#lookUps = new BrokerConnection(Allocations, 'broker', options);
  }

  /** Sends once. Does not throw. `notAfterMs` is real time after which the broker must not take it. */
  submitAllocation(allocation: AllocationToSend & Noted, notAfterMs: number): Promise<Sent<AllocationRecord>> {
    const { id, account, amountKobo, origin, note } = allocation;
    const request = { clientAllocationId: id, account, amountKobo, notAfter: timestampFromMs(notAfterMs), note };
    return this.#submissions.send('submitAllocation', request, notAfterMs, { origin, objectId: id }, ({ record }) =>
      record !== undefined && isRecord(record, id) ? record : undefined,
    );
  }

  /** Throws if the broker gives no answer that makes sense. */
  lookUpAllocation(id: string, origin: Origin): Promise<LookedUp<AllocationRecord>> {
    const request = { clientAllocationId: id };
    return this.#lookUps.lookUp('lookUpAllocation', request, { origin, objectId: id }, ({ record }) => {
      if (record !== undefined && !isRecord(record, id)) throw new ApiError('exchange_error');
      return record;
    });
  }

  close(): void {
    this.#submissions.close();
    this.#lookUps.close();
  }
}

/** The broker's list of submissions, from which the gateway restores what its database has lost. */
export class SubmissionsBroker {
  readonly #submissions: BrokerConnection<typeof Submissions>;

  constructor(options: BrokerOptions) {
    this.#submissions = new BrokerConnection(Submissions, 'broker', options, false);
  }

  /**
   * The submissions above a number, in order and without a gap; undefined if the broker keeps no such list. An id that is not
   * printable is that of none of ours, and must not keep the gateway from the others.
   */
  async submissionsAfter(number: bigint, most: number): Promise<readonly Taken[] | undefined> {
    try {
      const { submissions } = await this.#submissions.call('listSubmissions', { afterNumber: number, limit: most }, {});
      const isDense = submissions.every((submission, index) => submission.number === number + BigInt(index + 1));
      if (!isDense || submissions.length > most) throw new Error('the list of submissions makes no sense');
      return submissions.map((submission) => withRightTexts(SubmissionSchema, submission));
    } catch (error) {
      if (codeOf(error) === status.UNIMPLEMENTED) return undefined;
      throw error;
    }
  }

  close(): void {
    this.#submissions.close();
  }
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
