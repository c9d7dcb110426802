import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageShape,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { status } from '@grpc/grpc-js';
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { ErrorSchema } from '../../gen/marina/gateway/v1/errors_pb.ts';
import { ApiError, docUrl, type ErrorCode, type HttpStatus } from './errors.ts';
import { materialize } from './json/stored.ts';
import { type ApiOperation, type FileBody, readIdempotencyKey } from './operations.ts';

/** A request of gRPC or Connect with checked parameters. */
export interface RpcRequest {
  readonly message: Message;
  readonly idempotencyKey: string | undefined;
}

/**
 * Reads a message and checks the fields that REST has in its path, query and head, in REST's order. So an undecodable
 * message is reported after the Idempotency-Key.
 */
export async function readRpcRequest(
  operation: ApiOperation,
  idempotencyKeys: readonly string[],
  decode: () => Message | Promise<Message>,
): Promise<RpcRequest> {
  let message: Message | undefined;
  let refusal: unknown;
  try {
    message = await decode();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    refusal = error;
  }
  if (message !== undefined) {
    operation.checkPath(message);
    operation.checkQuery(message);
  }
  const idempotencyKey = readIdempotencyKey(operation, idempotencyKeys);
  if (message === undefined) throw refusal;
  return { message, idempotencyKey };
}

/**
 * Reads a message that is too large, of which `decode` reads the beginning. If its file is what is too large, the request is returned,
 * because the handler refuses a file in its turn. Otherwise throws the error for the size, after those for the path, query and key.
 */
export async function readTooLarge(
  operation: ApiOperation,
  idempotencyKeys: readonly string[],
  decode: () => Message,
): Promise<RpcRequest> {
  const { file, http } = operation;
  const tooLarge =
    file === undefined
      ? new ApiError('request_too_large', { message: 'The message must have at most 16,384 bytes.' })
      : new ApiError(file.tooLargeCode);
  const read = (message: Message, name: string) => (message as unknown as Record<string, unknown>)[name];
  const request = await readRpcRequest(operation, idempotencyKeys, () => {
    const message = decodeForPath(operation, decode, tooLarge);
    // A field of the path may be behind the large one.
    if (http?.pathFields.some(({ localName }) => (read(message, localName) ?? '') === '')) throw tooLarge;
    return message;
  });
  const content = file && read(request.message, file.contentKey);
  if (file === undefined || !(content instanceof Uint8Array) || content.length <= file.maxBytes) throw tooLarge;
  return request;
}

/** Only what is wrong with a field of the path comes before the size. */
function decodeForPath({ http }: ApiOperation, decode: () => Message, tooLarge: ApiError): Message {
  try {
    return decode();
  } catch (error) {
    const param = error instanceof ApiError ? error.param : undefined;
    throw http?.pathFields.some(({ name }) => name === param) ? error : tooLarge;
  }
}

/** Marks a message whose file was cut: its file is one that is too large. */
export function withLargeFile(message: Message, { contentKey, maxBytes }: FileBody): Message {
  return Object.assign(message, { [contentKey]: new Uint8Array(maxBytes + 1) });
}

const statusByHttpStatus: Readonly<Record<HttpStatus, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  405: status.UNIMPLEMENTED,
  409: status.ABORTED,
  413: status.RESOURCE_EXHAUSTED,
  415: status.INVALID_ARGUMENT,
  422: status.FAILED_PRECONDITION,
  429: status.RESOURCE_EXHAUSTED,
  500: status.INTERNAL,
  502: status.UNAVAILABLE,
  503: status.UNAVAILABLE,
};

/** Where gRPC has a better word than the HTTP status. A library may repeat UNAVAILABLE by itself: these it must not. */
const statusByCode: Partial<Readonly<Record<ErrorCode, status>>> = {
  duplicate_order: status.ALREADY_EXISTS,
  duplicate_application: status.ALREADY_EXISTS,
  duplicate_allocation: status.ALREADY_EXISTS,
  duplicate_withdrawal: status.ALREADY_EXISTS,
  order_not_cancelable: status.FAILED_PRECONDITION,
  order_not_sent: status.FAILED_PRECONDITION,
  application_not_sent: status.FAILED_PRECONDITION,
  allocation_not_sent: status.FAILED_PRECONDITION,
  withdrawal_not_sent: status.FAILED_PRECONDITION,
};

/** The error for a compressed message. Its status tells a library of gRPC or Connect to send it without compression. */
export class CompressedRefusal extends ApiError {
  constructor() {
    super('unsupported_media_type', { message: 'Compressed messages are not taken.' });
  }
}

/** An error's gRPC status. Connect's codes are the same numbers. */
export function rpcStatus(error: ApiError): status {
  if (error instanceof CompressedRefusal) return status.UNIMPLEMENTED;
  return statusByCode[error.code] ?? statusByHttpStatus[error.status];
}

export interface ErrorDetail<Desc extends DescMessage = DescMessage> {
  readonly desc: Desc;
  readonly value: MessageShape<Desc>;
}

/** The namespace of an ErrorInfo's reasons. */
const errorDomain = 'marina.gateway.v1';

/**
 * The whole error as a typed detail of its status, then what gRPC's own tools understand: how long to wait, as REST's
 * `Retry-After` says it, and the code as google.rpc.ErrorInfo.
 */
export function errorDetails(error: ApiError, baseUrl: string): ErrorDetail[] {
  const { type, code, message, param, rejectReason, retryAfterSeconds } = error;
  const whole = { type, code, message, docUrl: docUrl(baseUrl, code), param, rejectReason, retryAfterSeconds };
  const details: ErrorDetail[] = [{ desc: ErrorSchema, value: create(ErrorSchema, whole) }, ...retryDetails(error)];
  const metadata: Record<string, string> = {};
  if (param !== undefined) metadata.param = param;
  if (rejectReason !== undefined) metadata.reject_reason = rejectReason;
  const info = { reason: code.toUpperCase(), domain: errorDomain, metadata };
  details.push({ desc: ErrorInfoSchema, value: create(ErrorInfoSchema, info) });
  return details;
}

/** How long to wait before the call is made again, if its error says so. */
export function retryDetails({ retryAfterSeconds }: ApiError): ErrorDetail[] {
  if (retryAfterSeconds === undefined) return [];
  const retry = { retryDelay: { seconds: BigInt(retryAfterSeconds) } };
  return [{ desc: RetryInfoSchema, value: create(RetryInfoSchema, retry) }];
}

/** Reads a protobuf message from a client and ignores unknown fields. Throws `invalid_request` for invalid bytes. */
export function decodeProtobuf(schema: DescMessage, bytes: Uint8Array): Message {
  try {
    checkWire(schema, new BinaryReader(bytes), bytes.length, 0);
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (error) {
    const message = `The message is not a ${schema.typeName} in protobuf's encoding.`;
    throw new ApiError('invalid_request', { message, cause: error });
  }
}

/** Reads the fields that are whole in a message's first bytes, and says which field is cut, if it is a known one. */
function decodeStart(schema: DescMessage, start: Uint8Array): { message: Message; cut: DescField | undefined } {
  const reader = new BinaryReader(start);
  let end = 0;
  let cut: DescField | undefined;
  try {
    while (reader.pos < start.length) {
      const [number, wireType] = reader.tag();
      cut = schema.fields.find((field) => field.number === number);
      reader.skip(wireType, number, maxDepth);
      end = reader.pos;
      cut = undefined;
    }
  } catch {
    // The cut field has less bytes than it says.
  }
  return { message: decodeProtobuf(schema, start.subarray(0, end)), cut };
}

/** Reads the fields of a request that come before a cut. A file that is cut is in the message as one that is too large. */
export function decodeCut({ input, file }: ApiOperation, start: Uint8Array): Message {
  const { message, cut } = decodeStart(input, start);
  return file !== undefined && cut?.localName === file.contentKey ? withLargeFile(message, file) : message;
}

/** Encodes an answer in protobuf. */
export function encodeProtobuf(schema: DescMessage, message: Message): Buffer {
  materialize(schema, message);
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const maxDepth = 32;

/**
 * Checks that every known field has its own wire type and that lengths are right. The library ignores the wire type in
 * the bytes, so a client with another proto could place an order with a quantity that it never wrote.
 */
function checkWire(schema: DescMessage, reader: BinaryReader, end: number, depth: number): void {
  if (depth > maxDepth) throw new Error('nested too deep');
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = schema.fields.find((candidate) => candidate.number === number);
    if (field !== undefined && !allows(field, wireType)) throw new Error(`${field} has wire type ${wireType}`);
    const inside = field?.message;
    if (inside === undefined) {
      reader.skip(wireType, number, maxDepth);
    } else {
      const length = reader.uint32();
      checkWire(inside, reader, reader.pos + length, depth + 1);
    }
  }
  if (reader.pos !== end || end > reader.len) throw new Error('a message does not end where it says');
}

function allows(field: DescField, wireType: WireType): boolean {
  const own = ownWireType(field);
  const isPackable = field.fieldKind === 'list' && own !== WireType.LengthDelimited;
  return wireType === own || (isPackable && wireType === WireType.LengthDelimited);
}

function ownWireType({ scalar, enum: enumeration }: DescField): WireType {
  if (enumeration !== undefined) return WireType.Varint;
  switch (scalar) {
    case undefined:
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
