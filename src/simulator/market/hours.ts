import { lagosDay, nextLagosMidnight } from '../../lib/clock.ts';
import { type Calendar, dayNumber } from './calendar.ts';

const dayMs = 86_400_000;
const minuteMs = 60_000;

/** The exchange's hours in Lagos, from midnight. */
const preOpenMs = (9 * 60 + 30) * minuteMs;
const openMs = 10 * 60 * minuteMs;
const closeMs = (14 * 60 + 30) * minuteMs;

export interface Hours {
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
export function alwaysOpen(nowMs: number): Hours {
  const dayEndsAtMs = nextLagosMidnight(nowMs);
  const day = dayNumber(lagosDay(nowMs));
  return { phase: 'continuous', time: day + (nowMs - dayEndsAtMs + dayMs) / dayMs, dayEndsAtMs };
}

/** The hours of the Nigerian Exchange: pre-open from 9:30, trading from 10:00 to 14:30 in Lagos. */
export function exchangeHours(calendar: Calendar, nowMs: number): Hours {
  const today = lagosDay(nowMs);
  const sinceMidnight = nowMs - (nextLagosMidnight(nowMs) - dayMs);
  const trades = calendar.isTradingDay(today);
  const before = calendar.tradingDaysBefore(today);
  const passed = Math.min(1, Math.max(0, (sinceMidnight - openMs) / (closeMs - openMs)));
  const next = trades && sinceMidnight < closeMs ? today : calendar.tradingDayAfter(today, 1);
  const nextToOpen = trades && sinceMidnight < openMs ? today : calendar.tradingDayAfter(today, 1);
  return {
    phase: trades ? phaseAt(sinceMidnight) : 'closed',
    time: before + (trades ? passed : 0),
    dayEndsAtMs: midnightOf(next, nowMs) + closeMs,
    nextOpenAtMs: midnightOf(nextToOpen, nowMs) + openMs,
    nextCloseAtMs: midnightOf(next, nowMs) + closeMs,
  };
}

function phaseAt(sinceMidnight: number): Hours['phase'] {
  if (sinceMidnight < preOpenMs || sinceMidnight >= closeMs) return 'closed';
  return sinceMidnight < openMs ? 'collecting' : 'continuous';
}

/** The start of a Lagos day. */
function midnightOf(day: string, nowMs: number): number {
  const today = nextLagosMidnight(nowMs) - dayMs;
  return today + (dayNumber(day) - dayNumber(lagosDay(nowMs))) * dayMs;
}
