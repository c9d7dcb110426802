import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, status } from '@grpc/grpc-js';
import { BadRequestSchema } from '../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../gen/google/rpc/status_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { rpcStatus } from '../transport/rpc-errors.ts';
import { AdminError } from './call.ts';

/** A refusal as gRPC carries it. */
export interface Refusal {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/** What an operator is told of an error: a field that is at fault is named in a `google.rpc.BadRequest`. */
export function toRefusal(error: unknown, requestId: string): Refusal {
  const { code, message: text, param } = describe(error);
  const message = text.toWellFormed();
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (param !== undefined) {
    const detail = create(BadRequestSchema, { fieldViolations: [{ field: param, description: message }] });
    const details = [anyPack(BadRequestSchema, detail)];
    const rich = toBinary(StatusSchema, create(StatusSchema, { code, message, details }));
    metadata.set('grpc-status-details-bin', Buffer.from(rich));
  }
  return { code, details: message, metadata };
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
