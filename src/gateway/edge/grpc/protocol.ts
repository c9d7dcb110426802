import type { Message } from '@bufbuild/protobuf';
import { Metadata, type ServerCredentials } from '@grpc/grpc-js';
import { file_google_rpc_error_details } from '../../../gen/google/rpc/error_details_pb.ts';
import { file_marina_gateway_v1_errors } from '../../../gen/marina/gateway/v1/errors_pb.ts';
import { ApiError } from '../errors.ts';
import { type ApiOperation, maxBodyBytes, rpcPath, type StreamOperation, type UnaryOperation } from '../operations.ts';
import type { ProtocolOptions } from '../pipeline.ts';
import { ClientGone, type Reply } from '../pipeline.ts';
import { isUnlogged, type RequestContext } from '../request.ts';
import {
  CompressedRefusal,
  decodeCut,
  decodeProtobuf,
  encodeProtobuf,
  errorDetails,
  type RpcRequest,
  readRpcRequest,
  readTooLarge,
  rpcStatus,
} from '../rpc.ts';
import { deliver, OpenStreams } from '../streams.ts';
import type { Arrival } from './arrival.ts';
import { type GrpcStatus, type RichStatus, richStatus } from './arrival.ts';
import { isCompressed } from './listener.ts';
import { compressed } from './refusals.ts';
import { GrpcServer, type Respond, type ServedMethod, type StreamCall, serveStream, type UnaryCall } from './server.ts';

export interface GrpcOptions extends ProtocolOptions {
  /** Without them the server speaks plain text, for a proxy that ends TLS. */
  readonly credentials?: ServerCredentials | undefined;
  readonly messageTimeoutMs?: number;
  readonly slowEndMs?: number;
}

/** Larger than our own limit, so that our own error answers up to this size. */
const maxMessageBytes = 4 * maxBodyBytes;

/** gRPC over the pipeline. A call is authorized by its head, and served once grpc-js has its message. */
export class GrpcProtocol {
  readonly #options: GrpcOptions;
  readonly #operations: ReadonlyMap<string, ApiOperation>;
  readonly #streams = new OpenStreams();
  /** Admitted calls whose message has not come yet. */
  readonly #admitted = new Map<Arrival, RequestContext>();
  readonly #server: GrpcServer;

  constructor(options: GrpcOptions) {
    this.#options = options;
    const { operations, credentials, pipeline, messageTimeoutMs } = options;
    this.#operations = new Map(operations.map((operation) => [rpcPath(operation.method), operation]));
    this.#server = new GrpcServer({
      methods: operations.map((operation) => this.#served(operation)),
      moreFiles: [file_marina_gateway_v1_errors, file_google_rpc_error_details],
      authorize: (arrival) => this.#authorize(arrival),
      connections: pipeline.connectionLimits,
      credentials,
      messageTimeoutMs,
      callsPerConnection: 200,
      connectionMegabytes: 32,
    });
  }

  listen(port: number, host: string): Promise<number> {
    return this.#server.listen(port, host);
  }

  /** Reports NOT_SERVING, ends streams, and makes clients reconnect for their next call. Goes on serving. */
  drain(): void {
    this.#streams.close();
    this.#server.drain();
  }

  /** Also refuses new calls, answers running ones for at most `graceMs`, and closes. */
  close(graceMs: number): Promise<void> {
    const closed = this.#server.close(graceMs, this.#options.pipeline.idle());
    this.#streams.close();
    return closed;
  }

  #served(operation: ApiOperation): ServedMethod {
    const { method, file } = operation;
    const what: Pick<ServedMethod, 'method' | 'maxBytes' | 'refuse'> = {
      method,
      maxBytes: (file?.maxBytes ?? 0) + maxMessageBytes,
      refuse: (arrival, { isCompressed, start }) =>
        isCompressed ? this.#refuseCompressed(arrival) : this.#refuseTooLarge(operation, arrival, start),
    };
    return operation.kind === 'stream'
      ? { ...what, serveStream: (arrival, call) => this.#serveStream(operation, arrival, call) }
      : { ...what, serve: (arrival, call, respond) => this.#serve(operation, arrival, call, respond) };
  }

  /** Checks a call's head in the decided order. Resolves with the refusal, if any. */
  async #authorize(arrival: Arrival): Promise<GrpcStatus | undefined> {
    const { pipeline } = this.#options;
    const context = pipeline.begin('grpc', arrival.peer);
    context.clientAddress = pipeline.connectionLimits.clientOf(arrival.peer, arrival.forwardedFor);
    arrival.whenClosed(context.leaves());
    if (pipeline.keepsRequests) {
      const { path } = arrival;
      context.exchanged = { method: 'POST', path, query: '', isUnlogged: isUnlogged((name) => arrival.only(name)) };
    }
    try {
      const head = { authorization: arrival.only('authorization'), traceParent: arrival.only('traceparent') };
      await pipeline.admit(context, head, () => {
        const operation = this.#operations.get(arrival.path);
        if (operation === undefined) throw new ApiError('method_not_allowed', { message: 'There is no such method.' });
        return { operation };
      });
    } catch (error) {
      return this.#refuse(context, error);
    }
    if (isCompressed(arrival)) return this.#compressed(context);
    const leave = () => {
      if (this.#admitted.delete(arrival)) this.#refuse(context, new ClientGone());
    };
    this.#admitted.set(arrival, context);
    if (arrival.isGone) leave();
    else arrival.whenClosed(leave);
    return undefined;
  }

  /** A compressed message, whether its head says so or only its own prefix. */
  #compressed(context: RequestContext): GrpcStatus | undefined {
    const refusal = this.#refuse(context, new CompressedRefusal());
    refusal?.metadata.merge(compressed.metadata);
    return refusal;
  }

  async #refuseCompressed(arrival: Arrival): Promise<GrpcStatus | undefined> {
    const context = this.#take(arrival);
    return context && this.#compressed(context);
  }

  /** Checks a call whose message is too large in the usual order, with the fields that come before the large one. */
  async #refuseTooLarge(operation: ApiOperation, arrival: Arrival, start: Buffer): Promise<GrpcStatus | undefined> {
    const context = this.#take(arrival);
    if (context === undefined) return undefined;
    try {
      const { message, idempotencyKey } = await readTooLarge(operation, arrival.values('idempotency-key'), () =>
        decodeCut(operation, start),
      );
      await this.#options.pipeline.call(context, message, idempotencyKey);
      throw new Error('a handler took a file that is too large');
    } catch (error) {
      return this.#refuse(context, error);
    }
  }

  async #serve(operation: UnaryOperation, arrival: Arrival, call: UnaryCall, respond: Respond): Promise<void> {
    const { pipeline } = this.#options;
    const context = this.#take(arrival);
    if (context === undefined) return;
    try {
      const { message, idempotencyKey } = await readRequest(operation, call.request, arrival);
      const reply = await pipeline.call(context, message, idempotencyKey);
      const bytes = encodeProtobuf(operation.output, reply.message);
      pipeline.finish(context, reply.location === undefined ? 200 : 201);
      call.sendMetadata(replyMetadata(context, reply));
      respond(null, bytes);
    } catch (error) {
      const refusal = this.#refuse(context, error);
      if (refusal !== undefined) respond(refusal);
    } finally {
      arrival.answered();
    }
  }

  async #serveStream(operation: StreamOperation, arrival: Arrival, call: StreamCall): Promise<void> {
    const { pipeline, slowReaderMs, slowEndMs } = this.#options;
    const context = this.#take(arrival);
    if (context === undefined) return;
    const send = async (ending: AbortController, write: (bytes: Buffer) => Promise<void>) => {
      const { message } = await readRequest(operation, call.request, arrival);
      call.sendMetadata(replyMetadata(context));
      const writeOne = (each: Message) => write(encodeProtobuf(operation.output, each));
      await deliver(pipeline.stream(context, message, ending), ending, writeOne, slowReaderMs);
      pipeline.finish(context, 200);
    };
    await serveStream(this.#streams, arrival, call, send, (error) => this.#refuse(context, error), slowEndMs);
  }

  /** The call's context; undefined if its client has left. */
  #take(arrival: Arrival): RequestContext | undefined {
    const context = this.#admitted.get(arrival);
    this.#admitted.delete(arrival);
    return context;
  }

  /** Maps an error of the catalogue to a status with a typed detail, only here; undefined if the client has left. */
  #refuse(context: RequestContext, thrown: unknown): RichStatus | undefined {
    const { pipeline, baseUrl } = this.#options;
    const error = pipeline.refuse(context, thrown);
    if (error === undefined) return undefined;
    const refusal = richStatus(rpcStatus(error), error.message, context.requestId, errorDetails(error, baseUrl));
    if (error.location !== undefined) refusal.metadata.set('location', error.location);
    return refusal;
  }
}

/** Reads the message after the head, as REST does. */
function readRequest(operation: ApiOperation, bytes: Buffer, arrival: Arrival): Promise<RpcRequest> {
  const { file, input } = operation;
  const keys = arrival.values('idempotency-key');
  const decode = () => decodeProtobuf(input, bytes);
  if (bytes.length > (file?.maxBytes ?? 0) + maxBodyBytes) return readTooLarge(operation, keys, decode);
  return readRpcRequest(operation, keys, decode);
}

function replyMetadata({ requestId }: RequestContext, reply?: Reply): Metadata {
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (reply?.replayed) metadata.set('idempotent-replayed', 'true');
  if (reply?.location !== undefined) metadata.set('location', reply.location);
  return metadata;
}
