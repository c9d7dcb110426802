import { readFileSync } from 'node:fs';
import { isDate } from '../../kit/clock.ts';

const dayMs = 86_400_000;
const minuteMs = 60_000;

/** The exchange's hours in Lagos, from midnight. */
export const openMs = 10 * 60 * minuteMs;
export const closeMs = (14 * 60 + 30) * minuteMs;

/** The most holidays in a file: those of more than a hundred years. */
const maxHolidays = 2_000;
const maxName = 200;

/** A day that is unlike others: a holiday, or with a closing time a half day. */
export interface SpecialDay {
  /** YYYY-MM-DD. */
  readonly date: string;
  /** Empty if the file has none. */
  readonly name: string;
  /** When trading closes, from midnight in Lagos. */
  readonly closesAfterMs?: number;
}

/** The exchange's trading days: every Monday to Friday without a holiday. Days are dates as YYYY-MM-DD. */
export class MarketCalendar {
  readonly #special: ReadonlyMap<string, SpecialDay>;
  /** Holidays from Monday to Friday, as day numbers, in order. */
  readonly #lost: readonly number[];

  constructor(days: Iterable<SpecialDay> = []) {
    this.#special = new Map([...days].map((day) => [day.date, day]));
    this.#lost = [...this.#special.values()]
      .filter((day) => day.closesAfterMs === undefined)
      .map(({ date }) => dayNumber(date))
      .filter(isWeekday)
      .sort((one, other) => one - other);
  }

  isTradingDay(day: string): boolean {
    const special = this.#special.get(day);
    return isWeekday(dayNumber(day)) && (special === undefined || special.closesAfterMs !== undefined);
  }

  /** The holiday or half day on a Monday to Friday, if it is one. */
  special(day: string): SpecialDay | undefined {
    return isWeekday(dayNumber(day)) ? this.#special.get(day) : undefined;
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

/**
 * Reads a file of holidays: each line has a date and then the holiday's name. A time between them makes it a half day, which
 * closes then. `#` begins a comment.
 */
export function readHolidays(path: string | URL): SpecialDay[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  const days: SpecialDay[] = [];
  for (const [index, line] of lines.entries()) {
    const [date = '', ...rest] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (date === '') continue;
    if (!isDate(date)) throw new Error(`Line ${index + 1} of the holidays' file does not begin with a date`);
    const closesAfterMs = timeOfDay(rest[0] ?? '');
    const name = (closesAfterMs === undefined ? rest : rest.slice(1)).join(' ').slice(0, maxName);
    if (closesAfterMs !== undefined && (closesAfterMs <= openMs || closesAfterMs >= closeMs)) {
      throw new Error(`Line ${index + 1} of the holidays' file closes outside the exchange's hours`);
    }
    days.push({ date, name, ...(closesAfterMs === undefined ? {} : { closesAfterMs }) });
  }
  if (days.length > maxHolidays) throw new Error(`The holidays' file names more than ${maxHolidays}`);
  return days;
}

/** The milliseconds from midnight of a time as in `12:30`. Undefined if a text is none. */
function timeOfDay(text: string): number | undefined {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hours === undefined ? undefined : (Number(hours) * 60 + Number(minutes)) * minuteMs;
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
