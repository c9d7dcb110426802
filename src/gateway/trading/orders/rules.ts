import {
  type RejectReason,
  RejectReasonSchema,
  type Report,
  ReportKind,
} from '../../../gen/marina/broker/v1/orders_pb.ts';
import type { OrderRejectReason, OrderState } from '../../../gen/marina/gateway/v1/orders_pb.ts';
import { statedInstant } from '../../../kit/clock.ts';
import type { EnumName } from '../../../kit/enums.ts';
import { roundKoboDecimal } from '../../../kit/money.ts';
import {
  type Applied,
  changed,
  inconsistent,
  isUnsettled,
  rejectReasons,
  statesOf,
  unchanged,
} from '../submission/rules.ts';

export type OrderStateName = EnumName<typeof OrderState>;

/** The fields of an order that decide its outcome. */
export interface OrderFacts {
  readonly state: OrderStateName;
  readonly quantity: bigint;
  readonly filledQuantity: bigint;
  /** The sum of quantity times price over the trades, in kobo. */
  readonly filledValueKobo: bigint;
  readonly filledAt: number | null;
  readonly exchangeOrderId: string | null;
  readonly reason: string | null;
  readonly rejectReason: string | null;
  /** The price of one share by which the order counts against the day's limit. It is fixed when the order is placed. */
  readonly countedPriceKobo: bigint;
  /** The number of the last report applied. */
  readonly lastReport: bigint;
  readonly updatedAt: number;
}

/** Above every price that the gateway accepts or the exchange trades at, and low enough for exact sums. */
export const highestPriceKobo = 10_000_000_000n;

/** The next states of each state. A `partially_filled` order that trades again stays `partially_filled`. */
export const orderStates = statesOf<OrderStateName>('an order', {
  sending: ['pending', 'partially_filled', 'filled', 'rejected', 'refused', 'uncertain', 'cancelled', 'expired'],
  uncertain: ['pending', 'partially_filled', 'filled', 'rejected', 'refused', 'cancelled', 'expired'],
  pending: ['partially_filled', 'filled', 'cancelled', 'expired', 'rejected'],
  partially_filled: ['partially_filled', 'filled', 'cancelled', 'expired'],
  filled: [],
  rejected: [],
  refused: [],
  cancelled: [],
  expired: [],
});

const { isFinal, move, transitions } = orderStates;

/** Applies one report of the exchange. Undefined when the order has seen it already. */
export function applyReport<Row extends OrderFacts>(order: Row, report: Report, now: number): Applied<Row> | undefined {
  if (report.number <= order.lastReport) return undefined;
  const { exchangeOrderId } = report;
  const usable = /^[ -~]{1,64}$/.test(exchangeOrderId);
  const seen = {
    ...order,
    lastReport: report.number,
    exchangeOrderId: order.exchangeOrderId ?? (usable ? exchangeOrderId : null),
  };
  return report.kind === ReportKind.TRADE ? applyTrade(seen, report, now) : applyEnd(seen, report, now);
}

/** How many shares of an order count against its day's limit in each state. */
const countedShares: Readonly<Record<OrderStateName, 'all' | 'filled' | 'none'>> = {
  sending: 'all',
  uncertain: 'all',
  pending: 'all',
  partially_filled: 'all',
  filled: 'all',
  rejected: 'filled',
  cancelled: 'filled',
  expired: 'filled',
  refused: 'none',
};

/** The value of an order that counts against the day's limit, in kobo; all of it in a state of another version. */
export function countedKobo({ state, quantity, filledQuantity, countedPriceKobo }: OrderFacts): bigint {
  const counted = countedShares[state] ?? 'all';
  if (counted === 'none') return 0n;
  return (counted === 'all' ? quantity : filledQuantity) * countedPriceKobo;
}

function applyTrade<Row extends OrderFacts>(order: Row, report: Report, now: number): Applied<Row> {
  if (report.quantity <= 0n || report.priceKobo <= 0n || report.priceKobo > highestPriceKobo) {
    return contradiction(order, 'a trade at a price, or of a quantity, that cannot be');
  }
  const filledQuantity = order.filledQuantity + report.quantity;
  if (filledQuantity > order.quantity) {
    return contradiction(order, `a trade of ${report.quantity} shares is more than was left of the order`);
  }
  const filled = {
    ...order,
    filledQuantity,
    filledValueKobo: order.filledValueKobo + report.quantity * report.priceKobo,
  };
  const detail = `${report.quantity} shares traded`;
  if (isFinal(order.state)) {
    // A late fill: the final state stays, the fill counts, and the partner gets an event.
    const reason = order.state === 'refused' ? reachedAfterAll(filled, 'It may trade further.') : order.reason;
    const late = { ...filled, reason, updatedAt: Math.max(now, order.updatedAt) };
    const impossible = order.state === 'refused' || order.state === 'rejected';
    return { ...changed(late, `${detail} after the order was ${order.state}`), inconsistent: impossible };
  }
  const complete = filledQuantity === order.quantity;
  const moved = move(filled, complete ? 'filled' : 'partially_filled', null, now);
  return changed(complete ? { ...moved, filledAt: statedInstant(report.at) ?? now } : moved, detail);
}

/** The effect of a report that is not a trade. */
interface End {
  /** The order's next state. */
  readonly state: OrderStateName;
  readonly detail: string;
  /** The reason that partners read; null for a rejection, which has a reject reason. */
  readonly reason: string | null;
  /** The sentence for an order that was refused before. It says what happens to the shares that have not traded. */
  readonly afterRefusal: string;
}

const ends: Readonly<Record<Exclude<ReportKind, ReportKind.UNSPECIFIED | ReportKind.TRADE>, End>> = {
  [ReportKind.ACCEPTED]: {
    state: 'pending',
    detail: 'the exchange accepted the order',
    reason: null,
    afterRefusal: 'It may trade.',
  },
  [ReportKind.REJECTED]: {
    state: 'rejected',
    detail: 'the exchange rejected the order',
    reason: null,
    afterRefusal: 'It will not trade.',
  },
  [ReportKind.CANCELLED]: {
    state: 'cancelled',
    detail: 'the exchange cancelled what had not traded',
    reason: 'The order was cancelled.',
    afterRefusal: 'What had not traded was cancelled.',
  },
  [ReportKind.EXPIRED]: {
    state: 'expired',
    detail: 'what had not traded expired',
    reason: 'Its time in force ran out.',
    afterRefusal: 'What had not traded expired.',
  },
};

/** The reason text for an order that we refused and that is at the exchange. The partner may have placed another meanwhile. */
export function reachedAfterAll({ filledQuantity, quantity }: OrderFacts, rest: string): string {
  const isFull = filledQuantity === quantity;
  const traded = filledQuantity === 0n ? '' : ` ${filledQuantity} of ${quantity} shares have traded.`;
  return `It was reported as never having reached the exchange. That was wrong.${traded}${isFull ? '' : ` ${rest}`}`;
}

function applyEnd<Row extends OrderFacts>(order: Row, report: Report, now: number): Applied<Row> {
  const end: End | undefined = ends[report.kind as keyof typeof ends];
  if (end === undefined) return contradiction(order, 'a report of a kind that is not known');
  const { state, detail, afterRefusal } = end;
  const isOld = state === 'pending' && !isUnsettled(order.state) && order.state !== 'rejected';
  if (order.state === 'refused') {
    const reason = reachedAfterAll(order, afterRefusal);
    const corrected = { ...order, reason, updatedAt: Math.max(now, order.updatedAt) };
    return { ...contradiction(order, detail), row: corrected, changed: true };
  }
  if (state === order.state || isOld) return unchanged(order, detail);
  if (state === 'rejected' && order.state === 'partially_filled') {
    // The exchange gave it up after some of it traded. `cancelled` is the state of an order whose rest will not trade.
    const ended = move(order, 'cancelled', 'The exchange gave up what had not traded.', now);
    return changed(ended, 'the exchange gave up what had not traded');
  }
  if (!transitions[order.state].includes(state)) return contradiction(order, detail);
  if (state !== 'rejected') return changed(move(order, state, end.reason, now), detail);
  const { word, sentence } = rejectReasonOf(report.rejectReason);
  const rejected = { ...move(order, 'rejected', sentence, now), rejectReason: word };
  return changed(rejected, `${detail}: ${word}`);
}

function contradiction<Row extends OrderFacts>(order: Row, what: string): Applied<Row> {
  return inconsistent(order, 'exchange', what);
}

/** The sentence of each reject reason, ours and the broker's, which have the same names. */
export const rejectSentences: Readonly<Record<EnumName<typeof OrderRejectReason>, string>> = {
  insufficient_funds: 'The account has too little money, or too few shares.',
  market_closed: 'The market is closed.',
  settlement_lockout: 'The account is locked until an earlier trade settles.',
  limit_orders_etf_only: 'An exchange-traded fund takes limit orders only.',
  unknown_symbol: 'The exchange does not know the symbol.',
  symbol_not_tradable: 'The symbol cannot be traded now.',
  account_not_at_broker: 'The broker does not have the account.',
  rejected_by_exchange: 'The exchange rejected the order.',
  price_off_tick: 'The price is no multiple of the tick.',
  price_outside_band: "The price is outside the day's band.",
  quantity_off_lot: 'The quantity is no multiple of the lot.',
};

type RejectReasonName = keyof typeof rejectSentences;

/** Release 0.2.0 stored these as the general reason, with their own sentence. */
const storedAsGeneral: readonly RejectReasonName[] = ['price_off_tick', 'price_outside_band', 'quantity_off_lot'];

/**
 * The reject reason of a row. Some rows were stored with the general reason: their reason is found by the sentence, which is
 * different for each reason.
 */
export function shownRejectReason({
  rejectReason,
  reason,
}: Pick<OrderFacts, 'rejectReason' | 'reason'>): string | null {
  if (rejectReason !== 'rejected_by_exchange') return rejectReason;
  return storedAsGeneral.find((name) => rejectSentences[name] === reason) ?? rejectReason;
}

/** Our name and sentence for a rejection. */
export const rejectReasonOf = rejectReasons<typeof RejectReason, keyof typeof rejectSentences>(
  RejectReasonSchema,
  rejectSentences,
  'rejected_by_exchange',
);

/** Longer than any setting gives a cancel. */
const longestCancelMs = 300_000;

/** Whether a cancel has time left. A time further ahead than any cancel's was set by a wrong clock and does not count. */
export function mayCancelBeUnderWay(until: number, realNow: number): boolean {
  return until > realNow && until <= realNow + longestCancelMs;
}

/** An estimate's total in whole kobo: a purchase costs no more than it says, and a sale brings no less. */
export function estimatedTotalKobo(side: 'buy' | 'sell', totalKoboDecimal: string): bigint {
  return roundKoboDecimal(totalKoboDecimal, side === 'buy' ? 'up' : 'down');
}
