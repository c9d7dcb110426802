import { guard, type Statement, statement } from '../../store/statement.ts';
import { defineTable, instant, optional, type RowOf, text } from '../../store/table.ts';

/** The accounts that partners can trade for. An account belongs to one partner. */
export const accounts = defineTable({
  name: 'accounts',
  columns: { partnerId: text(24), account: text(64), applicationId: optional(text(24)), createdAt: instant() },
  primary: ['partnerId', 'account'],
  // The list's order: descending by `created_at`.
  indexes: { accounts_created_at: ['partnerId', 'createdAt', 'account'] },
  unique: { accounts_account: ['account'] },
});

const shownAccount = accounts.only('account', 'applicationId', 'createdAt');
export type StoredAccount = RowOf<typeof accounts>;

/** A position in the list: newest first, and by code at the same time. */
export type AccountPosition = Pick<StoredAccount, 'account' | 'createdAt'>;

/** Links an account to a partner. */
export function insertAccount(partnerId: string, account: string, createdAt: number): Statement {
  return accounts.insert({ partnerId, account, applicationId: null, createdAt });
}

/**
 * Links an account that an application opened. An existing link gets this application. If the account is another partner's, the
 * guard fails and undoes the transaction (`isGuardFalse`): two partners have two locks, so a check before this statement does
 * not prove it.
 */
export function openAccount({ partnerId, account, applicationId, createdAt }: StoredAccount): Statement[] {
  return [
    statement(
      `INSERT INTO accounts (partner_id, account, application_id, created_at) VALUES (?, ?, ?, ?)
      ON DUPLICATE KEY UPDATE application_id = IF(partner_id = VALUES(partner_id), VALUES(application_id), application_id)`,
      ...[partnerId, account, applicationId, new Date(createdAt)],
    ),
    guard([statement('EXISTS (SELECT 1 FROM accounts WHERE partner_id = ? AND account = ?)', partnerId, account)]),
  ];
}

/** Lists a partner's accounts, newest first, from a position on. */
export function listAccounts(partnerId: string, after: AccountPosition | undefined, most: number): Statement {
  const order = `ORDER BY created_at DESC, account LIMIT ${most}`;
  const byTime = 'accounts_created_at';
  if (after === undefined) return accounts.find({ partnerId }, shownAccount, statement(order), byTime);
  const createdAt = new Date(after.createdAt);
  const isAfter = 'AND (created_at < ? OR (created_at = ? AND account > ?))';
  const tail = statement(`${isAfter} ${order}`, createdAt, createdAt, after.account);
  return accounts.find({ partnerId }, shownAccount, tail, byTime);
}

export const toShownAccount = shownAccount.read;
