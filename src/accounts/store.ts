import { type Statement, statement } from '../db/statement.ts';
import { defineTable, instant, optional, type RowOf, type ShownBy, text } from '../db/table.ts';

/** The accounts a partner can trade for. An account belongs to one partner. */
export const accounts = defineTable({
  name: 'accounts',
  columns: { partnerId: text(24), account: text(64), applicationId: optional(text(24)), createdAt: instant() },
  primary: ['partnerId', 'account'],
  unique: { accounts_account: ['account'] },
});

/** An account as partners see it. */
const shownAccount = accounts.only('account', 'applicationId', 'createdAt');
export type StoredAccount = RowOf<typeof accounts>;
export type ShownAccount = ShownBy<typeof shownAccount>;

/** The place of an account in the list: newest first, of the same time by code. */
export type AccountPlace = Pick<ShownAccount, 'account' | 'createdAt'>;

/** Finds an account of a partner by its code. No row: the partner cannot trade for it. */
export function findAccount(partnerId: string, account: string): Statement {
  return statement('SELECT account FROM accounts WHERE partner_id = ? AND account = ?', partnerId, account);
}

/** Makes an account one the partner can trade for. An account belongs to one partner. */
export function insertAccount(partnerId: string, account: string, createdAt: number): Statement {
  return accounts.insert({ partnerId, account, applicationId: null, createdAt });
}

/**
 * Makes an account that an application opened one the partner can trade for. One that was linked before is that
 * application's from now on; another partner's stays as it is.
 */
export function openAccount(opened: {
  readonly partnerId: string;
  readonly account: string;
  readonly applicationId: string;
  readonly createdAt: number;
}): Statement {
  return statement(
    `INSERT INTO accounts (partner_id, account, application_id, created_at) VALUES (?, ?, ?, ?)
      ON DUPLICATE KEY UPDATE application_id = IF(partner_id = VALUES(partner_id), VALUES(application_id), application_id)`,
    opened.partnerId,
    opened.account,
    opened.applicationId,
    new Date(opened.createdAt),
  );
}

/** Lists a partner's accounts, newest first, from a place on. */
export function listAccounts(partnerId: string, after: AccountPlace | undefined, most: number): Statement {
  const createdAt = after && new Date(after.createdAt);
  return statement(
    `SELECT account, application_id, created_at FROM accounts
      WHERE partner_id = ? ${after === undefined ? '' : 'AND (created_at < ? OR (created_at = ? AND account > ?))'}
      ORDER BY created_at DESC, account LIMIT ${most}`,
    partnerId,
    ...(after === undefined || createdAt === undefined ? [] : [createdAt, createdAt, after.account]),
  );
}

export const toShownAccount = shownAccount.read;

/** A page of a partner's accounts in the order of their codes. */
export function listAccountsByCode(partnerId: string, after: string, most: number): Statement {
  return accounts.find({ partnerId }, accounts.all, statement(`AND account > ? ORDER BY account LIMIT ${most}`, after));
}
