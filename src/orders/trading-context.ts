import type { Broker } from '../broker/port.ts';
import { AccountStatus, type GetTradingContextResponse, type Instrument } from '../gen/marina/broker/v1/orders_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';

/** How long what was read may serve, and how many partners, accounts and symbols together are remembered. */
const usableMs = 5_000;
const mostRemembered = 20_000;

interface Remembered {
  readonly context: GetTradingContextResponse;
  readonly until: number;
}

/** What must be known of an account and a symbol before an order is placed, read from the broker and kept shortly. */
export class TradingContexts {
  /** By partner, because an account is here only after it was found to be that partner's. */
  readonly #remembered = new Map<string, Remembered>();

  /** Grows when something is forgotten: what was being read then may be of before, and is not kept. */
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
   * The instrument an account of a partner may trade now, by what is remembered alone. Undefined where it must be read,
   * or where there is something to refuse.
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
    // Of two reads at the same time, the one that was asked for later stays, whichever is answered last.
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
