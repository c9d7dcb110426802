import type { Broker } from '../broker/port.ts';
import { AccountStatus, type GetTradingContextResponse, type Instrument } from '../gen/marina/broker/v1/orders_pb.ts';
import { ApiError } from '../lib/errors.ts';

/** How long what was read may serve, and how many pairs of account and symbol are remembered. */
const usableMs = 5_000;
const mostRemembered = 20_000;

/** What must be known of an account and a symbol before an order is placed, read from the broker and kept shortly. */
export class TradingContexts {
  readonly #remembered = new Map<string, { context: GetTradingContextResponse; until: number }>();

  constructor(private readonly broker: Broker) {}

  /**
   * The instrument an account may trade now. Throws `account_not_at_broker`, `settlement_lockout`, `unknown_symbol`,
   * `exchange_unavailable` or `exchange_error`.
   */
  async instrument(account: string, symbol: string): Promise<Instrument> {
    const { accountStatus, instrument } = await this.#context(account, symbol);
    if (accountStatus === AccountStatus.NOT_AT_BROKER) throw new ApiError('account_not_at_broker');
    if (accountStatus === AccountStatus.SETTLEMENT_LOCKOUT) throw new ApiError('settlement_lockout');
    if (instrument === undefined) throw new ApiError('unknown_symbol', { param: 'symbol' });
    return instrument;
  }

  async #context(account: string, symbol: string): Promise<GetTradingContextResponse> {
    const key = `${account} ${symbol}`;
    const found = this.#remembered.get(key);
    if (found !== undefined && performance.now() < found.until) return found.context;
    const askedAt = performance.now();
    const context = await this.broker.tradingContext(account, symbol);
    this.#remembered.delete(key);
    this.#remembered.set(key, { context, until: askedAt + usableMs });
    if (this.#remembered.size > mostRemembered) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    return context;
  }
}
