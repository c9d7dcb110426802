import assert from 'node:assert/strict';
import { type DescMessage, fromBinary, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { status as grpcStatus } from '@grpc/grpc-js';
import { ApiError, catalogue, type ErrorCode } from '../../../../src/gateway/edge/errors.ts';
import type { OperationRules } from '../../../../src/gateway/edge/operations.ts';
import { withoutPersonalText } from '../../../../src/gateway/edge/personal-text.ts';
import { rpcStatus } from '../../../../src/gateway/edge/rpc.ts';
import { StatusSchema } from '../../../../src/gen/google/rpc/status_pb.ts';
import { type Error as ErrorDetail, ErrorSchema } from '../../../../src/gen/marina/gateway/v1/errors_pb.ts';
import { assertDescribed } from '../../described.ts';
import type { GrpcAnswer } from '../../e2e/grpc-wire.ts';
import type { WireAnswer, WireRequest } from '../../e2e/wire.ts';
import type { FuzzCase } from './cases.ts';

/** The id of the object that is stored because of the request, as the answer has it. */
export type Stored = string | undefined;

/** Checks an answer of REST. */
export function judgeRest(operation: OperationRules, fuzz: FuzzCase, request: WireRequest, answer: WireAnswer): Stored {
  const { status, text } = answer;
  const header = (name: string) => answer.headers.get(name)?.[0];
  assertAlways(answer);
  assertDescribed({ method: request.method, path: request.path, status, text, header });
  const body = text === '' ? undefined : JSON.parse(text);
  if (status >= 300) assertError(operation, fuzz, { ...body.error }, status);
  return idIn(status < 300 ? body?.id : header('location'));
}

/** Checks an answer of Connect. */
export function judgeConnect(operation: OperationRules, fuzz: FuzzCase, answer: WireAnswer): Stored {
  const { status, text, bytes } = answer;
  assertAlways(answer);
  if (status === 200) {
    const isBinary = fuzz.protocol === 'Connect binary';
    return idOf(isBinary ? whole(operation.output, bytes) : fromJson(operation.output, JSON.parse(text) as JsonValue));
  }
  const { code, details } = JSON.parse(text) as { code: string; details: { type: string; value: string }[] };
  const detail = details.find(({ type }) => type === ErrorSchema.typeName);
  assert.ok(detail, `the error has no detail: ${text}`);
  const error = fromBinary(ErrorSchema, Buffer.from(detail.value, 'base64'));
  assertError(operation, fuzz, error);
  // Connect's code for a compression that a server does not take.
  const isCompressed = fuzz.twist === 'compressed' && error.code === 'unsupported_media_type';
  assert.equal(code.toUpperCase(), isCompressed ? 'UNIMPLEMENTED' : statusName(error));
  return idIn(answer.headers.get('location')?.[0]);
}

/** Checks an answer of gRPC. */
export function judgeGrpc(operation: OperationRules, fuzz: FuzzCase, answer: GrpcAnswer): Stored {
  const { code, details, bytes, metadata } = answer;
  if (code === grpcStatus.OK) {
    assert.ok(metadata.get('x-request-id').length > 0, 'there is no x-request-id');
    return bytes === undefined ? undefined : idOf(whole(operation.output, bytes));
  }
  const [rich] = metadata.get('grpc-status-details-bin');
  if (rich === undefined) {
    // These never became a call of ours: too large for gRPC, or no message at all.
    const own = [grpcStatus.RESOURCE_EXHAUSTED, grpcStatus.CANCELLED, grpcStatus.UNIMPLEMENTED];
    assert.ok(own.includes(code), `${grpcStatus[code]} without a detail: ${details}`);
    return undefined;
  }
  const found = fromBinary(StatusSchema, rich as Buffer).details.map((each) => anyUnpack(each, ErrorSchema));
  const error = found.find((each) => each !== undefined);
  assert.ok(error, `${grpcStatus[code]} has no error of ours in its details`);
  assertError(operation, fuzz, error);
  assert.equal(grpcStatus[code], statusName(error));
  return idIn(metadata.get('location')[0]?.toString());
}

function assertAlways({ status, headers, text }: WireAnswer): void {
  assert.ok(status >= 200 && status !== 500, `${status}: ${text}`);
  for (const name of ['x-request-id', 'cache-control', 'x-content-type-options'])
    assert.ok(headers.has(name), `there is no ${name}`);
}

/** The code is one of the catalogue with its type and status, and the parameter is one there is, or one that was sent. */
function assertError(operation: OperationRules, fuzz: FuzzCase, error: Partial<ErrorDetail>, status?: number): void {
  const known = catalogue[error.code as ErrorCode];
  assert.ok(known, `${error.code} is not in the catalogue`);
  assert.notEqual(error.code, 'internal_error');
  assert.equal(error.type, known.type, `the type of ${error.code}`);
  if (status !== undefined) assert.equal(status, known.status, `the status of ${error.code}`);
  if (error.param === undefined) return;
  // Half a surrogate pair has no form in a URL. A name is repeated without what may describe a person.
  const oddities = [fuzz.oddity, Buffer.from(fuzz.oddity).toString()].flatMap((each) => [
    each,
    withoutPersonalText(each.slice(0, 200).toWellFormed()),
  ]);
  const sent = fuzz.twist === 'none' ? [] : [...oddities, 'account', 'id'];
  const fields = operation.input.fields.flatMap(({ name, jsonName }) => [name, jsonName]);
  const names = [...fields, 'Idempotency-Key', 'Content-Type', ...sent];
  assert.ok(
    names.some((name) => belongs(error.param ?? '', name)),
    `${error.param} is no parameter of ${operation.name}`,
  );
}

/** Whether `a.b[0].c` is of the field `a`; of a name that was sent and is very long, only the beginning is said. */
function belongs(param: string, name: string): boolean {
  if (param.length >= 100) return name.startsWith(param);
  return param === name || (param.startsWith(name) && /^[.[]/.test(param.slice(name.length)));
}

function statusName({ code }: Partial<ErrorDetail>): string {
  return grpcStatus[rpcStatus(new ApiError(code as ErrorCode))] ?? '';
}

/** A message in which nothing is unknown. */
function whole(schema: DescMessage, bytes: Uint8Array) {
  const message = fromBinary(schema, bytes);
  assert.equal(message.$unknown, undefined, 'the answer has fields that its message does not have');
  return message;
}

function idOf(message: object): Stored {
  const { id } = message as { id?: unknown };
  return idIn(typeof id === 'string' ? id : undefined);
}

function idIn(text: string | undefined): Stored {
  return /(?:ord|app|alc|wdr)_[a-z2-7]{20}/.exec(text ?? '')?.[0];
}
