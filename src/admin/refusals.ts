import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { BadRequestSchema } from '../gen/google/rpc/error_details_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { type RichStatus, richStatus } from '../transport/grpc/arrival.ts';
import { rpcStatus } from '../transport/rpc.ts';
import { AdminError } from './call.ts';

/** What an operator is told of an error: a field that is at fault is named in a `google.rpc.BadRequest`. */
export function toRefusal(error: unknown, requestId: string): RichStatus {
  const { code, message, param } = describe(error);
  if (param === undefined) return richStatus(code, message, requestId, []);
  const fieldViolations = [{ field: param, description: message.toWellFormed() }];
  const detail = { desc: BadRequestSchema, value: create(BadRequestSchema, { fieldViolations }) };
  return richStatus(code, message, requestId, [detail]);
}

function describe(error: unknown): { code: status; message: string; param?: string } {
  if (error instanceof AdminError) return { code: error.status, message: error.message, param: error.param };
  if (error instanceof ApiError) {
    // A message that cannot be read is at fault as a whole.
    const param = error.param ?? (error.code === 'invalid_request' ? '' : undefined);
    return { code: rpcStatus(error), message: error.message, param };
  }
  return { code: status.INTERNAL, message: 'something went wrong; the log has more' };
}
