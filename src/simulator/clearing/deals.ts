import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../lib/clock.ts';
import { roundKoboDecimal } from '../../lib/money.ts';
import { chargesOn } from '../charges.ts';

const dayMs = 86_400_000;

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

/** Works out what an execution comes to. Each charge is rounded up to whole kobo, so that a note adds up. */
export function toDeal(number: number, execution: Execution): Deal {
  const { side, quantity, priceKobo, executedAtMs } = execution;
  const tradeDate = lagosDay(executedAtMs);
  const amountKobo = BigInt(quantity) * BigInt(priceKobo);
  const charges = chargesOn(amountKobo, side, tradeDate);
  const commissionKobo = roundKoboDecimal(charges.commission, 'up');
  const statutoryKobo = roundKoboDecimal(charges.statutory, 'up');
  const otherKobo = roundKoboDecimal(charges.other, 'up');
  const charged = commissionKobo + statutoryKobo + otherKobo;
  return {
    ...execution,
    number,
    amountKobo,
    commissionKobo,
    statutoryKobo,
    otherKobo,
    considerationKobo: side === Side.BUY ? amountKobo + charged : amountKobo - charged,
    tradeDate,
    settlementDate: settlementDate(tradeDate),
  };
}

/** A trade is settled on the next day that is no Saturday or Sunday. */
export function settlementDate(tradeDate: string): string {
  let at = Date.parse(`${tradeDate}T00:00:00Z`) + dayMs;
  while (isWeekend(at)) at += dayMs;
  return new Date(at).toISOString().slice(0, 10);
}

function isWeekend(at: number): boolean {
  return [0, 6].includes(new Date(at).getUTCDay());
}
