import { create, toBinary } from '@bufbuild/protobuf';
import { type Any, anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, status } from '@grpc/grpc-js';
import { RetryInfoSchema } from '../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../gen/google/rpc/status_pb.ts';
import { type Error as ErrorDetail, ErrorSchema } from '../gen/marina/gateway/v1/errors_pb.ts';
import type { ApiError } from '../lib/errors.ts';
import { docUrl } from './doc-url.ts';

/** The status that stands for an HTTP status. */
const statusByHttpStatus: Readonly<Record<number, status>> = {
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

/** An error as gRPC carries it. */
export interface GrpcError {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/** The one place where an error of the catalogue becomes gRPC: a status with the whole error as a typed detail. */
export function grpcError(error: ApiError, baseUrl: string, requestId: string): GrpcError {
  const code = statusByHttpStatus[error.status] ?? status.INTERNAL;
  const details = [anyPack(ErrorSchema, describe(error, baseUrl))];
  const retryAfter = packRetry(error);
  if (retryAfter !== undefined) details.push(retryAfter);
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (error.location !== undefined) metadata.set('location', error.location);
  const rich = toBinary(StatusSchema, create(StatusSchema, { code, message: error.message, details }));
  metadata.set('grpc-status-details-bin', Buffer.from(rich));
  return { code, details: error.message, metadata };
}

function describe(error: ApiError, baseUrl: string): ErrorDetail {
  const { type, code, message, param, rejectReason, retryAfterSeconds } = error;
  return create(ErrorSchema, {
    type,
    code,
    message,
    docUrl: docUrl(baseUrl, code),
    param,
    rejectReason,
    retryAfterSeconds,
  });
}

function packRetry({ retryAfterSeconds }: ApiError): Any | undefined {
  if (retryAfterSeconds === undefined) return undefined;
  return anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay: { seconds: BigInt(retryAfterSeconds) } }));
}
