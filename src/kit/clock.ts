import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';

/**
 * Time, passed in as a parameter. Business time (shown to partners, daily limits, schedules, retention) can be moved
 * forward in a sandbox. Real time (leases, deadlines, `not_after`, webhook timestamps) cannot.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  realNow(): number;
}

/** Business time for a worker, by name, that removes old rows. Undefined while this process's clock may be wrong. */
export type RemovalTime = (worker: string) => Promise<number | undefined>;

/** A running gateway's clock: the machine's, with business time ahead by an offset that only grows. */
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

  /** Sets a larger offset. A smaller one is an old message and is ignored. */
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

/** The instant at which the Lagos day of an instant began. */
export function lagosMidnight(atMs: number): number {
  return nextLagosMidnight(atMs) - dayMs;
}

const datePattern = /^\d{4}-\d{2}-\d{2}$/;

/** Whether a text is an existing date, as YYYY-MM-DD. */
export function isDate(text: string): boolean {
  if (!datePattern.test(text)) return false;
  const at = Date.parse(`${text}T00:00:00Z`);
  // A day that the month does not have is NaN or another day.
  return !Number.isNaN(at) && new Date(at).toISOString().slice(0, 10) === text;
}

/** The date some days earlier, both YYYY-MM-DD; at the earliest 0000-01-01. */
export function daysBefore(date: string, days: number): string {
  const at = Math.max(Date.parse(`${date}T00:00:00Z`) - days * dayMs, Date.parse('0000-01-01T00:00:00Z'));
  return new Date(at).toISOString().slice(0, 10);
}

/** The date some days later, both YYYY-MM-DD; at the latest 9999-12-31. */
export function daysAfter(date: string, days: number): string {
  const at = Math.min(Date.parse(`${date}T00:00:00Z`) + days * dayMs, Date.parse('9999-12-31T00:00:00Z'));
  return new Date(at).toISOString().slice(0, 10);
}

/** An instant as partners see it over every protocol: to the second, rounded down. */
export function toSecond(ms: number): Timestamp {
  return timestampFromMs(Math.floor(ms / 1_000) * 1_000);
}

/** The accepted instants in milliseconds: from the year 2000 until the start of 2200. */
export const instantRange = { least: 946_684_800_000, most: 7_258_118_400_000 };

/** Another system's instant in milliseconds; undefined if it is absent or out of range. */
export function statedInstant(at: Timestamp | undefined): number | undefined {
  const ms = at && toMilliseconds(at);
  return ms === undefined || ms < instantRange.least || ms > instantRange.most ? undefined : ms;
}

/** Rounded down. Rounding up at the end of the last year would exceed the database's range. */
export function toMilliseconds({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
}
