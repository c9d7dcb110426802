import { RejectReason, ReportKind, Side, TimeInForce } from '../../gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import { orderForbidden } from '../clearing/account-states.ts';
import { type Behaviour, magicOf } from '../magic.ts';
import { listingOf } from '../market/instruments.ts';
import type { EngineEvents } from '../market/matching-engine.ts';
import type { Order, OrderReport, OrderRequest, PlannedStep, SubmissionResult } from '../model.ts';
import { seededRandom } from '../random.ts';
import type { UnitOfWork } from '../store/unit-of-work.ts';
import type { Directives } from '../wire/directives.ts';
import { reasonToReject } from './checks.ts';
import { type FillDelay, plannedByBehaviour, rejectReasonOf } from './planning.ts';

export interface ExchangeSettings {
  readonly fillDelay: FillDelay;
  readonly directives: Directives;
}

/** The result of a change to an order. */
export type Changed =
  | { readonly outcome: 'reported'; readonly report: OrderReport }
  | { readonly outcome: 'unknown' | 'final' | 'too_many' | 'through_limit' | 'no_price' };

/** Accepts or rejects an order: once, and not after its `not_after`. */
export function submit(
  unit: UnitOfWork,
  submission: OrderRequest,
  notAfterMs: number | undefined,
  settings: ExchangeSettings,
): SubmissionResult<OrderReport> {
  const { world } = unit;
  if (unit.order(submission.clientOrderId) !== undefined) return { outcome: 'seen_before' };
  if (world.isTooLate(notAfterMs)) return { outcome: 'too_late' };
  unit.payOutSales();
  const forced = settings.directives.takeOutcome(submission.account, submission.symbol);
  const behaviour = forced !== undefined && forced.outcome !== Outcome.UNSPECIFIED ? forced : undefined;
  const reason = rejection(unit, submission, behaviour);
  if (reason !== undefined) {
    const rejected = unit.addOrder(submission, false);
    rejected.endedBy = ReportKind.REJECTED;
    return { outcome: 'taken', result: unit.report(rejected, ReportKind.REJECTED, { rejectReason: reason }) };
  }
  const order = unit.addOrder(submission, true);
  const accepted = unit.report(order, ReportKind.ACCEPTED);
  const now = world.clock.now();
  if (order.timeInForce === TimeInForce.DAY) order.expiresAtMs = world.venue.session(now).dayEndsAtMs;
  const set = behaviour ?? magicOf(order.symbol);
  if (set === undefined) {
    world.engine.place(order, now, engineEvents(unit));
  } else {
    order.plan = plan(unit, order, set, settings.fillDelay);
    order.planAtMs = planTime(unit, order);
    advance(unit, order);
  }
  return { outcome: 'taken', result: accepted };
}

/** Advances the market for the orders in its books. */
export function advanceMarket(unit: UnitOfWork): void {
  unit.world.engine.pulse(unit.world.clock.now(), engineEvents(unit));
}

/** Runs the due steps of an order's plan. Returns when its next step is due; null: no further step. */
export function advanceIfOpen(unit: UnitOfWork, id: string): number | null {
  const order = unit.order(id);
  if (order !== undefined && isOpen(order)) advance(unit, order);
  return order?.planAtMs ?? null;
}

function advance(unit: UnitOfWork, order: Order): void {
  for (let step = order.plan[0]; step !== undefined && isOpen(order); step = order.plan[0]) {
    if (order.planAtMs === null || order.planAtMs > unit.world.clock.realNow()) return;
    order.plan = order.plan.slice(1);
    order.planAtMs = planTime(unit, order);
    doStep(unit, order, step);
  }
}

/** Trades shares of an order, even of a final one. Quantity 0: all that is left; price 0: its own, or the last. */
export function fill(unit: UnitOfWork, clientOrderId: string, quantity: number, priceKobo: number): Changed {
  const order = unit.order(clientOrderId);
  if (order === undefined) return { outcome: 'unknown' };
  const left = order.quantity - order.filled;
  if (left === 0 || quantity > left) return { outcome: 'too_many' };
  const price = priceKobo || order.priceKobo || unit.world.instrument(order.symbol)?.lastKobo;
  if (price === undefined) return { outcome: 'no_price' };
  if (isThroughLimit(order, price)) return { outcome: 'through_limit' };
  return { outcome: 'reported', report: trade(unit, order, quantity || left, price) };
}

export function end(
  unit: UnitOfWork,
  clientOrderId: string,
  kind: ReportKind.CANCELLED | ReportKind.EXPIRED | ReportKind.REJECTED,
  rejectReason?: RejectReason,
): Changed {
  const order = unit.order(clientOrderId);
  if (order === undefined) return { outcome: 'unknown' };
  if (!isOpen(order)) return { outcome: 'final' };
  close(unit, order, kind);
  return { outcome: 'reported', report: unit.report(order, kind, { rejectReason }) };
}

/** Whether an order can still trade by itself. */
export function isOpen(order: Order): boolean {
  return order.endedBy === ReportKind.UNSPECIFIED;
}

/** A directive overrides the exchange's rules, but nothing trades without a price. */
function rejection(
  unit: UnitOfWork,
  submission: OrderRequest,
  forced: Behaviour | undefined,
): RejectReason | undefined {
  const { world } = unit;
  const instrument = world.instrument(submission.symbol);
  if (forced?.outcome === Outcome.REJECT) return rejectReasonOf(forced);
  if (forced !== undefined) {
    return instrument === undefined && submission.priceKobo === null ? RejectReason.UNKNOWN_SYMBOL : undefined;
  }
  const account = world.accountStatus(submission.account);
  const forbidden = orderForbidden(world.stateOf(submission.account), submission.side);
  const magic = magicOf(submission.symbol);
  const phase = magic === undefined ? world.venue.session(world.clock.now()).phase : 'continuous';
  const hasRoom = magic !== undefined || world.engine.hasRoom(submission);
  return (
    reasonToReject({ submission, account, forbidden, instrument, phase, hasRoom }) ??
    (magic === undefined
      ? world.funds.shortfall(submission, instrument?.upperKobo ?? 0, lagosDay(world.clock.now()))
      : magicRejection(magic))
  );
}

function magicRejection(magic: Behaviour): RejectReason | undefined {
  return magic.outcome === Outcome.REJECT ? rejectReasonOf(magic) : undefined;
}

function plan(unit: UnitOfWork, order: Order, behaviour: Behaviour, fillDelay: FillDelay): readonly PlannedStep[] {
  const random = seededRandom(unit.world.seed, 'order', order.sequence);
  const delay = () => random.whole(fillDelay.min, fillDelay.max);
  const priceKobo = order.priceKobo ?? unit.world.instrument(order.symbol)?.quoteKobo ?? 0;
  return plannedByBehaviour(order, behaviour, priceKobo, delay);
}

function engineEvents(unit: UnitOfWork): EngineEvents {
  return {
    trade: (order, quantity, priceKobo) => void trade(unit, order, quantity, priceKobo),
    expire: (order) => {
      close(unit, order, ReportKind.EXPIRED);
      unit.report(order, ReportKind.EXPIRED);
    },
    waits: (order) => {
      unit.changedOrders.add(order);
      unit.world.followFunds(order);
    },
  };
}

function planTime(unit: UnitOfWork, order: Order): number | null {
  const next = order.plan[0];
  return next === undefined ? null : unit.world.clock.realNow() + next.afterMs;
}

function doStep(unit: UnitOfWork, order: Order, step: PlannedStep): void {
  switch (step.kind) {
    case 'fill': {
      const quantity = Math.min(step.quantity, order.quantity - order.filled);
      if (quantity > 0) trade(unit, order, quantity, step.priceKobo);
      return;
    }
    case 'expire':
      close(unit, order, ReportKind.EXPIRED);
      unit.report(order, ReportKind.EXPIRED);
      return;
    case 'reject':
      close(unit, order, ReportKind.REJECTED);
      unit.report(order, ReportKind.REJECTED, { rejectReason: step.rejectReason });
  }
}

function trade(unit: UnitOfWork, order: Order, quantity: number, priceKobo: number): OrderReport {
  if (quantity <= 0 || order.filled + quantity > order.quantity || isThroughLimit(order, priceKobo)) {
    throw new Error(`A trade of ${quantity} at ${priceKobo} does not fit order ${order.clientOrderId}`);
  }
  order.filled += quantity;
  if (isOpen(order) && order.filled === order.quantity) close(unit, order, ReportKind.TRADE);
  else unit.world.engine.follow(order, isOpen(order));
  unit.world.followFunds(order);
  const instrument = unit.world.instrument(order.symbol);
  if (
    instrument !== undefined &&
    instrument.lastKobo !== priceKobo &&
    (instrument.pinned || listingOf(order.symbol) === undefined)
  ) {
    unit.setInstrument({ ...instrument, lastKobo: priceKobo });
  }
  const { account, clientOrderId, symbol, side } = order;
  const report = unit.report(order, ReportKind.TRADE, { quantity, priceKobo });
  const name = instrument?.name ?? symbol;
  const executed = { account, clientOrderId, symbol, name, side, quantity, priceKobo, executedAtMs: report.atMs };
  unit.clearing.book(executed, order);
  return report;
}

function close(unit: UnitOfWork, order: Order, endedBy: ReportKind): void {
  order.endedBy = endedBy;
  order.expiresAtMs = null;
  order.plan = [];
  order.planAtMs = null;
  unit.world.engine.follow(order, false);
  unit.world.followFunds(order);
}

function isThroughLimit(order: Order, priceKobo: number): boolean {
  if (order.priceKobo === null) return false;
  return order.side === Side.BUY ? priceKobo > order.priceKobo : priceKobo < order.priceKobo;
}
