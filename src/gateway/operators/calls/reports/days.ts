import { daysAfter, daysBefore, isDate, nextLagosMidnight } from '../../../../kit/clock.ts';
import { firstIdAt, type IdPrefix } from '../../../edge/ids.ts';
import { type Statement, sql } from '../../../store/statement.ts';
import { invalidField } from '../errors.ts';

/** Some days of Lagos, one after the other. */
export interface Days {
  readonly first: string;
  readonly last: string;
  /** The first instant of the first day, and the first instant after the last. */
  readonly from: number;
  readonly until: number;
}

/** The most days of a report that lists what happened. */
export const maxDays = 31;

/**
 * An object's id is made right after the instant at which it counts as created, or after an earlier id if the clock was set back.
 * So near midnight the two may be on different days.
 */
const idMarginMs = 60_000;

export function daysOf(first: string, last = first): Days {
  return {
    ...{ first, last },
    from: nextLagosMidnight(Date.parse(daysBefore(first, 1))),
    until: nextLagosMidnight(Date.parse(last)),
  };
}

/** The days of a request; an empty last day is the first one. Throws INVALID_ARGUMENT for what are none, or too many. */
export function askedDays({ fromDay, toDay }: { readonly fromDay: string; readonly toDay: string }, most = maxDays) {
  const last = toDay === '' ? fromDay : toDay;
  if (!isDate(fromDay)) throw invalidField('from_day', 'must be a day, as in 2026-03-02.');
  if (!isDate(last)) throw invalidField('to_day', 'must be a day, as in 2026-03-02.');
  if (last < fromDay) throw invalidField('to_day', 'must not be before `from_day`.');
  if (last > daysAfter(fromDay, most - 1)) {
    throw invalidField('to_day', `must be at most ${most - 1} days after \`from_day\`.`);
  }
  return daysOf(fromDay, last);
}

/** Each of some days. */
export function eachOf({ first, last }: Days): Days[] {
  const days: Days[] = [];
  for (let day = first; day <= last; day = daysAfter(day, 1)) days.push(daysOf(day));
  return days;
}

/** A condition for the ids of all objects that were created on some days, and of a few that were created just before or after. */
export function idsAround(days: Days, prefix: IdPrefix, first = firstIdAt(prefix, days.from - idMarginMs)): Statement {
  return sql`id >= ${first} AND ${idsBefore(days, prefix)}`;
}

/** A condition for the ids of all objects that were created before the end of some days, and of a few that were created just after. */
export function idsBefore({ until }: Days, prefix: IdPrefix): Statement {
  return sql`id < ${firstIdAt(prefix, until + idMarginMs)}`;
}
