import { RejectReason, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { roundKoboDecimal } from '../../kit/money.ts';
import type { Order, OrderRequest } from '../model.ts';
import { chargesOn } from './charges.ts';
import type { Deal } from './deals.ts';

/** The money and shares that every account begins with. */
export interface FundsSettings {
  readonly startCashKobo: bigint;
  /** Of each stock, the shares that an account has elsewhere: it can sell them, and its positions do not show them. */
  readonly sharesElsewhere: bigint;
}

interface Funds {
  /** The cost of buys and the proceeds of sales, by settlement date. */
  readonly settlements: Map<string, { bought: bigint; sold: bigint }>;
  /** The shares held, by symbol, and those of them whose purchase settles later, by symbol and then by date. */
  readonly shares: Map<string, bigint>;
  readonly arriving: Map<string, Map<string, bigint>>;
  /** The amount that waiting orders may cost, and the shares that they may sell. */
  promisedKobo: bigint;
  readonly promisedShares: Map<string, bigint>;
}

interface Promised {
  readonly account: string;
  readonly symbol: string;
  readonly kobo: bigint;
  readonly shares: bigint;
}

/**
 * The money and shares that each account has, owes and has promised to its waiting orders, in memory. It follows the
 * writer's changes one by one, so a check sees all orders before it. Absent settings: nothing is counted, and every
 * order can be paid.
 */
export class AccountFunds {
  readonly #accounts = new Map<string, Funds>();
  readonly #promised = new Map<string, Promised>();
  /** The accounts with other shares elsewhere than the settings'. */
  readonly #sharesElsewhere = new Map<string, bigint>();

  constructor(
    readonly settings: FundsSettings | undefined,
    /** An account's cash in kobo, without the cost and proceeds of trades and without what it began with. */
    private readonly cashOf: (account: string) => number,
  ) {}

  get startCashKobo(): bigint {
    return this.settings?.startCashKobo ?? 0n;
  }

  clear(): void {
    this.#accounts.clear();
    this.#promised.clear();
    this.#sharesElsewhere.clear();
  }

  setSharesElsewhere(account: string, shares: bigint): void {
    this.#sharesElsewhere.set(account, shares);
  }

  /** Counts the cost of buys or the proceeds of sales. */
  addSettlement(account: string, settlementDate: string, side: Side, considerationKobo: bigint): void {
    const { settlements } = this.#of(account);
    const day = settlements.get(settlementDate) ?? { bought: 0n, sold: 0n };
    if (side === Side.BUY) day.bought += considerationKobo;
    else day.sold += considerationKobo;
    settlements.set(settlementDate, day);
  }

  addShares(account: string, symbol: string, shares: bigint): void {
    add(this.#of(account).shares, symbol, shares);
  }

  addArriving(account: string, symbol: string, settlementDate: string, shares: bigint): void {
    const { arriving } = this.#of(account);
    const days = arriving.get(symbol) ?? new Map<string, bigint>();
    add(days, settlementDate, shares);
    arriving.set(symbol, days);
  }

  /** Counts an execution. */
  book(deal: Deal): void {
    if (this.settings === undefined) return;
    const { account, symbol, side, settlementDate, considerationKobo } = deal;
    const quantity = BigInt(deal.quantity);
    this.addSettlement(account, settlementDate, side, considerationKobo);
    this.addShares(account, symbol, side === Side.BUY ? quantity : -quantity);
    if (side === Side.BUY) this.addArriving(account, symbol, settlementDate, quantity);
  }

  /** Settles on a day all later settlements of an account, or of all accounts by an empty name. */
  settle(account: string, day: string): void {
    const settled = account === '' ? [...this.#accounts.values()] : [this.#of(account)];
    for (const { settlements, arriving } of settled) {
      for (const [date, { bought, sold }] of [...settlements]) {
        if (date <= day) continue;
        settlements.delete(date);
        const moved = settlements.get(day) ?? { bought: 0n, sold: 0n };
        settlements.set(day, { bought: moved.bought + bought, sold: moved.sold + sold });
      }
      arriving.clear();
    }
  }

  /** Follows an order: while it waits in a book it has promised what its unfilled part may cost, or its shares. */
  follow(order: Order, highestKobo: number, today: string): void {
    const before = this.#promised.get(order.clientOrderId);
    const now = order.inBook ? promiseOf(order, order.quantity - order.filled, highestKobo, today) : undefined;
    if (before !== undefined) this.#promise(before, -1n);
    if (now === undefined) {
      this.#promised.delete(order.clientOrderId);
    } else {
      this.#promise(now, 1n);
      this.#promised.set(order.clientOrderId, now);
    }
  }

  /** Returns the amount that an account's waiting orders may cost. */
  promisedKobo(account: string): bigint {
    return this.#accounts.get(account)?.promisedKobo ?? 0n;
  }

  /** Sets money of an account aside, as if a waiting order might cost it. A negative amount makes it free again. */
  setAside(account: string, kobo: bigint): void {
    if (this.settings !== undefined && kobo !== 0n) this.#of(account).promisedKobo += kobo;
  }

  /**
   * Returns the money of an account that can be withdrawn: settled, without buys that settle later, and without what waiting orders
   * may cost. Undefined if money is not counted.
   */
  withdrawableKobo(account: string, today: string): bigint | undefined {
    if (this.settings === undefined) return undefined;
    const [free] = this.#money(account, today);
    return free > 0n ? free : 0n;
  }

  /** Returns the shares of a stock that an account's waiting orders may sell. */
  promisedShares(account: string, symbol: string): bigint {
    return this.#accounts.get(account)?.promisedShares.get(symbol) ?? 0n;
  }

  /** Whether an account owes money for trades that have settled. It cannot trade until money comes. */
  isInDebt(account: string, today: string): boolean {
    return this.settings !== undefined && this.#settledKobo(account, today) < 0n;
  }

  /**
   * The reason why an account cannot pay an order, or does not have its shares: too little, or only when earlier trades have
   * settled. Undefined if it can. An order without a limit may cost the day's highest price.
   */
  shortfall(order: OrderRequest, highestKobo: number, today: string): RejectReason | undefined {
    if (this.settings === undefined) return undefined;
    const { kobo, shares } = promiseOf(order, order.quantity, highestKobo, today);
    const [free, arriving] =
      order.side === Side.BUY ? this.#money(order.account, today) : this.#stock(order.account, order.symbol, today);
    const needed = order.side === Side.BUY ? kobo : shares;
    if (needed <= free) return undefined;
    return needed <= free + arriving ? RejectReason.SETTLEMENT_LOCKOUT : RejectReason.INSUFFICIENT_FUNDS;
  }

  /** The money that an account can spend now, and what comes when its sales settle. */
  #money(account: string, today: string): [free: bigint, arriving: bigint] {
    const { settlements, promisedKobo } = this.#of(account);
    let free = this.#settledKobo(account, today) - promisedKobo;
    let arriving = 0n;
    for (const [date, { bought, sold }] of settlements) {
      if (date <= today) continue;
      free -= bought;
      arriving += sold;
    }
    return [free, arriving];
  }

  /** The shares that an account can sell now, and those that come when its purchases settle. */
  #stock(account: string, symbol: string, today: string): [free: bigint, arriving: bigint] {
    const { shares, arriving: purchases, promisedShares } = this.#of(account);
    let arriving = 0n;
    const days = purchases.get(symbol);
    for (const [date, quantity] of days ?? []) {
      if (date > today) arriving += quantity;
      else days?.delete(date);
    }
    const elsewhere = this.#sharesElsewhere.get(account) ?? this.settings?.sharesElsewhere ?? 0n;
    const held = (shares.get(symbol) ?? 0n) - arriving - (promisedShares.get(symbol) ?? 0n);
    return [held + elsewhere, arriving];
  }

  #settledKobo(account: string, today: string): bigint {
    let settled = this.startCashKobo + BigInt(this.cashOf(account));
    for (const [date, { bought, sold }] of this.#accounts.get(account)?.settlements ?? []) {
      if (date <= today) settled += sold - bought;
    }
    return settled;
  }

  #promise({ account, symbol, kobo, shares }: Promised, sign: bigint): void {
    const funds = this.#of(account);
    funds.promisedKobo += sign * kobo;
    add(funds.promisedShares, symbol, sign * shares);
  }

  #of(account: string): Funds {
    const known = this.#accounts.get(account);
    if (known !== undefined) return known;
    const funds: Funds = {
      settlements: new Map(),
      shares: new Map(),
      arriving: new Map(),
      promisedKobo: 0n,
      promisedShares: new Map(),
    };
    this.#accounts.set(account, funds);
    return funds;
  }
}

function promiseOf(order: OrderRequest, quantity: number, highestKobo: number, today: string): Promised {
  const { account, symbol, side, priceKobo } = order;
  if (side !== Side.BUY) return { account, symbol, kobo: 0n, shares: BigInt(quantity) };
  const amount = BigInt(quantity) * BigInt(priceKobo ?? highestKobo);
  return { account, symbol, kobo: roundKoboDecimal(chargesOn(amount, side, today).total, 'up'), shares: 0n };
}

function add(sums: Map<string, bigint>, key: string, amount: bigint): void {
  const sum = (sums.get(key) ?? 0n) + amount;
  if (sum === 0n) sums.delete(key);
  else sums.set(key, sum);
}
