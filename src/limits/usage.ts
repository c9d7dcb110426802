import type { Counter } from '../db/facts.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import { day, defineTable, text, whole } from '../db/table.ts';

/** What is counted by Lagos day. */
export type UsageKind = 'orders' | 'allocations';

/** What counts against a daily limit, by the Lagos day it counts for. */
export const usageDays = defineTable({
  name: 'usage_days',
  columns: { partnerId: text(24), day: day(), kind: text<UsageKind>(16), usedKobo: whole() },
  primary: ['partnerId', 'day', 'kind'],
});

/** What a partner has used of a daily limit, in kobo. */
export function usage(partnerId: string, day: string, kind: UsageKind): Counter {
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
