import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, type status } from '@grpc/grpc-js';
import { RetryInfoSchema } from '../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../gen/google/rpc/status_pb.ts';
import { ErrorSchema } from '../gen/marina/gateway/v1/errors_pb.ts';
import type { ApiError } from '../lib/errors.ts';
import { errorDetail, retryDetail, rpcStatus } from './rpc-errors.ts';

/** An error as gRPC carries it. */
export interface GrpcError {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/** The one place where an error of the catalogue becomes gRPC: a status with the whole error as a typed detail. */
export function grpcError(error: ApiError, baseUrl: string, requestId: string): GrpcError {
  const code = rpcStatus(error);
  const details = [anyPack(ErrorSchema, errorDetail(error, baseUrl))];
  const retry = retryDetail(error);
  if (retry !== undefined) details.push(anyPack(RetryInfoSchema, retry));
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (error.location !== undefined) metadata.set('location', error.location);
  const rich = toBinary(StatusSchema, create(StatusSchema, { code, message: error.message, details }));
  metadata.set('grpc-status-details-bin', Buffer.from(rich));
  return { code, details: error.message.toWellFormed(), metadata };
}
