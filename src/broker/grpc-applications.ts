import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type ApplicationFields,
  type ApplicationReport,
  ApplicationReportKind,
  Applications,
} from '../gen/marina/broker/v1/applications_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { createGrpcClient } from '../lib/grpc-client.ts';
import { Connection, channelOptions } from './connection.ts';
import type { GrpcBrokerOptions } from './grpc-broker.ts';
import type { ApplicationBroker, LookedUp, Sent } from './port.ts';
import { watchReports } from './report-stream.ts';

/**
 * A broker's applications met over `marina.broker.v1`. Submissions and look-ups have a connection each, so that a hanging
 * look-up does not stand in an application's way, and each stream of reports has its own.
 */
export class GrpcApplications implements ApplicationBroker {
  readonly #submissions: Connection<typeof Applications>;
  readonly #lookUps: Connection<typeof Applications>;

  constructor(private readonly options: GrpcBrokerOptions) {
    this.#submissions = new Connection(Applications, options.address, 'broker');
    this.#lookUps = new Connection(Applications, options.address, 'broker');
  }

  submitApplication(id: string, fields: ApplicationFields, notAfterMs: number): Promise<Sent<ApplicationReport>> {
    const request = { clientApplicationId: id, fields, notAfter: timestampFromMs(notAfterMs) };
    const time = { notAfterMs, longestMs: this.options.submitTimeoutMs };
    return this.#submissions.send(time, async (applications, timeoutMs) => {
      const { report } = await applications.submitApplication(request, { timeoutMs });
      const answers =
        report?.kind === ApplicationReportKind.ACCEPTED || report?.kind === ApplicationReportKind.REJECTED;
      return answers && isReport(report, id) ? report : undefined;
    });
  }

  async lookUpApplication(id: string, afterNumber: bigint): Promise<LookedUp<readonly ApplicationReport[]>> {
    const request = { clientApplicationId: id, afterNumber };
    const { found, reports, completeUntil } = await this.#lookUps.use((applications) =>
      applications.lookUpApplication(request, { timeoutMs: this.options.readTimeoutMs }),
    );
    const inOrder = reports.every((report, index) => {
      const previous = reports[index - 1]?.number ?? afterNumber;
      return isReport(report, id) && report.number > previous;
    });
    if (!inOrder || (!found && reports.length > 0)) throw new ApiError('exchange_error');
    return found ? { found, answer: reports } : { found, completeUntil: completeUntil && timestampMs(completeUntil) };
  }

  async *streamApplicationReports(
    afterNumber: bigint,
    signal: AbortSignal,
  ): AsyncIterable<readonly ApplicationReport[]> {
    // A stream that broke may have left a connection that is dead and does not show it.
    const client = createGrpcClient(Applications, this.options.address, channelOptions);
    try {
      const open = (stopping: AbortSignal) => client.streamApplicationReports({ afterNumber }, { signal: stopping });
      yield* watchReports(open, afterNumber, signal);
    } finally {
      client.close();
    }
  }

  close(): void {
    this.#submissions.close();
    this.#lookUps.close();
  }
}

/** Whether a report is about the application and has what its kind needs. */
function isReport(report: ApplicationReport, id: string): boolean {
  if (report.clientApplicationId !== id || report.number <= 0n || report.at === undefined) return false;
  if (report.reference.length > 64) return false;
  if (report.kind === ApplicationReportKind.ACCEPTED) return report.reference !== '';
  if (report.kind === ApplicationReportKind.OPENED) return /^[A-Z0-9]{1,64}$/.test(report.account);
  return report.kind === ApplicationReportKind.REJECTED;
}
