import { toDayLimits } from '../../edge/auth/store.ts';
import type { StoredSum } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { type CountedName, checkDayLimit } from './rules.ts';
import { type Submission, type UsageKind, usage } from './table.ts';

/** The daily limit that a kind's objects count against, on the Lagos day of their creation. Amounts in kobo. */
export interface DayLimit<Row extends Submission> {
  readonly usage: UsageKind;
  /** As sentences for partners name it. */
  readonly name: CountedName;
  /** The field of a partner's limits that has it. */
  readonly limit: 'ordersKoboPerDay' | 'allocationsKoboPerDay';
  /** The amount that an object counts in its present state. */
  countedKobo(row: Row): bigint;
}

/** The sum that a partner has used of the limit of an object's day. */
export function usedOf<Row extends Submission>({ usage: kind }: DayLimit<Row>, row: Row): StoredSum {
  return usage(row.partnerId, row.countedDay ?? '', kind);
}

/** Refuses a new object that would go above its partner's limit. */
export function checkLimit<Row extends Submission>(of: DayLimit<Row>, row: Row, partner: PartnerTransaction): void {
  const limit = toDayLimits(partner.row)[of.limit];
  checkDayLimit(of.name, limit, partner.get(usedOf(of, row)), of.countedKobo(row), row.createdAt);
}

/** Counts a new object, or what a change makes of one. A kind without a limit counts nothing. */
export function count<Row extends Submission>(
  limit: DayLimit<Row> | undefined,
  before: Row | undefined,
  after: Row,
  partner: PartnerTransaction,
): void {
  if (limit === undefined) return;
  const countedBefore = before === undefined ? 0n : limit.countedKobo(before);
  partner.add(usedOf(limit, after), limit.countedKobo(after) - countedBefore);
}
