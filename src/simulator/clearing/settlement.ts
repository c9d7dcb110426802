import type { MarketCalendar } from '../market/calendar.ts';

/** The trading days from trade to settlement, by first trade date, oldest first. */
const settlementCycles: readonly { readonly fromDay: string; readonly days: number }[] = [
  { fromDay: '1970-01-01', days: 3 },
  { fromDay: '2025-11-28', days: 2 },
  { fromDay: '2026-06-01', days: 1 },
];

/** The settlement date of a trade. */
export function settlementDate(calendar: MarketCalendar, tradeDate: string): string {
  const cycle = settlementCycles.findLast((each) => each.fromDay <= tradeDate);
  if (cycle === undefined) throw new Error(`No settlement cycle is set for ${tradeDate}`);
  return calendar.tradingDayAfter(tradeDate, cycle.days);
}
