import { lagosDay, nextLagosMidnight } from '../../kit/clock.ts';
import { closeMs, dayNumber, type MarketCalendar, openMs } from './calendar.ts';

const dayMs = 86_400_000;
const minuteMs = 60_000;

/** When orders are taken, in Lagos, from midnight. */
const preOpenMs = (9 * 60 + 30) * minuteMs;

export interface MarketHours {
  readonly phase: 'continuous' | 'collecting' | 'closed';
  /** Time in trading days, which stands still while nothing trades. The last whole number was the previous close. */
  readonly time: number;
  /** The end of the trading day on which a new order could trade. */
  readonly dayEndsAtMs: number;
  /** Absent for an exchange that never closes. */
  readonly nextOpenAtMs?: number;
  readonly nextCloseAtMs?: number;
}

/** The hours of an exchange that is always open. Its trading days are Lagos days. */
export function alwaysOpen(nowMs: number): MarketHours {
  const dayEndsAtMs = nextLagosMidnight(nowMs);
  const day = dayNumber(lagosDay(nowMs));
  return { phase: 'continuous', time: day + (nowMs - dayEndsAtMs + dayMs) / dayMs, dayEndsAtMs };
}

/** The hours of the Nigerian Exchange: pre-open from 9:30, trading from 10:00 to 14:30 in Lagos, on a half day not so long. */
export function exchangeHours(calendar: MarketCalendar, nowMs: number): MarketHours {
  const today = lagosDay(nowMs);
  const sinceMidnight = nowMs - (nextLagosMidnight(nowMs) - dayMs);
  const trades = calendar.isTradingDay(today);
  const before = calendar.tradingDaysBefore(today);
  const closesMs = closesAfterMs(calendar, today);
  const passed = Math.min(1, Math.max(0, (sinceMidnight - openMs) / (closesMs - openMs)));
  const next = trades && sinceMidnight < closesMs ? today : calendar.tradingDayAfter(today, 1);
  const nextToOpen = trades && sinceMidnight < openMs ? today : calendar.tradingDayAfter(today, 1);
  return {
    phase: trades ? phaseAt(sinceMidnight, closesMs) : 'closed',
    time: before + (trades ? passed : 0),
    dayEndsAtMs: closesAtMs(calendar, next),
    nextOpenAtMs: opensAtMs(nextToOpen),
    nextCloseAtMs: closesAtMs(calendar, next),
  };
}

/** When the exchange opens on a trading day. */
export function opensAtMs(day: string): number {
  return lagosMidnight(day) + openMs;
}

/** When the exchange closes on a trading day. */
export function closesAtMs(calendar: MarketCalendar, day: string): number {
  return lagosMidnight(day) + closesAfterMs(calendar, day);
}

/** The start of a Lagos day. */
function lagosMidnight(day: string): number {
  return nextLagosMidnight(dayNumber(day) * dayMs) - dayMs;
}

function closesAfterMs(calendar: MarketCalendar, day: string): number {
  return calendar.special(day)?.closesAfterMs ?? closeMs;
}

function phaseAt(sinceMidnight: number, closesMs: number): MarketHours['phase'] {
  if (sinceMidnight < preOpenMs || sinceMidnight >= closesMs) return 'closed';
  return sinceMidnight < openMs ? 'collecting' : 'continuous';
}
