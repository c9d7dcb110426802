import type { Broker } from '../broker/orders.ts';
import { AccountStatus, type GetTradingContextResponse, type Instrument } from '../gen/marina/broker/v1/orders_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';

/** How long an entry is used, in milliseconds, and the most entries (a partner, an account and a symbol each). */
const usableMs = 5_000;
const mostRemembered = 20_000;

interface Remembered {
  readonly context: GetTradingContextResponse;
  readonly until: number;
}

/** The broker's data about an account and a symbol that an order needs, cached for a few seconds. */
export class TradingContexts {
  /** By partner, because an account is here only after it was found to be that partner's. */
  readonly #remembered = new Map<string, Remembered>();

  /** Grows when something is forgotten: a read that began before is not cached. */
  #generation = 0;

  constructor(private readonly broker: Pick<Broker, 'tradingContext'>) {}

  /** Forgets an account of a partner, which may no longer be the partner's. */
  forget(partnerId: string, account: string): void {
    this.#generation += 1;
    for (const key of this.#remembered.keys()) {
      if (key.startsWith(`${partnerId} ${account} `)) this.#remembered.delete(key);
    }
  }

  /**
   * The instrument that an account of a partner may trade now, from the cache. Undefined if it must be read,
   * or if there is a reason to refuse.
   */
  cached(partnerId: string, account: string, symbol: string): Instrument | undefined {
    const found = this.#recall(`${partnerId} ${account} ${symbol}`);
    return found?.accountStatus === AccountStatus.ACTIVE ? found.instrument : undefined;
  }

  /**
   * The instrument an account may trade now; the account must have been found to be the partner's. Throws
   * `account_not_at_broker`, `settlement_lockout`, `unknown_symbol`, `exchange_unavailable` or `exchange_error`.
   */
  async instrument(origin: Origin, account: string, symbol: string): Promise<Instrument> {
    const key = `${origin.partnerId} ${account} ${symbol}`;
    const { accountStatus, instrument } = this.#recall(key) ?? (await this.#read(key, account, symbol, origin));
    if (accountStatus === AccountStatus.NOT_AT_BROKER) throw new ApiError('account_not_at_broker');
    if (accountStatus === AccountStatus.SETTLEMENT_LOCKOUT) throw new ApiError('settlement_lockout');
    if (instrument === undefined) throw new ApiError('unknown_symbol', { param: 'symbol' });
    return instrument;
  }

  #recall(key: string): GetTradingContextResponse | undefined {
    const found = this.#remembered.get(key);
    return found !== undefined && performance.now() < found.until ? found.context : undefined;
  }

  async #read(key: string, account: string, symbol: string, origin: Origin): Promise<GetTradingContextResponse> {
    const askedAt = performance.now();
    const generation = this.#generation;
    const context = await this.broker.tradingContext(account, symbol, origin);
    if (generation !== this.#generation) return context;
    const until = askedAt + usableMs;
    // Of two concurrent reads, the result of the later one stays, also if its answer came first.
    if ((this.#remembered.get(key)?.until ?? 0) > until) return context;
    this.#remembered.delete(key);
    this.#remembered.set(key, { context, until });
    if (this.#remembered.size > mostRemembered) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    return context;
  }
}
