import { type SqlRow, type Statement, statement } from '../db/statement.ts';

/** An account as partners see it. */
export interface ShownAccount {
  readonly account: string;
  readonly applicationId: string | null;
  readonly createdAt: number;
}

/** The place of an account in the list: newest first, of the same time by code. */
export type AccountPlace = Pick<ShownAccount, 'account' | 'createdAt'>;

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

export function toShownAccount(row: SqlRow): ShownAccount {
  return {
    account: String(row.account),
    applicationId: row.application_id as string | null,
    createdAt: (row.created_at as Date).getTime(),
  };
}

/** Finds whose an account is. */
export function findAccountOwner(account: string): Statement {
  return statement('SELECT partner_id, account, application_id, created_at FROM accounts WHERE account = ?', account);
}

/** Makes an account none of a partner's. */
export function removeAccount(partnerId: string, account: string): Statement {
  return statement('DELETE FROM accounts WHERE partner_id = ? AND account = ?', partnerId, account);
}

/** A page of a partner's accounts in the order of their codes. */
export function listAccountsByCode(partnerId: string, after: string, most: number): Statement {
  return statement(
    `SELECT partner_id, account, application_id, created_at FROM accounts WHERE partner_id = ? AND account > ?
      ORDER BY account LIMIT ${most}`,
    partnerId,
    after,
  );
}
