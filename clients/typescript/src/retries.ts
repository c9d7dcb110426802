import type { Operation } from './contract.ts';

/** A failed attempt: an error answer, or no answer at all. */
export interface Failure {
  /** Absent: no answer came. */
  readonly status?: number;
  readonly code?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** After these nothing was done, whatever the request was. */
const nothingDone = new Set(['rate_limited', 'trading_paused', 'exchange_unavailable', 'exchange_error']);
/** These are stored as never sent, and say so each time. */
const notSent = new Set(['order_not_sent', 'application_not_sent', 'allocation_not_sent', 'withdrawal_not_sent']);
/**
 * Answers of the object that a request left behind, or of the request that has its key: they say what became of it, whichever
 * attempt arrived first.
 */
const settling = new Set([
  ...notSent,
  ...['order_rejected', 'application_rejected', 'allocation_rejected', 'withdrawal_rejected', 'document_rejected'],
  ...['duplicate_order', 'duplicate_application', 'duplicate_allocation', 'duplicate_withdrawal'],
  ...['order_not_cancelable', 'document_already_delivered'],
]);
const firstWaitMs = 500;
const longestWaitMs = 10_000;

/**
 * How long to wait before a request is sent again; undefined if it must not be. It is sent again if nothing was done, or if
 * doing it again does nothing a second time, and only if the same request can succeed.
 */
export function waitBeforeRepeat(
  failure: Failure,
  operation: Pick<Operation, 'method' | 'takesKey'>,
  attempt: number,
  random: () => number = Math.random,
): number | undefined {
  if (!mayRepeat(failure, operation)) return undefined;
  // Requests that failed together do not come back together.
  const drawn = random();
  const ownMs = Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1)) * (0.5 + drawn / 2);
  if (failure.retryAfterSeconds === undefined) return ownMs;
  // A gateway that restarts asks for a second each time, and takes longer. A proxy may ask for none at all.
  return Math.max(failure.retryAfterSeconds * 1_000 * (1 + drawn / 4), ownMs);
}

/** Whether the request may have been done although it failed. */
export function leavesUnknown({ status, code }: Failure): boolean {
  if (status === undefined) return true;
  // A 408 is a proxy's, which may have passed the request on.
  if (status === 408) return code === undefined;
  if (status >= 400 && status < 500) return false;
  // An answer that says it was stored and never sent is certain. It is 503 without a time to wait. No gateway answers
  // 1xx or 3xx.
  return !(code !== undefined && (nothingDone.has(code) || notSent.has(code)));
}

/**
 * Whether an answer proves what became of an earlier attempt whose outcome is unknown. An error about the request itself proves
 * nothing: `invalid_request` and the like are answered before the gateway looks for an earlier request with the key, and a
 * check such as that of a limit says nothing of an attempt that arrives later.
 */
export function settles({ code }: Failure): boolean {
  return code !== undefined && settling.has(code);
}

function mayRepeat(failure: Failure, operation: Pick<Operation, 'method' | 'takesKey'>): boolean {
  const { status, code, retryAfterSeconds } = failure;
  const isSafe = operation.method !== 'POST' || operation.takesKey;
  if (status === undefined) return isSafe;
  if (code !== undefined && nothingDone.has(code)) return true;
  if (!isSafe) return false;
  if (status === 429 || code === 'document_in_flight') return true;
  // An answer without a code comes from something before the gateway.
  if (code === undefined) return status === 408 || status >= 500;
  // A 503 that may be repeated says when.
  return status >= 500 && (status !== 503 || retryAfterSeconds !== undefined);
}
