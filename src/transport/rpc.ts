import { create, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { RetryInfoSchema } from '../gen/google/rpc/error_details_pb.ts';
import { ErrorSchema } from '../gen/marina/gateway/v1/errors_pb.ts';
import { ApiError, docUrl, type HttpStatus } from '../lib/errors.ts';
import { type Operation, readIdempotencyKey } from './operations.ts';

/** A request of gRPC or Connect whose parameters were checked. */
export interface RpcRequest {
  readonly message: Message;
  readonly idempotencyKey: string | undefined;
}

/**
 * Reads a message, and checks what REST has in its path, its query and its head, in REST's order: that a message cannot be
 * decoded comes after the Idempotency-Key.
 */
export async function readRpcRequest(
  operation: Operation,
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

/** A typed detail of an error's status. */
export interface ErrorDetail<Desc extends DescMessage = DescMessage> {
  readonly desc: Desc;
  readonly value: MessageShape<Desc>;
}

/** The whole error as a typed detail of its status; where REST sends `Retry-After`, another detail says it too. */
export function errorDetails(error: ApiError, baseUrl: string): ErrorDetail[] {
  const { type, code, message, param, rejectReason, retryAfterSeconds } = error;
  const whole = { type, code, message, docUrl: docUrl(baseUrl, code), param, rejectReason, retryAfterSeconds };
  const details: ErrorDetail[] = [{ desc: ErrorSchema, value: create(ErrorSchema, whole) }];
  if (retryAfterSeconds !== undefined) {
    const retry = { retryDelay: { seconds: BigInt(retryAfterSeconds) } };
    details.push({ desc: RetryInfoSchema, value: create(RetryInfoSchema, retry) });
  }
  return details;
}
