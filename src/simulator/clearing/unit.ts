import mysql from 'mysql2/promise';
import { TransactionType } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import type { Order } from '../model.ts';
import type { World } from '../world.ts';
import { type Deal, type DealTerms, toDeal } from './deals.ts';
import { DirectSalesUnit } from './direct-sales-unit.ts';
import { accountStates, deals, type SetState } from './tables.ts';
import type { TransactionsUnit } from './transactions-unit.ts';

/** The exchange's highest price, in kobo. */
const highestPriceKobo = 10_000_000_000;

/** Clearing's part of a unit of work: the effect of executions on an account's money and stocks. */
export class ClearingUnit {
  readonly #deals: Deal[] = [];
  /** The accounts that settle early, with the day. An empty name means all accounts. */
  readonly #settled = new Map<string, string>();
  readonly #elsewhere = new Map<string, number>();
  readonly directSales: DirectSalesUnit;
  readonly #states = new Map<string, SetState>();

  constructor(
    private readonly world: World,
    private readonly transactions: TransactionsUnit,
  ) {
    this.directSales = new DirectSalesUnit(world);
  }

  /** Books an execution. One at an impossible price, which only controls make, is reported and never cleared. */
  book(execution: DealTerms, order?: Order): void {
    if (execution.priceKobo > highestPriceKobo) return;
    this.world.lastDeal += 1;
    const { calendar, lastDeal } = this.world;
    const isSameDay = order?.tradedOn === lagosDay(execution.executedAtMs);
    const deal = toDeal(lastDeal, execution, calendar, isSameDay ? order.tradedKobo : 0n);
    this.#deals.push(deal);
    this.world.funds.book(deal);
    this.directSales.book(deal);
    this.#enter(deal);
    if (order === undefined) return;
    order.tradedKobo = (isSameDay ? order.tradedKobo : 0n) + deal.amountKobo;
    order.tradedOn = deal.tradeDate;
  }

  /** Sets what an account may do. */
  setState(state: SetState): void {
    this.#states.set(state.account, state);
    this.world.states.set(state.account, state);
  }

  /** Settles on a day all later settlements of an account, or of all accounts by an empty name. */
  settle(account: string, day: string): void {
    this.#settled.set(account, day);
    this.world.funds.settle(account, day);
    this.world.directSales.settle(account, day);
  }

  /** Sets how many shares of each stock an account has elsewhere. */
  setSharesElsewhere(account: string, shares: number): void {
    this.#elsewhere.set(account, shares);
    this.world.funds.setSharesElsewhere(account, BigInt(shares));
  }

  statements(): string[] {
    const statements = [...this.#settled].map(([account, day]) => settleStatement(account, day));
    const elsewhere = [...this.#elsewhere].map((row) =>
      mysql.format('REPLACE INTO shares_elsewhere VALUES (?)', [row]),
    );
    return [
      ...deals.save(this.#deals),
      ...runsOf(this.#deals).map(holdingStatement),
      ...statements,
      ...elsewhere,
      ...this.directSales.statements(),
      ...accountStates.save(this.#states.values()),
    ];
  }

  /** Books the amount of an execution, and right with it its charges. */
  #enter({ account, side, number, amountKobo, considerationKobo, executedAtMs }: Deal): void {
    const about = { deal: number, happenedAtMs: executedAtMs };
    const isBuy = side === Side.BUY;
    const amount = isBuy ? -amountKobo : amountKobo;
    const whole = isBuy ? -considerationKobo : considerationKobo;
    const type = isBuy ? TransactionType.BUY : TransactionType.SALE;
    this.transactions.book(account, { ...about, type, amountKobo: amount });
    this.transactions.book(account, { ...about, type: TransactionType.CHARGE, amountKobo: whole - amount });
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

/** Sums consecutive deals of the same account, symbol and side. */
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
 * A sale takes its share of the holding's cost. A seller may have the shares elsewhere, so a holding can be negative. It then
 * has no cost until it is bought back.
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
