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
import { ApiError, refusalOf } from '../errors.ts';
import { jsonMediaType } from '../http/media-type.ts';
import {
  type Answer,
  errorHeaders,
  type HttpRequest,
  messageBound,
  readTarget,
  replyHeaders,
  type StreamAnswer,
} from '../http/messages.ts';
import type { HttpProtocol } from '../http/server.ts';
import { compileDecoder, type JsonDecoder } from '../json/decoder.ts';
import { protobufForm } from '../json/protobuf-form.ts';
import { splitStart } from '../json/start.ts';
import { materialize } from '../json/stored.ts';
import { type ApiOperation, maxBodyBytes, rpcPath } from '../operations.ts';
import type { ProtocolOptions } from '../pipeline.ts';
import type { RequestContext } from '../request.ts';
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
  withLargeFile,
} from '../rpc.ts';

interface Route {
  readonly operation: ApiOperation;
  readonly codec: Codec;
}

/** How much is read of a message that is too large: the fields that come before its large one. */
const maxStartBytes = 16_384;
const endStream = createEndStreamSerialization(undefined);

/**
 * Connect's protocol over the pipeline: POST only, uncompressed. The library's own handlers decode a message before
 * they report the call, which breaks our order of checks (docs/decisions/0003-grpc-js-and-connect-node.md). So only its
 * formats are used: envelopes, errors, the end of a stream. Connect-Timeout-Ms is ignored: as when a client leaves, a
 * started call runs to its end.
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

  /** Checks in the decided order: as in gRPC, the message comes after the head. */
  async answer(request: HttpRequest, context: RequestContext): Promise<Answer | StreamAnswer> {
    const { pipeline } = this.#options;
    const find = () => this.#find(request.method, request.path);
    const { operation, codec } = await pipeline.admit(context, request, find);
    const { message, idempotencyKey } = await readRequest(request, operation, codec);
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

  /** A stream's error goes into its end. Any other request gets the error as a body. */
  refusal(error: ApiError, request: IncomingMessage): Answer {
    const mediaType = readMediaType(request.headers['content-type']);
    const route = this.#routes.get(readTarget(request).path);
    if (mediaType?.isStream === true && route?.operation.kind === 'stream' && request.method === 'POST') {
      return { status: 200, headers: [], contentType: mediaType.name, body: this.#streamEnd(error) };
    }
    const described = describe(error, this.#options.baseUrl);
    // Connect maps every code to a status. 405 and 415 are about the HTTP request itself, so they stay.
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

  /** The end of a stream, with its error if there was one. */
  #streamEnd(error: ApiError | undefined): Buffer {
    const end = { metadata: new Headers(), error: error && describe(error, this.#options.baseUrl) };
    return envelope(endStreamFlag, endStream.serialize(end));
  }
}

/** Reads the message after the head, as gRPC does. Of one that is too large only the beginning is read, for the checks before the size. */
async function readRequest(request: HttpRequest, operation: ApiOperation, codec: Codec): Promise<RpcRequest> {
  const receive = async () => {
    const mediaType = codec.mediaType(request);
    const maxBytes = codec.maxBytes(mediaType);
    // Nothing in such a message is checked before its size.
    if (!hasCheckedStart(operation)) {
      return { mediaType, isWhole: true, bytes: await request.readBody({ ...messageBound, maxBytes }) };
    }
    return { mediaType, ...(await request.readBodyOrStart(maxBytes, maxStartBytes)) };
  };
  const received = receive();
  // What is wrong with the body comes after the Idempotency-Key.
  const start = await received.then(
    (body) => (body.isWhole ? undefined : body),
    () => undefined,
  );
  const keys = request.idempotencyKeys;
  if (start !== undefined) return readTooLarge(operation, keys, () => codec.decodeStart(start.mediaType, start.bytes));
  return readRpcRequest(operation, keys, async () => {
    const { mediaType, bytes } = await received;
    return codec.decode(mediaType, bytes);
  });
}

/** Whether a message has fields that are checked before its size: those of the path, or of a file's handler. */
function hasCheckedStart({ file, http }: ApiOperation): boolean {
  return file !== undefined || (http?.pathFields.length ?? 0) > 0;
}

async function* encoded(codec: Codec, mediaType: MediaType, messages: AsyncIterable<Message>): AsyncGenerator<Buffer> {
  for await (const message of messages) yield codec.encode(mediaType, message);
}

/** Maps an error of the catalogue to Connect's: a code with the whole error as a typed detail. The only such place. */
function describe(error: ApiError, baseUrl: string): ConnectError {
  const metadata = new Headers();
  if (error.retryAfterSeconds !== undefined) metadata.set('retry-after', String(error.retryAfterSeconds));
  if (error.location !== undefined) metadata.set('location', error.location);
  // Connect's codes have gRPC's numbers.
  const code = rpcStatus(error) as number as Code;
  return new ConnectError(error.message, code, metadata, errorDetails(error, baseUrl));
}

/** A call's encoding: JSON or binary, and in envelopes for streams. */
export interface MediaType {
  readonly isBinary: boolean;
  readonly isStream: boolean;
  readonly name: string;
}

/** A request's media type; undefined if Connect does not have it. */
function readMediaType(contentType: string | undefined): MediaType | undefined {
  const parsed = parseContentType(jsonMediaType(contentType) ?? contentType ?? null);
  if (parsed === undefined) return undefined;
  const { binary: isBinary, stream: isStream } = parsed;
  return { isBinary, isStream, name: `application/${isStream ? 'connect+' : ''}${isBinary ? 'proto' : 'json'}` };
}

class Codec {
  readonly #operation: ApiOperation;
  readonly #decodeJson: JsonDecoder<Message>;

  constructor(operation: ApiOperation) {
    this.#operation = operation;
    this.#decodeJson = compileDecoder(operation.input, operation.input.fields, protobufForm);
  }

  /** Throws `unsupported_media_type` for media types that the operation does not take, and for compressed bodies. */
  mediaType({ contentType, isEncoded }: HttpRequest): MediaType {
    const isStream = this.#operation.kind === 'stream';
    const mediaType = readMediaType(contentType);
    if (mediaType?.isStream === isStream) {
      if (isEncoded) throw new CompressedRefusal();
      return mediaType;
    }
    const forms = isStream
      ? 'application/connect+json or application/connect+proto'
      : 'application/json or application/proto';
    const message = `The Content-Type must be ${forms}, without Content-Encoding.`;
    throw new ApiError('unsupported_media_type', { message });
  }

  /** The limit of a request's body. A file is base64 in JSON, and has other fields around it. */
  maxBytes({ isBinary }: MediaType): number {
    const { file } = this.#operation;
    if (file === undefined) return maxBodyBytes;
    return (isBinary ? file.maxBytes : 4 * Math.ceil(file.maxBytes / 3)) + maxBodyBytes;
  }

  decode({ isBinary, isStream }: MediaType, body: Buffer): Message {
    const bytes = isStream ? openEnvelope(body) : body;
    return isBinary ? decodeProtobuf(this.#operation.input, bytes) : this.#decodeJson(bytes);
  }

  /** Reads the fields that come before the cut. A file that is cut is in the message as one that is too large. */
  decodeStart({ isBinary }: MediaType, start: Buffer): Message {
    const { file, input } = this.#operation;
    if (isBinary) return decodeCut(this.#operation, start);
    const { whole, cut } = splitStart(start);
    const message = this.#decodeJson(whole);
    const content = file && input.fields.find(({ localName }) => localName === file.contentKey);
    const isFile = content !== undefined && protobufForm.namesOf(content).includes(cut ?? '');
    return file !== undefined && isFile ? withLargeFile(message, file) : message;
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
const compressedFlag = 1;

/** Wraps a message of a stream. A flag marks the end. */
export function envelope(flags: number, bytes: Uint8Array): Buffer {
  const enveloped = encodeEnvelope(flags, bytes);
  return Buffer.from(enveloped.buffer, enveloped.byteOffset, enveloped.byteLength);
}

/** The one message of a request to a stream. */
function openEnvelope(body: Buffer): Buffer {
  if (body.length >= envelopeHeadBytes && body[0] === compressedFlag) throw new CompressedRefusal();
  const isOne =
    body.length >= envelopeHeadBytes && body[0] === 0 && body.readUInt32BE(1) === body.length - envelopeHeadBytes;
  if (isOne) return body.subarray(envelopeHeadBytes);
  throw new ApiError('invalid_request', { message: 'The body is not one uncompressed message in its envelope.' });
}
