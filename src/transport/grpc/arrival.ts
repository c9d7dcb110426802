import { randomUUID } from 'node:crypto';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, type status } from '@grpc/grpc-js';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';
import type { ErrorDetail } from '../rpc.ts';

/** Why a call is not served: a gRPC status and what goes with it. */
export interface GrpcStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata?: Metadata;
}

export type RichStatus = GrpcStatus & { readonly metadata: Metadata };

/** A status with typed details, in the form `google.rpc.Status` that clients know. */
export function richStatus(
  code: status,
  message: string,
  requestId: string,
  details: readonly ErrorDetail[],
): RichStatus {
  const text = message.toWellFormed();
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (details.length > 0) {
    const packed = details.map(({ desc, value }) => anyPack(desc, value));
    const rich = toBinary(StatusSchema, create(StatusSchema, { code, message: text, details: packed }));
    metadata.set('grpc-status-details-bin', Buffer.from(rich));
  }
  return { code, details: text, metadata };
}

/** How long a client may take to read a whole answer. */
const answerMs = 30_000;
/** How a handler finds the arrival of its call: a header that the listener sets, whatever the client sent in it. */
const arrivalHeader = 'marina-arrival';

/** A call whose head has arrived, and of whose message nothing has been read yet. */
export class Arrival {
  readonly id = randomUUID();
  readonly path: string;
  #answerTimer: NodeJS.Timeout | undefined;

  constructor(
    readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
    private readonly rawHeaders: readonly string[],
    /** The address of the connection's other end. */
    readonly peer: string,
  ) {
    this.path = String(headers[':path']);
    headers[arrivalHeader] = this.id;
  }

  /** All values of a header, in the order sent: Node keeps only the first of one, and joins those of another. */
  values(name: string): string[] {
    if (this.headers[name] === undefined) return [];
    return this.rawHeaders.filter((_, at) => at % 2 === 1 && this.rawHeaders[at - 1] === name);
  }

  /** The value of a header that was sent once. */
  only(name: string): string | undefined {
    const values = this.values(name);
    return values.length === 1 ? values[0] : undefined;
  }

  /** All X-Forwarded-For headers in the order sent, joined as one list. */
  get forwardedFor(): string | undefined {
    const values = this.values('x-forwarded-for');
    return values.length === 0 ? undefined : values.join(', ');
  }

  /** Whether the client has left, so that there is nobody to answer. */
  get isGone(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  /** Gives the client a time to read an answer that was handed over. The stream is cut when it does not. */
  answered(withinMs = answerMs): void {
    const { stream } = this;
    if (this.isGone) return;
    clearTimeout(this.#answerTimer);
    this.#answerTimer = setTimeout(() => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM), withinMs);
    stream.once('close', () => clearTimeout(this.#answerTimer));
  }

  /** Ends the call with a status alone. */
  refuse({ code, details, metadata }: GrpcStatus): void {
    if (this.isGone || this.stream.headersSent) return;
    this.stream.respond(
      {
        ':status': 200,
        'content-type': 'application/grpc+proto',
        ...metadata?.toHttp2Headers(),
        'grpc-status': String(code),
        'grpc-message': encodeURI(details.toWellFormed()),
      },
      { endStream: true },
    );
    // What the client still sends is not read.
    this.stream.close(constants.NGHTTP2_NO_ERROR);
  }

  /** Answers what is no gRPC call with an HTTP status alone, as gRPC has it. */
  refuseHttp(httpStatus: number): void {
    if (this.isGone || this.stream.headersSent) return;
    this.stream.respond({ ':status': httpStatus }, { endStream: true });
    this.stream.close(constants.NGHTTP2_NO_ERROR);
  }
}

/** The id of the arrival a call belongs to. */
export function arrivalId(metadata: Metadata): string {
  return String(metadata.get(arrivalHeader)[0]);
}
