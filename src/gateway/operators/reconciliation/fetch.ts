import { timestampMs } from '@bufbuild/protobuf/wkt';
import { AllocationOutcome } from '../../../gen/marina/broker/v1/allocations_pb.ts';
import { Side } from '../../../gen/marina/broker/v1/orders_pb.ts';
import {
  type GetStatementResponse,
  StatementOrderState,
  StatementSection,
  StatementWithdrawalState,
} from '../../../gen/marina/broker/v1/statements_pb.ts';
import { WithdrawalDestination } from '../../../gen/marina/broker/v1/withdrawals_pb.ts';
import { daysBefore } from '../../../kit/clock.ts';
import type { Statement } from '../../store/statement.ts';
import type { Broker } from '../../trading/broker/broker.ts';
import { StatementError, type StatementPage } from '../../trading/broker/statements.ts';
import type { RunProgress } from './progress.ts';
import { note } from './store.ts';
import { type ComparedDay, newItem, reconciliationItems, type StoredItem } from './table.ts';

/**
 * What is read of a statement; at last what the day before ended with. A position names a part by its index, which is the same
 * in an earlier version. So the withdrawals are the last of the list, though they are read before those of the day before.
 */
const parts = [
  { section: StatementSection.ORDERS, isBefore: false },
  { section: StatementSection.TRADES, isBefore: false },
  { section: StatementSection.ALLOCATIONS, isBefore: false },
  { section: StatementSection.POSITIONS, isBefore: false },
  { section: StatementSection.CASH, isBefore: false },
  { section: StatementSection.POSITIONS, isBefore: true },
  { section: StatementSection.CASH, isBefore: true },
  { section: StatementSection.WITHDRAWALS, isBefore: false },
] as const;
const withdrawalsPart = parts.length - 1;
/** The part that follows each. */
const partAfter = [1, 2, 3, 4, withdrawalsPart, 6, undefined, 5] as const;

/** How long a page may take. */
const pageTimeoutMs = 20_000;

/** How far the statement is read. */
interface Position {
  readonly part: number;
  readonly cursor: string;
  readonly key: string;
}

/** The broker, as far as a statement is read from it. */
export type StatementsBroker = Pick<Broker, 'statements'> & { readonly orders: Pick<Broker['orders'], 'capabilities'> };

const start: Position = { part: 0, cursor: '', key: '' };

/** The broker has not closed the day. */
export class IncompleteDayError extends Error {
  override readonly name = 'IncompleteDayError';
}

/**
 * Reads the statement of the run's day into the database, page by page. Throws a `StatementError` or an `IncompleteDayError`.
 * Answers whether the statement of the day before is there, from which positions and money follow.
 */
export async function fetchStatement(
  progress: RunProgress,
  broker: StatementsBroker,
  mostRecords: number,
): Promise<boolean | undefined> {
  let position: Position | undefined = readPosition(progress.run.position);
  while (!progress.isInterrupted) {
    if (position === undefined) return true;
    const part = parts[position.part];
    if (part === undefined) return true;
    const isOfWithdrawals = position.part === withdrawalsPart;
    if (isOfWithdrawals && position.cursor === '' && !(await takesWithdrawals(broker))) {
      position = startOf(partAfter[withdrawalsPart]);
      continue;
    }
    const page = await readPage(progress, broker, part, position);
    if (page === undefined) return false;
    const { answer, fromMs, toMs, lastKey } = page;
    const items = itemsOf(answer, progress.run, part.isBefore);
    // A page without records counts too, so that a statement of empty pages ends.
    const records = progress.run.records + BigInt(Math.max(1, items.length));
    if (records > mostRecords) throw new StatementError('nonsense', `it has more than ${mostRecords} records`);
    const isLast = answer.nextCursor === '';
    const next: Position | undefined = isLast
      ? startOf(partAfter[position.part])
      : { part: position.part, cursor: answer.nextCursor, key: lastKey };
    const period = part.isBefore ? {} : { periodFrom: fromMs, periodTo: toMs };
    const notes = isOfWithdrawals && isLast ? [note(progress.run, 'withdrawals_read')] : [];
    await progress.save({ ...period, records, position: writePosition(next) }, [...insert(items), ...notes]);
    position = next;
  }
  return undefined;
}

function startOf(part: number | undefined): Position | undefined {
  return part === undefined ? undefined : { part, cursor: '', key: '' };
}

/** A position of the withdrawals. An earlier version would take it for the end. It cannot read it, so its try fails instead. */
const ofWithdrawals = 'withdrawals ';

function writePosition(position: Position | undefined): string {
  // The position after the last part, as an earlier version writes it.
  const text = JSON.stringify(position ?? startOf(withdrawalsPart));
  return position?.part === withdrawalsPart ? `${ofWithdrawals}${text}` : text;
}

function readPosition(text: string): Position | undefined {
  if (text === '') return start;
  if (text.startsWith(ofWithdrawals)) return JSON.parse(text.slice(ofWithdrawals.length)) as Position;
  const position = JSON.parse(text) as Position;
  return position.part < withdrawalsPart ? position : undefined;
}

/** Whether the broker takes withdrawals, so that its statement has them. */
async function takesWithdrawals({ orders }: StatementsBroker): Promise<boolean> {
  try {
    const { withdrawalDestinations } = await orders.capabilities({ timeoutMs: pageTimeoutMs });
    return withdrawalDestinations.length > 0;
  } catch (cause) {
    throw new StatementError('unavailable', 'the broker did not say what it can do', { cause });
  }
}

/** Reads a page. Undefined if it is of the day before, which the broker has no complete statement of. */
async function readPage(
  { run }: RunProgress,
  { statements }: StatementsBroker,
  { section, isBefore }: (typeof parts)[number],
  { cursor, key }: Position,
): Promise<StatementPage | undefined> {
  const day = isBefore ? daysBefore(run.day, 1) : run.day;
  try {
    const page = await statements.page({ day, section, cursor, afterKey: key }, pageTimeoutMs);
    if (!page.answer.isComplete && isBefore) return undefined;
    if (!page.answer.isComplete) throw new IncompleteDayError('the broker has not closed the day');
    const isFirst = run.periodTo === null || isBefore;
    if (!isFirst && (page.fromMs !== run.periodFrom || page.toMs !== run.periodTo)) {
      throw new StatementError('nonsense', 'the statement makes no sense: its period changed while it was read');
    }
    return page;
  } catch (error) {
    if (isBefore && error instanceof StatementError && error.problem === 'no_statement') return undefined;
    throw error;
  }
}

function insert(items: readonly StoredItem[]): Statement[] {
  return items.length === 0 ? [] : [reconciliationItems.insert(...items)];
}

const orderStates: Readonly<Record<number, string>> = {
  [StatementOrderState.OPEN]: 'open',
  [StatementOrderState.FILLED]: 'filled',
  [StatementOrderState.CANCELLED]: 'cancelled',
  [StatementOrderState.EXPIRED]: 'expired',
  [StatementOrderState.REJECTED]: 'rejected',
};
const outcomes: Readonly<Record<number, string>> = {
  [AllocationOutcome.BOOKED]: 'booked',
  [AllocationOutcome.REJECTED]: 'rejected',
};

const withdrawalStates: Readonly<Record<number, string>> = {
  [StatementWithdrawalState.ACCEPTED]: 'accepted',
  [StatementWithdrawalState.PAID]: 'paid',
  [StatementWithdrawalState.REJECTED]: 'rejected',
  [StatementWithdrawalState.RETURNED]: 'returned',
};
const destinations: Readonly<Record<number, string>> = {
  [WithdrawalDestination.WALLET]: 'wallet',
  [WithdrawalDestination.BANK_ACCOUNT]: 'bank_account',
};

/** The records of a page as they are kept. A value of a later version of the broker has its number. */
function itemsOf(answer: GetStatementResponse, of: ComparedDay, isBefore: boolean): StoredItem[] {
  const none = newItem(of);
  return [
    ...answer.orders.map(({ clientOrderId: objectId, account, symbol, quantity, ...order }) => ({
      ...{ ...none, section: 'order' as const, objectId, account, symbol, quantity },
      side: sideOf(order.side),
      state: orderStates[order.state] ?? String(order.state),
      otherKobo: order.filledQuantity,
      reference: order.exchangeOrderId,
    })),
    ...answer.trades.map(({ clientOrderId: objectId, account, symbol, quantity, ...trade }) => ({
      ...{ ...none, section: 'trade' as const, objectId, account, symbol, quantity },
      itemId: `${account} ${trade.id}`,
      side: sideOf(trade.side),
      amountKobo: trade.cashChangeKobo ?? null,
      otherKobo: trade.priceKobo,
      at: trade.executedAt === undefined ? null : timestampMs(trade.executedAt),
    })),
    ...answer.allocations.map(({ clientAllocationId: objectId, account, amountKobo, ...allocation }) => ({
      ...{ ...none, section: 'allocation' as const, objectId, account, amountKobo },
      state: outcomes[allocation.outcome] ?? String(allocation.outcome),
      reference: allocation.brokerReference,
    })),
    ...answer.withdrawals.map(({ clientWithdrawalId: objectId, account, amountKobo, ...withdrawal }) => ({
      ...{ ...none, section: 'withdrawal' as const, objectId, account, amountKobo },
      itemId: destinations[withdrawal.destination] ?? String(withdrawal.destination),
      state: withdrawalStates[withdrawal.state] ?? String(withdrawal.state),
      reference: withdrawal.brokerReference,
    })),
    ...answer.positions.map(({ account, symbol, quantity }) => ({
      ...{ ...none, account, symbol, quantity },
      section: isBefore ? ('position_before' as const) : ('position' as const),
      itemId: `${account} ${symbol}`,
    })),
    ...answer.cash.map(({ account, balanceKobo, otherChangesKobo = null }) => ({
      ...{ ...none, account, itemId: account, amountKobo: balanceKobo, otherKobo: otherChangesKobo },
      section: isBefore ? ('cash_before' as const) : ('cash' as const),
    })),
  ];
}

function sideOf(side: Side): '' | 'buy' | 'sell' {
  if (side === Side.BUY) return 'buy';
  return side === Side.SELL ? 'sell' : '';
}
