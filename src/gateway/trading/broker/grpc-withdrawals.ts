import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  type WithdrawalDestination,
  WithdrawalDestinationSchema,
  type WithdrawalReport,
  WithdrawalReportKind,
  Withdrawals,
} from '../../../gen/marina/broker/v1/withdrawals_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import { codeOf } from '../../../kit/grpc-client.ts';
import { pause } from '../../../kit/worker.ts';
import type { BrokerWithdrawals } from './broker.ts';
import { BrokerConnection, type BrokerOptions, type Closable, closeAll } from './grpc-connection.ts';
import { isReportNumber, isUpstreamId, reportsOf } from './rules.ts';

/** How long a broker without withdrawals is left alone, and how often its stream shows that it lives meanwhile. */
const askAgainMs = 60_000;
const heartbeatMs = 1_000;

const destinations = enumWords<typeof WithdrawalDestination>(WithdrawalDestinationSchema);

/** Withdrawals over gRPC. Submissions, and queries with the stream, have a connection each. */
export function grpcWithdrawals(options: BrokerOptions): BrokerWithdrawals & Closable {
  const submissions = new BrokerConnection(Withdrawals, 'broker', options);
  const lookUps = new BrokerConnection(Withdrawals, 'broker', options);
  return {
    submitWithdrawal: ({ id, account, amountKobo, destination, origin, note }, notAfterMs) => {
      const request = {
        ...{ clientWithdrawalId: id, account, amountKobo, destination: destinations.value(destination) },
        ...{ notAfter: timestampFromMs(notAfterMs), note },
      };
      return submissions.send('submitWithdrawal', request, notAfterMs, { origin, objectId: id }, ({ report }) => {
        const answers = report !== undefined && report.kind !== WithdrawalReportKind.RETURNED && isKnown(report.kind);
        return answers && isReport(report, id) ? report : undefined;
      });
    },
    lookUpWithdrawal: (id, afterNumber, origin) => {
      const request = { clientWithdrawalId: id, afterNumber };
      return lookUps.lookUp('lookUpWithdrawal', request, { origin, objectId: id }, (answer) =>
        reportsOf(answer, afterNumber, (report) => isReport(report, id)),
      );
    },
    streamWithdrawalReports: async function* (afterNumber, signal) {
      try {
        yield* lookUps.follow(
          (client, stopping) => client.streamWithdrawalReports({ afterNumber }, { signal: stopping }),
          afterNumber,
          signal,
        );
      } catch (error) {
        if (codeOf(error) !== status.UNIMPLEMENTED || afterNumber > 0n) throw error;
        yield* silence(signal);
      }
    },
    close: () => closeAll([submissions, lookUps]),
  };
}

/** The reports of a broker that takes no withdrawals: none. It is asked again after a while, because it may learn to. */
async function* silence(signal: AbortSignal): AsyncGenerator<readonly WithdrawalReport[]> {
  for (let passed = 0; passed < askAgainMs && !signal.aborted; passed += heartbeatMs) {
    yield [];
    await pause(heartbeatMs, signal);
  }
}

function isKnown(kind: WithdrawalReportKind): boolean {
  return WithdrawalReportKind[kind] !== undefined;
}

/** Whether a report is about the withdrawal and has the fields of its kind. A later version's kind passes. */
function isReport(report: WithdrawalReport, id: string): boolean {
  const { clientWithdrawalId, number, kind, at, brokerReference } = report;
  if (clientWithdrawalId !== id || !isReportNumber(number) || at === undefined) return false;
  if (!isUpstreamId(brokerReference) || kind === WithdrawalReportKind.UNSPECIFIED) return false;
  return kind === WithdrawalReportKind.REJECTED || !isKnown(kind) || brokerReference !== '';
}
