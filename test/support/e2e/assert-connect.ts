import assert from 'node:assert/strict';
import { fromBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { ErrorInfoSchema, RetryInfoSchema } from '../../../src/gen/google/rpc/error_details_pb.ts';
import { ErrorSchema } from '../../../src/gen/marina/gateway/v1/errors_pb.ts';
import { assertHeaders, header, refusalHeaders } from './assert-rest.ts';
import { contract, expectedInfo, grpcStatusOf, type Refusal } from './refusals.ts';
import type { WireAnswer } from './wire.ts';

/** The HTTP status Connect gives a code; 405 and 415 stay what they are. */
const httpStatus: Partial<Record<status, number>> = {
  [status.INVALID_ARGUMENT]: 400,
  [status.UNAUTHENTICATED]: 401,
  [status.PERMISSION_DENIED]: 403,
  [status.NOT_FOUND]: 404,
  [status.ABORTED]: 409,
  [status.ALREADY_EXISTS]: 409,
  [status.RESOURCE_EXHAUSTED]: 429,
  [status.FAILED_PRECONDITION]: 400,
  [status.UNAVAILABLE]: 503,
};

/** Asserts that a call was refused with exactly this: the code, the headers, and the whole error as its typed detail. */
export function assertConnectRefusal(answer: WireAnswer, refusal: Refusal): void {
  const [restStatus, type, retryAfter] = [...contract[refusal.code], undefined];
  const code = grpcStatusOf(refusal.code);
  const own = restStatus === 405 || restStatus === 415 ? restStatus : httpStatus[code];
  assert.equal(answer.status, own, answer.text);
  assertHeaders(answer, refusalHeaders(refusal));
  assert.equal(header(answer, 'content-type'), 'application/json');
  const { code: word, message, details, ...rest } = JSON.parse(answer.text);
  assert.deepEqual(rest, {});
  assert.equal(word, status[code].toLowerCase());
  const [first, ...others] = details as { type: string; value: string }[];
  assert.equal(first?.type, ErrorSchema.typeName);
  const error = fromBinary(ErrorSchema, Buffer.from(first?.value ?? '', 'base64'));
  const { docUrl, message: sentence, $typeName: _, ...members } = error;
  assert.deepEqual(members, {
    type,
    code: refusal.code,
    ...(refusal.param === undefined ? {} : { param: refusal.param }),
    ...(refusal.rejectReason === undefined ? {} : { rejectReason: refusal.rejectReason }),
    ...(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
  });
  assert.equal(message, sentence);
  assert.ok(URL.canParse(docUrl), 'there is a link to the description of the code');
  const last = others.pop();
  assert.equal(last?.type, ErrorInfoSchema.typeName);
  const { $typeName: __, ...info } = fromBinary(ErrorInfoSchema, Buffer.from(last?.value ?? '', 'base64'));
  assert.deepEqual(info, expectedInfo(refusal));
  const delays = others.map(({ type: name, value }) => {
    assert.equal(name, RetryInfoSchema.typeName);
    return Number(fromBinary(RetryInfoSchema, Buffer.from(value, 'base64')).retryDelay?.seconds);
  });
  assert.deepEqual(delays, retryAfter === undefined ? [] : [retryAfter]);
}
