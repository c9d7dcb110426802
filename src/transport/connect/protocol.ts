import type { IncomingMessage } from 'node:http';
import { type Message, toJsonString } from '@bufbuild/protobuf';
import { type Code, ConnectError } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import {
  codeToHttpStatus,
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
  parseContentType,
} from '@connectrpc/connect/protocol-connect';
import { compileDecoder, type Decoder } from '../../json/decoder.ts';
import { protobufForm } from '../../json/protobuf-form.ts';
import { materialize } from '../../json/stored.ts';
import { ApiError, refusalOf } from '../../lib/errors.ts';
import {
  type Answer,
  type BodyBound,
  errorHeaders,
  type HttpRequest,
  messageBound,
  readTarget,
  replyHeaders,
  type StreamAnswer,
} from '../http/messages.ts';
import type { HttpProtocol } from '../http/server.ts';
import { maxBodyBytes, type Operation, rpcPath } from '../operations.ts';
import type { ProtocolOptions } from '../pipeline.ts';
import type { RequestContext } from '../request.ts';
import { decodeProtobuf, encodeProtobuf, errorDetails, readRpcRequest, rpcStatus } from '../rpc.ts';

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

/** An error of the catalogue as Connect's, here alone: a code with the whole error as a typed detail. */
function describe(error: ApiError, baseUrl: string): ConnectError {
  const metadata = new Headers();
  if (error.retryAfterSeconds !== undefined) metadata.set('retry-after', String(error.retryAfterSeconds));
  if (error.location !== undefined) metadata.set('location', error.location);
  // Connect's codes are gRPC's, number by number.
  const code = rpcStatus(error) as number as Code;
  return new ConnectError(error.message, code, metadata, errorDetails(error, baseUrl));
}

/** How a call's messages are written: in JSON or binary, and in envelopes where there may be many. */
export interface MediaType {
  readonly isBinary: boolean;
  readonly isStream: boolean;
  /** As it is written in Content-Type. */
  readonly name: string;
}

/** The media type of a request; undefined for what Connect does not have. */
export function readMediaType(contentType: string | undefined): MediaType | undefined {
  const parsed = parseContentType(contentType ?? null);
  if (parsed === undefined) return undefined;
  const { binary: isBinary, stream: isStream } = parsed;
  return { isBinary, isStream, name: `application/${isStream ? 'connect+' : ''}${isBinary ? 'proto' : 'json'}` };
}

/** Reads and writes the messages of one operation. */
export class Codec {
  readonly #operation: Operation;
  readonly #decodeJson: Decoder<Message>;

  constructor(operation: Operation) {
    this.#operation = operation;
    this.#decodeJson = compileDecoder(operation.input, operation.input.fields, protobufForm);
  }

  /** Throws `unsupported_media_type` for what the operation does not take, compressed bodies among it. */
  mediaType({ contentType, isEncoded }: HttpRequest): MediaType {
    const isStream = this.#operation.kind === 'stream';
    const mediaType = readMediaType(contentType);
    if (mediaType?.isStream === isStream && !isEncoded) return mediaType;
    const forms = isStream
      ? 'application/connect+json or application/connect+proto'
      : 'application/json or application/proto';
    const message = `The Content-Type must be ${forms}, without Content-Encoding.`;
    throw new ApiError('unsupported_media_type', { message });
  }

  /** How large a request's body may be: that of a file also has what is written around it, and in JSON is base64. */
  bound({ isBinary }: MediaType): BodyBound {
    const { file } = this.#operation;
    if (file === undefined) return messageBound;
    const fileBytes = isBinary ? file.maxBytes : 4 * Math.ceil(file.maxBytes / 3);
    return { maxBytes: fileBytes + maxBodyBytes, tooLarge: () => new ApiError(file.tooLargeCode) };
  }

  decode({ isBinary, isStream }: MediaType, body: Buffer): Message {
    const bytes = isStream ? openEnvelope(body) : body;
    return isBinary ? decodeProtobuf(this.#operation.input, bytes) : this.#decodeJson(bytes);
  }

  encode({ isBinary, isStream }: MediaType, message: Message): Buffer {
    const bytes = isBinary ? encodeProtobuf(this.#operation.output, message) : this.#encodeJson(message);
    return isStream ? envelope(0, bytes) : bytes;
  }

  #encodeJson(message: Message): Buffer {
    const { output } = this.#operation;
    materialize(output, message);
    return Buffer.from(toJsonString(output, message, { alwaysEmitImplicit: true }));
  }
}

const envelopeHeadBytes = 5;

/** A message of a stream, or with the flag that says so, its end. */
export function envelope(flags: number, bytes: Uint8Array): Buffer {
  const enveloped = encodeEnvelope(flags, bytes);
  return Buffer.from(enveloped.buffer, enveloped.byteOffset, enveloped.byteLength);
}

/** The one message of a request to a stream. */
function openEnvelope(body: Buffer): Buffer {
  const isOne =
    body.length >= envelopeHeadBytes && body[0] === 0 && body.readUInt32BE(1) === body.length - envelopeHeadBytes;
  if (isOne) return body.subarray(envelopeHeadBytes);
  throw new ApiError('invalid_request', { message: 'The body is not one uncompressed message in its envelope.' });
}
