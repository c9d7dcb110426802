import { findAccount } from '../accounts/store.ts';
import { toDayLimits } from '../auth/store.ts';
import type { Broker } from '../broker/orders.ts';
import type { LookedUp, Sent } from '../broker/port.ts';
import { type Fact, sharing, together, whether } from '../db/facts.ts';
import type { PartnerTransaction } from '../db/partner-transaction.ts';
import type { SqlRow, Statement } from '../db/statement.ts';
import { type Instrument, type Report, ReportKind } from '../gen/marina/broker/v1/orders_pb.ts';
import { type CreateOrderRequest, CreateOrderRequestSchema } from '../gen/marina/gateway/v1/orders_pb.ts';
import { type Clock, lagosDay } from '../lib/clock.ts';
import { ApiError } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';
import { type StoredFields, storedFields } from '../lib/shown-message.ts';
import { statedInstant } from '../lib/timestamps.ts';
import { checkDayLimit, usage } from '../limits/caller-limits.ts';
import { Change } from '../submission/change.ts';
import type { CreatedKind, Draft } from '../submission/kind.ts';
import type { ReportedKind } from '../submission/reports.ts';
import type { NewStep } from '../submission/table.ts';
import { applyReport, countedKobo, orderStates } from './rules.ts';
import {
  findSimilarOrder,
  notedOrder,
  openCancels,
  orderHistory,
  orders,
  type ShownOrder,
  type StoredOrder,
  toOrderMessage,
} from './table.ts';
import type { TradingContexts } from './trading-context.ts';

/** The parts of the gateway that orders need. */
export interface OrderParts {
  readonly broker: Broker;
  readonly contexts: TradingContexts;
  readonly clock: Clock;
}

/** An order a partner wants. */
export type WantedOrder = Pick<ShownOrder, keyof StoredFields<CreateOrderRequest>>;

interface OrderFacts {
  readonly isSimilar: boolean;
}

/** How orders use the mechanism that stores, sends once, records and reconciles. */
export class OrderKind
  implements CreatedKind<StoredOrder, Report, CreateOrderRequest, OrderFacts>, ReportedKind<StoredOrder, Report>
{
  readonly name = 'order';
  readonly prefix = 'ord';
  readonly path = '/v1/orders';
  readonly codes = { duplicate: 'duplicate_order', rejected: 'order_rejected', notSent: 'order_not_sent' } as const;
  readonly table = orders;
  readonly history = orderHistory;
  readonly upstream = 'exchange';
  readonly accepted = 'accepted';
  readonly states = orderStates;
  readonly absent = { state: 'refused', reason: 'It never reached the exchange.' } as const;
  readonly noted = notedOrder;
  readonly applyReport = applyReport<StoredOrder>;
  readonly blank = {
    ...{ filledQuantity: 0n, filledValueKobo: 0n, exchangeOrderId: null, filledAt: null },
    ...{ lastReport: 0n, missedReport: 0n, cancelUntil: null },
  };

  constructor(private readonly parts: OrderParts) {}

  preparationReads(partnerId: string, { account }: CreateOrderRequest): Statement[] {
    return [findAccount(partnerId, account ?? '')];
  }

  prepareCached(partnerId: string, request: CreateOrderRequest): Draft<StoredOrder> | undefined {
    const wanted = storedFields(CreateOrderRequestSchema, request) as WantedOrder;
    const instrument = this.parts.contexts.cached(partnerId, wanted.account, wanted.symbol);
    return instrument && this.#draft(wanted, instrument);
  }

  async prepare(origin: Origin, request: CreateOrderRequest, [accounts]: readonly SqlRow[][]) {
    if (accounts?.[0] === undefined) throw new ApiError('unknown_account', { param: 'account' });
    const wanted = storedFields(CreateOrderRequestSchema, request) as WantedOrder;
    return this.#draft(wanted, await this.parts.contexts.instrument(origin, wanted.account, wanted.symbol));
  }

  #draft(wanted: WantedOrder, { upperPriceKobo }: Instrument): Draft<StoredOrder> {
    // A limit purchase costs at most its limit. The day's upper price bounds every other order.
    const countedPriceKobo = wanted.side === 'buy' ? (wanted.priceKobo ?? upperPriceKobo) : upperPriceKobo;
    return {
      ...this.blank,
      ...wanted,
      countedDay: lagosDay(this.parts.clock.now()),
      countedPriceKobo,
    };
  }

  facts(row: StoredOrder): Fact<OrderFacts> {
    return together({
      isSimilar: whether(findSimilarOrder(row, this.parts.clock.realNow()), false),
      shared: sharing(usage(row.partnerId, row.countedDay, 'orders')),
    });
  }

  check(row: StoredOrder, { isSimilar }: OrderFacts, partner: PartnerTransaction): void {
    if (isSimilar) throw new ApiError('similar_order_unresolved');
    const { ordersKoboPerDay } = toDayLimits(partner.row);
    const used = partner.get(usage(row.partnerId, row.countedDay, 'orders'));
    checkDayLimit('order value per day', ordersKoboPerDay, used, countedKobo(row), this.parts.clock.now());
  }

  take(row: StoredOrder, partner: PartnerTransaction): void {
    partner.add(usage(row.partnerId, row.countedDay, 'orders'), countedKobo(row));
  }

  send(row: StoredOrder, _: CreateOrderRequest, note: Buffer): Promise<Sent<Report>> {
    return this.parts.broker.submitOrder({ ...row, origin: row, note }, row.notAfter);
  }

  isRejection({ kind }: Report): boolean {
    return kind === ReportKind.REJECTED;
  }

  lookUp(row: StoredOrder): Promise<LookedUp<readonly Report[]>> {
    return this.parts.broker.lookUpOrder(row.id, row.lastReport, row);
  }

  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]> {
    return this.parts.broker.streamReports(afterNumber, signal);
  }

  objectIdOf({ clientOrderId }: Report): string {
    return clientOrderId;
  }

  reportStep({ kind, number, at, quantity, priceKobo }: Report): Partial<NewStep> {
    const trade = kind === ReportKind.TRADE ? { quantity, priceKobo } : {};
    return { reportNumber: number, upstreamAt: statedInstant(at), ...trade };
  }

  /** A final order has no open cancel. */
  cleared({ state, cancelUntil }: StoredOrder): Partial<StoredOrder> {
    return { cancelUntil: orderStates.isFinal(state) ? null : cancelUntil };
  }

  /** A change to build up. */
  begin(row: StoredOrder): Change<StoredOrder, Report> {
    return new Change(this, row, this.parts.clock.now());
  }

  settle(before: StoredOrder, after: StoredOrder, partner: PartnerTransaction): Statement[] {
    const { partnerId, id, countedDay, cancelUntil } = after;
    partner.add(usage(partnerId, countedDay, 'orders'), countedKobo(after) - countedKobo(before));
    if ((before.cancelUntil === null) === (cancelUntil === null)) return [];
    if (cancelUntil === null) return [openCancels.remove({ partnerId, orderId: id })];
    // One that is there keeps its time.
    return [openCancels.put({ partnerId, orderId: id, sentAt: this.parts.clock.now() }, 'orderId')];
  }

  toEvent(row: StoredOrder) {
    return { data: { case: 'order' as const, value: toOrderMessage(row) } };
  }
}
