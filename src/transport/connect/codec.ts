import { type Message, toJsonString } from '@bufbuild/protobuf';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { parseContentType } from '@connectrpc/connect/protocol-connect';
import { compileDecoder, type Decoder } from '../../json/decoder.ts';
import { protobufForm } from '../../json/protobuf-form.ts';
import { materialize } from '../../json/stored.ts';
import { ApiError } from '../../lib/errors.ts';
import { fileTooLarge } from '../file-body.ts';
import { type BodyBound, type HttpRequest, messageBound } from '../http/request.ts';
import { maxBodyBytes, type Operation } from '../operations.ts';
import { decodeProtobuf, encodeProtobuf } from '../protobuf.ts';

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
    return { maxBytes: fileBytes + maxBodyBytes, tooLarge: () => fileTooLarge(file) };
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
