import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type MarketDay, MarketDayKind, MarketDaySchema } from '../../gen/marina/broker/v1/reference_pb.ts';
import { daysAfter } from '../../kit/clock.ts';
import { settlementDate } from '../clearing/settlement.ts';
import type { MarketCalendar } from './calendar.ts';
import { closesAtMs, opensAtMs } from './hours.ts';

/** The days that the calendar reaches. */
const firstKnown = '1970-01-01';
const lastKnown = '2199-12-31';

/** The days from one to another: the Nigerian Exchange's, also if the simulated exchange is always open. */
export function marketDays(calendar: MarketCalendar, from: string, to: string): MarketDay[] {
  const days: MarketDay[] = [];
  const end = to < lastKnown ? to : lastKnown;
  if (from < firstKnown) return days;
  for (let date = from; date <= end; date = daysAfter(date, 1)) days.push(marketDay(calendar, date));
  return days;
}

function marketDay(calendar: MarketCalendar, date: string): MarketDay {
  const special = calendar.special(date);
  const name = special?.name ?? '';
  if (!calendar.isTradingDay(date)) {
    const kind = special === undefined ? MarketDayKind.WEEKEND : MarketDayKind.HOLIDAY;
    return create(MarketDaySchema, { date, kind, name });
  }
  return create(MarketDaySchema, {
    date,
    kind: special === undefined ? MarketDayKind.TRADING_DAY : MarketDayKind.HALF_DAY,
    name,
    opensAt: timestampFromMs(opensAtMs(date)),
    closesAt: timestampFromMs(closesAtMs(calendar, date)),
    settlementDate: settlementDate(calendar, date),
  });
}
