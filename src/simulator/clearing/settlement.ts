import type { Calendar } from '../market/calendar.ts';

/** How many trading days after a trade it was settled, by the day from which on: oldest first. */
export const settlementCycles: readonly { readonly fromDay: string; readonly days: number }[] = [
  { fromDay: '1970-01-01', days: 3 },
  { fromDay: '2025-11-28', days: 2 },
  { fromDay: '2026-06-01', days: 1 },
];

/** The day a trade is settled on. */
export function settlementDate(calendar: Calendar, tradeDate: string): string {
  const cycle = settlementCycles.findLast((each) => each.fromDay <= tradeDate);
  if (cycle === undefined) throw new Error(`No settlement cycle is set for ${tradeDate}`);
  return calendar.tradingDayAfter(tradeDate, cycle.days);
}
