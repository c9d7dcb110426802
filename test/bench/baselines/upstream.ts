/**
 * An upstream that costs nearly nothing: bare grpc-js that accepts every order, books every allocation and pays every
 * withdrawal, from memory. Its streams repeat each report, as the contract wants, in batches.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import {
  AllocationOutcome,
  Allocations,
  type SubmitAllocationRequest,
  type SubmitAllocationResponse,
  SubmitAllocationResponseSchema,
} from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import {
  AccountStatus,
  type GetCapabilitiesRequest,
  type GetCapabilitiesResponse,
  GetCapabilitiesResponseSchema,
  type GetTradingContextRequest,
  type GetTradingContextResponse,
  GetTradingContextResponseSchema,
  Orders,
  type Report,
  ReportKind,
  ReportSchema,
  type StreamReportsRequest,
  type StreamReportsResponse,
  StreamReportsResponseSchema,
  type SubmitOrderRequest,
  type SubmitOrderResponse,
  SubmitOrderResponseSchema,
} from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { ListSubmissionsResponseSchema, Submissions } from '../../../src/gen/marina/broker/v1/submissions_pb.ts';
import {
  type StreamWithdrawalReportsRequest,
  type StreamWithdrawalReportsResponse,
  StreamWithdrawalReportsResponseSchema,
  type SubmitWithdrawalRequest,
  type SubmitWithdrawalResponse,
  SubmitWithdrawalResponseSchema,
  WithdrawalDestination,
  type WithdrawalReport,
  WithdrawalReportKind,
  WithdrawalReportSchema,
  Withdrawals,
} from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { type GrpcImplementation, serviceDefinition } from '../../../src/kit/grpc-service.ts';

const heartbeatMs = 1_000;
const batchingWindowMs = 5;
/** Followers that are further behind would miss reports: the gateways of a bench are not. */
const maxKept = 100_000;

type Call<Request, Response> = [call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>];

/** The last reports of a kind. */
class Kept<Each> {
  lastNumber = 0;
  #reports: Each[] = [];

  /** Keeps a report, which is made with its number. */
  add(make: (number: number) => Each): Each {
    this.lastNumber += 1;
    const report = make(this.lastNumber);
    this.#reports.push(report);
    if (this.#reports.length > maxKept) this.#reports = this.#reports.slice(-maxKept / 2);
    return report;
  }

  after(number: number): Each[] {
    return this.#reports.slice(Math.max(0, this.#reports.length - (this.lastNumber - number)));
  }
}

const orderReports = new Kept<Report>();
const withdrawalReports = new Kept<WithdrawalReport>();
const now = (): Timestamp => timestampFromMs(Date.now());

const orders: Pick<
  GrpcImplementation<typeof Orders>,
  'getCapabilities' | 'getTradingContext' | 'submitOrder' | 'streamReports'
> = {
  getCapabilities: (...[, callback]: Call<GetCapabilitiesRequest, GetCapabilitiesResponse>) =>
    callback(null, create(GetCapabilitiesResponseSchema, capabilities())),
  getTradingContext: (...[{ request }, callback]: Call<GetTradingContextRequest, GetTradingContextResponse>) => {
    const prices = { lowerPriceKobo: 1n, upperPriceKobo: 1_000_000n, lastPriceKobo: 1_000n };
    const instrument = { symbol: request.symbol, name: request.symbol, kind: 1, ...prices };
    const context = { accountStatus: AccountStatus.ACTIVE, instrument, brokerTime: now() };
    callback(null, create(GetTradingContextResponseSchema, context));
  },
  submitOrder: (...[{ request }, callback]: Call<SubmitOrderRequest, SubmitOrderResponse>) => {
    const report = orderReports.add((number) =>
      create(ReportSchema, {
        number: BigInt(number),
        clientOrderId: request.clientOrderId,
        exchangeOrderId: `X${number}`,
        kind: ReportKind.ACCEPTED,
        at: now(),
      }),
    );
    callback(null, create(SubmitOrderResponseSchema, { report, brokerTime: now() }));
  },
  streamReports: (call) => {
    const { afterNumber } = call.request as StreamReportsRequest;
    const write = (reports: Report[], lastNumber: bigint) =>
      call.write(
        create(StreamReportsResponseSchema, { reports, lastNumber, brokerTime: now() }) as StreamReportsResponse,
      );
    call.on('cancelled', follow(orderReports, Number(afterNumber), write));
  },
};

const withdrawals: Pick<GrpcImplementation<typeof Withdrawals>, 'submitWithdrawal' | 'streamWithdrawalReports'> = {
  submitWithdrawal: (...[{ request }, callback]: Call<SubmitWithdrawalRequest, SubmitWithdrawalResponse>) => {
    const report = withdrawalReports.add((number) =>
      create(WithdrawalReportSchema, {
        number: BigInt(number),
        clientWithdrawalId: request.clientWithdrawalId,
        brokerReference: `W${number}`,
        kind: WithdrawalReportKind.PAID,
        at: now(),
      }),
    );
    callback(null, create(SubmitWithdrawalResponseSchema, { report, brokerTime: now() }));
  },
  streamWithdrawalReports: (call) => {
    const { afterNumber } = call.request as StreamWithdrawalReportsRequest;
    const write = (reports: WithdrawalReport[], lastNumber: bigint) => {
      const message = create(StreamWithdrawalReportsResponseSchema, { reports, lastNumber, brokerTime: now() });
      call.write(message as StreamWithdrawalReportsResponse);
    };
    call.on('cancelled', follow(withdrawalReports, Number(afterNumber), write));
  },
};

const allocations: Pick<GrpcImplementation<typeof Allocations>, 'submitAllocation'> = {
  submitAllocation: (...[{ request }, callback]: Call<SubmitAllocationRequest, SubmitAllocationResponse>) => {
    const record: MessageInitShape<typeof SubmitAllocationResponseSchema>['record'] = {
      clientAllocationId: request.clientAllocationId,
      outcome: AllocationOutcome.BOOKED,
      brokerReference: `B${request.clientAllocationId}`,
      at: now(),
    };
    callback(null, create(SubmitAllocationResponseSchema, { record, brokerTime: now() }));
  },
};

const server = new Server();
server.addService(serviceDefinition(Orders), orders);
server.addService(serviceDefinition(Allocations), allocations);
server.addService(serviceDefinition(Withdrawals), withdrawals);
server.addService(serviceDefinition(Submissions), {
  listSubmissions: (_call: unknown, callback: (error: null, answer: unknown) => void) =>
    callback(null, create(ListSubmissionsResponseSchema, { brokerTime: now() })),
});
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, port) => process.send?.({ port }));

/** Sends the reports above a number, and a heartbeat when there are none for a while. The result ends it. */
function follow<Each>(
  kept: Kept<Each>,
  afterNumber: number,
  write: (reports: Each[], lastNumber: bigint) => void,
): () => void {
  let sent = afterNumber;
  let sentAt = 0;
  const timer = setInterval(() => {
    const { lastNumber } = kept;
    if (sent === lastNumber && performance.now() - sentAt < heartbeatMs) return;
    write(kept.after(sent), BigInt(lastNumber));
    [sent, sentAt] = [lastNumber, performance.now()];
  }, batchingWindowMs);
  return () => clearInterval(timer);
}

function capabilities() {
  const withdrawalDestinations = [WithdrawalDestination.WALLET];
  return { honoursNotAfter: true, withdrawalDestinations, brokerTime: now() };
}
