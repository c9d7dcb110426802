import { Metadata, status } from '@grpc/grpc-js';
import type { Arrival, GrpcStatus, RichStatus } from './arrival.ts';

/**
 * Returns the status of a call whose message is not given to its handler: larger than its method's limit, with how it starts, or
 * compressed. Undefined if the client has left.
 */
export type RefuseMessage = (
  arrival: Arrival,
  message: { readonly isCompressed: boolean; readonly start: Buffer },
) => Promise<GrpcStatus | undefined>;

const acceptEncoding = new Metadata();
acceptEncoding.set('grpc-accept-encoding', 'identity');

/** The status that gRPC requires, with the accepted encodings, so that a client can resend without compression. */
export const compressed: RichStatus = {
  code: status.UNIMPLEMENTED,
  details: 'Compressed messages are not taken.',
  metadata: acceptEncoding,
};

/** The status of a message that is too large where no catalogue of errors applies. */
const tooLarge: GrpcStatus = { code: status.RESOURCE_EXHAUSTED, details: 'The message is too large.' };

/** Refuses with the statuses without details. */
export const refusePlainly: RefuseMessage = async (_arrival, { isCompressed }) =>
  isCompressed ? compressed : tooLarge;
