import { type Statement, statement } from '../../../store/statement.ts';
import { shownWithdrawal, withdrawals } from '../../../trading/withdrawals/table.ts';

const held = 'FROM withdrawals FORCE INDEX (withdrawals_held_until)';

/** Finds the withdrawals that wait for their release, those first whose time is over first. */
export function findHeld(most: number): Statement {
  return statement(
    `SELECT partner_id, held_until, ${shownWithdrawal.list} ${held} WHERE held_until IS NOT NULL
      ORDER BY held_until, id LIMIT ${most}`,
  );
}

/** Counts those that wait, at most so many, and finds since when the one waits whose time is over first. */
export function countHeld(most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count, MIN(created_at) AS oldest FROM (SELECT created_at ${held} WHERE held_until IS NOT NULL
      ORDER BY held_until LIMIT ${most}) AS waiting`,
  );
}

export const heldKey = withdrawals.only('partnerId', 'id');

/** Finds those whose time is over. Some partners are left out. `now` is business time. */
export function findOverdueHeld(now: number, without: readonly string[], most: number): Statement {
  return statement(
    `SELECT ${heldKey.list} ${held} WHERE held_until <= ? AND partner_id NOT IN (?)
      ORDER BY held_until, id LIMIT ${most}`,
    ...[new Date(now), ['', ...without]],
  );
}
