import { status } from '@grpc/grpc-js';

/** The refusal that a request must be answered with. */
export interface Refusal {
  readonly code: ErrorCode;
  /** The offending parameter or field; absent: the answer names none. */
  readonly param?: string;
  readonly rejectReason?: string;
  /** The methods of the path, on `method_not_allowed`. */
  readonly allow?: readonly string[];
  /** The error leaves an object behind, whose path it carries. */
  readonly location?: true;
}

/** A code's HTTP status, type and seconds to wait, as the contract pages have them. */
export const contract = {
  unauthorized: [401, 'authentication_error'],
  insufficient_scope: [403, 'permission_error'],
  feature_not_enabled: [403, 'permission_error'],
  not_found: [404, 'invalid_request_error'],
  method_not_allowed: [405, 'invalid_request_error'],
  unsupported_media_type: [415, 'invalid_request_error'],
  request_too_large: [413, 'invalid_request_error'],
  invalid_request: [400, 'invalid_request_error'],
  missing_required_field: [400, 'invalid_request_error'],
  account_not_found: [404, 'invalid_request_error'],
  order_not_found: [404, 'invalid_request_error'],
  unknown_account: [422, 'invalid_request_error'],
  unknown_symbol: [422, 'order_error'],
  account_not_at_broker: [422, 'order_error'],
  settlement_lockout: [422, 'order_error'],
  order_rejected: [422, 'order_error'],
  order_not_sent: [503, 'order_error'],
  order_not_cancelable: [409, 'order_error'],
  duplicate_order: [409, 'idempotency_error'],
  allocation_not_found: [404, 'invalid_request_error'],
  allocation_rejected: [422, 'wallet_error'],
  allocation_not_sent: [503, 'wallet_error'],
  withdrawal_not_sent: [503, 'wallet_error'],
  withdrawal_not_found: [404, 'invalid_request_error'],
  withdrawal_rejected: [422, 'wallet_error'],
  similar_withdrawal_unresolved: [409, 'wallet_error', 1],
  duplicate_allocation: [409, 'idempotency_error'],
  duplicate_withdrawal: [409, 'idempotency_error'],
  similar_allocation_unresolved: [409, 'wallet_error', 1],
  wallet_too_low: [422, 'wallet_error'],
  application_not_found: [404, 'invalid_request_error'],
  application_rejected: [422, 'application_error'],
  application_not_sent: [503, 'application_error'],
  duplicate_application: [409, 'idempotency_error'],
  similar_order_unresolved: [409, 'order_error', 1],
  cancel_unconfirmed: [503, 'order_error', 5],
  limit_exceeded: [422, 'limit_error'],
  too_many_keys: [422, 'limit_error'],
  rate_limited: [429, 'rate_limit_error', 1],
  trading_paused: [503, 'api_error', 30],
  exchange_unavailable: [503, 'api_error', 5],
  exchange_error: [502, 'api_error'],
} as const satisfies Record<string, readonly [number, string, number?]>;

export type ErrorCode = keyof typeof contract;

/** The gRPC status of a code. */
export function grpcStatusOf(code: ErrorCode): status {
  return ownStatus[code] ?? (statusByHttp[contract[code][0]] as status);
}

/** The `google.rpc.ErrorInfo` of a refusal. */
export function expectedInfo({ code, param, rejectReason }: Refusal) {
  return {
    reason: code.toUpperCase(),
    domain: 'marina.gateway.v1',
    metadata: {
      ...(param === undefined ? {} : { param }),
      ...(rejectReason === undefined ? {} : { reject_reason: rejectReason }),
    },
  };
}

/** Codes for which gRPC has a better word than the HTTP status. */
const ownStatus: Partial<Readonly<Record<ErrorCode, status>>> = {
  duplicate_order: status.ALREADY_EXISTS,
  duplicate_application: status.ALREADY_EXISTS,
  duplicate_allocation: status.ALREADY_EXISTS,
  duplicate_withdrawal: status.ALREADY_EXISTS,
  order_not_cancelable: status.FAILED_PRECONDITION,
  order_not_sent: status.FAILED_PRECONDITION,
  application_not_sent: status.FAILED_PRECONDITION,
  allocation_not_sent: status.FAILED_PRECONDITION,
  withdrawal_not_sent: status.FAILED_PRECONDITION,
};

/** The gRPC status that stands for an HTTP status. */
const statusByHttp: Readonly<Record<number, status>> = {
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
  502: status.UNAVAILABLE,
  503: status.UNAVAILABLE,
};
