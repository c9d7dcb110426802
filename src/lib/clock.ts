/**
 * Time, passed in. Business time (what partners see, daily limits, schedules, retention) can be moved forward in a
 * sandbox; real time (leases, deadlines, `not_after`, webhook timestamps) cannot.
 */
export interface Clock {
  /** Business time in milliseconds since the Unix epoch. */
  now(): number;
  /** Real time in milliseconds since the Unix epoch. */
  realNow(): number;
}

/** The clock of a running gateway: the machine's, with business time ahead of it by an offset that only grows. */
export class SystemClock implements Clock {
  #offsetMs = 0;

  now(): number {
    return Date.now() + this.#offsetMs;
  }

  realNow(): number {
    return Date.now();
  }

  get offsetMs(): number {
    return this.#offsetMs;
  }

  /** Takes a larger offset; a smaller one is an old message and is ignored. */
  moveTo(offsetMs: number): void {
    this.#offsetMs = Math.max(this.#offsetMs, offsetMs);
  }
}

/** West Africa Time is UTC+1 all year. */
const lagosOffsetMs = 3_600_000;
const dayMs = 86_400_000;

/** The Lagos date of an instant, as YYYY-MM-DD. */
export function lagosDay(atMs: number): string {
  return new Date(atMs + lagosOffsetMs).toISOString().slice(0, 10);
}

/** The instant at which the Lagos day of an instant ends. */
export function nextLagosMidnight(atMs: number): number {
  return (Math.floor((atMs + lagosOffsetMs) / dayMs) + 1) * dayMs - lagosOffsetMs;
}
