import { type Transaction, TransactionType } from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { lagosDay } from '../../../kit/clock.ts';
import { placeOfTransaction } from '../../trading/broker/records.ts';
import type { MoneyKind, MoneyMove, OurMoney } from './money-rules.ts';
import { isIn, type StatementPeriod } from './order-history.ts';
import { type BreakKindName, type Difference, nothing } from './rules.ts';

/** How far a booking's time may be from that of its report. It is how far the clocks may differ, too. */
export const bookingMarginMs = 600_000;

/** An account and the partner that has it. */
export interface OwnAccount {
  readonly account: string;
  readonly partnerId: string;
}

/** The allocation or withdrawal that a transaction names. */
export interface Named {
  readonly kind: MoneyKind;
  readonly id: string;
}

/** Returns the object that a transaction names; undefined: none. */
export function namedBy({ clientAllocationId, clientWithdrawalId }: Transaction): Named | undefined {
  if (clientAllocationId !== '') return { kind: 'allocation', id: clientAllocationId };
  return clientWithdrawalId === '' ? undefined : { kind: 'withdrawal', id: clientWithdrawalId };
}

/**
 * Finds neighbours that do not add up. Transactions come newest first. A pair belongs to the period in which the newer one was
 * booked, so that each pair is a break of one day.
 */
export function wrongSums(of: OwnAccount, transactions: readonly Transaction[], period: StatementPeriod): Difference[] {
  return transactions.flatMap((newer, at) => {
    const older = transactions[at + 1];
    if (older === undefined || !isIn(period, bookedAt(newer))) return [];
    const before = newer.balanceKobo - newer.amountKobo;
    if (before === older.balanceKobo) return [];
    const ours = `${before} kobo before ${newer.id}: ${newer.balanceKobo} after it, less its ${newer.amountKobo}`;
    const brokers = `${older.balanceKobo} kobo after ${older.id}: a difference of ${older.balanceKobo - before} kobo`;
    return [differs(of, 'transaction_sum', { ours, brokers, subject: newer.id })];
  });
}

/** The opening balance of a day, as the broker states it. */
export interface Opening {
  readonly openingKobo: bigint;
  /** The days that it can be of, YYYY-MM-DD: more than one if the broker does not say, and a day begins about now. */
  readonly days: readonly string[];
}

/** Compares an opening balance, with the amounts since, with the newest balance. Transactions come newest first. */
export function wrongOpening(
  of: OwnAccount,
  transactions: readonly Transaction[],
  { openingKobo, days }: Opening,
): Difference[] {
  const [newest] = transactions;
  if (newest === undefined) return [];
  const sums = days.map((day) =>
    transactions
      .filter((one) => lagosDay(bookedAt(one)) === day)
      .reduce((sum, { amountKobo }) => sum + amountKobo, openingKobo),
  );
  const [sum = openingKobo] = sums;
  if (sums.includes(newest.balanceKobo)) return [];
  const ours = `${sum} kobo: opening_kobo ${openingKobo}, and ${sum - openingKobo} by the amounts of ${days[0]}`;
  const difference = newest.balanceKobo - sum;
  const brokers = `${newest.balanceKobo} kobo after ${newest.id}: a difference of ${difference} kobo`;
  return [differs(of, 'transaction_sum', { ours, brokers, subject: 'opening' })];
}

/** The time in which transactions were read. */
export interface ReadWindow {
  readonly period: StatementPeriod;
  /** When they were read. */
  readonly until: number;
}

/**
 * Compares an object with the transactions of an account that name it. It must have moved as much as the gateway knows.
 * The broker may have booked a move some minutes before or after its report. So a move that is near either end of what was
 * read, or whose time is not known, may be among the transactions or not.
 */
export function compareTransactions(
  of: OwnAccount,
  { kind, id }: Named,
  ours: OurMoney | undefined,
  named: readonly Transaction[],
  { period, until }: ReadWindow,
): Difference[] {
  const isBooked = named.some((one) => isIn(period, bookedAt(one)));
  const base = { objectId: id, subject: kind };
  const owner = { account: of.account, partnerId: ours?.partnerId ?? of.partnerId };
  if (ours === undefined) {
    if (!isBooked) return [];
    return [differs(owner, 'transaction_extra', { ...base, ours: nothing, brokers: shown(named) })];
  }
  const isElsewhere = ours.account !== of.account;
  if (ours.isUnsettled || !(isBooked || (ours.isReported && !isElsewhere))) return [];
  const counted = named.filter((one) => isMove(one, ours.amountKobo));
  const moved = counted.reduce((sum, { amountKobo }) => sum + amountKobo, 0n);
  const certain = { from: period.from, to: until - bookingMarginMs };
  const isRight = possibleSums(ours.moves, certain).includes(moved);
  if (isRight && !(isElsewhere && counted.length > 0)) return [];
  const expected = ours.moves
    .filter(({ at }) => at !== null && isIn(certain, at))
    .reduce((sum, { kobo }) => sum + kobo, 0n);
  const sides = { ours: `${ours.state}: ${expected} kobo on ${ours.account}`, brokers: shown(counted) };
  return [differs(owner, counted.length === 0 ? 'transaction_missing' : 'transaction_terms', { ...base, ...sides })];
}

/** Reports that the transactions of an account could not be read. */
export function unreadable(of: OwnAccount, why: string): Difference {
  return differs(of, 'transactions_unreadable', { ours: 'its transactions', brokers: why });
}

/** The sums that moves may have: all that surely belong to a time, with or without each of the others. */
function possibleSums(moves: readonly MoneyMove[], certain: StatementPeriod): bigint[] {
  let sums = [0n];
  for (const { at, kobo } of moves) {
    const withIt = sums.map((sum) => sum + kobo);
    sums = at !== null && isIn(certain, at) ? withIt : sums.concat(withIt);
  }
  return sums;
}

const moveTypes: readonly TransactionType[] = [
  TransactionType.ALLOCATION,
  TransactionType.WITHDRAWAL,
  TransactionType.WITHDRAWAL_RETURN,
  TransactionType.ADJUSTMENT,
];

/** Whether a transaction moves an object's amount. Fees and taxes name it too, and so does the reversal of one. */
function isMove({ type, amountKobo }: Transaction, objectKobo: bigint): boolean {
  const isWhole = amountKobo === objectKobo || amountKobo === -objectKobo;
  return moveTypes.includes(type) || (type === TransactionType.REVERSAL && isWhole);
}

function shown(transactions: readonly Transaction[]): string {
  if (transactions.length === 0) return nothing;
  return transactions.map(({ id, amountKobo }) => `${amountKobo} kobo by ${id}`).join(', ');
}

function differs(
  { account, partnerId }: OwnAccount,
  kind: BreakKindName,
  more: Pick<Difference, 'ours' | 'brokers'> & Partial<Difference>,
): Difference {
  return { ...{ partnerId, objectId: '', account, symbol: '', isUnsettled: false, subject: '' }, kind, ...more };
}

function bookedAt(transaction: Transaction): number {
  return placeOfTransaction(transaction).bookedAtMs;
}
