import { randomUUID } from 'node:crypto';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, type status } from '@grpc/grpc-js';
import { StatusSchema } from '../../../gen/google/rpc/status_pb.ts';
import type { ErrorDetail } from '../rpc.ts';

/** Why a call is refused: a gRPC status with its details. */
export interface GrpcStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata?: Metadata;
}

export type RichStatus = GrpcStatus & { readonly metadata: Metadata };

/** A status with typed details, in the form of `google.rpc.Status`. */
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
/** A handler finds its call's arrival by this header. The listener overwrites any value that the client sent. */
const arrivalHeader = 'marina-arrival';

/** A call whose head has arrived, and whose message is not read yet. */
export class Arrival {
  readonly id = randomUUID();
  readonly path: string;
  #answerTimer: NodeJS.Timeout | undefined;
  readonly #whenClosed: (() => void)[] = [];

  constructor(
    readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
    private readonly rawHeaders: readonly string[],
    readonly peer: string,
  ) {
    this.path = String(headers[':path']);
    headers[arrivalHeader] = this.id;
    stream.once('close', () => {
      for (const notify of this.#whenClosed) notify();
    });
  }

  /** Calls this when the stream has closed. A listener of the stream for each who waits for that would take longer. */
  whenClosed(notify: () => void): void {
    this.#whenClosed.push(notify);
  }

  /** All values of a header in the order sent. Node keeps the first of some headers and joins others. */
  values(name: string): string[] {
    if (this.headers[name] === undefined) return [];
    return this.rawHeaders.filter((_, at) => at % 2 === 1 && this.rawHeaders[at - 1] === name);
  }

  /** The value of a header that was sent exactly once. */
  only(name: string): string | undefined {
    const values = this.values(name);
    return values.length === 1 ? values[0] : undefined;
  }

  get forwardedFor(): string | undefined {
    const values = this.values('x-forwarded-for');
    return values.length === 0 ? undefined : values.join(', ');
  }

  get isGone(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  /** Gives the client a time to read its answer. After that the stream is cut. */
  answered(withinMs = answerMs): void {
    const { stream } = this;
    if (this.isGone) return;
    clearTimeout(this.#answerTimer);
    this.#answerTimer = setTimeout(() => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM), withinMs);
    this.whenClosed(() => clearTimeout(this.#answerTimer));
  }

  /** Ends the call with a status only. */
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
    this.#closeUnread();
  }

  /** Answers a request that is no gRPC call with an HTTP status only, as the gRPC protocol requires. */
  refuseHttp(httpStatus: number): void {
    if (this.isGone || this.stream.headersSent) return;
    this.stream.respond({ ':status': httpStatus }, { endStream: true });
    this.#closeUnread();
  }

  /** Reads nothing of what the client still sends. Not at once: Node 22 would drop the answer that it has not written yet. */
  #closeUnread(): void {
    setImmediate(() => this.stream.close(constants.NGHTTP2_NO_ERROR));
  }
}

export function arrivalId(metadata: Metadata): string {
  return String(metadata.get(arrivalHeader)[0]);
}
