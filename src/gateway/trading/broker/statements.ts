import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { AllocationOutcome } from '../../../gen/marina/broker/v1/allocations_pb.ts';
import { Side } from '../../../gen/marina/broker/v1/orders_pb.ts';
import {
  type GetStatementResponse,
  type StatementAllocation,
  type StatementOrder,
  StatementOrderState,
  StatementSection,
  type StatementTrade,
  type StatementWithdrawal,
  StatementWithdrawalState,
} from '../../../gen/marina/broker/v1/statements_pb.ts';
import { WithdrawalDestination } from '../../../gen/marina/broker/v1/withdrawals_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../../kit/clock.ts';
import { forms } from './rules.ts';

/** Why there is no page: the broker gives no statements, has none of the day, could not be asked, or broke its promises. */
export type StatementProblem = 'not_offered' | 'no_statement' | 'unavailable' | 'nonsense';

/** A statement that could not be read. */
export class StatementError extends Error {
  override readonly name = 'StatementError';

  constructor(
    readonly problem: StatementProblem,
    message: string,
    options: { readonly cause?: unknown } = {},
  ) {
    super(message, options);
  }
}

/** Which page to read. */
export interface StatementPlace {
  /** The Lagos day, YYYY-MM-DD. */
  readonly day: string;
  readonly section: StatementSection;
  /** Empty: the first page. */
  readonly cursor: string;
  /** The key of the last record before this page; empty: there is none. */
  readonly afterKey: string;
}

/** A page that makes sense. */
export interface StatementPage {
  readonly answer: GetStatementResponse;
  readonly fromMs: number;
  readonly toMs: number;
  /** The key of its last record, or of the one before. */
  readonly lastKey: string;
}

/** The most records of a page. */
export const statementPageSize = 500;

const longestCursor = 200;
const dayMs = 86_400_000;
/** Nothing in a statement is older. */
const firstTime = Date.parse('2000-01-01T00:00:00Z');
const id = /^[\x21-\x7e]{1,64}$/;
const idOrNone = /^[\x21-\x7e]{0,64}$/;
const accountCode = /^[A-Z0-9-]{1,64}$/;
const cursorText = /^[\x20-\x7e]*$/;

/** What is wrong with a page; undefined: nothing. */
export function wrongIn(answer: GetStatementResponse, place: StatementPlace): string | undefined {
  const { day, nextCursor, from, to } = answer;
  if (day !== place.day) return 'it is of another day';
  if (from === undefined || to === undefined) return 'it does not state its period';
  if (!isPeriod(day, timeOf(from), timeOf(to))) return 'its period is not that of the day';
  if (nextCursor.length > longestCursor || !cursorText.test(nextCursor)) return 'its cursor is not one';
  if (nextCursor !== '' && nextCursor === place.cursor) return 'its cursor leads to the same page again';
  const keys = keysOf(answer, place.section);
  if (keys.length > statementPageSize) return 'a page has too many records';
  const { orders, trades, allocations, positions, cash, withdrawals } = answer;
  const lists = [orders, trades, allocations, positions, cash, withdrawals];
  const all = lists.reduce((sum, { length }) => sum + length, 0);
  if (all > keys.length) return 'a page has records of another section';
  let before = place.afterKey;
  for (const key of keys) {
    if (key <= before) return 'records are not in their order';
    before = key;
  }
  return recordsAreWrong(answer, timeOf(to)) ? 'a record is impossible' : undefined;
}

/** The keys of a section's records, which sort as the section does. */
export function keysOf(answer: GetStatementResponse, section: StatementSection): string[] {
  switch (section) {
    case StatementSection.ORDERS:
      return answer.orders.map(({ clientOrderId }) => clientOrderId);
    case StatementSection.TRADES:
      return answer.trades.map((trade) => `${trade.account} ${trade.id}`);
    case StatementSection.ALLOCATIONS:
      return answer.allocations.map(({ clientAllocationId }) => clientAllocationId);
    case StatementSection.POSITIONS:
      return answer.positions.map(({ account, symbol }) => `${account} ${symbol}`);
    case StatementSection.CASH:
      return answer.cash.map(({ account }) => account);
    case StatementSection.WITHDRAWALS:
      return answer.withdrawals.map(({ clientWithdrawalId }) => clientWithdrawalId);
    default:
      return [];
  }
}

/** Whether a period can be that of a day: it ends with the day or within it, and began at most 24 hours before the day. */
function isPeriod(day: string, from: number, to: number): boolean {
  const end = nextLagosMidnight(Date.parse(`${day}T00:00:00Z`));
  const start = end - dayMs;
  return from >= start - dayMs && from <= start && to > start && to <= end && lagosDay(to - 1) === day;
}

function recordsAreWrong(
  { orders, trades, allocations, positions, cash, withdrawals }: GetStatementResponse,
  periodTo: number,
): boolean {
  return !(
    orders.every(isOrder) &&
    trades.every((trade) => isTrade(trade) && trade.executedAt !== undefined && isBefore(trade.executedAt, periodTo)) &&
    allocations.every((one) => isAllocation(one) && (one.at === undefined || isBefore(one.at, periodTo))) &&
    positions.every(({ account, symbol }) => accountCode.test(account) && forms.symbol.test(symbol)) &&
    cash.every(({ account }) => accountCode.test(account)) &&
    withdrawals.every((one) => isWithdrawal(one) && (one.at === undefined || isBefore(one.at, periodTo)))
  );
}

function isOrder(order: StatementOrder): boolean {
  return (
    id.test(order.clientOrderId) &&
    idOrNone.test(order.exchangeOrderId) &&
    accountCode.test(order.account) &&
    forms.symbol.test(order.symbol) &&
    order.quantity > 0n &&
    order.filledQuantity >= 0n &&
    // A later version of the broker may have more sides.
    order.side !== Side.UNSPECIFIED &&
    order.state !== StatementOrderState.UNSPECIFIED
  );
}

function isTrade(trade: StatementTrade): boolean {
  return (
    forms.recordId.test(trade.id) &&
    idOrNone.test(trade.clientOrderId) &&
    accountCode.test(trade.account) &&
    forms.symbol.test(trade.symbol) &&
    (trade.side === Side.BUY || trade.side === Side.SELL) &&
    trade.quantity > 0n &&
    trade.priceKobo > 0n
  );
}

function isAllocation(allocation: StatementAllocation): boolean {
  return (
    id.test(allocation.clientAllocationId) &&
    accountCode.test(allocation.account) &&
    allocation.amountKobo > 0n &&
    allocation.outcome !== AllocationOutcome.UNSPECIFIED &&
    idOrNone.test(allocation.brokerReference)
  );
}

function isWithdrawal(withdrawal: StatementWithdrawal): boolean {
  return (
    id.test(withdrawal.clientWithdrawalId) &&
    accountCode.test(withdrawal.account) &&
    withdrawal.amountKobo > 0n &&
    // A later version of the broker may have more destinations and states.
    withdrawal.destination !== WithdrawalDestination.UNSPECIFIED &&
    withdrawal.state !== StatementWithdrawalState.UNSPECIFIED &&
    idOrNone.test(withdrawal.brokerReference)
  );
}

/** Whether a record's time can be that of something until the end of a period. One before the period is a break, if it is wrong. */
function isBefore(time: Timestamp, periodTo: number): boolean {
  return timestampMs(time) >= firstTime && timestampMs(time) < periodTo;
}

/** The time in milliseconds; 0: not stated. */
export function timeOf(time: GetStatementResponse['from']): number {
  return time === undefined ? 0 : timestampMs(time);
}
