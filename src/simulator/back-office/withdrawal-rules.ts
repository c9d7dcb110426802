import { WithdrawalDestination } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../kit/clock.ts';
import type { MarketCalendar } from '../market/calendar.ts';
import type { WithdrawalSubmission } from './withdrawal-model.ts';

/** The stamp duty on a transfer to a bank account of more than ₦10,000. */
const dutyKobo = 5_000n;
const dutyAboveKobo = 1_000_000;

/** The number of trading days after which a bank returns money. */
const returnDays = 2;
const dayMs = 86_400_000;

/** The duty that an account pays when a withdrawal is paid. A return does not give it back. */
export function dutyOn({ amountKobo, destination }: Pick<WithdrawalSubmission, 'amountKobo' | 'destination'>): bigint {
  const isDue = destination === WithdrawalDestination.BANK_ACCOUNT && amountKobo > dutyAboveKobo;
  return isDue ? dutyKobo : 0n;
}

/** When a bank returns what it was paid now: when the second trading day after begins in Lagos. */
export function returnAtMs(calendar: MarketCalendar, nowMs: number): number {
  const day = calendar.tradingDayAfter(lagosDay(nowMs), returnDays);
  return nextLagosMidnight(Date.parse(`${day}T00:00:00Z`)) - dayMs;
}
