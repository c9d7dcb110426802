import { type Clock, lagosDay, nextLagosMidnight } from '../../../kit/clock.ts';
import type { Database } from '../../store/database.ts';
import { type BreakKindName, dueDays, eveningOf } from './rules.ts';
import { countOpenBreaks, daysWithRuns, firstPartner, lastCompleteDay, lastOffer, readOpenBreaks } from './store.ts';

/** How far the reconciliation with the broker is. */
export interface ReconciliationFigures {
  readonly breaks: readonly (readonly [kind: BreakKindName, count: number])[];
  /** Undefined: none. */
  readonly lastDay: string | undefined;
  /** Its end; undefined: there is none. */
  readonly lastDayEndsAt: number | undefined;
  /** Days whose evening has passed and that were not compared. */
  readonly overdue: number;
  /** How long ago the evening of the oldest of them passed, in business time. */
  readonly overdueMs: number;
  /** Undefined: the broker was not asked yet. */
  readonly isOffered: boolean | undefined;
}

/** Reads how far the reconciliation is. `minute`: when a day is compared. */
export async function readReconciliation(
  database: Pick<Database, 'readAll'>,
  clock: Clock,
  minute: number,
): Promise<ReconciliationFigures> {
  const now = clock.now();
  const week = dueDays(now, minute, '');
  const [breaks = [], [last] = [], [complete] = [], [refused] = [], [first] = [], days = []] = await database.readAll([
    countOpenBreaks(),
    lastCompleteDay(),
    ...lastOffer(),
    firstPartner(),
    daysWithRuns(week),
  ]);
  const lastDay = last?.day == null ? undefined : String(last.day);
  const done = new Set(days.filter((row) => Number(row.is_done) === 1).map(({ day }) => String(day)));
  const firstDay = first === undefined ? undefined : lagosDay((first.created_at as Date).getTime());
  const due = firstDay === undefined ? [] : dueDays(now, minute, firstDay);
  const overdue = due.filter((day) => !done.has(day));
  const [oldest] = overdue;
  const isRefused = refused !== undefined && (complete === undefined || isLater(refused, complete));
  return {
    breaks: readOpenBreaks(breaks),
    lastDay,
    lastDayEndsAt: lastDay === undefined ? undefined : nextLagosMidnight(Date.parse(lastDay)),
    overdue: overdue.length,
    overdueMs: oldest === undefined ? 0 : now - eveningOf(oldest, minute),
    isOffered: complete === undefined && refused === undefined ? undefined : !isRefused,
  };
}

function isLater(one: Record<string, unknown>, other: Record<string, unknown>): boolean {
  const [day, otherDay] = [String(one.day), String(other.day)];
  return day > otherDay || (day === otherDay && Number(one.number) > Number(other.number));
}
