import type { StoredStep } from '../../trading/orders/table.ts';
import { isCounted } from '../../trading/orders/trades/rules.ts';
import { noTrades, type Trades, withChangedTrade, withTrade } from './rules.ts';

/** The time that a statement covers: from its start to before its end. */
export interface StatementPeriod {
  readonly from: number;
  readonly to: number;
}

/** Whether an instant lies in a period. */
export function isIn({ from, to }: StatementPeriod, at: number): boolean {
  return at >= from && at < to;
}

/** One step of an order's history, as far as a comparison needs it. */
export interface HistoryStep extends Omit<StoredStep, 'partnerId' | 'orderId' | 'kind' | 'detail'> {
  readonly kind: string;
}

/** An order at the end of a period, as far as its history tells. */
export interface OrderHistory {
  /** After the last report that came before the end of the period for certain; undefined: there is none. */
  readonly state: string | undefined;
  /** Other states that it can have had at the end of the period: a report without a time came before it or after it. */
  readonly possibleStates: readonly string[];
  readonly isReported: boolean;
  /** How many shares traded after the period. */
  readonly filledLater: bigint;
  readonly trades: Trades;
  /** The next report happened at this time or later. */
  readonly since: number;
}

/** The history of an order before its first report. */
export function newHistory(createdAt: number): OrderHistory {
  return {
    ...{ state: undefined, possibleStates: [], isReported: false, filledLater: 0n, trades: noTrades },
    since: createdAt,
  };
}

/** The history with one more step. Steps that are no reports of the broker change nothing. */
export function afterStep(history: OrderHistory, step: HistoryStep, period: StatementPeriod): OrderHistory {
  const { state, reportNumber, upstreamAt, quantity, priceKobo } = step;
  if (reportNumber === null && upstreamAt === null) return history;
  if (upstreamAt === null && quantity === null) return afterUntimed(history, step, period);
  const at = upstreamAt ?? step.at;
  // What is learnt has happened, also if a clock says otherwise.
  const since = Math.max(history.since, Math.min(at, step.at));
  if (at >= period.to) return { ...history, since, filledLater: history.filledLater + filledChangeOf(step) };
  const reported = { ...history, since, state, isReported: history.isReported || at >= period.from };
  if (quantity === null) return reported;
  if (step.tradeSequence !== null) return { ...reported, trades: afterChange(history.trades, step) };
  if (at < period.from) return reported;
  const key = `${reportNumber ?? step.sequence}`;
  const trade = { key, quantity, priceKobo: priceKobo ?? 0n, at, step: step.sequence };
  return { ...reported, trades: withTrade(history.trades, trade) };
}

/** The trades after a step about an earlier one: an operator settled what it counts with. A report only repeats it. */
function afterChange(trades: Trades, { kind, tradeSequence, quantity, priceKobo, ...step }: HistoryStep): Trades {
  if (kind !== 'settled_by_operator' || tradeSequence === null) return trades;
  return withChangedTrade(trades, {
    ...{ step: tradeSequence, quantity: quantity ?? 0n, priceKobo: priceKobo ?? 0n },
    ...{ filledChange: step.filledChange ?? 0n, valueChangeKobo: step.valueChangeKobo ?? 0n },
  });
}

function filledChangeOf(step: HistoryStep): bigint {
  return step.filledChange ?? (isCounted(step) ? (step.quantity ?? 0n) : 0n);
}

/**
 * A report of something that happened between the report before it and the moment when the gateway learnt of it. If the
 * end of the period lies between, the order can have been in the state before it or in the state after it. The statement
 * must have the order only if all of that time is in the period.
 */
function afterUntimed(history: OrderHistory, { at, state }: HistoryStep, { from, to }: StatementPeriod): OrderHistory {
  if (history.since >= to) return history;
  if (at < to) return { ...history, state, isReported: history.isReported || history.since >= from };
  const before = history.state === undefined ? [] : [history.state];
  return { ...history, possibleStates: [...history.possibleStates, ...before, state] };
}
