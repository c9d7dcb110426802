import type { ClockAgreement } from '../broker/clock.ts';
import type { LookedUp } from '../broker/port.ts';

/** How long after its time something could still have come in, with a broker that takes what comes late. */
export const lateMs = 3_600_000;

/** What is known when the broker's record does not have something. */
export interface Absence {
  readonly lookedUp: LookedUp<unknown> & { readonly found: false };
  /** Real time by our clock. */
  readonly askedAt: number;
  /** Real time by our clock past which the broker must not take it. */
  readonly notAfter: number;
  /** By how much the clocks may differ. */
  readonly clockSkewMs: number;
  /** Whether they do, as far as is known after the answer. */
  readonly agreement: ClockAgreement;
  /** Whether the broker refuses what comes after its `not_after`. */
  readonly honoursNotAfter: boolean;
  /** Business time. A record that is complete for longer than this cannot lack it. */
  readonly lastArrival: number;
}

/**
 * Whether the broker can never have what its record does not have. Our clock must say that its time is over. Besides, either
 * the broker refuses what comes late, and its own clock says that its time is over too; or its record is complete. A clock
 * that is known to be wrong proves nothing, and neither does one of which nothing is known.
 */
export function isProven({
  lookedUp: { brokerTime, completeUntil },
  askedAt,
  notAfter,
  clockSkewMs,
  agreement,
  honoursNotAfter,
  lastArrival,
}: Absence): boolean {
  if (agreement === 'apart' || askedAt <= notAfter + clockSkewMs) return false;
  const isTooLate = honoursNotAfter && agreement === 'in_step' && brokerTime !== undefined && brokerTime > notAfter;
  return isTooLate || (completeUntil !== undefined && completeUntil > lastArrival);
}
