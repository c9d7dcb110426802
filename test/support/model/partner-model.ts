import type { Outcome } from './surroundings.ts';

/** The request of an order. */
export interface OrderBody {
  readonly side: 'buy' | 'sell';
  readonly symbol: string;
  readonly quantity: number;
  /** The limit; null: a market order. */
  readonly price_kobo: number | null;
}

/** An order as a partner must see it, by what was done so far. */
export interface ModelOrder {
  readonly key: string;
  readonly body: OrderBody;
  readonly id: string;
  /** The day that it counts for: how many midnights had passed. */
  readonly day: number;
  /** The answer to the same request when it comes again: 200, or its first error. */
  readonly again: Outcome['again'];
  state: string;
  filled: number;
}

/** An allocation as a partner must see it. */
export interface ModelAllocation {
  readonly amountKobo: number;
  readonly id: string;
  readonly day: number;
  state: string;
  /** Which of the partner's accounts has the money. */
  readonly at: number;
  /** While nobody can tell what the broker did: what it did. */
  readonly truth?: string;
}

/** A withdrawal as a partner must see it. */
export interface ModelWithdrawal {
  readonly key: string;
  readonly body: { readonly amount_kobo: number; readonly destination: string };
  readonly id: string;
  readonly again: Outcome['again'];
  state: string;
}

/** Actions that a stop forbids. */
export type StoppedAction = 'buy' | 'sell' | 'fund' | 'withdraw' | 'apply';

/** An application as a partner must see it. */
export interface ModelApplication {
  readonly id: string;
  readonly lastName: string;
  /** The files that the broker has, by their type. */
  readonly documents: Map<string, Buffer>;
  state: string;
}

/** A stop that operators began. */
export interface ModelStop {
  readonly id: string;
  /** `partner`, `account` with its place, `everything`, or a symbol. */
  readonly target: string;
  readonly actions: readonly StoppedAction[];
}

/** The stamp duty on a transfer to a bank account, which is due above the amount. */
const duty = { kobo: 5_000, aboveKobo: 1_000_000 };
/** The duty of a withdrawal, in kobo. */
export function dutyOn({ amount_kobo, destination }: ModelWithdrawal['body']): number {
  return destination === 'bank_account' && amount_kobo > duty.aboveKobo ? duty.kobo : 0;
}

/** The limits of the partner of each sequence, and the money of its accounts at first. */
export const agreed = {
  ordersLimitKobo: 300_000,
  allocationsLimitKobo: 2_500_000,
  /** Payments above it need a second operator. */
  fourEyesAboveKobo: 1_200_000,
  firstFundsKobo: 2_500_000,
  /** Enough for all orders of a sequence. */
  startCashKobo: 10n ** 12n,
  /** From the second account little can be withdrawn. */
  secondStartKobo: 2_000_000,
  /** The price that the exchange quotes for each symbol of the model, and the highest price of the day. */
  quoteKobo: 1_000,
  upperKobo: 1_100,
} as const;

/** The limits as a partner is created with them. */
export const agreedLimits = {
  ordersKoboPerDay: BigInt(agreed.ordersLimitKobo),
  allocationsKoboPerDay: BigInt(agreed.allocationsLimitKobo),
} as const;

/** The price at which a share counts against the day's limit: the limit of a buy, else the highest price of the day. */
const countedKobo = ({ side, price_kobo }: OrderBody) =>
  side === 'buy' && price_kobo !== null ? price_kobo : agreed.upperKobo;

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

const openStates = ['pending', 'partially_filled'];
/** In these states of an order what it filled counts against the day's limit, and no more. */
const endStates = ['rejected', 'cancelled', 'expired'];

/** The promises to one partner, as plain sums: limits, wallet, and what becomes of orders and allocations. */
export class PartnerModel {
  readonly orders: ModelOrder[] = [];
  readonly allocations: ModelAllocation[] = [];
  readonly withdrawals: ModelWithdrawal[] = [];
  readonly applications: ModelApplication[] = [];
  fundedKobo = 0;
  /** The payments into the wallet, with what was reversed of each. */
  readonly credits: { bankReference: string; amountKobo: number; reversedKobo: number }[] = [];
  /** The money that was debited, and that reversals of credits took. */
  takenKobo = 0;
  /** The payments into the wallet and out of it that operators recorded. */
  readonly payments: { readonly type: string; readonly day: number; readonly amountKobo: number }[] = [];
  /** Withdrawals of more than this wait for their release; undefined: none does. */
  releaseAboveKobo: number | undefined;
  /** The secret that signs what the partner's endpoint gets. */
  webhookSecret = '';
  isEndpointPaused = false;
  isPaused = false;
  /** The stops that are in force. */
  readonly stops: ModelStop[] = [];
  /** How many midnights have passed. */
  day = 0;
  ordersLimitKobo: number = agreed.ordersLimitKobo;
  readonly allocationsLimitKobo = agreed.allocationsLimitKobo;
  /** By symbol the shares whose purchase has settled. */
  #settledShares = new Map<string, number>();

  /** Whether a withdrawal must wait for its release. */
  mustWait({ amount_kobo }: ModelWithdrawal['body']): boolean {
    return this.releaseAboveKobo !== undefined && amount_kobo > this.releaseAboveKobo;
  }

  /** The value of a new order that counts against the day's limit. */
  valueOf(body: OrderBody): number {
    return body.quantity * countedKobo(body);
  }

  isOpen(order: ModelOrder): boolean {
    return openStates.includes(order.state);
  }

  /** Whether a pause or a stop forbids something for an account, by its place, and for an order's symbol. */
  forbids(action: StoppedAction, account?: number, symbol?: string): boolean {
    const targets = ['partner', 'everything', `account ${account}`, symbol];
    return this.isPaused || this.stops.some((stop) => stop.actions.includes(action) && targets.includes(stop.target));
  }

  get openOrders(): ModelOrder[] {
    return this.orders.filter((order) => this.isOpen(order));
  }

  /** The shares that were bought, or sold, or that open orders to sell may still sell. */
  #shares(symbol: string, of: 'bought' | 'sold' | 'offered'): number {
    const side = of === 'bought' ? 'buy' : 'sell';
    const orders = (of === 'offered' ? this.openOrders : this.orders).filter(({ body }) => body.side === side);
    const ofSymbol = orders.filter(({ body }) => body.symbol === symbol);
    return sum(ofSymbol.map(({ filled, body }) => (of === 'offered' ? body.quantity - filled : filled)));
  }

  /** The symbols that the first account has bought. */
  get boughtSymbols(): string[] {
    const symbols = new Set(this.orders.map(({ body }) => body.symbol));
    return [...symbols].filter((symbol) => this.#shares(symbol, 'bought') > 0);
  }

  /** The shares that the first account has. */
  heldShares(symbol: string): number {
    return this.#shares(symbol, 'bought') - this.#shares(symbol, 'sold');
  }

  /** Those that no open order may sell. */
  freeShares(symbol: string): number {
    return this.heldShares(symbol) - this.#shares(symbol, 'offered');
  }

  /** Those of them whose purchase has settled: no others can be sold. */
  sellableShares(symbol: string): number {
    return this.freeShares(symbol) - this.#shares(symbol, 'bought') + (this.#settledShares.get(symbol) ?? 0);
  }

  /** All purchases so far are settled. */
  settlePurchases(): void {
    this.#settledShares = new Map(this.boughtSymbols.map((symbol) => [symbol, this.#shares(symbol, 'bought')]));
  }

  /** The value that counts against today's limit of orders: of shares that may still trade, and of those that did. */
  usedByOrders(): number {
    const ofToday = this.orders.filter(({ day }) => day === this.day);
    return sum(
      ofToday.map(({ state, filled, body }) => {
        const shares = state === 'refused' ? 0 : endStates.includes(state) ? filled : body.quantity;
        return shares * countedKobo(body);
      }),
    );
  }

  /** The value that counts against today's limit of allocations: also of those that are uncertain. */
  usedByAllocations(): number {
    return this.#allocated(['booked', 'uncertain'], ({ day }) => day === this.day);
  }

  postedKobo(): number {
    return this.#allocated(['booked']);
  }

  /** The money of allocations that are uncertain. */
  reservedKobo(): number {
    return this.#allocated(['uncertain']);
  }

  get uncertainAllocations(): ModelAllocation[] {
    return this.allocations.filter(({ state }) => state === 'uncertain');
  }

  /** The money that came in, as payments or by withdrawals, and was neither allocated nor taken out again. */
  availableKobo(): number {
    return this.fundedKobo + this.withdrawnKobo() - this.takenKobo - this.postedKobo() - this.reservedKobo();
  }

  /** The money that withdrawals brought into the wallet. */
  withdrawnKobo(): number {
    const paid = this.withdrawals.filter(({ state, body }) => state === 'completed' && body.destination === 'wallet');
    return sum(paid.map(({ body }) => body.amount_kobo));
  }

  /**
   * The money of the second account that can be withdrawn. A withdrawal has its amount and its duty from when the broker takes it;
   * the bank returns the amount alone.
   */
  withdrawableKobo(): number {
    const taken = this.withdrawals.map(({ state, body }) => {
      const isTaken = state === 'processing' || state === 'completed';
      const isDutyTaken = isTaken || state === 'returned';
      return (isTaken ? body.amount_kobo : 0) + (isDutyTaken ? dutyOn(body) : 0);
    });
    const isThere = ({ at, state, truth }: ModelAllocation) => at === 1 && (state === 'booked' || truth === 'booked');
    return agreed.secondStartKobo + this.#allocated(['booked', 'uncertain'], isThere) - sum(taken);
  }

  #allocated(states: readonly string[], isMeant: (allocation: ModelAllocation) => boolean = () => true): number {
    const meant = this.allocations.filter((allocation) => states.includes(allocation.state) && isMeant(allocation));
    return sum(meant.map(({ amountKobo }) => amountKobo));
  }
}
