import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../lib/clock.ts';
import { roundKoboDecimal } from '../../lib/money.ts';
import { chargesOn } from '../charges.ts';
import type { Calendar } from '../market/calendar.ts';
import { settlementDate } from './settlement.ts';

/** What was executed. */
export interface Execution {
  readonly account: string;
  /** Empty when no order led to it. */
  readonly clientOrderId: string;
  readonly symbol: string;
  readonly name: string;
  readonly side: Side;
  readonly quantity: number;
  readonly priceKobo: number;
  readonly executedAtMs: number;
}

/** An execution with its charges and the days it is traded and settled. */
export interface Deal extends Execution {
  readonly number: number;
  readonly amountKobo: bigint;
  readonly commissionKobo: bigint;
  readonly statutoryKobo: bigint;
  readonly otherKobo: bigint;
  /** What a buy cost or a sale brought: a small sale can bring less than nothing. */
  readonly considerationKobo: bigint;
  readonly tradeDate: string;
  readonly settlementDate: string;
}

/**
 * Works out what an execution comes to. What an order trades on one day is charged as one amount, whatever the parts it
 * trades in: each part bears what it adds to the charges of those before it. So an order's parts bear together, to the
 * kobo, what its estimate said for their price.
 */
export function toDeal(number: number, execution: Execution, calendar: Calendar, earlierKobo = 0n): Deal {
  const { side, quantity, priceKobo, executedAtMs } = execution;
  const tradeDate = lagosDay(executedAtMs);
  const amountKobo = BigInt(quantity) * BigInt(priceKobo);
  const before = chargedOn(earlierKobo, side, tradeDate);
  const after = chargedOn(earlierKobo + amountKobo, side, tradeDate);
  const charges = {
    commissionKobo: after.commissionKobo - before.commissionKobo,
    // Of a part worth less than a kobo's charges, rounding can leave less than nothing.
    statutoryKobo: atLeastNothing(after.statutoryKobo - before.statutoryKobo),
    otherKobo: after.otherKobo - before.otherKobo,
  };
  const charged = charges.commissionKobo + charges.statutoryKobo + charges.otherKobo;
  return {
    ...execution,
    ...charges,
    number,
    amountKobo,
    considerationKobo: side === Side.BUY ? amountKobo + charged : amountKobo - charged,
    tradeDate,
    settlementDate: settlementDate(calendar, tradeDate),
  };
}

/** The charges in whole kobo: together rounded up once, as an estimate's total is; the statutory ones take the rest. */
function chargedOn(amountKobo: bigint, side: Side, day: string) {
  if (amountKobo === 0n) return { commissionKobo: 0n, statutoryKobo: 0n, otherKobo: 0n };
  const charges = chargesOn(amountKobo, side, day);
  const commissionKobo = roundKoboDecimal(charges.commission, 'up');
  const otherKobo = roundKoboDecimal(charges.other, 'up');
  const statutoryKobo = atLeastNothing(roundKoboDecimal(charges.charged, 'up') - commissionKobo - otherKobo);
  return { commissionKobo, statutoryKobo, otherKobo };
}

function atLeastNothing(kobo: bigint): bigint {
  return kobo < 0n ? 0n : kobo;
}
