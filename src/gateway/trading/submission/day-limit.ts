import { toDayLimits } from '../../edge/auth/store.ts';
import type { StoredSum } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { type Statement, statement, toBigInt } from '../../store/statement.ts';
import { day, defineTable, text, whole } from '../../store/table.ts';
import { type CountedName, checkDayLimit } from './rules.ts';
import type { Submission } from './table.ts';

/** The sums that are counted by Lagos day. */
export type UsageKind = 'orders' | 'allocations';

/** The sums that count against a daily limit, by the Lagos day. */
export const usageDays = defineTable({
  name: 'usage_days',
  columns: { partnerId: text(24), day: day(), kind: text<UsageKind>(16), usedKobo: whole() },
  primary: ['partnerId', 'day', 'kind'],
});

/** The part of a daily limit that a partner has used, in kobo. */
export function usage(partnerId: string, day: string, kind: UsageKind): StoredSum {
  const row = { partnerId, day, kind };
  const { sql, values } = usageDays.where(row);
  const used = `(SELECT used_kobo FROM usage_days WHERE ${sql})`;
  return {
    name: `${kind} used on ${day}`,
    read: usageDays.find(row),
    value: ([read]) => (read === undefined ? 0n : toBigInt(read.used_kobo)),
    guard: (value) => statement(`COALESCE(${used}, 0) = ?`, ...values, value),
    add: (amount) => usageDays.addTo({ ...row, usedKobo: amount }, 'usedKobo'),
    save: () => [],
  };
}

/** Reads what a partner has used of every daily limit. */
export function readDay(partnerId: string, day: string): Statement {
  return usageDays.find({ partnerId, day });
}

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
