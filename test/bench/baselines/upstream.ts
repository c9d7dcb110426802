/**
 * An upstream that costs nearly nothing: bare grpc-js that accepts every order and books every allocation, from memory. Its
 * stream repeats each order's report, as the contract wants, in batches.
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
import { type GrpcImplementation, serviceDefinition } from '../../../src/kit/grpc-service.ts';

const heartbeatMs = 1_000;
const batchingWindowMs = 5;
/** Followers that are further behind would miss reports: the gateways of a bench are not. */
const maxKept = 100_000;

type Call<Request, Response> = [call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>];

let lastNumber = 0;
let kept: Report[] = [];
const now = (): Timestamp => timestampFromMs(Date.now());

const orders: Pick<
  GrpcImplementation<typeof Orders>,
  'getCapabilities' | 'getTradingContext' | 'submitOrder' | 'streamReports'
> = {
  getCapabilities: (...[, callback]: Call<GetCapabilitiesRequest, GetCapabilitiesResponse>) =>
    callback(null, create(GetCapabilitiesResponseSchema, { honoursNotAfter: true, brokerTime: now() })),
  getTradingContext: (...[{ request }, callback]: Call<GetTradingContextRequest, GetTradingContextResponse>) => {
    const prices = { lowerPriceKobo: 1n, upperPriceKobo: 1_000_000n, lastPriceKobo: 1_000n };
    const instrument = { symbol: request.symbol, name: request.symbol, kind: 1, ...prices };
    const context = { accountStatus: AccountStatus.ACTIVE, instrument, brokerTime: now() };
    callback(null, create(GetTradingContextResponseSchema, context));
  },
  submitOrder: (...[{ request }, callback]: Call<SubmitOrderRequest, SubmitOrderResponse>) => {
    lastNumber += 1;
    const report = create(ReportSchema, {
      number: BigInt(lastNumber),
      clientOrderId: request.clientOrderId,
      exchangeOrderId: `X${lastNumber}`,
      kind: ReportKind.ACCEPTED,
      at: now(),
    });
    kept.push(report);
    callback(null, create(SubmitOrderResponseSchema, { report, brokerTime: now() }));
  },
  streamReports: (call) => follow(call),
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
server.addService(serviceDefinition(Submissions), {
  listSubmissions: (_call: unknown, callback: (error: null, answer: unknown) => void) =>
    callback(null, create(ListSubmissionsResponseSchema, { brokerTime: now() })),
});
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, port) => process.send?.({ port }));

/** Sends the reports above a number, and a heartbeat when there are none for a while. */
function follow(call: Parameters<GrpcImplementation<typeof Orders>['streamReports']>[0]): void {
  const { afterNumber } = call.request as StreamReportsRequest;
  let sent = Number(afterNumber);
  let sentAt = 0;
  const timer = setInterval(() => {
    if (sent === lastNumber && performance.now() - sentAt < heartbeatMs) return;
    const reports = kept.slice(Math.max(0, kept.length - (lastNumber - sent)));
    const message = { reports, lastNumber: BigInt(lastNumber), brokerTime: now() };
    call.write(create(StreamReportsResponseSchema, message) as StreamReportsResponse);
    if (kept.length > maxKept) kept = kept.slice(-maxKept / 2);
    [sent, sentAt] = [lastNumber, performance.now()];
  }, batchingWindowMs);
  call.on('cancelled', () => clearInterval(timer));
}
