import assert from 'node:assert/strict';
import { fromBinary } from '@bufbuild/protobuf';
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt';
import { ErrorInfoSchema, RetryInfoSchema } from '../../../src/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../../src/gen/google/rpc/status_pb.ts';
import { ErrorSchema } from '../../../src/gen/marina/gateway/v1/errors_pb.ts';
import type { GrpcAnswer } from './grpc-wire.ts';
import { contract, expectedInfo, grpcStatusOf, type Refusal } from './refusals.ts';

/** Asserts that a call was refused with exactly this: the status, and the whole error as its typed detail. */
export function assertGrpcRefusal(answer: GrpcAnswer, refusal: Refusal): void {
  const [, type, retryAfter] = [...contract[refusal.code], undefined];
  const rich = answer.metadata.get('grpc-status-details-bin');
  assert.equal(rich.length, 1, `${answer.code} ${answer.details} carries one status with details`);
  const { code, message, details } = fromBinary(StatusSchema, rich[0] as Buffer);
  const [first, ...others] = details;
  const error = first && anyUnpack(first, ErrorSchema);
  assert.ok(error, 'the first detail is the error');
  const { docUrl, message: sentence, $typeName: _, ...members } = error;
  assert.deepEqual(members, {
    type,
    code: refusal.code,
    ...(refusal.param === undefined ? {} : { param: refusal.param }),
    ...(refusal.rejectReason === undefined ? {} : { rejectReason: refusal.rejectReason }),
    ...(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
  });
  assert.equal(answer.code, grpcStatusOf(refusal.code));
  assert.equal(code, answer.code);
  assert.equal(message, sentence);
  assert.equal(answer.details, sentence);
  assert.ok(URL.canParse(docUrl), 'there is a link to the description of the code');
  assert.match(String(answer.metadata.get('x-request-id')[0]), /./);
  const { $typeName: __, ...info } = anyUnpack(others.pop() as Any, ErrorInfoSchema) ?? {};
  assert.deepEqual(info, expectedInfo(refusal));
  const delays = others.map((detail) => anyUnpack(detail, RetryInfoSchema)?.retryDelay);
  assert.deepEqual(
    delays.map((delay) => [Number(delay?.seconds), delay?.nanos]),
    retryAfter === undefined ? [] : [[retryAfter, 0]],
  );
}
