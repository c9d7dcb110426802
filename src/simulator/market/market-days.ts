import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type MarketDay, MarketDayKind, MarketDaySchema } from '../../gen/marina/broker/v1/reference_pb.ts';
import { daysAfter, nextLagosMidnight } from '../../lib/clock.ts';
import { settlementDate } from '../clearing/settlement.ts';
import { closesAtMs, lagosMidnight, opensAtMs } from './hours.ts';
import type { Venue } from './venue.ts';

/** The days that the calendar reaches. */
const firstKnown = '1970-01-01';
const lastKnown = '2199-12-31';

/** The days from one to another. An exchange that is always open trades on each of them, from midnight to midnight. */
export function marketDays(venue: Venue, from: string, to: string): MarketDay[] {
  const days: MarketDay[] = [];
  const end = to < lastKnown ? to : lastKnown;
  if (from < firstKnown) return days;
  for (let date = from; date <= end; date = daysAfter(date, 1)) days.push(marketDay(venue, date));
  return days;
}

function marketDay({ calendar, keepsHours }: Venue, date: string): MarketDay {
  const settles = settlementDate(calendar, date);
  if (!keepsHours) {
    const midnight = lagosMidnight(date);
    return create(MarketDaySchema, {
      date,
      kind: MarketDayKind.TRADING_DAY,
      opensAt: timestampFromMs(midnight),
      closesAt: timestampFromMs(nextLagosMidnight(midnight)),
      settlementDate: settles,
    });
  }
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
    settlementDate: settles,
  });
}
