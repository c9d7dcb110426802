import { type Statement, statement } from '../db/statement.ts';

/** Finds an account of a partner by its code. No row: the partner cannot trade for it. */
export function findAccount(partnerId: string, account: string): Statement {
  return statement('SELECT account FROM accounts WHERE partner_id = ? AND account = ?', partnerId, account);
}

/** Makes an account one the partner can trade for. An account belongs to one partner. */
export function insertAccount(partnerId: string, account: string, createdAt: number): Statement {
  return statement(
    'INSERT INTO accounts (partner_id, account, created_at) VALUES (?, ?, ?)',
    partnerId,
    account,
    new Date(createdAt),
  );
}
