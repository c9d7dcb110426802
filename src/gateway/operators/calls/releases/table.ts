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

export const heldKey = withdrawals.only('partnerId', 'id');

/** Finds those whose time is over. `now` is business time. */
export function findOverdueHeld(now: number, most: number): Statement {
  return statement(
    `SELECT ${heldKey.list} ${held} WHERE held_until <= ? ORDER BY held_until, id LIMIT ${most}`,
    new Date(now),
  );
}
