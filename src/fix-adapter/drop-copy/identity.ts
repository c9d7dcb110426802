import { lagosDay } from '../../kit/clock.ts';
import { type Schedule, sessionStartAt } from '../session/schedule.ts';
import type { FixOrder } from '../store/table.ts';
import type { DropCopyTrade } from './table.ts';

/** An order of ours, as far as a row of the drop copy that does not name it can be held against it. */
export interface KnownOrder extends Pick<FixOrder, 'id' | 'exchangeOrderId' | 'side' | 'timeInForce' | 'receivedAt'> {
  /** The exchange's name of it. */
  readonly symbol: string;
  /** When the exchange last reported it, if it has ended since; undefined: it lives, or that was not stated. */
  readonly endedAt: number | undefined;
  /** The ExecIDs of its trades, and of their changes, that the order session brought. */
  readonly execIds: ReadonlySet<string>;
}

/** A row of the drop copy, as far as it says which order it is of. */
export type Copied = Pick<
  DropCopyTrade,
  'named' | 'exchangeOrderId' | 'kind' | 'execRefId' | 'symbol' | 'side' | 'tradedAt' | 'at'
>;

const sides = { buy: '1', sell: '2' } as const;

/**
 * The order that a row is of, by its ClOrdID and otherwise by its OrderID; undefined: none of ours. Exchanges use an OrderID again on
 * another day, so symbol and side, where they are stated, and the day must be the order's too. Of several orders it is the last one:
 * the exchange would not give a new order the OrderID of one that lives.
 * @param orders those that the row names, and those with its OrderID
 */
export function orderOf(row: Copied, orders: readonly KnownOrder[], schedule: Schedule): string | undefined {
  if (row.named !== '' && orders.some(({ id }) => id === row.named)) return row.named;
  const fitting = orders.filter((order) => isOf(row, order, schedule));
  return fitting.sort((one, other) => other.receivedAt - one.receivedAt)[0]?.id;
}

function isOf(row: Copied, order: KnownOrder, schedule: Schedule): boolean {
  if (row.exchangeOrderId === '' || row.exchangeOrderId !== order.exchangeOrderId) return false;
  if ((row.symbol || order.symbol) !== order.symbol) return false;
  if ((row.side || sides[order.side]) !== sides[order.side]) return false;
  if (isInLife(row.tradedAt ?? row.at, order, schedule)) return true;
  // A trade may be taken back or corrected on a later day, by a message without the trade's day.
  const isChange = row.kind !== 'trade' && row.tradedAt === null;
  return isChange && row.at >= order.receivedAt && order.execIds.has(row.execRefId);
}

/** Whether an order could trade on the day of an instant. */
function isInLife(at: number, { timeInForce, receivedAt, endedAt }: KnownOrder, schedule: Schedule): boolean {
  if (isSameDay(at, receivedAt, schedule)) return true;
  if (timeInForce !== 'gtc' || at < receivedAt) return false;
  return endedAt === undefined || at <= endedAt || isSameDay(at, endedAt, schedule);
}

/** Whether two instants are of one day in Lagos, or of one session, which may last over midnight. */
function isSameDay(one: number, other: number, schedule: Schedule): boolean {
  if (lagosDay(one) === lagosDay(other)) return true;
  const start = sessionStartAt(schedule, one);
  return start !== undefined && start === sessionStartAt(schedule, other);
}
