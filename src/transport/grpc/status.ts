import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, type status } from '@grpc/grpc-js';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';
import type { ErrorDetail } from '../rpc.ts';

/** Why a call is not served: a gRPC status and what goes with it. */
export interface GrpcStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata?: Metadata;
}

export type RichStatus = GrpcStatus & { readonly metadata: Metadata };

/** A status with typed details, in the form `google.rpc.Status` that clients know. */
export function richStatus(
  code: status,
  message: string,
  requestId: string,
  details: readonly ErrorDetail[],
): RichStatus {
  const text = message.toWellFormed();
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  if (details.length > 0) {
    const packed = details.map(({ desc, value }) => anyPack(desc, value));
    const rich = toBinary(StatusSchema, create(StatusSchema, { code, message: text, details: packed }));
    metadata.set('grpc-status-details-bin', Buffer.from(rich));
  }
  return { code, details: text, metadata };
}
