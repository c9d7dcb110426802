import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { accounts, insertAccount, listAccountsByCode, type StoredAccount } from '../accounts/store.ts';
import type { Database } from '../db/database.ts';
import { found } from '../db/facts.ts';
import type { Statement } from '../db/statement.ts';
import {
  type LinkAccountRequest,
  type LinkAccountResponse,
  LinkAccountResponseSchema,
  type LinkedAccount,
  LinkedAccountSchema,
  type ListAccountsRequest,
  type ListAccountsResponse,
  ListAccountsResponseSchema,
  type UnlinkAccountRequest,
  type UnlinkAccountResponse,
  UnlinkAccountResponseSchema,
} from '../gen/marina/admin/v1/accounts_pb.ts';
import type { Clock } from '../lib/clock.ts';
import { audit } from './audit.ts';
import { AdminError, invalidField, type Operator, pageSize } from './call.ts';
import { requirePartner } from './credit.ts';

export interface AccountAdminParts {
  readonly database: Database;
  readonly clock: Clock;
  /** Tells this replica and the others that an account is a partner's no more. */
  readonly unlinked: (partnerId: string, account: string) => void;
}

const duplicateEntry = 1062;

/** The operators' calls on partners' accounts. Each change is written down in the transaction that makes it. */
export function accountAdminHandlers({ database, clock, unlinked }: AccountAdminParts) {
  async function linkAccount(request: LinkAccountRequest, operator: Operator): Promise<LinkAccountResponse> {
    const { partnerId, account, reason } = request;
    await requirePartner(database, partnerId);
    const createdAt = clock.now();
    try {
      const changed = await change(partnerId, account, (owner) => {
        if (owner?.partnerId === partnerId) return [];
        if (owner !== undefined) throw anotherPartners();
        const said = audit({
          ...entry('LinkAccount', request, operator, createdAt),
          detail: { reason },
          after: { partner: partnerId },
        });
        return [insertAccount(partnerId, account, createdAt), said];
      });
      return create(LinkAccountResponseSchema, { changed });
    } catch (error) {
      // Two partners' locks are two: of an account raced for two partners the database itself takes only one.
      if ((error as { errno?: number }).errno === duplicateEntry) throw anotherPartners();
      throw error;
    }
  }

  async function unlinkAccount(request: UnlinkAccountRequest, operator: Operator): Promise<UnlinkAccountResponse> {
    const { partnerId, account, reason } = request;
    await requirePartner(database, partnerId);
    try {
      const changed = await change(partnerId, account, (owner) => {
        if (owner?.partnerId !== partnerId) return [];
        const said = audit({
          ...entry('UnlinkAccount', request, operator, clock.now()),
          detail: { reason },
          before: { partner: partnerId, application: owner.applicationId, createdAt: new Date(owner.createdAt) },
        });
        return [accounts.remove({ partnerId, account }), said];
      });
      return create(UnlinkAccountResponseSchema, { changed });
    } finally {
      // Whether it was unlinked may be unknown by now: whoever uses it next asks the database.
      unlinked(partnerId, account);
    }
  }

  async function listAccounts(request: ListAccountsRequest): Promise<ListAccountsResponse> {
    const { partnerId, account, afterAccount } = request;
    const limit = pageSize(request.limit);
    if (partnerId === '' && account === '') throw invalidField('partner_id', 'or `account` is required.');
    if (partnerId !== '') await requirePartner(database, partnerId);
    const rows =
      account === ''
        ? await database.read(listAccountsByCode(partnerId, afterAccount, limit + 1))
        : await database.read(accounts.find(partnerId === '' ? { account } : { account, partnerId }));
    return create(ListAccountsResponseSchema, {
      accounts: rows.slice(0, limit).map(accounts.all.read).map(toMessage),
      hasMore: rows.length > limit,
    });
  }

  function change(
    partnerId: string,
    account: string,
    decide: (owner: StoredAccount | undefined) => readonly Statement[],
  ): Promise<boolean> {
    return database.inPartner(partnerId, {
      touches: [`account ${account}`],
      fact: found(accounts.find({ account }), ([row]) => row && accounts.all.read(row)),
      decide: (owner) => {
        const writes = decide(owner);
        return { writes, result: writes.length > 0 };
      },
    });
  }

  return { linkAccount, unlinkAccount, listAccounts };
}

function entry(
  action: string,
  { partnerId, account }: { partnerId: string; account: string },
  operator: Operator,
  at: number,
) {
  return { at, operator, action: `Accounts.${action}`, partnerId, subject: account };
}

function toMessage({ partnerId, account, applicationId, createdAt }: StoredAccount): LinkedAccount {
  return create(LinkedAccountSchema, {
    partnerId,
    account,
    application: applicationId ?? '',
    createdAt: timestampFromMs(createdAt),
  });
}

function anotherPartners(): AdminError {
  return new AdminError(status.ALREADY_EXISTS, "the account is another partner's");
}
