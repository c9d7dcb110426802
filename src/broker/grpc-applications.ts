import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type ApplicationReport,
  ApplicationReportKind,
  Applications,
  DocumentPresence,
} from '../gen/marina/broker/v1/applications_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { createGrpcClient } from '../lib/grpc-client.ts';
import type { Origin } from '../lib/origin.ts';
import { channelOptions, type GrpcBrokerOptions, SubmissionService } from './connection.ts';
import { documentTypes } from './grpc-broker.ts';
import { notFound } from './not-found.ts';
import type { ApplicationBroker, ApplicationToSend, DocumentToSend, LookedUp, Noted, Sent } from './port.ts';
import { watchReports } from './report-stream.ts';

/** A broker's applications met over `marina.broker.v1`. Each stream of reports has a connection of its own. */
export class GrpcApplications extends SubmissionService<typeof Applications> implements ApplicationBroker {
  constructor(options: GrpcBrokerOptions) {
    super(Applications, options);
  }

  submitApplication(application: ApplicationToSend & Noted, notAfterMs: number): Promise<Sent<ApplicationReport>> {
    const { id, fields, origin, note } = application;
    const request = { clientApplicationId: id, fields, notAfter: timestampFromMs(notAfterMs), note };
    const about = { notAfterMs, longestMs: this.options.submitTimeoutMs, origin, objectId: id };
    return this.submissions.send('submitApplication', request, about, ({ report }) => {
      const answers =
        report?.kind === ApplicationReportKind.ACCEPTED || report?.kind === ApplicationReportKind.REJECTED;
      return answers && isReport(report, id) ? report : undefined;
    });
  }

  async lookUpApplication(
    id: string,
    afterNumber: bigint,
    origin: Origin,
  ): Promise<LookedUp<readonly ApplicationReport[]>> {
    const request = { clientApplicationId: id, afterNumber };
    const about = { timeoutMs: this.options.readTimeoutMs, origin, objectId: id };
    const askedAt = performance.now();
    const answer = await this.lookUps.call('lookUpApplication', request, about);
    const { found, reports } = answer;
    const inOrder = reports.every((report, index) => {
      const previous = reports[index - 1]?.number ?? afterNumber;
      return isReport(report, id) && report.number > previous;
    });
    if (!inOrder || (!found && reports.length > 0)) throw new ApiError('exchange_error');
    return found ? { found, answer: reports } : notFound(answer, askedAt);
  }

  async lookUpDocument(id: string, type: DocumentToSend['type'], origin: Origin): Promise<LookedUp<'delivered'>> {
    const request = { clientApplicationId: id, type: documentTypes[type] };
    const about = { timeoutMs: this.options.readTimeoutMs, origin, objectId: id };
    const askedAt = performance.now();
    const answer = await this.lookUps.call('lookUpDocument', request, about);
    const { presence } = answer;
    if (presence === DocumentPresence.DELIVERED) return { found: true, answer: 'delivered' };
    if (presence !== DocumentPresence.MISSING) throw new ApiError('exchange_error');
    return notFound(answer, askedAt);
  }

  async *streamApplicationReports(
    afterNumber: bigint,
    signal: AbortSignal,
  ): AsyncIterable<readonly ApplicationReport[]> {
    // A stream that broke may have left a connection that is dead and does not show it.
    const client = createGrpcClient(Applications, this.options.address, channelOptions);
    try {
      const open = (stopping: AbortSignal) => client.streamApplicationReports({ afterNumber }, { signal: stopping });
      yield* watchReports(open, afterNumber, signal, this.clock);
    } finally {
      client.close();
    }
  }
}

/**
 * Whether a report is about the application and has what its kind needs. A kind of a later version is left to the
 * application's rules.
 */
function isReport(report: ApplicationReport, id: string): boolean {
  if (report.clientApplicationId !== id || report.number <= 0n || report.at === undefined) return false;
  if (report.reference.length > 64) return false;
  if (report.kind === ApplicationReportKind.ACCEPTED) return report.reference !== '';
  if (report.kind === ApplicationReportKind.OPENED) return /^[A-Z0-9]{1,64}$/.test(report.account);
  return report.kind !== ApplicationReportKind.UNSPECIFIED;
}
