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

/**
 * Business time for a worker that removes what is old, by the worker's name. Undefined while this process's clock may be
 * wrong: what is removed by a wrong clock is gone for good.
 */
export type RemovalTime = (worker: string) => Promise<number | undefined>;

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

const datePattern = /^\d{4}-\d{2}-\d{2}$/;

/** Whether a text is a date there is, as YYYY-MM-DD. */
export function isDate(text: string): boolean {
  if (!datePattern.test(text)) return false;
  const at = Date.parse(`${text}T00:00:00Z`);
  // A day the month does not have is no time, or another day.
  return !Number.isNaN(at) && new Date(at).toISOString().slice(0, 10) === text;
}

/** The date some days before another, both YYYY-MM-DD; the first there is when there are not so many. */
export function daysBefore(date: string, days: number): string {
  const at = Math.max(Date.parse(`${date}T00:00:00Z`) - days * dayMs, Date.parse('0000-01-01T00:00:00Z'));
  return new Date(at).toISOString().slice(0, 10);
}
