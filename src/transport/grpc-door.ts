import { type Message, toBinary } from '@bufbuild/protobuf';
import { Metadata, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { materialize } from '../json/stored.ts';
import { ApiError } from '../lib/errors.ts';
import { maxBodyBytes } from './body-limit.ts';
import { grpcError } from './grpc-errors.ts';
import { decodeProtobuf } from './grpc-wire.ts';
import { checkIdempotencyKey } from './idempotency-key.ts';
import type { Operation } from './operations.ts';
import type { Pipeline, Reply, Visit } from './pipeline.ts';

export interface GrpcDoorOptions {
  readonly pipeline: Pipeline;
  /** Where partners reach us, for links to the documentation. */
  readonly baseUrl: string;
  /** Whose address a call counts for; by default the connection's other end. */
  readonly clientAddress?: (peer: string, forwardedFor: string | undefined) => string;
}

/** A call of grpc-js, its message still bytes, and what answers it. */
export type RawCall = ServerUnaryCall<Buffer, Buffer>;
export type Respond = sendUnaryData<Buffer>;

/** Takes calls through the pipeline. */
export class GrpcDoor {
  readonly #options: GrpcDoorOptions;
  #underWay = 0;
  #whenIdle: (() => void) | undefined;

  constructor(options: GrpcDoorOptions) {
    this.#options = options;
  }

  /** Resolves once no call is under way. */
  idle(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  async serve(operation: Operation, call: RawCall, respond: Respond): Promise<void> {
    const { pipeline, baseUrl } = this.#options;
    const visit = pipeline.begin('grpc');
    this.#underWay += 1;
    try {
      const reply = await this.#reply(operation, call, visit);
      materialize(operation.output, reply.message);
      const bytes = toBinary(operation.output, reply.message);
      pipeline.finish(visit, reply.created ? 201 : 200);
      call.sendMetadata(replyMetadata(reply, visit.requestId));
      respond(null, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    } catch (error) {
      const refusal = pipeline.refusal(visit, error);
      pipeline.finish(visit, refusal.status, refusal.code);
      respond(grpcError(refusal, baseUrl, visit.requestId));
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#whenIdle?.();
    }
  }

  /** The decided order of checks, as far as it is gRPC's: as in REST, the message is looked at after the head. */
  async #reply(operation: Operation, call: RawCall, visit: Visit): Promise<Reply> {
    const { pipeline, clientAddress } = this.#options;
    const authorizations = call.metadata.get('authorization');
    const forwardedFor = call.metadata.get('x-forwarded-for');
    const peer = withoutPort(call.getPeer());
    await pipeline.admit(visit, {
      authorization: authorizations.length === 1 ? String(authorizations[0]) : undefined,
      clientAddress: clientAddress?.(peer, forwardedFor.length === 0 ? undefined : forwardedFor.join(', ')) ?? peer,
      route: () => ({ operation }),
    });
    const message = decode(operation, call.request);
    if (!(message instanceof ApiError)) {
      operation.checkPath(message);
      operation.checkQuery(message);
    }
    const key = checkIdempotencyKey(operation, call.metadata.get('idempotency-key').map(trimmed));
    if (message instanceof ApiError) throw message;
    return pipeline.call(visit, message, key);
  }
}

/** The message, or why it cannot be read: that comes after the Idempotency-Key in the order of checks. */
function decode(operation: Operation, bytes: Buffer): Message | ApiError {
  if (bytes.length > maxBodyBytes) {
    return new ApiError('request_too_large', { message: 'The message must have at most 16,384 bytes.' });
  }
  try {
    return decodeProtobuf(operation.input, bytes);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

function replyMetadata({ replayed, location }: Reply, requestId: string): Metadata {
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (replayed) metadata.set('idempotent-replayed', 'true');
  if (location !== undefined) metadata.set('location', location);
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
