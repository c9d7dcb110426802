import type { LockedPartner } from '../db/locked-partner.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';

/** What is counted by Lagos day. */
export type UsageKind = 'orders' | 'allocations';

/** Reads what a partner has used of a daily limit. */
export function readUsage(partnerId: string, day: string, kind: UsageKind): Statement {
  return statement(
    'SELECT used_kobo FROM usage_days WHERE partner_id = ? AND day = ? AND kind = ?',
    partnerId,
    day,
    kind,
  );
}

/** Reads what a partner has used of every daily limit. */
export function readDay(partnerId: string, day: string): Statement {
  return statement('SELECT kind, used_kobo FROM usage_days WHERE partner_id = ? AND day = ?', partnerId, day);
}

/** What is used of a day: what was read, and what work before ours in the same transaction added. */
export function toUsedKobo(
  partner: LockedPartner,
  day: string,
  kind: UsageKind,
  rows: readonly SqlRow[] | undefined,
): bigint {
  const row = rows?.[0];
  return (row === undefined ? 0n : toBigInt(row.used_kobo)) + partner.usageAdded(kind, day);
}
