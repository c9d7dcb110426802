import type { Message } from '@bufbuild/protobuf';
import { Metadata, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData } from '@grpc/grpc-js';
import { ApiError } from '../lib/errors.ts';
import { maxBodyBytes } from './body-limit.ts';
import { fileTooLarge } from './file-body.ts';
import { grpcError } from './grpc-errors.ts';
import type { Operation, StreamOperation, UnaryOperation } from './operations.ts';
import { ClientGone, clientGoneStatus, type Pipeline, type Reply } from './pipeline.ts';
import { decodeProtobuf } from './protobuf-wire.ts';
import { checkParameters, encodeProtobuf, orRefusal, type RpcRequest } from './rpc-request.ts';
import { deliver, OpenStreams } from './streams.ts';
import type { Visit } from './visit.ts';

export interface GrpcDoorOptions {
  readonly pipeline: Pipeline;
  /** Where partners reach us, for links to the documentation. */
  readonly baseUrl: string;
  /** Whose address a call counts for; by default the connection's other end. */
  readonly clientAddress?: (peer: string, forwardedFor: string | undefined) => string;
  /** How long a client may take over one message of a stream. */
  readonly slowReaderMs?: number;
}

/** A call of grpc-js, its message still bytes, and what answers it. */
export type RawCall = ServerUnaryCall<Buffer, Buffer>;
export type Respond = sendUnaryData<Buffer>;
/** The same for a call that is answered with a stream. */
export type RawStream = ServerWritableStream<Buffer, Buffer>;

/** Takes calls through the pipeline. */
export class GrpcDoor {
  readonly #options: GrpcDoorOptions;
  readonly #streams = new OpenStreams();
  #underWay = 0;
  #whenIdle: (() => void) | undefined;

  constructor(options: GrpcDoorOptions) {
    this.#options = options;
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

  serve(operation: UnaryOperation, call: RawCall, respond: Respond): Promise<void> {
    const { pipeline, baseUrl } = this.#options;
    return this.#visit(async (visit) => {
      try {
        const { message, idempotencyKey } = await this.#request(operation, call, visit);
        const reply = await pipeline.call(visit, message, idempotencyKey);
        const bytes = encodeProtobuf(operation, reply.message);
        pipeline.finish(visit, reply.created ? 201 : 200);
        call.sendMetadata(replyMetadata(reply, visit.requestId));
        respond(null, bytes);
      } catch (error) {
        const refusal = pipeline.refusal(visit, error);
        pipeline.finish(visit, refusal.status, refusal.code);
        respond(grpcError(refusal, baseUrl, visit.requestId));
      }
    });
  }

  serveStream(operation: StreamOperation, call: RawStream): Promise<void> {
    const { pipeline, baseUrl, slowReaderMs } = this.#options;
    const ending = this.#streams.open();
    call.on('cancelled', () => ending.abort(new ClientGone()));
    return this.#visit(async (visit) => {
      try {
        const { message } = await this.#request(operation, call, visit);
        call.sendMetadata(replyMetadata(undefined, visit.requestId));
        const write = (each: Message) =>
          new Promise<void>((resolve) => call.write(encodeProtobuf(operation, each), () => resolve()));
        await deliver(pipeline.stream(visit, message, ending), ending, write, slowReaderMs);
        pipeline.finish(visit, 200);
        call.end();
      } catch (error) {
        if (error instanceof ClientGone) return pipeline.finish(visit, clientGoneStatus, 'client_gone');
        const refusal = pipeline.refusal(visit, error);
        pipeline.finish(visit, refusal.status, refusal.code);
        call.emit('error', grpcError(refusal, baseUrl, visit.requestId));
      } finally {
        this.#streams.ended(ending);
      }
    });
  }

  async #visit(serve: (visit: Visit) => Promise<void>): Promise<void> {
    this.#underWay += 1;
    try {
      await serve(this.#options.pipeline.begin('grpc'));
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#whenIdle?.();
    }
  }

  /** The decided order of checks, as far as it is gRPC's: as in REST, the message is looked at after the head. */
  async #request(operation: Operation, call: RawCall | RawStream, visit: Visit): Promise<RpcRequest> {
    const { pipeline, clientAddress } = this.#options;
    const authorizations = call.metadata.get('authorization');
    const forwardedFor = call.metadata.get('x-forwarded-for');
    const traceParents = call.metadata.get('traceparent');
    const peer = withoutPort(call.getPeer());
    await pipeline.admit(visit, {
      authorization: authorizations.length === 1 ? String(authorizations[0]) : undefined,
      clientAddress: clientAddress?.(peer, forwardedFor.length === 0 ? undefined : forwardedFor.join(', ')) ?? peer,
      traceParent: traceParents.length === 1 ? String(traceParents[0]) : undefined,
      route: () => ({ operation }),
    });
    const decoded = await orRefusal(() => decode(operation, call.request));
    return checkParameters(operation, decoded, call.metadata.get('idempotency-key').map(trimmed));
  }
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
function trimmed(value: string | Buffer): string {
  return String(value).replace(/^[ \t]+|[ \t]+$/g, '');
}

/** grpc-js writes `address:port`, IPv6 without brackets too. */
function withoutPort(peer: string): string {
  const colon = peer.lastIndexOf(':');
  return colon === -1 ? '' : peer.slice(0, colon);
}
