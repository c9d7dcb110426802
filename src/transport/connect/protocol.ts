import type { IncomingMessage } from 'node:http';
import type { Message } from '@bufbuild/protobuf';
import { type Code, ConnectError } from '@connectrpc/connect';
import {
  codeToHttpStatus,
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
} from '@connectrpc/connect/protocol-connect';
import { ApiError, refusalOf } from '../../lib/errors.ts';
import { type Answer, errorHeaders, replyHeaders, type StreamAnswer } from '../http/answer.ts';
import { type HttpRequest, readTarget } from '../http/request.ts';
import type { HttpProtocol } from '../http/server.ts';
import { type Operation, rpcPath } from '../operations.ts';
import type { ProtocolOptions } from '../pipeline.ts';
import type { RequestContext } from '../request.ts';
import { errorDetails, readRpcRequest, rpcStatus } from '../rpc.ts';
import { Codec, envelope, type MediaType, readMediaType } from './codec.ts';

interface Route {
  readonly operation: Operation;
  readonly codec: Codec;
}

const endStream = createEndStreamSerialization(undefined);

/**
 * Takes the calls of Connect's protocol through the pipeline: POST only, uncompressed. The library's own handlers decode
 * a message before they tell of the call, which our order of checks does not allow (docs/decisions/0003-grpc-js-and-connect-node.md). So it lends its
 * forms: envelopes, errors, the end of a stream. Connect-Timeout-Ms is the client's own affair, as a client that leaves
 * is: what was begun is brought to its end.
 */
export class ConnectProtocol implements HttpProtocol {
  readonly name = 'connect';
  readonly paths: RegExp;
  readonly #options: ProtocolOptions;
  readonly #routes: ReadonlyMap<string, Route>;

  constructor(options: ProtocolOptions) {
    const { operations } = options;
    this.#options = options;
    this.#routes = new Map(
      operations.map((operation) => [rpcPath(operation.method), { operation, codec: new Codec(operation) }]),
    );
    const packages = new Set(operations.map(({ method }) => method.parent.file.proto.package.replaceAll('.', '\\.')));
    this.paths = new RegExp(`^/(?:${[...packages].join('|')})\\.`);
  }

  /** The decided order of checks: as in gRPC, the message is looked at after the head. */
  async answer(request: HttpRequest, context: RequestContext): Promise<Answer | StreamAnswer> {
    const { pipeline } = this.#options;
    const find = () => this.#find(request.method, request.path);
    const { operation, codec } = await pipeline.admit(context, request, find);
    const { message, idempotencyKey } = await readRpcRequest(operation, request.idempotencyKeys, async () => {
      const mediaType = codec.mediaType(request);
      return codec.decode(mediaType, await request.readBody(codec.bound(mediaType)));
    });
    const mediaType = codec.mediaType(request);
    const contentType = mediaType.name;
    if (operation.kind === 'stream') {
      const messages = (ending: AbortController) =>
        encoded(codec, mediaType, pipeline.stream(context, message, ending));
      return { status: 200, headers: [], contentType, messages, end: (error) => this.#streamEnd(error) };
    }
    const reply = await pipeline.call(context, message, idempotencyKey);
    return { status: 200, headers: replyHeaders(reply), contentType, body: codec.encode(mediaType, reply.message) };
  }

  /** Who asks for a stream looks for the error in the stream's end; who does not speak of one gets it whole. */
  refusal(error: ApiError, request: IncomingMessage): Answer {
    const mediaType = readMediaType(request.headers['content-type']);
    const route = this.#routes.get(readTarget(request).path);
    if (mediaType?.isStream === true && route?.operation.kind === 'stream' && request.method === 'POST') {
      return { status: 200, headers: [], contentType: mediaType.name, body: this.#streamEnd(error) };
    }
    const described = describe(error, this.#options.baseUrl);
    // Connect gives every code a status; what is wrong with the HTTP request itself keeps HTTP's own.
    const status = error.status === 405 || error.status === 415 ? error.status : codeToHttpStatus(described.code);
    return { status, headers: errorHeaders(error), body: Buffer.from(errorToJsonBytes(described, undefined)) };
  }

  unknownMethod(path: string): ApiError {
    return refusalOf(() => this.#find('', path));
  }

  #find(method: string, path: string): Route {
    const route = this.#routes.get(path);
    if (route === undefined) throw new ApiError('not_found');
    if (method !== 'POST') throw new ApiError('method_not_allowed', { allow: ['POST'] });
    return route;
  }

  /** What stands at the end of a stream: its error, if there was one. */
  #streamEnd(error: ApiError | undefined): Buffer {
    const end = { metadata: new Headers(), error: error && describe(error, this.#options.baseUrl) };
    return envelope(endStreamFlag, endStream.serialize(end));
  }
}

async function* encoded(codec: Codec, mediaType: MediaType, messages: AsyncIterable<Message>): AsyncGenerator<Buffer> {
  for await (const message of messages) yield codec.encode(mediaType, message);
}

/** The one place where an error of the catalogue becomes Connect's: a code with the whole error as a typed detail. */
function describe(error: ApiError, baseUrl: string): ConnectError {
  const metadata = new Headers();
  if (error.retryAfterSeconds !== undefined) metadata.set('retry-after', String(error.retryAfterSeconds));
  if (error.location !== undefined) metadata.set('location', error.location);
  // Connect's codes are gRPC's, number by number.
  const code = rpcStatus(error) as number as Code;
  return new ConnectError(error.message, code, metadata, errorDetails(error, baseUrl));
}
