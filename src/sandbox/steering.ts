import { type ServiceError, status } from '@grpc/grpc-js';
import { ApiError, type ErrorCode } from '../lib/errors.ts';

/** What an error means to the partner that steers. */
export interface Refusals {
  /** The simulator does not have the object. */
  readonly notFound: ErrorCode;
  /** The object is where nothing more can become of it. */
  readonly final?: ErrorCode;
}

/** Waits for the simulator's answer. Throws in the catalogue's words what it refused, or that it did not answer. */
export async function steered<Answer>(answer: Promise<Answer>, refusals: Refusals): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    const { code, details: message } = error as ServiceError;
    switch (code) {
      case status.NOT_FOUND:
        throw new ApiError(refusals.notFound, { message });
      case status.FAILED_PRECONDITION:
        throw new ApiError(refusals.final ?? 'invalid_request', { message });
      case status.INVALID_ARGUMENT:
        throw new ApiError('invalid_request', { message });
      default:
        throw new ApiError('exchange_unavailable', {
          message: "The sandbox's exchange did not answer. What was asked may have been done.",
          cause: error,
        });
    }
  }
}
