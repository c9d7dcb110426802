import { type Message, toBinary } from '@bufbuild/protobuf';
import { materialize } from '../json/stored.ts';
import { ApiError } from '../lib/errors.ts';
import { checkIdempotencyKey } from './idempotency-key.ts';
import type { Operation } from './operations.ts';

/** A request of gRPC or Connect whose parameters were checked. */
export interface RpcRequest {
  readonly message: Message;
  readonly idempotencyKey: string | undefined;
}

/**
 * Checks what REST has in its path, its query and its head, in REST's order. `decoded` is the message, or why it cannot
 * be read: that comes after the Idempotency-Key.
 */
export function checkParameters(
  operation: Operation,
  decoded: Message | ApiError,
  idempotencyKeys: readonly string[],
): RpcRequest {
  if (!(decoded instanceof ApiError)) {
    operation.checkPath(decoded);
    operation.checkQuery(decoded);
  }
  const idempotencyKey = checkIdempotencyKey(operation, idempotencyKeys);
  if (decoded instanceof ApiError) throw decoded;
  return { message: decoded, idempotencyKey };
}

/** What a decoder gives, or the refusal it throws. */
export async function orRefusal(decode: () => Message | Promise<Message>): Promise<Message | ApiError> {
  try {
    return await decode();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** An operation's answer in protobuf's encoding. */
export function encodeProtobuf(operation: Operation, message: Message): Buffer {
  materialize(operation.output, message);
  const bytes = toBinary(operation.output, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
