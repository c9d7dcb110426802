import type { Message } from '@bufbuild/protobuf';
import { Metadata, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData } from '@grpc/grpc-js';
import { ApiError, type ErrorCode } from '../lib/errors.ts';
import { maxBodyBytes } from './body-limit.ts';
import { fileTooLarge } from './file-body.ts';
import { type Arrival, arrivalId, type GrpcStatus } from './grpc-arrival.ts';
import { grpcError } from './grpc-errors.ts';
import { compressed, isCompressed } from './grpc-listener.ts';
import { type Operation, rpcPath, type StreamOperation, type UnaryOperation } from './operations.ts';
import { ClientGone, clientGoneStatus, type Pipeline, type Reply } from './pipeline.ts';
import { decodeProtobuf } from './protobuf-wire.ts';
import { checkParameters, encodeProtobuf, orRefusal, type RpcRequest } from './rpc-request.ts';
import { deliver, OpenStreams } from './streams.ts';
import type { Visit } from './visit.ts';

export interface GrpcDoorOptions {
  readonly pipeline: Pipeline;
  readonly operations: readonly Operation[];
  /** Where partners reach us, for links to the documentation. */
  readonly baseUrl: string;
  /** Whose address a call counts for; by default the connection's other end. */
  readonly clientAddress?: (peer: string, forwardedFor: string | undefined) => string;
  /** How long a client may take over one message of a stream. */
  readonly slowReaderMs?: number;
  /** How long a client may take to read a whole answer. */
  readonly answerTimeoutMs?: number;
  /** How long the end of a stream that is read too slowly may take to be read. */
  readonly slowEndMs?: number;
}

/** A call of grpc-js, its message still bytes, and what answers it. */
export type RawCall = ServerUnaryCall<Buffer, Buffer>;
export type Respond = sendUnaryData<Buffer>;
/** The same for a call that is answered with a stream. */
export type RawStream = ServerWritableStream<Buffer, Buffer>;

const usualAnswerMs = 30_000;
const usualSlowEndMs = 5_000;

/** A call that may be served, until its handler takes it. */
interface Admitted {
  readonly visit: Visit;
  readonly arrival: Arrival;
}

/**
 * Takes calls through the pipeline: `authorize` decides by a call's head, before any byte of its message is read; `serve`
 * goes on when grpc-js has its message.
 */
export class GrpcDoor {
  readonly #options: GrpcDoorOptions;
  readonly #operations: ReadonlyMap<string, Operation>;
  readonly #streams = new OpenStreams();
  readonly #admitted = new Map<string, Admitted>();
  #underWay = 0;
  #whenIdle: (() => void) | undefined;

  constructor(options: GrpcDoorOptions) {
    this.#options = options;
    this.#operations = new Map(options.operations.map((operation) => [rpcPath(operation), operation]));
  }

  /** Ends all streams, which would go on for ever. */
  endStreams(): void {
    this.#streams.close();
  }

  /** Ends all streams. Resolves once no call is under way. */
  drain(): Promise<void> {
    this.endStreams();
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  /** Resolves with why a call is refused, or undefined to let it be served. */
  async authorize(arrival: Arrival): Promise<GrpcStatus | undefined> {
    const { pipeline, baseUrl } = this.#options;
    const visit = pipeline.begin('grpc', arrival.peer);
    arrival.stream.once('close', visit.leaves());
    this.#underWay += 1;
    try {
      await this.#admit(arrival, visit);
    } catch (error) {
      const refusal = pipeline.refusal(visit, error);
      this.#finish(visit, refusal.status, refusal.code);
      return grpcError(refusal, baseUrl, visit.requestId);
    }
    if (isCompressed(arrival)) {
      const refusal = new ApiError('unsupported_media_type', { message: compressed.details });
      this.#finish(visit, refusal.status, refusal.code);
      const { metadata } = grpcError(refusal, baseUrl, visit.requestId);
      if (compressed.metadata !== undefined) metadata.merge(compressed.metadata);
      return { ...compressed, metadata };
    }
    const leave = () => {
      // Its message never came.
      if (this.#admitted.delete(arrival.id)) this.#finish(visit, clientGoneStatus, 'client_gone');
    };
    this.#admitted.set(arrival.id, { visit, arrival });
    if (arrival.isGone) leave();
    else arrival.stream.once('close', leave);
    return undefined;
  }

  /** The address a call counts for: the connection's other end, or whom a trusted proxy names. */
  clientOf(arrival: Arrival): string {
    const { peer } = arrival;
    const forwardedFor = arrival.values('x-forwarded-for');
    const { clientAddress } = this.#options;
    return clientAddress?.(peer, forwardedFor.length === 0 ? undefined : forwardedFor.join(', ')) ?? peer;
  }

  /** The decided order of checks, as far as a call's head goes. */
  async #admit(arrival: Arrival, visit: Visit): Promise<void> {
    const { pipeline } = this.#options;
    const authorizations = arrival.values('authorization');
    const traceParents = arrival.values('traceparent');
    await pipeline.admit(visit, {
      authorization: authorizations.length === 1 ? authorizations[0] : undefined,
      clientAddress: this.clientOf(arrival),
      traceParent: traceParents.length === 1 ? traceParents[0] : undefined,
      route: () => {
        const operation = this.#operations.get(arrival.path);
        if (operation === undefined) throw new ApiError('method_not_allowed', { message: 'There is no such method.' });
        return { operation };
      },
    });
  }

  async serve(operation: UnaryOperation, call: RawCall, respond: Respond): Promise<void> {
    const { pipeline, baseUrl, answerTimeoutMs = usualAnswerMs } = this.#options;
    const admitted = this.#take(call);
    if (admitted === undefined) return;
    const { visit, arrival } = admitted;
    try {
      const { message, idempotencyKey } = await request(operation, call, arrival);
      const reply = await pipeline.call(visit, message, idempotencyKey);
      const bytes = encodeProtobuf(operation, reply.message);
      this.#finish(visit, reply.created ? 201 : 200);
      call.sendMetadata(replyMetadata(reply, visit.requestId));
      respond(null, bytes);
    } catch (error) {
      const refusal = pipeline.refusal(visit, error);
      this.#finish(visit, refusal.status, refusal.code);
      respond(grpcError(refusal, baseUrl, visit.requestId));
    } finally {
      arrival.answered(answerTimeoutMs);
    }
  }

  async serveStream(operation: StreamOperation, call: RawStream): Promise<void> {
    const { pipeline, baseUrl, slowReaderMs, slowEndMs = usualSlowEndMs } = this.#options;
    const admitted = this.#take(call);
    if (admitted === undefined) return;
    const { visit, arrival } = admitted;
    const ending = this.#streams.open();
    call.on('cancelled', () => ending.abort(new ClientGone()));
    try {
      const { message } = await request(operation, call, arrival);
      call.sendMetadata(replyMetadata(undefined, visit.requestId));
      const write = (each: Message) =>
        new Promise<void>((resolve) => call.write(encodeProtobuf(operation, each), () => resolve()));
      await deliver(pipeline.stream(visit, message, ending), ending, write, slowReaderMs);
      this.#finish(visit, 200);
      call.end();
    } catch (error) {
      if (error instanceof ClientGone) return this.#finish(visit, clientGoneStatus, 'client_gone');
      const refusal = pipeline.refusal(visit, error);
      this.#finish(visit, refusal.status, refusal.code);
      call.emit('error', grpcError(refusal, baseUrl, visit.requestId));
    } finally {
      this.#streams.ended(ending);
      // A client that takes nothing does not take the end of its stream either.
      arrival.answered(slowEndMs);
    }
  }

  /** The visit of a call whose message has come; undefined when its client left before. */
  #take({ metadata }: RawCall | RawStream): Admitted | undefined {
    const id = arrivalId(metadata);
    const admitted = this.#admitted.get(id);
    this.#admitted.delete(id);
    return admitted;
  }

  #finish(visit: Visit, httpStatus: number, code?: ErrorCode | 'client_gone'): void {
    this.#options.pipeline.finish(visit, httpStatus, code);
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#whenIdle?.();
  }
}

/** Reads the message: it is looked at after the head, as in REST. */
async function request(operation: Operation, call: RawCall | RawStream, arrival: Arrival): Promise<RpcRequest> {
  const decoded = await orRefusal(() => decode(operation, call.request));
  return checkParameters(operation, decoded, arrival.values('idempotency-key').map(trimmed));
}

function decode(operation: Operation, bytes: Buffer): Message {
  const { file } = operation;
  if (file !== undefined && bytes.length > file.maxBytes + maxBodyBytes) throw fileTooLarge(file);
  if (file === undefined && bytes.length > maxBodyBytes) {
    throw new ApiError('request_too_large', { message: 'The message must have at most 16,384 bytes.' });
  }
  return decodeProtobuf(operation.input, bytes);
}

function replyMetadata(reply: Reply | undefined, requestId: string): Metadata {
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (reply?.replayed) metadata.set('idempotent-replayed', 'true');
  if (reply?.location !== undefined) metadata.set('location', reply.location);
  return metadata;
}

/** HTTP/1.1 takes the white space around a header off; here it arrives. */
function trimmed(value: string): string {
  return value.replace(/^[ \t]+|[ \t]+$/g, '');
}
