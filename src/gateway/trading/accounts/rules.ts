import { daysBefore, isDate, lagosDay } from '../../../kit/clock.ts';
import { ApiError } from '../../edge/errors.ts';

/** From one Lagos day to another, both YYYY-MM-DD and both inclusive. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

/** The most records that a range of days may have. */
const maxInRange = 1_000;
const usualDays = 30;

/** The days of a request: by default `to` is today, `from` 30 days before. Throws `invalid_request` for an invalid day. */
export function dayRange(asked: { from?: string | undefined; to?: string | undefined }, now: number): DayRange {
  const today = lagosDay(now);
  const to = asked.to ?? today;
  if (asked.from !== undefined && !isDate(asked.from)) throw refusal('from', 'must be a date, YYYY-MM-DD.');
  if (asked.from !== undefined && isDate(to) && asked.from > to) {
    throw refusal('from', asked.to === undefined ? 'must not be after today in Lagos.' : 'must not be after `to`.');
  }
  if (!isDate(to)) throw refusal('to', 'must be a date, YYYY-MM-DD.');
  if (to > today) throw refusal('to', `must not be after today in Lagos, ${today}.`);
  return { from: asked.from ?? daysBefore(to, usualDays), to };
}

/** Throws if a range has more records than `maxInRange`. Called for its first page only, so that no later page fails. */
export function checkInRange(count: number): void {
  if (count > maxInRange) {
    throw refusal(
      'from',
      'is too early: there are more than 1,000 records in the range. Ask for fewer days at a time.',
    );
  }
}

function refusal(param: 'from' | 'to', problem: string): ApiError {
  return new ApiError('invalid_request', { param, message: `\`${param}\` ${problem}` });
}
