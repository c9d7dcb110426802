import { Refusal, UnavailableError } from '../../kit/refusal.ts';
import { withoutPersonalText } from './personal-text.ts';

interface CatalogueEntry<Status extends number = number> {
  readonly status: Status;
  /** The default sentence. */
  readonly message: string;
  /** Seconds for `Retry-After`; absent: the header is not sent. */
  readonly retryAfterSeconds?: number;
}

function entries<Status extends number>(status: Status) {
  return (message: string, retryAfterSeconds?: number): CatalogueEntry<Status> =>
    retryAfterSeconds === undefined ? { status, message } : { status, message, retryAfterSeconds };
}

const badRequest = entries(400);
const unauthenticated = entries(401);
const forbidden = entries(403);
const notFound = entries(404);
const methodNotAllowed = entries(405);
const conflict = entries(409);
const tooLarge = entries(413);
const unsupportedMediaType = entries(415);
const unprocessable = entries(422);
const tooManyRequests = entries(429);
const internal = entries(500);
const badGateway = entries(502);
const unavailable = entries(503);

function family<Type extends string, Errors extends Readonly<Record<string, CatalogueEntry>>>(
  type: Type,
  errors: Errors,
) {
  const typed = Object.entries(errors).map(([code, entry]) => [code, { ...entry, type }]);
  return Object.fromEntries(typed) as { readonly [Code in keyof Errors]: Errors[Code] & { readonly type: Type } };
}

/** Every error of the API. Protocols, documents and tests read this one table. */
export const catalogue = {
  ...family('authentication_error', {
    unauthorized: unauthenticated(
      'The credentials are missing or invalid. Send `Authorization: Bearer` and a key of this environment.',
    ),
  }),
  ...family('permission_error', {
    insufficient_scope: forbidden('The key lacks the scope this operation needs.'),
    feature_not_enabled: forbidden('This feature is not enabled.'),
  }),
  ...family('invalid_request_error', {
    not_found: notFound('There is nothing at this path.'),
    method_not_allowed: methodNotAllowed('The path does not support this method.'),
    unsupported_media_type: unsupportedMediaType(
      'The Content-Type must be application/json in UTF-8, without Content-Encoding.',
    ),
    request_too_large: tooLarge('The request is too large.'),
    invalid_request: badRequest('The request is invalid.'),
    missing_required_field: badRequest('A required field is missing.'),
    order_not_found: notFound('There is no such order.'),
    account_not_found: notFound('There is no such account.'),
    application_not_found: notFound('There is no such application.'),
    allocation_not_found: notFound('There is no such allocation.'),
    withdrawal_not_found: notFound('There is no such withdrawal.'),
    unknown_account: unprocessable('The account is not one this partner can trade for.'),
    application_not_accepting_documents: conflict('The application does not take documents in its state.'),
    document_already_delivered: conflict('The broker already has a different file of this type.'),
    document_in_flight: conflict('A document is being sent. Send this one again shortly.', 1),
    earlier_document_unconfirmed: conflict(
      'The broker did not confirm an earlier file of this type. Send that earlier file again.',
    ),
    document_too_large: tooLarge('The file must be smaller than 1,000,000 bytes.'),
    invalid_document: unprocessable('The file is not the image its Content-Type says.'),
  }),
  ...family('idempotency_error', {
    duplicate_order: conflict('This Idempotency-Key was used for another order. Use a new key for a new order.'),
    duplicate_application: conflict(
      'This Idempotency-Key was used for another application. Use a new key for a new application.',
    ),
    duplicate_allocation: conflict(
      'This Idempotency-Key was used for another allocation. Use a new key for a new allocation.',
    ),
    duplicate_withdrawal: conflict(
      'This Idempotency-Key was used for another withdrawal. Use a new key for a new withdrawal.',
    ),
  }),
  ...family('order_error', {
    similar_order_unresolved: conflict(
      'It is not yet known whether an order like this one reached the exchange. Wait until it is settled.',
      1,
    ),
    cancel_unconfirmed: unavailable('The exchange did not confirm the cancel. Sending the cancel again is safe.', 5),
    unknown_symbol: unprocessable('The exchange does not know this symbol.'),
    account_not_at_broker: unprocessable('The broker does not have this account.'),
    settlement_lockout: unprocessable('The account is locked until an earlier trade settles.'),
    order_rejected: unprocessable('The exchange rejected the order.'),
    order_not_sent: unavailable('The order never left the gateway. Use a new Idempotency-Key for a new try.'),
    order_not_cancelable: conflict('The order can no longer be cancelled.'),
  }),
  ...family('application_error', {
    application_not_sent: unavailable(
      'The application never left the gateway. Use a new Idempotency-Key for a new try.',
    ),
    application_rejected: unprocessable('The broker rejected the application.'),
    document_rejected: unprocessable('The broker refused the document.'),
  }),
  ...family('wallet_error', {
    wallet_too_low: unprocessable('The wallet has too little available.'),
    allocation_not_sent: unavailable('The allocation never left the gateway. Use a new Idempotency-Key for a new try.'),
    allocation_rejected: unprocessable('The broker rejected the allocation.'),
    similar_allocation_unresolved: conflict(
      'It is not yet known whether an allocation like this one was booked. Wait until it is settled.',
      1,
    ),
    withdrawal_not_sent: unavailable('The withdrawal never left the gateway. Use a new Idempotency-Key for a new try.'),
    withdrawal_rejected: unprocessable('The broker rejected the withdrawal.'),
    similar_withdrawal_unresolved: conflict(
      'It is not yet known whether the broker has a withdrawal like this one. Wait until it is settled.',
      1,
    ),
  }),
  ...family('limit_error', {
    limit_exceeded: unprocessable('A daily limit would be exceeded.'),
    too_many_keys: unprocessable('The partner has as many active keys as it may have.'),
  }),
  ...family('rate_limit_error', {
    rate_limited: tooManyRequests('Too many requests. Nothing was done; send the same request again.', 1),
  }),
  ...family('api_error', {
    exchange_unavailable: unavailable(
      'The exchange cannot be reached. Nothing was stored and nothing sent; send the same request again.',
      5,
    ),
    outcome_not_recorded: unavailable(
      'The exchange answered and the answer is not recorded yet. Read the object to see what became of it.',
      5,
    ),
    internal_error: internal('Something went wrong on our side. Send exactly the same request again.'),
    trading_paused: unavailable('Trading is paused. Cancels, estimates and reads still work.', 30),
    exchange_error: badGateway('The exchange gave an answer that makes no sense.'),
    service_unavailable: unavailable('The service is not available. Send exactly the same request again.', 5),
    document_unconfirmed: unavailable('The broker did not confirm receipt. Sending the same file again is safe.', 5),
  }),
};

export type ErrorCode = keyof typeof catalogue;

export type HttpStatus = (typeof catalogue)[ErrorCode]['status'];

/** The families of errors, which partners see in `type`. */
export type ErrorType = (typeof catalogue)[ErrorCode]['type'];

export interface ErrorDetails {
  /** Replaces the catalogue's sentence. Never has a secret, a personal field or the broker's own text. */
  message?: string;
  /** The wrong parameter or field. */
  param?: string;
  /** Why the exchange or the broker refused. */
  rejectReason?: string;
  /** The path of the object that the request created all the same, for `Location`. */
  location?: string;
  /** The methods of a path, for `Allow`. */
  allow?: readonly string[];
  /** The limit that was reached, for metrics. */
  limit?: Limit;
  cause?: unknown;
}

export type Limit =
  | 'requests_per_second'
  | 'requests_under_way'
  | 'open_streams'
  | 'files'
  | 'documents_under_way'
  | 'broker_reads'
  | 'active_keys'
  | 'order_value_per_day'
  | 'allocations_per_day'
  | 'partner_requests'
  | 'refused_keys'
  | 'all_requests';

/** An error from the catalogue. Domain code throws it, and each protocol translates it in one place. */
export class ApiError extends Refusal {
  override readonly name = 'ApiError';
  declare readonly status: HttpStatus;
  declare readonly type: ErrorType;
  declare readonly retryAfterSeconds: number | undefined;
  declare readonly param: string | undefined;
  declare readonly rejectReason: string | undefined;
  declare readonly location: string | undefined;
  declare readonly allow: readonly string[] | undefined;
  declare readonly limit: Limit | undefined;

  constructor(
    readonly code: ErrorCode,
    { message, cause, ...details }: ErrorDetails = {},
  ) {
    const { message: usual, ...entry } = catalogue[code];
    super(message ?? usual, { cause });
    Object.assign(this, entry, details);
  }
}

/** The `cause` of an error: no gateway wrote a row, because its seal is missing or wrong. A repetition fails in the same way. */
export class UnprovenRowError extends Error {
  override readonly name = 'UnprovenRowError';
}

/** Whether an error of the catalogue has an `UnprovenRowError` as its cause. */
export function isUnproven(error: unknown): boolean {
  return error instanceof ApiError && error.cause instanceof UnprovenRowError;
}

/** Longer than any name in our contract. A longer one is the caller's, and is cut. */
const maxParamLength = 200;

/**
 * An error about a field or parameter, as in "`limit` must be 1 to 100." A name that the caller made up is shown to it, but not a
 * number or an address in it that may be a customer's: errors end up in logs.
 */
export function invalidParam(name: string, problem: string, code: ErrorCode = 'invalid_request'): ApiError {
  // A cut can part a character's two halves, and a caller can send one alone. Strict readers of JSON refuse that.
  const param = withoutPersonalText(name.slice(0, maxParamLength).toWellFormed());
  return new ApiError(code, { param, message: `\`${param}\` ${problem}` });
}

/** The error of the catalogue for a refusal; undefined for every other error, which is a defect. */
export function asApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  return error instanceof UnavailableError ? new ApiError('service_unavailable', { cause: error.cause }) : undefined;
}

/** An error's body in REST, as JSON. */
export function errorBody({ type, code, message, param, rejectReason }: ApiError, baseUrl: string): string {
  return JSON.stringify({
    error: { type, code, message, doc_url: docUrl(baseUrl, code), param, reject_reason: rejectReason },
  });
}

/** The address of an error code's description. */
export function docUrl(baseUrl: string, code: ErrorCode): string {
  return `${baseUrl.replace(/\/+$/, '')}/docs/errors#${code}`;
}

/** The refusal that `work` throws. Rethrows every other error, and throws if the work succeeds. */
export function refusalOf(work: () => unknown): ApiError {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('what had to be refused was not');
}
