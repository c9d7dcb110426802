import { findAccount } from '../accounts/store.ts';
import { toDayLimits } from '../auth/store.ts';
import type { Broker, Sent } from '../broker/port.ts';
import type { LockedPartner } from '../db/locked-partner.ts';
import type { SqlRow, Statement } from '../db/statement.ts';
import type { Instrument, Report } from '../gen/marina/broker/v1/orders_pb.ts';
import type { CreateOrderRequest } from '../gen/marina/gateway/v1/orders_pb.ts';
import { type Clock, lagosDay } from '../lib/clock.ts';
import { ApiError } from '../lib/errors.ts';
import type { IdMaker } from '../lib/ids.ts';
import type { Origin } from '../lib/origin.ts';
import { checkDayLimit } from '../limits/rules.ts';
import { readUsage, toUsedKobo } from '../limits/usage.ts';
import { freeOldKey } from '../submission/key-retention.ts';
import {
  type Change,
  type Kind,
  type NewSubmission,
  type RenewedSubmission,
  renewedEvidence,
  type Stored,
} from '../submission/kind.ts';
import type { FactReader, Notes } from '../submission/notes.ts';
import type { ReconciledKind } from '../submission/reconcile.ts';
import type { RecoveredKind } from '../submission/recovery.ts';
import type { ReportedKind } from '../submission/reports.ts';
import { isBehind } from '../submission/row-store.ts';
import { applySent, OrderChange } from './changes.ts';
import { isKnownOrder, toOrderMessage, toWantedOrder, type WantedOrder } from './messages.ts';
import { factsOf, renewedOrder } from './renewed.ts';
import { countedKobo, isFinal, isUnsettled } from './rules.ts';
import {
  findDueOrders,
  findOrder,
  findOrderByKey,
  findOrders,
  findPartnersOfOrders,
  findSimilarUnsettled,
  insertOrder,
  insertSteps,
  refuseSimilarUnsettled,
  type StoredOrder,
  saveOpenCancel,
  toStoredOrder,
  updateOrder,
  updateOrderAssumed,
} from './store.ts';
import type { TradingContexts } from './trading-context.ts';

/** What orders need from the rest of the gateway. */
export interface OrderParts {
  readonly broker: Broker;
  readonly contexts: TradingContexts;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly notes: Notes;
  /** How long a send may take: the exchange must not take the order later than this after it was stored. */
  readonly submitTimeoutMs: number;
  /** How far the exchange's clock may be from ours. */
  readonly clockSkewMs: number;
}

/** An order that was checked against the outside and is ready to be stored. */
type OrderDraft = Omit<
  StoredOrder,
  'partnerId' | 'origin' | 'idempotencyKey' | 'requestDigest' | 'notAfter' | 'checkAt'
>;

/** How orders use the mechanism that stores, sends once, records and reconciles. */
export class OrderKind
  implements
    Kind<StoredOrder, CreateOrderRequest, OrderDraft, Report>,
    ReconciledKind<StoredOrder, readonly Report[]>,
    ReportedKind<StoredOrder, Report>,
    RecoveredKind<StoredOrder>
{
  readonly name = 'order';
  readonly table = 'orders';
  readonly prefix = 'ord';
  readonly codes = { duplicate: 'duplicate_order', rejected: 'order_rejected', notSent: 'order_not_sent' } as const;
  readonly find = findOrder;
  readonly findMany = findOrders;
  readonly findByKey = findOrderByKey;
  readonly findPartners = findPartnersOfOrders;
  readonly due = findDueOrders;
  readonly toRow = toStoredOrder;

  constructor(private readonly parts: OrderParts) {}

  path(id: string): string {
    return `/v1/orders/${id}`;
  }

  isKnown(row: StoredOrder): boolean {
    return isKnownOrder(row);
  }

  isBehind(row: StoredOrder): boolean {
    return isBehind(row);
  }

  preparationReads(partnerId: string, { account }: CreateOrderRequest): Statement[] {
    return [findAccount(partnerId, account ?? '')];
  }

  prepareKnown(partnerId: string, request: CreateOrderRequest): OrderDraft | undefined {
    const wanted = toWantedOrder(request);
    const instrument = this.parts.contexts.known(partnerId, wanted.account, wanted.symbol);
    return instrument && this.#draft(wanted, instrument);
  }

  async prepare(origin: Origin, request: CreateOrderRequest, [accounts]: readonly SqlRow[][]): Promise<OrderDraft> {
    if (accounts?.[0] === undefined) throw new ApiError('unknown_account', { param: 'account' });
    const wanted = toWantedOrder(request);
    const instrument = await this.parts.contexts.instrument(origin, wanted.account, wanted.symbol);
    return this.#draft(wanted, instrument);
  }

  #draft(wanted: WantedOrder, { upperPriceKobo }: Instrument): OrderDraft {
    const now = this.parts.clock.now();
    return {
      ...wanted,
      id: this.parts.ids.object('ord'),
      state: 'sending',
      filledQuantity: 0n,
      filledValueKobo: 0n,
      exchangeOrderId: null,
      reason: null,
      rejectReason: null,
      createdAt: now,
      updatedAt: now,
      filledAt: null,
      countedDay: lagosDay(now),
      // A limit purchase cannot cost more than its limit; what everything else can come to, the day's upper price says.
      countedPriceKobo: wanted.side === 'buy' ? (wanted.priceKobo ?? upperPriceKobo) : upperPriceKobo,
      firstAnswer: null,
      lastReport: 0n,
      steps: 1,
      checks: 0,
      missingSince: null,
      cancelUntil: null,
      missedReport: 0n,
    };
  }

  storeReads(partnerId: string, draft: OrderDraft): Statement[] {
    return [
      findSimilarUnsettled(partnerId, draft, this.parts.clock.realNow()),
      readUsage(partnerId, draft.countedDay, 'orders'),
    ];
  }

  store(
    draft: OrderDraft,
    submission: NewSubmission,
    partner: LockedPartner,
    [similar, usage]: readonly SqlRow[][],
  ): Stored<StoredOrder> {
    if (similar?.[0] !== undefined) throw new ApiError('similar_order_unresolved');
    const value = countedKobo(draft);
    const { ordersKoboPerDay } = toDayLimits(partner.row);
    checkDayLimit(
      'order value per day',
      ordersKoboPerDay,
      toUsedKobo(partner, draft.countedDay, 'orders', usage),
      value,
      this.parts.clock.now(),
    );
    partner.addUsage('orders', draft.countedDay, value);
    return this.#stored(draft, submission);
  }

  storeAssumed(draft: OrderDraft, submission: NewSubmission, partner: LockedPartner): Stored<StoredOrder> {
    const { ordersKoboPerDay } = toDayLimits(partner.row);
    partner.addUsage('orders', draft.countedDay, countedKobo(draft), ordersKoboPerDay);
    const similar = refuseSimilarUnsettled(submission.partnerId, draft, this.parts.clock.realNow());
    const { row, writes } = this.#stored(draft, submission);
    return { row, writes: [similar, ...writes] };
  }

  #stored(draft: OrderDraft, submission: NewSubmission): Stored<StoredOrder> {
    const notAfter = this.parts.clock.realNow() + this.parts.submitTimeoutMs;
    const row = { ...draft, ...submission, notAfter, checkAt: notAfter + this.parts.clockSkewMs };
    this.parts.notes.checkLength(row, factsOf(row));
    const step = { kind: 'stored', at: row.createdAt, state: row.state, detail: 'stored, before it is sent' } as const;
    return { row, writes: [insertOrder(row), insertSteps(row, 0, [step])] };
  }

  send(row: StoredOrder): Promise<Sent<Report>> {
    return this.parts.broker.submitOrder({ ...row, note: this.parts.notes.write(row, factsOf(row)) }, row.notAfter);
  }

  renewReads(): Statement[] {
    return [];
  }

  renew(id: string, submission: RenewedSubmission, facts: FactReader, partner: LockedPartner): Stored<StoredOrder> {
    const row = renewedOrder(id, submission, facts, this.parts.clock.realNow());
    const { createdAt: at, state } = row;
    partner.addUsage('orders', row.countedDay, countedKobo(row));
    return {
      row,
      writes: [insertOrder(row), insertSteps(row, 0, [{ kind: 'stored', at, state, detail: renewedEvidence }])],
    };
  }

  applySent(row: StoredOrder, sent: Sent<Report>): OrderChange {
    return applySent(row, sent, this.parts.clock.now(), this.parts.clock.realNow());
  }

  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]> {
    return this.parts.broker.streamReports(afterNumber, signal);
  }

  objectIdOf({ clientOrderId }: Report): string {
    return clientOrderId;
  }

  applyReports(row: StoredOrder, reports: readonly Report[]): OrderChange | undefined {
    // Reports are applied in the order of their numbers: first come those that were passed over.
    if (isBehind(row)) return this.#passOver(row, reports, this.parts.clock.realNow());
    const change = this.begin(row).reports(reports);
    return change.after === row ? undefined : change;
  }

  passOver(row: StoredOrder, reports: readonly Report[]): OrderChange | undefined {
    return this.#passOver(row, reports, row.checkAt ?? this.parts.clock.realNow());
  }

  /** It counts as a check, so that nobody saves the order as it was before. */
  #passOver(row: StoredOrder, reports: readonly Report[], checkAt: number): OrderChange | undefined {
    const missedReport = reports.at(-1)?.number ?? 0n;
    if (missedReport <= row.lastReport || missedReport <= row.missedReport) return undefined;
    return this.begin(row).note({ missedReport, checkAt, checks: row.checks + 1 });
  }

  isUnsettled(row: StoredOrder): boolean {
    return isUnsettled(row.state) && isKnownOrder(row);
  }

  /** A change to build up. */
  begin(row: StoredOrder): OrderChange {
    return new OrderChange(row, this.parts.clock.now());
  }

  /** The sender has had its time: whatever became of it, nobody knows it now. */
  leaseRanOut(row: StoredOrder): OrderChange | undefined {
    if (row.state !== 'sending') return undefined;
    return this.begin(row)
      .move('uncertain', 'It is not known whether the exchange received it; the gateway is finding out.')
      .step('reconciliation', 'the time to send it ran out without a recorded outcome');
  }

  lookUp(row: StoredOrder) {
    return this.parts.broker.lookUpOrder(row.id, row.lastReport, row.origin);
  }

  found(row: StoredOrder, reports: readonly Report[]): OrderChange | undefined {
    if (reports.length === 0) return undefined;
    return this.begin(row).step('reconciliation', "the exchange's record has it").reports(reports);
  }

  missing(row: StoredOrder, askedAt: number, provesAbsence: boolean, nextCheckAt: number): OrderChange {
    const change = this.begin(row).note({ checks: row.checks + 1, checkAt: nextCheckAt });
    if (provesAbsence) {
      return change
        .move('refused', 'It never reached the exchange.')
        .step('reconciliation', "the exchange's record does not have it, and it can no longer be taken");
    }
    if (row.missingSince !== null) return change;
    return change.note({ missingSince: askedAt }).step('reconciliation', "the exchange's record does not have it yet");
  }

  unanswered(row: StoredOrder, nextCheckAt: number): OrderChange {
    return this.begin(row).note({ checks: row.checks + 1, checkAt: nextCheckAt });
  }

  save({ before, after }: Change<StoredOrder>, partner: LockedPartner): Statement[] {
    this.#count(before, after, partner);
    const saved = [updateOrder(before, after), ...this.#freeKey(after)];
    const cancelIsAsBefore = (before.cancelUntil === null) === (after.cancelUntil === null);
    return cancelIsAsBefore ? saved : [...saved, saveOpenCancel(after, this.parts.clock.now())];
  }

  saveAssumed({ before, after }: Change<StoredOrder>, partner: LockedPartner): Statement[] {
    this.#count(before, after, partner);
    return [updateOrderAssumed(before, after), ...this.#freeKey(after)];
  }

  #count(before: StoredOrder, after: StoredOrder, partner: LockedPartner): void {
    partner.addUsage('orders', after.countedDay, countedKobo(after) - countedKobo(before));
  }

  /** An order whose key nobody may use any more loses it when it is final. */
  #freeKey(after: StoredOrder): Statement[] {
    return isFinal(after.state) ? freeOldKey('orders', after, this.parts.clock) : [];
  }

  toEvent(row: StoredOrder) {
    return {
      type: `order.${row.state}`,
      occurredAt: row.updatedAt,
      origin: row.origin,
      data: { case: 'order' as const, value: toOrderMessage(row) },
    };
  }
}
