import mysql from 'mysql2/promise';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../lib/clock.ts';
import type { Order } from '../model.ts';
import type { World } from '../world.ts';
import { type Deal, type Execution, toDeal } from './deals.ts';
import { deals } from './tables.ts';

/** The highest price there is, in kobo, as the exchange promises. */
const highestPriceKobo = 10_000_000_000;

/** Clearing's part of a unit of work: what executions do to an account's money and stocks. */
export class ClearingUnit {
  readonly #deals: Deal[] = [];
  /** Accounts that settle early, all of them by an empty name, with the day. */
  readonly #settled = new Map<string, string>();

  constructor(private readonly world: World) {}

  /**
   * Books an execution, of an order's or of none. One at a price that cannot be, which only the controls make, is
   * reported and never cleared.
   */
  book(execution: Execution, order?: Order): void {
    if (execution.priceKobo > highestPriceKobo) return;
    this.world.lastDeal += 1;
    const { calendar, lastDeal } = this.world;
    const isSameDay = order?.tradedOn === lagosDay(execution.executedAtMs);
    const deal = toDeal(lastDeal, execution, calendar, isSameDay ? order.tradedKobo : 0n);
    this.#deals.push(deal);
    if (order === undefined) return;
    order.tradedKobo = (isSameDay ? order.tradedKobo : 0n) + deal.amountKobo;
    order.tradedOn = deal.tradeDate;
  }

  /** Settles on a day what an account, or everyone by an empty name, was to settle later. */
  settle(account: string, day: string): void {
    this.#settled.set(account, day);
  }

  /** What must be written for all of it. */
  statements(): string[] {
    const statements = [...this.#settled].map(([account, day]) => settleStatement(account, day));
    return [...deals.save(this.#deals), ...runsOf(this.#deals).map(holdingStatement), ...statements];
  }
}

function settleStatement(account: string, day: string): string {
  const sql = 'UPDATE deals SET settlement_date = ? WHERE settlement_date > ?';
  return account === '' ? mysql.format(sql, [day, day]) : mysql.format(`${sql} AND account = ?`, [day, day, account]);
}

interface Run {
  readonly account: string;
  readonly symbol: string;
  readonly side: Side;
  quantity: bigint;
  amountKobo: bigint;
}

/** Deals that follow each other and do the same to the same stock, added up. */
function runsOf(all: readonly Deal[]): Run[] {
  const runs: Run[] = [];
  for (const { account, symbol, side, quantity, amountKobo } of all) {
    const last = runs.at(-1);
    if (last !== undefined && last.account === account && last.symbol === symbol && last.side === side) {
      last.quantity += BigInt(quantity);
      last.amountKobo += amountKobo;
    } else {
      runs.push({ account, symbol, side, quantity: BigInt(quantity), amountKobo });
    }
  }
  return runs;
}

/**
 * A buy adds its amount to what the stock cost; a sale takes its share of that. The exchange asks nobody whether he has
 * what he sells: a holding below nothing costs nothing, until it is bought back.
 */
function holdingStatement({ account, symbol, side, quantity, amountKobo }: Run): string {
  const [shares, amount] = [quantity.toString(), amountKobo.toString()];
  const added =
    side === Side.BUY
      ? // Of a buy that makes good for what was sold, only what is left of it is held.
        `cost_kobo = IF(quantity >= 0, cost_kobo + ${amount},
           IF(quantity + ${shares} > 0, CAST(${amount} AS DECIMAL(40)) * (quantity + ${shares}) DIV ${shares}, 0)),
         quantity = quantity + ${shares}`
      : `cost_kobo = IF(quantity > ${shares}, cost_kobo - CAST(cost_kobo AS DECIMAL(40)) * ${shares} DIV quantity, 0),
         quantity = quantity - ${shares}`;
  const first = side === Side.BUY ? [shares, amount] : [(-quantity).toString(), '0'];
  return mysql.format(
    `INSERT INTO holdings (account, symbol, quantity, cost_kobo) VALUES (?) ON DUPLICATE KEY UPDATE ${added}`,
    [[account, symbol, ...first]],
  );
}
