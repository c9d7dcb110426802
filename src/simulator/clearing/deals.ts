import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import { roundKoboDecimal } from '../../kit/money.ts';
import type { MarketCalendar } from '../market/calendar.ts';
import { chargesOn } from './charges.ts';
import { settlementDate } from './settlement.ts';

export interface DealTerms {
  readonly account: string;
  /** Empty without an order. */
  readonly clientOrderId: string;
  readonly symbol: string;
  readonly name: string;
  readonly side: Side;
  readonly quantity: number;
  readonly priceKobo: number;
  readonly executedAtMs: number;
}

/** An execution with its charges, trade date and settlement date. */
export interface Deal extends DealTerms {
  readonly number: number;
  readonly amountKobo: bigint;
  readonly commissionKobo: bigint;
  readonly statutoryKobo: bigint;
  readonly otherKobo: bigint;
  /** The cost of a buy or the proceeds of a sale. A small sale can have negative proceeds. */
  readonly considerationKobo: bigint;
  readonly tradeDate: string;
  readonly settlementDate: string;
}

/**
 * Computes an execution's charges and dates. An order's executions on one day are charged as one amount: each bears its
 * addition to those before it. So together they bear, to the kobo, the charges of the order's estimate at their price.
 */
export function toDeal(number: number, execution: DealTerms, calendar: MarketCalendar, earlierKobo = 0n): Deal {
  const { side, quantity, priceKobo, executedAtMs } = execution;
  const tradeDate = lagosDay(executedAtMs);
  const amountKobo = BigInt(quantity) * BigInt(priceKobo);
  const before = chargedOn(earlierKobo, side, tradeDate);
  const after = chargedOn(earlierKobo + amountKobo, side, tradeDate);
  const charges = {
    commissionKobo: after.commissionKobo - before.commissionKobo,
    // For a part whose charges are below one kobo, rounding can leave a negative rest.
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

/** The charges in whole kobo. Their sum is rounded up once, as in an estimate; the statutory charges take the rest. */
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
