import { readFileSync } from 'node:fs';
import { isDate } from '../../lib/clock.ts';

const dayMs = 86_400_000;
/** The most holidays in a file: those of more than a hundred years. */
const maxHolidays = 2_000;

/** The exchange's trading days: every Monday to Friday without a holiday. Days are dates as YYYY-MM-DD. */
export class Calendar {
  readonly #holidays: ReadonlySet<string>;
  /** Holidays from Monday to Friday, as day numbers, in order. */
  readonly #lost: readonly number[];

  constructor(holidays: Iterable<string> = []) {
    this.#holidays = new Set(holidays);
    this.#lost = [...this.#holidays]
      .map(dayNumber)
      .filter(isWeekday)
      .sort((one, other) => one - other);
  }

  isTradingDay(day: string): boolean {
    return isWeekday(dayNumber(day)) && !this.#holidays.has(day);
  }

  /** The trading day that is `count` trading days after a day, 1 or more. */
  tradingDayAfter(day: string, count: number): string {
    let at = dayNumber(day);
    for (let left = count; left > 0; ) {
      at += 1;
      if (this.isTradingDay(dayText(at))) left -= 1;
    }
    return dayText(at);
  }

  /** How many trading days there were before a day, since 1970. */
  tradingDaysBefore(day: string): number {
    const at = dayNumber(day);
    // 1970-01-01 was a Thursday. Counting starts at its week's Monday, and the three days before are subtracted.
    const sinceMonday = at + 3;
    const weeks = Math.floor(sinceMonday / 7);
    const weekdays = weeks * 5 + Math.min(5, sinceMonday - weeks * 7) - 3;
    return weekdays - this.#lost.filter((lost) => lost < at).length;
  }
}

/** Reads a file of holidays: each line has a date and then the holiday's name. `#` begins a comment. */
export function readHolidays(path: string | URL): string[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  const holidays: string[] = [];
  for (const [index, line] of lines.entries()) {
    const [date = ''] = line.replace(/#.*/, '').trim().split(/\s/);
    if (date === '') continue;
    if (!isDate(date)) throw new Error(`Line ${index + 1} of the holidays' file does not begin with a date`);
    holidays.push(date);
  }
  if (holidays.length > maxHolidays) throw new Error(`The holidays' file names more than ${maxHolidays}`);
  return holidays;
}

/** The simulator's own file of holidays. */
export const usualHolidays = new URL('holidays.txt', import.meta.url);

/** The number of days from 1970-01-01 to a day. */
export function dayNumber(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / dayMs;
}

function dayText(number: number): string {
  return new Date(number * dayMs).toISOString().slice(0, 10);
}

function isWeekday(number: number): boolean {
  return ![0, 6].includes(new Date(number * dayMs).getUTCDay());
}
