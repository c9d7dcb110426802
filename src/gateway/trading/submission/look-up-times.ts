/** When an object with an unknown outcome is looked up. All times are real time, in milliseconds. */
import { farAheadMs } from './rules.ts';

const firstWaitMs = 500;
const longestWaitMs = 30_000;

/** The wait after a look-up that settled nothing, when there were so many before it. */
export function waitAfter(checks: number): number {
  return Math.min(firstWaitMs * 2 ** Math.min(checks, 10), longestWaitMs);
}

/** Whether the time to send an object is over for each replica whose clock differs no more than is allowed. */
export function isSendingOver(notAfter: number, clockSkewMs: number, realNow: number): boolean {
  return notAfter + clockSkewMs <= realNow;
}

/** Whether an object that the broker does not have may still be taken, unless its sender's clock was ahead. */
export function mayStillBeTaken(
  { notAfter }: { readonly notAfter: number },
  clockSkewMs: number,
  realNow: number,
): boolean {
  return !isSendingOver(notAfter, clockSkewMs, realNow) && !isFarAhead(notAfter, realNow);
}

/** Whether `check_at` is further in the future than any sender sets it, because the sender's clock was ahead. */
export function isFarAhead(checkAt: number | null, realNow: number): boolean {
  return (checkAt ?? 0) > realNow + farAheadMs;
}

/** The most by which the clock of the replica that created an object can have been behind. */
export function mostBehindMs(missingSince: number | null, notAfter: number, realNow: number): number {
  return Math.max(0, (missingSince ?? realNow) - notAfter);
}

/** The object that the broker's record does not have. `missingSince`: since the first look-up that did not find it. */
interface Missing {
  readonly checks: number;
  readonly notAfter: number;
  readonly missingSince: number | null;
}

/**
 * When the broker's record is queried again: after the usual wait, and not before an absence can be proven, if it was missing
 * before. If the sender's clock was ahead, `not_after` is much too late. The broker's record may have the object earlier, so the
 * wait is never longer than the longest one.
 */
export function nextLookUpAt(
  { checks, notAfter, missingSince }: Missing,
  clockSkewMs: number,
  realNow: number,
): number {
  const provableFrom = missingSince === null ? 0 : notAfter + clockSkewMs + 1;
  return Math.min(Math.max(realNow + waitAfter(checks), provableFrom), realNow + longestWaitMs);
}
