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

export function toUsedKobo(rows: readonly SqlRow[] | undefined): bigint {
  const row = rows?.[0];
  return row === undefined ? 0n : toBigInt(row.used_kobo);
}

/** Adds to what was used on a day; a negative amount gives back. The partner's lock must be held. */
export function addUsage(partnerId: string, day: string, kind: UsageKind, kobo: bigint): Statement[] {
  if (kobo === 0n) return [];
  return [
    statement(
      `INSERT INTO usage_days (partner_id, day, kind, used_kobo) VALUES (?, ?, ?, ?)
        ON DUPLICATE KEY UPDATE used_kobo = used_kobo + VALUES(used_kobo)`,
      partnerId,
      day,
      kind,
      kobo,
    ),
  ];
}
