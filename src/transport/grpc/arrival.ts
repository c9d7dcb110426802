import { randomUUID } from 'node:crypto';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Metadata } from '@grpc/grpc-js';
import type { GrpcStatus } from './status.ts';

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

  /** Whether the client has left, so that there is nobody to answer. */
  get isGone(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  /** Gives the client a time to read an answer that was handed over. The stream is cut when it does not. */
  answered(withinMs: number): void {
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
