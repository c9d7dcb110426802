import {
  AccountStatus,
  type GetTradingContextResponse,
  type Instrument,
  type Report,
  ReportKind,
} from '../../../gen/marina/broker/v1/orders_pb.ts';
import { type CreateOrderRequest, CreateOrderRequestSchema } from '../../../gen/marina/gateway/v1/orders_pb.ts';
import { type Clock, statedInstant } from '../../../kit/clock.ts';
import { remember } from '../../../kit/remember.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Statement } from '../../store/statement.ts';
import { accounts } from '../accounts/store.ts';
import type { BrokerOrders, LookedUp, Sent } from '../broker/broker.ts';
import { type StoredFields, storedFields } from '../shown-message.ts';
import { Change } from '../submission/change.ts';
import type { DayLimit } from '../submission/day-limit.ts';
import type { CreatedKind, Draft, Prepared } from '../submission/kind.ts';
import type { ReportedKind } from '../submission/report-session.ts';
import type { ReportedStep } from '../submission/rules.ts';
import { noSimilar, type SimilarTo } from '../submission/similar.ts';
import { applyReport } from './later-reports/rules.ts';
import { countedKobo, orderStates, shownRejectReason } from './rules.ts';
import {
  notedOrder,
  openCancels,
  orderHistory,
  orders,
  type ShownOrder,
  type StoredOrder,
  toOrderMessage,
} from './table.ts';

/** How long an entry is used, in milliseconds, and the most entries (a partner, an account and a symbol each). */
const usableMs = 5_000;
const maxRemembered = 20_000;

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

  constructor(private readonly broker: Pick<BrokerOrders, 'tradingContext'>) {}

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
    remember(this.#remembered, key, { context, until }, maxRemembered);
    return context;
  }
}

/** An order a partner wants. */
export type WantedOrder = Pick<ShownOrder, keyof StoredFields<CreateOrderRequest>>;

/** How orders use the mechanism that stores, sends once, records and reconciles. */
export class OrderKind
  implements CreatedKind<StoredOrder, Report, CreateOrderRequest>, ReportedKind<StoredOrder, Report>
{
  readonly name = 'order';
  readonly prefix = 'ord';
  readonly table = orders;
  readonly history = orderHistory;
  readonly upstream = 'exchange';
  readonly accepted = 'accepted';
  readonly states = orderStates;
  readonly absent = { state: 'refused', reason: 'It never reached the exchange.' } as const;
  readonly noted = notedOrder;
  readonly dayLimit: DayLimit<StoredOrder> = {
    usage: 'orders',
    name: 'order value per day',
    limit: 'ordersKoboPerDay',
    countedKobo,
  };
  readonly applyReport = applyReport<StoredOrder>;
  readonly shownRejectReason = shownRejectReason;
  readonly blank = {
    ...{ filledQuantity: 0n, filledValueKobo: 0n, exchangeOrderId: null, filledAt: null },
    ...{ lastReport: 0n, missedReport: 0n, cancelUntil: null },
  };

  constructor(
    private readonly broker: BrokerOrders,
    private readonly contexts: TradingContexts,
    private readonly clock: Clock,
  ) {}

  /** Data of an account are cached only if it is the partner's. */
  prepare(origin: Origin, request: CreateOrderRequest): Prepared<StoredOrder> {
    const { contexts } = this;
    const wanted = storedFields(CreateOrderRequestSchema, request) as WantedOrder;
    const { account, symbol } = wanted;
    const cached = contexts.cached(origin.partnerId, account, symbol);
    return {
      draft: cached && this.#draft(wanted, cached),
      reads: [accounts.find({ partnerId: origin.partnerId, account })],
      prepare: async ([found]) => {
        if (found?.[0] === undefined) throw new ApiError('unknown_account', { param: 'account' });
        return this.#draft(wanted, await contexts.instrument(origin, account, symbol));
      },
    };
  }

  #draft(wanted: WantedOrder, { upperPriceKobo }: Instrument): Draft<StoredOrder> {
    // A limit purchase costs at most its limit. The day's upper price bounds every other order.
    const countedPriceKobo = wanted.side === 'buy' ? (wanted.priceKobo ?? upperPriceKobo) : upperPriceKobo;
    // What is decided here comes last, whatever a request holds.
    return { ...this.blank, ...wanted, countedPriceKobo };
  }

  affects({ partnerId, side, account, symbol }: StoredOrder) {
    return { action: side, partnerId, account, symbol };
  }

  preconditions(row: StoredOrder) {
    return [noSimilar('order', similarOrders(row), this.clock)];
  }

  toMessage(row: StoredOrder) {
    return toOrderMessage(row);
  }

  send(row: StoredOrder, _: CreateOrderRequest, note: Buffer): Promise<Sent<Report>> {
    return this.broker.submitOrder({ origin: row, note, ...row }, row.notAfter);
  }

  isRejection({ kind }: Report): boolean {
    return kind === ReportKind.REJECTED;
  }

  lookUp(row: StoredOrder): Promise<LookedUp<readonly Report[]>> {
    return this.broker.lookUpOrder(row.id, row.lastReport, row);
  }

  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]> {
    return this.broker.streamReports(afterNumber, signal);
  }

  objectIdOf({ clientOrderId }: Report): string {
    return clientOrderId;
  }

  describeReport({ kind, exchangeOrderId }: Report) {
    return { report: (ReportKind[kind] ?? String(kind)).toLowerCase(), reference: exchangeOrderId };
  }

  reportStep(report: Report, before?: StoredOrder, after?: StoredOrder): ReportedStep {
    const { number, at, quantity, priceKobo } = report;
    const step = { reportNumber: number, upstreamAt: statedInstant(at) };
    if (report.kind !== ReportKind.TRADE) return step;
    if (before === undefined || after === undefined) return { ...step, quantity, priceKobo };
    return {
      ...{ ...step, quantity, priceKobo, filledChange: after.filledQuantity - before.filledQuantity },
      valueChangeKobo: after.filledValueKobo - before.filledValueKobo,
    };
  }

  /** A final order has no open cancel. */
  cleared({ state, cancelUntil }: StoredOrder): Partial<StoredOrder> {
    return { cancelUntil: orderStates.isFinal(state) ? null : cancelUntil };
  }

  /** A change to build up. */
  begin(row: StoredOrder): Change<StoredOrder, Report> {
    return new Change(this, row, this.clock.now());
  }

  settle(before: StoredOrder, { partnerId, id, cancelUntil }: StoredOrder): Statement[] {
    if ((before.cancelUntil === null) === (cancelUntil === null)) return [];
    if (cancelUntil === null) return [openCancels.remove({ partnerId, orderId: id })];
    // One that is there keeps its time.
    return [openCancels.put({ partnerId, orderId: id, sentAt: this.clock.now() }, 'orderId')];
  }
}

/** The earlier orders that a new one is held back by while they are not settled. */
export function similarOrders(order: StoredOrder): SimilarTo<StoredOrder> {
  const { partnerId, account, symbol, side, type, quantity, priceKobo } = order;
  const alike = { partnerId, account, symbol, side, type, quantity, priceKobo };
  return { table: orders, alike };
}
