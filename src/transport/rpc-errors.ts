import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { type RetryInfo, RetryInfoSchema } from '../gen/google/rpc/error_details_pb.ts';
import { type Error as ErrorDetail, ErrorSchema } from '../gen/marina/gateway/v1/errors_pb.ts';
import type { ApiError, HttpStatus } from '../lib/errors.ts';
import { docUrl } from './doc-url.ts';

/** The status that stands for an HTTP status. */
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

/** The status an error of the catalogue has over gRPC, and over Connect, whose codes are the same numbers. */
export function rpcStatus(error: ApiError): status {
  return statusByHttpStatus[error.status];
}

/** The whole error as the typed detail of its status. */
export function errorDetail(error: ApiError, baseUrl: string): ErrorDetail {
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

/** The detail that stands beside it where REST sends `Retry-After`. */
export function retryDetail({ retryAfterSeconds }: ApiError): RetryInfo | undefined {
  if (retryAfterSeconds === undefined) return undefined;
  return create(RetryInfoSchema, { retryDelay: { seconds: BigInt(retryAfterSeconds) } });
}
