import type { Operation } from './contract.ts';

/** What came of one attempt that failed: an error answer, or no answer at all. */
export interface Failure {
  /** Absent: no answer came. */
  readonly status?: number;
  readonly code?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** After these nothing was done, whatever the request was. */
const nothingDone = new Set(['rate_limited', 'trading_paused', 'exchange_unavailable', 'exchange_error']);
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
  const askedMs = failure.retryAfterSeconds * 1_000 * (1 + drawn / 4);
  // A bucket is full again when it says. A gateway that restarts asks for a second each time, and takes longer.
  return failure.status === 429 ? askedMs : Math.max(askedMs, ownMs);
}

/** Whether the request may have been done although it failed. */
export function leavesUnknown({ status, code }: Failure): boolean {
  if (status === undefined) return true;
  // A 408 is a proxy's, which may have passed the request on.
  if (status === 408) return code === undefined;
  // What is stored as never sent is known. It is 503 without a time to wait.
  return status >= 500 && !(code !== undefined && (nothingDone.has(code) || code.endsWith('_not_sent')));
}

/** Whether an answer tells what became of the request, also of earlier attempts with the same key. */
export function settles({ status, code }: Failure): boolean {
  if (status === undefined || code === undefined) return false;
  if (code.endsWith('_not_sent')) return true;
  // These are decided before the gateway looks for an earlier request with the key.
  return status >= 400 && status < 500 && ![401, 403, 429].includes(status);
}

function mayRepeat(failure: Failure, operation: Pick<Operation, 'method' | 'takesKey'>): boolean {
  const { status, code, retryAfterSeconds } = failure;
  const isSafe = operation.method !== 'POST' || operation.takesKey;
  if (status === undefined) return isSafe;
  if (code !== undefined && nothingDone.has(code)) return true;
  if (!isSafe) return false;
  if (status === 429 || code === 'document_in_flight') return true;
  // What answers without a code stands before the gateway.
  if (code === undefined) return status === 408 || status >= 500;
  // A 503 that may be repeated says when.
  return status >= 500 && (status !== 503 || retryAfterSeconds !== undefined);
}
