import { isBeforeStored, isToCome, type Settled, type Settling } from '../../submission/rules.ts';
import { readRecord, type WaitingTrade, writeRecord } from '../later-reports/rules.ts';
import {
  highestPriceKobo,
  type OrderFacts,
  type OrderStateName,
  orderStates,
  reachedAfterAll,
  rejectSentences,
} from '../rules.ts';
import { type KnownTrade, sumsOf } from '../trades/rules.ts';

/** Where an order can be settled to. `open`: it rests at the exchange, whether or not a part of it has traded. */
export type SettledOrderState = 'refused' | 'rejected' | 'open' | 'cancelled' | 'expired' | 'filled';

/** A trade as it really was, by the evidence. */
export interface SettledTrade {
  /** The step of the history with the trade; undefined: the history has none. */
  readonly step: number | undefined;
  /** 0: the exchange took it back. */
  readonly quantity: bigint;
  readonly priceKobo: bigint;
  /** When it traded, or when the exchange took it back or corrected it. */
  readonly at: number;
}

/** The outcome of an order by the evidence. */
export interface OrderSettlement {
  /** Undefined: as its trades leave it. */
  readonly state: SettledOrderState | undefined;
  readonly rejectReason: keyof typeof rejectSentences | undefined;
  /** When the exchange ended it. */
  readonly endedAt: number | undefined;
  readonly exchangeOrderId: string;
  readonly trades: readonly SettledTrade[];
}

/** What an order must have to be settled. */
export interface SettledOrderFacts extends OrderFacts {
  readonly createdAt: number;
  readonly steps: number;
  readonly settlement: string | null;
}

/**
 * Where each state can be settled to. A final state stays, except that a `filled` order of which the exchange took trades back
 * becomes what remains of it. An order that the exchange has acknowledged was never refused.
 */
const settledStates: Readonly<Record<OrderStateName, readonly (SettledOrderState | undefined)[]>> = {
  sending: [],
  uncertain: ['refused', 'rejected', 'open', 'cancelled', 'expired', 'filled'],
  pending: [undefined, 'open', 'rejected', 'cancelled', 'expired', 'filled'],
  partially_filled: [undefined, 'open', 'cancelled', 'expired', 'filled'],
  filled: [undefined, 'open', 'cancelled', 'expired', 'filled'],
  rejected: [undefined],
  refused: [undefined],
  cancelled: [undefined],
  expired: [undefined],
};

/**
 * How much later than the order's end a trade of it may be. Both instants are the exchange's, but a desk may read one of them out to
 * the minute, or take it from the broker's clock.
 */
const endMarginMs = 120_000;

const takenBackReason = 'The exchange took back a trade of it.';

/** The states that end an order with a step of their own, and what partners read then. */
const ends = {
  refused: { detail: 'it never reached the exchange', reason: 'It never reached the exchange.' },
  rejected: { detail: 'the exchange rejected the order', reason: null },
  cancelled: { detail: 'the exchange cancelled what had not traded', reason: 'The order was cancelled.' },
  expired: { detail: 'what had not traded expired', reason: 'Its time in force ran out.' },
} as const;

/** A change of the order by one trade. */
interface Adjustment {
  readonly trade: SettledTrade;
  readonly filledChange: bigint;
  readonly valueChangeKobo: bigint;
}

/**
 * The changes that an operator's settlement makes, one for each trade and one for the end, as the exchange's own reports would
 * have made them. `known` are the order's trades by their steps. `now` and `proposedAt` are business time: the trades that were
 * traded up to `proposedAt` are those that the operator listed and those that were reported by then.
 */
export function settleOrder<Row extends SettledOrderFacts>(
  order: Row,
  settlement: OrderSettlement,
  known: ReadonlyMap<number, KnownTrade>,
  now: number,
  proposedAt = now,
): Settling<Row> {
  const adjustments = adjustmentsOf(settlement, known);
  const filled = order.filledQuantity + sum(adjustments.map(({ filledChange }) => filledChange));
  const problem =
    problemOfTrades(order, settlement, known, now) ?? problemOfOutcome(order, settlement, adjustments, filled, now);
  if (problem !== undefined) return { problem };
  const changes = new OrderChanges(order, settlement, known, now, proposedAt);
  for (const adjustment of adjustments) changes.adjust(adjustment);
  return { changes: changes.end() };
}

/** Trades that the exchange took back come first, then corrected ones, then further ones in the order of time. */
function adjustmentsOf({ trades }: OrderSettlement, known: ReadonlyMap<number, KnownTrade>): Adjustment[] {
  const sign = (value: bigint) => (value < 0n ? -1 : value > 0n ? 1 : 0);
  return trades
    .map((trade) => {
      const before = trade.step === undefined ? undefined : known.get(trade.step);
      const counted = before?.counted ?? { quantity: 0n, priceKobo: 0n };
      const filledChange = trade.quantity - counted.quantity;
      const valueChangeKobo = trade.quantity * trade.priceKobo - counted.quantity * counted.priceKobo;
      return { trade, filledChange, valueChangeKobo };
    })
    .sort((one, other) => sign(one.filledChange) - sign(other.filledChange) || one.trade.at - other.trade.at);
}

function problemOfTrades(
  order: SettledOrderFacts,
  { trades, endedAt }: OrderSettlement,
  known: ReadonlyMap<number, KnownTrade>,
  now: number,
): string | undefined {
  const named = new Set<number>();
  for (const { step, quantity, priceKobo, at } of trades) {
    if (quantity < 0n || quantity > order.quantity) return `a trade of ${quantity} shares cannot be`;
    if (quantity > 0n && (priceKobo <= 0n || priceKobo > highestPriceKobo))
      return `a price of ${priceKobo} kobo cannot be`;
    if (isBeforeStored(at, order.createdAt, now)) return 'a trade is from before the order was stored';
    if (isToCome(at, now)) return 'a trade is in the future';
    if (step === undefined) {
      if (quantity === 0n) return 'a trade that was taken back needs the step of the history that has it';
      if (endedAt !== undefined && at > endedAt + endMarginMs) return 'a trade is later than the end of the order';
      continue;
    }
    const before = known.get(step);
    if (before === undefined) return `step ${step} of the history has no trade`;
    if (named.has(step)) return `step ${step} is named twice`;
    named.add(step);
    const { counted } = before;
    const isSame = quantity === counted.quantity && (quantity === 0n || priceKobo === counted.priceKobo);
    if (isSame) return `the trade of step ${step} counts with these values already`;
  }
  if (named.size === 0) return undefined;
  const sums = sumsOf(known);
  const addsUp = sums.quantity === order.filledQuantity && sums.valueKobo === order.filledValueKobo;
  return addsUp ? undefined : 'the trades of the history do not add up to what the order has filled';
}

function problemOfOutcome(
  order: SettledOrderFacts,
  settlement: OrderSettlement,
  adjustments: readonly Adjustment[],
  filled: bigint,
  now: number,
): string | undefined {
  const { state, rejectReason, endedAt, exchangeOrderId } = settlement;
  const shown = state ?? 'what its trades leave it as';
  if (!settledStates[order.state].includes(state))
    return `an order that is ${order.state} cannot be settled as ${shown}`;
  if (filled > order.quantity) return `${filled} shares would have traded of ${order.quantity}`;
  if (filled < 0n) return 'less than no shares would have traded';
  const needsEnd = state === 'rejected' || state === 'cancelled' || state === 'expired';
  if (needsEnd !== (endedAt !== undefined)) {
    return needsEnd
      ? '`ended_at` is needed: when the exchange ended it'
      : '`ended_at` is only for an order that ended otherwise than by trades';
  }
  if (endedAt !== undefined && (isBeforeStored(endedAt, order.createdAt, now) || isToCome(endedAt, now))) {
    return '`ended_at` is before the order was stored, or in the future';
  }
  if ((state === 'rejected') !== (rejectReason !== undefined))
    return '`reject_reason` is needed for `rejected`, and only then';
  if ((state === 'refused' || state === 'rejected') && (filled > 0n || adjustments.length > 0)) {
    return `an order that is settled as ${state} has no trades`;
  }
  if (state === 'filled' && filled < order.quantity)
    return `only ${filled} of ${order.quantity} shares would have traded`;
  const isRestOpen = state === 'open' || state === 'cancelled' || state === 'expired';
  if (isRestOpen && filled === order.quantity) return 'all of its shares would have traded, so it is filled';
  if (state === undefined && order.state === 'filled' && filled < order.quantity) {
    return 'say what became of the rest: open, cancelled or expired';
  }
  if (state === 'refused' && exchangeOrderId !== '')
    return "an order that never reached the exchange has no exchange's id";
  if (exchangeOrderId !== '' && order.exchangeOrderId !== null && order.exchangeOrderId !== exchangeOrderId) {
    return `the exchange has reported another id of it, ${order.exchangeOrderId}`;
  }
  return adjustments.length === 0 && changesNothing(order, state) ? 'it would change nothing' : undefined;
}

function changesNothing({ state: before }: SettledOrderFacts, state: SettledOrderState | undefined): boolean {
  const isOpen = before === 'pending' || before === 'partially_filled';
  return state === undefined || state === before || (state === 'open' && isOpen);
}

/** Builds the changes up, one after another. */
class OrderChanges<Row extends SettledOrderFacts> {
  readonly #changes: Settled<Row>[] = [];
  #after: SettledOrderFacts;
  #waiting: readonly WaitingTrade[];
  #listedUntil: number | undefined;
  /** The instants of the trades that count, by their steps. */
  readonly #tradedAt: Map<number, number>;

  constructor(
    private readonly order: Row,
    private readonly settlement: OrderSettlement,
    known: ReadonlyMap<number, KnownTrade>,
    private readonly now: number,
    private readonly proposedAt: number,
  ) {
    this.#after = order;
    const { waiting, listedUntil } = readRecord(order.settlement);
    this.#waiting = waiting;
    this.#listedUntil = listedUntil;
    this.#tradedAt = new Map(
      [...known].flatMap(([step, { at, counted }]) => (counted.quantity > 0n ? [[step, at]] : [])),
    );
  }

  adjust({ trade, filledChange, valueChangeKobo }: Adjustment): void {
    const { step, quantity, priceKobo, at } = trade;
    const sequence = this.order.steps + this.#changes.length + 1;
    if (step === undefined) this.#wait({ step: sequence, quantity, priceKobo, at });
    else this.#waiting = changedTrade(this.#waiting, { step, quantity, priceKobo });
    if (quantity === 0n) this.#tradedAt.delete(step ?? sequence);
    else if (step === undefined || !this.#tradedAt.has(step)) this.#tradedAt.set(step ?? sequence, at);
    const filledQuantity = this.#after.filledQuantity + filledChange;
    const filledValueKobo = this.#after.filledValueKobo + valueChangeKobo;
    const state = this.#stateWith(filledQuantity);
    const isTakenBack = filledChange < 0n;
    this.#add(
      {
        filledQuantity,
        filledValueKobo,
        state,
        filledAt: state === 'filled' ? Math.max(...this.#tradedAt.values()) : null,
        reason: this.#reasonWith(state, filledQuantity, isTakenBack),
      },
      quantity === 0n
        ? 'the exchange took a trade back'
        : step === undefined
          ? `${quantity} shares traded`
          : this.#detailOf(step, trade),
      {
        upstreamAt: at,
        quantity,
        priceKobo,
        tradeSequence: step,
        filledChange,
        valueChangeKobo,
      },
    );
  }

  /** The changes, with the end of the order if it is not where it was settled to. */
  end(): readonly Settled<Row>[] {
    const { state, endedAt, rejectReason } = this.settlement;
    if (state === 'open' && this.#after.state === 'uncertain') {
      this.#add({ state: 'pending', reason: null }, 'the exchange has the order', {});
    }
    if (state !== undefined && state !== 'open' && state !== 'filled' && this.#after.state !== state) {
      const { detail, reason } = ends[state];
      const rejected = rejectReason === undefined ? {} : { rejectReason };
      const sentence = rejectReason === undefined ? reason : rejectSentences[rejectReason];
      this.#add({ state, reason: sentence, ...rejected }, detail, { upstreamAt: endedAt });
    }
    return this.#changes;
  }

  #wait(trade: WaitingTrade & { readonly at: number }): void {
    // A list of an earlier version has no instant, and it stays so while its trades wait.
    const isOfEarlierVersion = this.#waiting.length > 0 && this.#listedUntil === undefined;
    if (!isOfEarlierVersion) this.#listedUntil = Math.max(this.proposedAt, trade.at, this.#listedUntil ?? 0);
    this.#waiting = [...this.#waiting, trade];
  }

  #detailOf(step: number, { quantity, priceKobo }: SettledTrade): string {
    return `the trade of step ${step} counts with ${quantity} shares at ${priceKobo} kobo`;
  }

  /** The state with so many shares traded, before the order ends as it was settled. */
  #stateWith(filledQuantity: bigint): OrderStateName {
    const { state } = this.#after;
    const target = this.settlement.state;
    if (orderStates.isFinal(state) && state !== 'filled') return state;
    if (filledQuantity === this.order.quantity) return 'filled';
    // An order that was over stays over: it becomes at once what its rest became.
    if (state === 'filled' && (target === 'cancelled' || target === 'expired')) return target;
    return filledQuantity === 0n ? 'pending' : 'partially_filled';
  }

  #reasonWith(state: OrderStateName, filledQuantity: bigint, isTakenBack: boolean): string | null {
    if (state === 'filled') return null;
    if (state === 'refused') return reachedAfterAll({ ...this.#after, filledQuantity }, 'It may trade further.');
    if (isTakenBack && state !== this.#after.state) return takenBackReason;
    return state === this.#after.state ? this.#after.reason : null;
  }

  #add(fields: Partial<SettledOrderFacts>, detail: string, step: Settled<Row>['step']): void {
    const { exchangeOrderId } = this.settlement;
    const after = {
      ...fields,
      exchangeOrderId: this.#after.exchangeOrderId ?? (exchangeOrderId === '' ? null : exchangeOrderId),
      updatedAt: Math.max(this.now, this.#after.updatedAt),
    };
    this.#after = { ...this.#after, ...after };
    const { state } = this.#after;
    // A final state that the settlement brought about is not changed by reports.
    const before = readRecord(this.order.settlement);
    const isEnded = orderStates.isFinal(state) && (before.isEnded || state !== this.order.state);
    const settlement = writeRecord({ isEnded, waiting: this.#waiting, listedUntil: this.#listedUntil });
    this.#after = { ...this.#after, settlement };
    this.#changes.push({
      fields: { ...after, settlement } as Partial<Row>,
      detail,
      ...(step === undefined ? {} : { step }),
    });
  }
}

/** The trades that wait for their reports, after one of them was changed. A correction does not change when it traded. */
function changedTrade(
  waiting: readonly WaitingTrade[],
  { step, quantity, priceKobo }: Omit<WaitingTrade, 'at'>,
): readonly WaitingTrade[] {
  return waiting.flatMap((one) =>
    one.step !== step ? [one] : quantity === 0n ? [] : [{ ...one, quantity, priceKobo }],
  );
}

function sum(values: readonly bigint[]): bigint {
  return values.reduce((total, value) => total + value, 0n);
}
