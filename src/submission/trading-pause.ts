import type { Fact } from '../db/facts.ts';
import { statement } from '../db/statement.ts';

const row = 'environment WHERE id = 1';

/**
 * Whether trading is paused, inside a partner's transaction. The shared lock makes the transaction and `PauseTrading` wait
 * for each other: every commit after that call's answer was decided with the pause in force. The partner's row is
 * always locked before this row, and `PauseTrading` locks only this row, so they cannot deadlock. A database without the
 * row counts as paused.
 */
export const tradingPause: Fact<boolean> = {
  reads: [statement(`SELECT trading_paused_at FROM ${row} LOCK IN SHARE MODE`)],
  value: ([rows]) => rows?.[0]?.trading_paused_at !== null,
  expected: {
    value: false,
    // NOWAIT on MariaDB only: MySQL reads it as a comment.
    locks: [statement(`SELECT id FROM ${row} LOCK IN SHARE MODE /*M!100300 NOWAIT */`)],
    guards: [statement(`(SELECT trading_paused_at IS NULL FROM ${row})`)],
  },
};

/** Why nothing was sent, if a pause began between the store and the send. */
export const pausedBeforeSend = {
  outcome: 'never-left',
  evidence: 'trading was paused before it was sent',
  reason: 'Trading was paused before it was sent: it never left the gateway.',
} as const;
