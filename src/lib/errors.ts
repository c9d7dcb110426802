/** The families of errors, as partners see them in `type`. */
export type ErrorType =
  | 'authentication_error'
  | 'invalid_request_error'
  | 'idempotency_error'
  | 'order_error'
  | 'application_error'
  | 'wallet_error'
  | 'limit_error'
  | 'rate_limit_error'
  | 'permission_error'
  | 'api_error';

interface CatalogueEntry {
  readonly status: number;
  readonly type: ErrorType;
  /** The sentence used where the thrower has nothing more exact to say. */
  readonly message: string;
  /** Seconds for `Retry-After`; absent: the header is not sent. */
  readonly retryAfterSeconds?: number;
}

/** Every error a door can answer with: the one table that doors, documents and tests read. */
export const catalogue = {
  unauthorized: { status: 401, type: 'authentication_error', message: 'The credentials are missing or invalid.' },
  insufficient_scope: {
    status: 403,
    type: 'permission_error',
    message: 'The key lacks the scope this operation needs.',
  },
  feature_not_enabled: { status: 403, type: 'permission_error', message: 'This feature is not enabled.' },
  not_found: { status: 404, type: 'invalid_request_error', message: 'There is nothing at this path.' },
  method_not_allowed: {
    status: 405,
    type: 'invalid_request_error',
    message: 'The path does not support this method.',
  },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request_error',
    message: 'The Content-Type must be application/json in UTF-8, without Content-Encoding.',
  },
  request_too_large: { status: 413, type: 'invalid_request_error', message: 'The request is too large.' },
  invalid_request: { status: 400, type: 'invalid_request_error', message: 'The request is invalid.' },
  missing_required_field: { status: 400, type: 'invalid_request_error', message: 'A required field is missing.' },
  duplicate_order: {
    status: 409,
    type: 'idempotency_error',
    message: 'This Idempotency-Key was used for another order. Use a new key for a new order.',
  },
  duplicate_application: {
    status: 409,
    type: 'idempotency_error',
    message: 'This Idempotency-Key was used for another application. Use a new key for a new application.',
  },
  duplicate_allocation: {
    status: 409,
    type: 'idempotency_error',
    message: 'This Idempotency-Key was used for another allocation. Use a new key for a new allocation.',
  },
  similar_order_unresolved: {
    status: 409,
    type: 'order_error',
    message: 'It is not yet known whether an order like this one reached the exchange. Wait until it is settled.',
    retryAfterSeconds: 1,
  },
  cancel_unconfirmed: {
    status: 503,
    type: 'order_error',
    message: 'The exchange did not confirm the cancel. Sending the cancel again is safe.',
    retryAfterSeconds: 5,
  },
  application_not_sent: {
    status: 503,
    type: 'application_error',
    message: 'The application never left the gateway. Use a new Idempotency-Key for a new try.',
  },
  wallet_too_low: { status: 422, type: 'wallet_error', message: 'The wallet has too little available.' },
  allocation_not_sent: {
    status: 503,
    type: 'wallet_error',
    message: 'The allocation never left the gateway. Use a new Idempotency-Key for a new try.',
  },
  limit_exceeded: { status: 422, type: 'limit_error', message: 'A daily limit would be exceeded.' },
  rate_limited: {
    status: 429,
    type: 'rate_limit_error',
    message: 'Too many requests. Nothing was done; send the same request again.',
    retryAfterSeconds: 1,
  },
  exchange_unavailable: {
    status: 503,
    type: 'api_error',
    message: 'The exchange cannot be reached. Nothing was stored and nothing sent; send the same request again.',
    retryAfterSeconds: 5,
  },
  outcome_not_recorded: {
    status: 503,
    type: 'api_error',
    message: 'The exchange answered and the answer is not recorded yet. Read the object to see what became of it.',
    retryAfterSeconds: 5,
  },
  internal_error: {
    status: 500,
    type: 'api_error',
    message: 'Something went wrong on our side. Send exactly the same request again.',
  },
  order_not_found: { status: 404, type: 'invalid_request_error', message: 'There is no such order.' },
  account_not_found: { status: 404, type: 'invalid_request_error', message: 'There is no such account.' },
  application_not_found: { status: 404, type: 'invalid_request_error', message: 'There is no such application.' },
  allocation_not_found: { status: 404, type: 'invalid_request_error', message: 'There is no such allocation.' },
  unknown_account: {
    status: 422,
    type: 'invalid_request_error',
    message: 'The account is not one this partner can trade for.',
  },
  unknown_symbol: { status: 422, type: 'order_error', message: 'The exchange does not know this symbol.' },
  account_not_at_broker: { status: 422, type: 'order_error', message: 'The broker does not have this account.' },
  settlement_lockout: {
    status: 422,
    type: 'order_error',
    message: 'The account is locked until an earlier trade settles.',
  },
  order_rejected: { status: 422, type: 'order_error', message: 'The exchange rejected the order.' },
  order_not_sent: {
    status: 503,
    type: 'order_error',
    message: 'The order never left the gateway. Use a new Idempotency-Key for a new try.',
  },
  order_not_cancelable: { status: 409, type: 'order_error', message: 'The order can no longer be cancelled.' },
  application_rejected: { status: 422, type: 'application_error', message: 'The broker rejected the application.' },
  document_rejected: { status: 422, type: 'application_error', message: 'The broker refused the document.' },
  allocation_rejected: { status: 422, type: 'wallet_error', message: 'The broker rejected the allocation.' },
  similar_allocation_unresolved: {
    status: 409,
    type: 'wallet_error',
    message: 'It is not yet known whether an allocation like this one was booked. Wait until it is settled.',
    retryAfterSeconds: 1,
  },
  too_many_keys: { status: 422, type: 'limit_error', message: 'The partner has as many active keys as it may have.' },
  trading_paused: {
    status: 503,
    type: 'api_error',
    message: 'Trading is paused. Cancels, estimates and reads still work.',
    retryAfterSeconds: 30,
  },
  exchange_error: { status: 502, type: 'api_error', message: 'The exchange gave an answer that makes no sense.' },
  service_unavailable: {
    status: 503,
    type: 'api_error',
    message: 'The service is not available. Send exactly the same request again.',
    retryAfterSeconds: 5,
  },
  application_not_accepting_documents: {
    status: 409,
    type: 'invalid_request_error',
    message: 'The application does not take documents in its state.',
  },
  document_already_delivered: {
    status: 409,
    type: 'invalid_request_error',
    message: 'The broker already has a different file of this type.',
  },
  document_in_flight: {
    status: 409,
    type: 'invalid_request_error',
    message: 'A document is being sent. Send this one again shortly.',
    retryAfterSeconds: 1,
  },
  earlier_document_unconfirmed: {
    status: 409,
    type: 'invalid_request_error',
    message: 'The broker did not confirm an earlier file of this type. Send that earlier file again.',
  },
  document_too_large: {
    status: 413,
    type: 'invalid_request_error',
    message: 'The file must be smaller than 1,000,000 bytes.',
  },
  invalid_document: {
    status: 422,
    type: 'invalid_request_error',
    message: 'The file is not the image its Content-Type says.',
  },
  document_unconfirmed: {
    status: 503,
    type: 'api_error',
    message: 'The broker did not confirm receipt. Sending the same file again is safe.',
    retryAfterSeconds: 5,
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof catalogue;

/** The HTTP statuses that errors have. */
export type HttpStatus = (typeof catalogue)[ErrorCode]['status'];

export interface ErrorDetails {
  /** A sentence in place of the catalogue's. Never carries a secret, a personal field or the broker's own text. */
  message?: string;
  /** The offending parameter or field. */
  param?: string;
  /** Why an exchange or broker refused. */
  rejectReason?: string;
  /** The path of the object the error leaves behind, for `Location`. */
  location?: string;
  /** The methods a path supports, for `Allow`. */
  allow?: readonly string[];
  /** Which limit refuses, for metrics. */
  limit?: Limit;
  cause?: unknown;
}

/** The limits that refuse something. */
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
  | 'all_requests';

/** An error from the catalogue: what domain code throws, and what each door translates in one place. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: HttpStatus;
  readonly type: ErrorType;
  readonly retryAfterSeconds: number | undefined;
  readonly param: string | undefined;
  readonly rejectReason: string | undefined;
  readonly location: string | undefined;
  readonly allow: readonly string[] | undefined;
  readonly limit: Limit | undefined;

  constructor(
    readonly code: ErrorCode,
    details: ErrorDetails = {},
  ) {
    const entry: CatalogueEntry = catalogue[code];
    super(details.message ?? entry.message, { cause: details.cause });
    this.status = catalogue[code].status;
    this.type = entry.type;
    this.retryAfterSeconds = entry.retryAfterSeconds;
    this.param = details.param;
    this.rejectReason = details.rejectReason;
    this.location = details.location;
    this.allow = details.allow;
    this.limit = details.limit;
  }
}

/** What a piece of work refuses with. Throws when it does not refuse, or with something that is no refusal. */
export function refusalOf(work: () => unknown): ApiError {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('what had to be refused was not');
}
