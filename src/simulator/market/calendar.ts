import { readFileSync } from 'node:fs';
import { isDate } from '../../lib/clock.ts';

const dayMs = 86_400_000;
/** How many holidays a file may name: more than a hundred years of them. */
const maxHolidays = 2_000;

/** The days the exchange trades on: every Monday to Friday that is no holiday. Days are dates as YYYY-MM-DD. */
export class Calendar {
  readonly #holidays: ReadonlySet<string>;
  /** Holidays that would be trading days otherwise, as numbers, in order. */
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

  /** The trading day that comes so many trading days after a day, 1 or more. */
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
    // 1970-01-01 was a Thursday: counted from the Monday of its week, whose three days before it are taken off.
    const sinceMonday = at + 3;
    const weeks = Math.floor(sinceMonday / 7);
    const weekdays = weeks * 5 + Math.min(5, sinceMonday - weeks * 7) - 3;
    return weekdays - this.#lost.filter((lost) => lost < at).length;
  }
}

/** The holidays a file names: a date at the beginning of each line, and behind it what is celebrated. `#` begins a remark. */
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

/** The holidays the simulator comes with. */
export const usualHolidays = new URL('holidays.txt', import.meta.url);

/** A day by how many there were before it since 1970. */
export function dayNumber(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / dayMs;
}

function dayText(number: number): string {
  return new Date(number * dayMs).toISOString().slice(0, 10);
}

function isWeekday(number: number): boolean {
  return ![0, 6].includes(new Date(number * dayMs).getUTCDay());
}
