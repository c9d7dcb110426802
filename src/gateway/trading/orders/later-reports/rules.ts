import { type Report, ReportKind } from '../../../../gen/marina/broker/v1/orders_pb.ts';
import { statedInstant } from '../../../../kit/clock.ts';
import { type Applied, inconsistent, unchanged } from '../../submission/rules.ts';
import { applyReport as applyOrdinaryReport, type OrderFacts, orderStates } from '../rules.ts';

/** A trade that an operator entered, and that the exchange may still report. */
export interface WaitingTrade {
  /** The step of the history that has it. */
  readonly step: number;
  readonly quantity: bigint;
  readonly priceKobo: bigint;
  /** When it traded, as the operator entered it; undefined: the record of an earlier version does not say. */
  readonly at: number | undefined;
}

/** What an order's settlement says to later reports. */
export interface SettlementRecord {
  /** The settlement ended the order, so that no report changes it. */
  readonly isEnded: boolean;
  readonly waiting: readonly WaitingTrade[];
  /**
   * The instant up to which an operator listed the order's trades. Undefined: no trade waits, or the record of an earlier version
   * does not say.
   */
  readonly listedUntil: number | undefined;
}

/**
 * How far the instants of an entered trade and of its report may differ. Desks read instants out to the minute, and the exchange's
 * and the broker's clocks may differ by up to a minute. A wider margin would take a further trade for the entered one.
 */
const sameTradeMarginMs = 120_000;

interface StoredRecord {
  readonly ended: boolean;
  /** Step, quantity, price and instant. Records of earlier versions have no instant. */
  readonly waiting: readonly (readonly [number, string, string, number?])[];
  readonly until?: number;
}

/** Reads the column of an order; null: it was never settled, or nothing of it matters to later reports. */
export function readRecord(text: string | null): SettlementRecord {
  if (text === null) return { isEnded: false, waiting: [], listedUntil: undefined };
  const { ended, waiting, until } = JSON.parse(text) as StoredRecord;
  return {
    isEnded: ended,
    waiting: waiting.map(([step, quantity, priceKobo, at]) => ({
      step,
      quantity: BigInt(quantity),
      priceKobo: BigInt(priceKobo),
      at,
    })),
    listedUntil: until,
  };
}

/** The instants are kept only as long as a trade waits: then every trade of the operator's list has been reported. */
export function writeRecord({ isEnded, waiting, listedUntil }: SettlementRecord): string | null {
  if (!isEnded && waiting.length === 0) return null;
  const trades = waiting.map(({ step, quantity, priceKobo, at }) => [
    ...[step, `${quantity}`, `${priceKobo}`],
    ...(at === undefined ? [] : [at]),
  ]);
  return JSON.stringify({ ended: isEnded, waiting: trades, ...(waiting.length === 0 ? {} : { until: listedUntil }) });
}

/**
 * Applies one report of the exchange to an order that may have been settled by an operator. A report of a trade that was entered
 * by hand counts nothing a second time. While an entered trade waits for its report, another trade that is not later than the
 * operator's list is inconsistent with the list. Any report that would change what the settlement ended is inconsistent with it.
 */
export function applyReport<Row extends OrderFacts & { readonly settlement: string | null }>(
  order: Row,
  report: Report,
  now: number,
): Applied<Row> | undefined {
  const applied = applyOrdinaryReport(order, report, now);
  if (applied === undefined || order.settlement === null) return applied;
  const { lastReport, exchangeOrderId } = applied.row;
  const seen = { ...order, lastReport, exchangeOrderId };
  const record = readRecord(order.settlement);
  if (report.kind === ReportKind.TRADE) {
    const tradedAt = statedInstant(report.at);
    const repeated = repeatedTrade(record, report, tradedAt);
    if (repeated !== undefined) {
      const waiting = record.waiting.filter((one) => one !== repeated);
      const settlement = writeRecord({ ...record, waiting });
      const detail = `${report.quantity} shares traded, which the operator had settled before`;
      return { ...unchanged({ ...seen, settlement }, detail), tradeSequence: repeated.step };
    }
    return orderStates.isFinal(order.state) || isInList(record, tradedAt) ? held(seen, applied) : applied;
  }
  if (!record.isEnded) return applied;
  // The exchange gave up what had not traded, which is how a cancelled order with trades ends.
  const isGivenUp = report.kind === ReportKind.REJECTED && order.state === 'cancelled' && order.filledQuantity > 0n;
  if (isGivenUp) return unchanged(seen, 'the exchange gave up what had not traded');
  return applied.changed || applied.inconsistent ? held(seen, applied) : applied;
}

/** The waiting trade that a report repeats: the one with its quantity and price that is nearest in time, within the margin. */
function repeatedTrade(
  { waiting }: SettlementRecord,
  { quantity, priceKobo }: Report,
  tradedAt: number | undefined,
): WaitingTrade | undefined {
  let nearest: WaitingTrade | undefined;
  let leastMs = sameTradeMarginMs;
  for (const one of waiting) {
    if (one.quantity !== quantity || one.priceKobo !== priceKobo) continue;
    const differenceMs = differenceOf(one.at, tradedAt);
    if (differenceMs > leastMs || (differenceMs === leastMs && nearest !== undefined)) continue;
    nearest = one;
    leastMs = differenceMs;
  }
  return nearest;
}

/** A waiting trade of an earlier version has no instant: its report is known by quantity and price alone, so it comes last. */
function differenceOf(at: number | undefined, tradedAt: number | undefined): number {
  if (at === undefined) return sameTradeMarginMs;
  return tradedAt === undefined ? Number.POSITIVE_INFINITY : Math.abs(tradedAt - at);
}

/**
 * Whether a trade that repeats no waiting one may be part of one all the same, because it is not later than the operator's list: the
 * desk may have given two trades as one, or with another price. Where an instant is not known, it may be.
 */
function isInList({ waiting, listedUntil }: SettlementRecord, tradedAt: number | undefined): boolean {
  if (waiting.length === 0) return false;
  return listedUntil === undefined || tradedAt === undefined || tradedAt <= listedUntil;
}

/** A report that is inconsistent with what an operator settled. The settlement stays. */
function held<Row extends OrderFacts>(seen: Row, { inconsistent: isInconsistent, detail }: Applied<Row>): Applied<Row> {
  if (!isInconsistent) return inconsistent(seen, 'exchange', `${detail}; the operator had settled it`);
  return { row: seen, changed: false, inconsistent: true, detail };
}
