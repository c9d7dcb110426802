import { type Statement, statement } from '../../store/statement.ts';
import { savePosition } from '../../trading/submission/positions.ts';
import type { CheckedEntry, LedgerHead } from '../../trading/wallet/rules.ts';

// Two rows of `positions` for each partner. Without the first a ledger is checked from its first entry.
const checkName = 'ledger-check ';
const recheckName = 'ledger-recheck ';

/** The last entry that a check found right with all before it, of the partner in `p`; in a statement. */
export const checkedPosition = `(SELECT c.position FROM positions c WHERE c.name = CONCAT('${checkName}', p.id))`;

const ledgersAtOnce = 100;

/** A page of ledgers in the order of the partners' ids, each with the positions of its check in one consistent read. */
export function listChecks(afterPartnerId: string): Statement {
  return statement(
    `SELECT p.id, w.last_sequence, w.last_hash, w.available_kobo, w.reserved_kobo, w.posted_kobo, w.seal, ${checkedPosition} AS checked,
      (SELECT r.position FROM positions r WHERE r.name = CONCAT('${recheckName}', p.id)) AS rechecked,
      UNIX_TIMESTAMP(NOW(3)) * 1000 AS now_ms
      FROM partners p FORCE INDEX (PRIMARY) LEFT JOIN wallets w ON w.partner_id = p.id
      WHERE p.id > ? ORDER BY p.id LIMIT ${ledgersAtOnce}`,
    afterPartnerId,
  );
}

/** Where the repeated check of a whole ledger is. */
export interface Recheck {
  /** The last entry that it found right. */
  readonly after: bigint;
  /** When it ended, by the database's clock, in milliseconds; 0 while one is under way or has stopped at a fault. */
  readonly endedAt: number;
}

/** Reads the position of a check, whose hash fits in 43 letters. */
export function readChecked(position: unknown): CheckedEntry | undefined {
  if (typeof position !== 'string') return undefined;
  const [sequence = '', hash = ''] = position.split(' ');
  return { sequence: BigInt(sequence), hash: Buffer.from(hash, 'base64url') };
}

export function readRecheck(position: unknown): Recheck {
  if (typeof position !== 'string') return { after: 0n, endedAt: 0 };
  const [after = '', endedAt = ''] = position.split(' ');
  return { after: BigInt(after), endedAt: Number(endedAt) };
}

export function saveChecked(
  partnerId: string,
  { lastSequence, lastHash }: Pick<LedgerHead, 'lastSequence' | 'lastHash'>,
): Statement {
  return savePosition(`${checkName}${partnerId}`, `${lastSequence} ${lastHash.toString('base64url')}`);
}

export function saveRecheck(partnerId: string, { after, endedAt }: Recheck): Statement {
  return savePosition(`${recheckName}${partnerId}`, `${after} ${Math.floor(endedAt)}`);
}
