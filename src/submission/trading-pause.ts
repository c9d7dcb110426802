import { outOfRange, type SqlRow, type Statement, statement } from '../db/statement.ts';

/**
 * Reads, inside a partner's transaction, whether trading is paused. The shared lock makes the transaction and
 * `PauseTrading` wait for each other: what commits after that call has answered was decided with the pause in force. The
 * partner's row is always locked before this row, and `PauseTrading` locks this row alone, so they cannot deadlock.
 */
export const readTradingPause: Statement = statement(
  'SELECT trading_paused_at FROM environment WHERE id = 1 LOCK IN SHARE MODE',
);

/**
 * Fails the transaction while trading is paused, for work that reads nothing. It takes the same lock, and does not wait for
 * it where the server can do without (for MySQL the comment is one).
 */
export const refuseWhilePaused: Statement = statement(
  `SELECT IF(trading_paused_at IS NULL, 1, ${outOfRange}) FROM environment WHERE id = 1
    LOCK IN SHARE MODE /*M!100300 NOWAIT */`,
);

/** What `readTradingPause` read. A database without the row is not one to trade on. */
export function isTradingPaused(rows: readonly SqlRow[] | undefined): boolean {
  return rows?.[0]?.trading_paused_at !== null;
}

/** Why nothing was sent, where a pause began between the store and the send. */
export const pausedBeforeSend = {
  outcome: 'never-left',
  evidence: 'trading was paused before it was sent',
  reason: 'Trading was paused before it was sent: it never left the gateway.',
} as const;
