import { type Code, ConnectError } from '@connectrpc/connect';
import {
  codeToHttpStatus,
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
} from '@connectrpc/connect/protocol-connect';
import { RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { ErrorSchema } from '../../gen/marina/gateway/v1/errors_pb.ts';
import type { ApiError } from '../../lib/errors.ts';
import { errorHeaders } from '../rest/errors.ts';
import type { Answer } from '../rest/protocol.ts';
import { errorDetail, retryDetail, rpcStatus } from '../rpc-errors.ts';
import { envelope } from './codec.ts';

const endStream = createEndStreamSerialization(undefined);

/** An error as the whole answer to a call that has one message as its answer. */
export function unaryRefusal(error: ApiError, baseUrl: string): Answer {
  const described = describe(error, baseUrl);
  const headers = errorHeaders(error);
  return {
    status: httpStatus(error, described.code),
    headers,
    body: Buffer.from(errorToJsonBytes(described, undefined)),
  };
}

/** What stands at the end of a stream: its error, if there was one. */
export function streamEnd(error: ApiError | undefined, baseUrl: string): Buffer {
  const end = { metadata: new Headers(), error: error && describe(error, baseUrl) };
  return envelope(endStreamFlag, endStream.serialize(end));
}

/** Connect gives every code a status; what is wrong with the HTTP request itself keeps HTTP's own. */
function httpStatus({ status }: ApiError, code: Code): number {
  return status === 405 || status === 415 ? status : codeToHttpStatus(code);
}

/** The one place where an error of the catalogue becomes Connect's: a code with the whole error as a typed detail. */
function describe(error: ApiError, baseUrl: string): ConnectError {
  // Connect's codes are gRPC's, number by number.
  const code = rpcStatus(error) as number as Code;
  const retry = retryDetail(error);
  const metadata = new Headers();
  if (error.retryAfterSeconds !== undefined) metadata.set('retry-after', String(error.retryAfterSeconds));
  if (error.location !== undefined) metadata.set('location', error.location);
  return new ConnectError(error.message, code, metadata, [
    { desc: ErrorSchema, value: errorDetail(error, baseUrl) },
    ...(retry === undefined ? [] : [{ desc: RetryInfoSchema, value: retry }]),
  ]);
}
