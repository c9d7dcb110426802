/** An order as a partner must see it, by what was done so far. */
export interface ModelOrder {
  readonly key: string;
  readonly body: { readonly symbol: string; readonly quantity: number; readonly price_kobo: number };
  readonly id: string;
  /** The day that it counts for: how many midnights had passed. */
  readonly day: number;
  /** The answer to the same request when it comes again: 200, or its first error. */
  readonly again: { readonly status: number; readonly code?: string };
  state: string;
  filled: number;
}

/** An allocation as a partner must see it. */
export interface ModelAllocation {
  readonly amountKobo: number;
  readonly id: string;
  readonly day: number;
  readonly state: string;
}

const openStates = ['pending', 'partially_filled'];
/** In these states of an order what it filled counts against the day's limit, and no more. */
const endStates = ['rejected', 'cancelled', 'expired'];

/** The promises to one partner, as plain sums: limits, wallet, and what becomes of orders and allocations. */
export class PartnerModel {
  readonly orders: ModelOrder[] = [];
  readonly allocations: ModelAllocation[] = [];
  fundedKobo = 0;
  isPaused = false;
  /** How many midnights have passed. */
  day = 0;

  constructor(
    public ordersLimitKobo: number,
    readonly allocationsLimitKobo: number,
  ) {}

  isOpen(order: ModelOrder): boolean {
    return openStates.includes(order.state);
  }

  get openOrders(): ModelOrder[] {
    return this.orders.filter((order) => this.isOpen(order));
  }

  /** The value that counts against today's limit of orders: of shares that may still trade, and of those that did. */
  usedByOrders(): number {
    const ofToday = this.orders.filter(({ day }) => day === this.day);
    return ofToday.reduce((sum, { state, filled, body }) => {
      const shares = state === 'refused' ? 0 : endStates.includes(state) ? filled : body.quantity;
      return sum + shares * body.price_kobo;
    }, 0);
  }

  /** The value that counts against today's limit of allocations. */
  usedByAllocations(): number {
    return this.#booked((day) => day === this.day);
  }

  postedKobo(): number {
    return this.#booked(() => true);
  }

  availableKobo(): number {
    return this.fundedKobo - this.postedKobo();
  }

  #booked(isMeant: (day: number) => boolean): number {
    const booked = this.allocations.filter(({ state, day }) => state === 'booked' && isMeant(day));
    return booked.reduce((sum, { amountKobo }) => sum + amountKobo, 0);
  }
}
