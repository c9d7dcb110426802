import { type Report, ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { type Applied, inconsistent, unchanged } from '../../submission/rules.ts';
import { applyReport as applyOrdinaryReport, type OrderFacts, orderStates } from '../rules.ts';

/** A trade that an operator entered, and that the exchange may still report. */
export interface WaitingTrade {
  /** The step of the history that has it. */
  readonly step: number;
  readonly quantity: bigint;
  readonly priceKobo: bigint;
}

/** What an order's settlement says to later reports. */
export interface SettlementRecord {
  /** The settlement ended the order, so that no report changes it. */
  readonly isEnded: boolean;
  readonly waiting: readonly WaitingTrade[];
}

/** Reads the column of an order; null: it was never settled, or nothing of it matters to later reports. */
export function readRecord(text: string | null): SettlementRecord {
  if (text === null) return { isEnded: false, waiting: [] };
  const { ended, waiting } = JSON.parse(text) as { ended: boolean; waiting: [number, string, string][] };
  return {
    isEnded: ended,
    waiting: waiting.map(([step, quantity, priceKobo]) => ({
      step,
      quantity: BigInt(quantity),
      priceKobo: BigInt(priceKobo),
    })),
  };
}

export function writeRecord({ isEnded, waiting }: SettlementRecord): string | null {
  if (!isEnded && waiting.length === 0) return null;
  const trades = waiting.map(({ step, quantity, priceKobo }) => [step, `${quantity}`, `${priceKobo}`]);
  return JSON.stringify({ ended: isEnded, waiting: trades });
}

/**
 * Applies one report of the exchange to an order that may have been settled by an operator. A report of a trade that was entered
 * by hand counts nothing a second time. Any other report that would change what the settlement ended is inconsistent with it.
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
    const { quantity, priceKobo } = report;
    const repeated = record.waiting.find((one) => one.quantity === quantity && one.priceKobo === priceKobo);
    if (repeated !== undefined) {
      const waiting = record.waiting.filter((one) => one !== repeated);
      const settlement = writeRecord({ ...record, waiting });
      const detail = `${quantity} shares traded, which the operator had settled before`;
      return { ...unchanged({ ...seen, settlement }, detail), tradeSequence: repeated.step };
    }
    return orderStates.isFinal(order.state) ? held(seen, applied) : applied;
  }
  if (!record.isEnded) return applied;
  // The exchange gave up what had not traded, which is how a cancelled order with trades ends.
  const isGivenUp = report.kind === ReportKind.REJECTED && order.state === 'cancelled' && order.filledQuantity > 0n;
  if (isGivenUp) return unchanged(seen, 'the exchange gave up what had not traded');
  return applied.changed || applied.inconsistent ? held(seen, applied) : applied;
}

/** A report that is inconsistent with what an operator settled. The settlement stays. */
function held<Row extends OrderFacts>(seen: Row, { inconsistent: isInconsistent, detail }: Applied<Row>): Applied<Row> {
  if (!isInconsistent) return inconsistent(seen, 'exchange', `${detail}; the operator had settled it`);
  return { row: seen, changed: false, inconsistent: true, detail };
}
