import type { ErrorCode, ErrorType } from './contract.ts';

/** How far a call had got when it failed. */
export interface CallState {
  readonly operation: string;
  /** The key it was sent with: the same call with this key is safe to make again. */
  readonly idempotencyKey: string | undefined;
  /** How often it was sent; 0 if the signal was aborted before. */
  readonly attempts: number;
  /**
   * Whether something may have been done that nobody knows of yet. If so, make the same call again, with the same
   * Idempotency-Key if it takes one. Never send an order under another key then.
   */
  readonly isOutcomeUnknown: boolean;
}

/** Everything that this library throws, but for mistakes in how it is called (TypeError, RangeError). */
export class MarinaError extends Error {
  override readonly name: string = 'MarinaError';
}

/**
 * A whole number came that JavaScript's numbers cannot hold exactly, and the client was asked for numbers. What was sent was
 * done. A client with `integers: 'bigint'` reads the answer to the same call with the same Idempotency-Key.
 */
export class UnsafeIntegerError extends MarinaError {
  override readonly name: string = 'UnsafeIntegerError';

  constructor(
    /** The number, with all its digits. */
    readonly digits: string,
    /** The call whose answer has it; undefined if it came another way, such as in a webhook. */
    readonly call?: CallState,
  ) {
    super(`${digits} is not exact as a number. Read it with \`integers\` of 'bigint' or 'string'.`);
  }
}

/** No answer came in time, or what came was not the gateway's. `cause` says why. */
export class NoAnswerError extends MarinaError {
  override readonly name: string = 'NoAnswerError';

  constructor(
    message: string,
    readonly call: CallState,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

/** The gateway's answer about an error. */
export interface ErrorDetails {
  readonly status: number;
  /** The family of the code. */
  readonly type: ErrorType | undefined;
  /** The error's code, for programs. Undefined if something before the gateway answered; then go by the status. */
  readonly code: ErrorCode | undefined;
  readonly message: string;
  /** Where the code is described. */
  readonly docUrl: string | undefined;
  /** The offending parameter, header or field. */
  readonly param: string | undefined;
  /** Why the exchange or the broker refused. */
  readonly rejectReason: string | undefined;
  /** The path of the object that the request left behind. */
  readonly location: string | undefined;
  /** Names the answer to support. */
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
}

/** An error that the gateway answered with. Decide by `code`; there is a class for each family of codes. */
export class ErrorAnswer extends MarinaError {
  override readonly name: string = 'ErrorAnswer';
  declare readonly status: number;
  declare readonly type: ErrorType | undefined;
  declare readonly code: ErrorCode | undefined;
  declare readonly docUrl: string | undefined;
  declare readonly param: string | undefined;
  declare readonly rejectReason: string | undefined;
  declare readonly location: string | undefined;
  declare readonly requestId: string | undefined;
  declare readonly retryAfterSeconds: number | undefined;

  constructor(
    { message, ...details }: ErrorDetails,
    readonly call: CallState,
  ) {
    super(message);
    Object.assign(this, details);
  }
}

/** The key is not good here. */
export class AuthenticationError extends ErrorAnswer {
  override readonly name = 'AuthenticationError';
}

/** The key may not do this. */
export class PermissionError extends ErrorAnswer {
  override readonly name = 'PermissionError';
}

/** The request has to change. */
export class InvalidRequestError extends ErrorAnswer {
  override readonly name = 'InvalidRequestError';
}

/** The Idempotency-Key belongs to another request. */
export class IdempotencyError extends ErrorAnswer {
  override readonly name = 'IdempotencyError';
}

/** An order was not taken, or not cancelled. */
export class OrderError extends ErrorAnswer {
  override readonly name = 'OrderError';
}

/** An application or a document was not taken. */
export class ApplicationError extends ErrorAnswer {
  override readonly name = 'ApplicationError';
}

/** An allocation or a withdrawal was not made. */
export class WalletError extends ErrorAnswer {
  override readonly name = 'WalletError';
}

/** A limit of the partner's is reached, and waiting a moment does not help. */
export class LimitError extends ErrorAnswer {
  override readonly name = 'LimitError';
}

/** Too many requests. Nothing was done. */
export class RateLimitError extends ErrorAnswer {
  override readonly name = 'RateLimitError';
}

/** The gateway or what is behind it is not able to do this now. */
export class ApiError extends ErrorAnswer {
  override readonly name = 'ApiError';
}

/** The class for each family. A family that is not here is an `ErrorAnswer`. */
const classes: Readonly<Record<string, typeof ErrorAnswer>> = {
  authentication_error: AuthenticationError,
  permission_error: PermissionError,
  invalid_request_error: InvalidRequestError,
  idempotency_error: IdempotencyError,
  order_error: OrderError,
  application_error: ApplicationError,
  wallet_error: WalletError,
  limit_error: LimitError,
  rate_limit_error: RateLimitError,
  api_error: ApiError,
};

/** Makes the error of its family. */
export function errorAnswer(details: ErrorDetails, call: CallState): ErrorAnswer {
  const Class = Object.hasOwn(classes, details.type ?? '') ? classes[details.type ?? ''] : undefined;
  return new (Class ?? ErrorAnswer)(details, call);
}
