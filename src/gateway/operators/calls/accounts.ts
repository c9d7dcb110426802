import { status } from '@grpc/grpc-js';
import {
  Accounts,
  LinkAccountRequestSchema,
  type ListAccountsRequest,
} from '../../../gen/marina/admin/v1/accounts_pb.ts';
import { partners } from '../../edge/auth/store.ts';
import type { Database } from '../../store/database.ts';
import { isDuplicate } from '../../store/errors.ts';
import { queryFact } from '../../store/facts.ts';
import type { SqlRow, Statement } from '../../store/statement.ts';
import { accounts, insertAccount, type StoredAccount } from '../../trading/accounts/store.ts';
import { readUpToDate } from '../../trading/submission/table.ts';
import { type AccountAtBroker, type AccountsAtBroker, requireAtBroker } from './account-at-broker.ts';
import { audit } from './audit.ts';
import { adminService, changeOwned, listed, requirePartner } from './call.ts';
import { AdminError, invalidField } from './errors.ts';
import { approvedCall, askFor, type FourEyesParts, type GuardedCall } from './proposals/four-eyes.ts';

/**
 * The call that links an account. It needs a second operator, because the partner can then trade with the money of the
 * account's holder, and take it out as soon as it has the feature. `found` is what the broker said of it.
 */
function linkCall(
  found?: Pick<AccountAtBroker, 'answer'>,
): GuardedCall<typeof LinkAccountRequestSchema, StoredAccount | undefined, boolean> {
  return {
    ...{ name: 'Accounts.LinkAccount', schema: LinkAccountRequestSchema },
    asked: ({ partnerId, account, unchecked }) => ({
      ...{ partnerId, objectId: partnerId, about: `account ${account}`, touches: `account ${account}` },
      fact: ownerFact(account),
      decide: (owner) => {
        if (owner?.partnerId === partnerId) return { unchanged: false };
        if (owner !== undefined) throw anotherPartners();
        const detail = { atBroker: found?.answer, ...(unchecked ? { unchecked } : {}) };
        return {
          needsSecond: true,
          seen: {},
          apply: (now) => ({
            writes: [insertAccount(partnerId, account, now)],
            entry: { partnerId, subject: account, detail, after: { partner: partnerId } },
            ...{ after: { account }, result: true },
          }),
        };
      },
      // Two partners have two locks. If both link the same account, the database accepts only one.
      async failed(error) {
        throw isDuplicate(error) ? anotherPartners() : error;
      },
    }),
  };
}

function ownerFact(account: string) {
  return queryFact(accounts.find({ account }), ([row]) => row && accounts.all.read(row));
}

/**
 * The operators' calls on partners' accounts, and what approving a link does. `atBroker` asks the broker about an account.
 * `unlinked` notifies all replicas that an account was unlinked.
 */
export function accountService(
  parts: FourEyesParts,
  atBroker: AccountsAtBroker,
  unlinked: (partnerId: string, account: string) => void,
) {
  const { database, clock } = parts;
  const service = adminService(Accounts, {
    async lookUpAccount({ account }) {
      const [found, owner] = await Promise.all([atBroker.ask(account), ownerOf(database, account)]);
      const [partner] = owner === undefined ? [] : await database.read(partners.find({ id: owner.partnerId }));
      return { account, atBroker: found, linked: owner && toMessage(owner), partnerName: nameOf(partner) };
    },

    async linkAccount(request, call) {
      const { partnerId, account, unchecked } = request;
      await requirePartner(database, partnerId);
      const before = await ownerOf(database, account);
      if (before !== undefined && before.partnerId !== partnerId) throw anotherPartners();
      if (before !== undefined) return { changed: false };
      const found = await atBroker.ask(account);
      if (database.environment === 'live') requireAtBroker(found, unchecked);
      const { result = false, proposal } = await askFor(parts, linkCall(found), request, call);
      return { changed: result, atBroker: found, proposal };
    },

    async unlinkAccount({ partnerId, account, reason }, call) {
      const decide = (owner: StoredAccount | undefined) => {
        if (owner?.partnerId !== partnerId) return [];
        const { applicationId: application, createdAt } = owner;
        const before = { partner: partnerId, application, createdAt: new Date(createdAt) };
        const entry = { partnerId, subject: account, detail: { reason }, before };
        return [accounts.remove({ partnerId, account }), audit(call, clock.now(), entry)];
      };
      // Called also if the outcome is unknown: the next use of the account then asks the database.
      return { changed: await change(partnerId, account, decide, () => unlinked(partnerId, account)) };
    },

    listAccounts: (request) => listAccounts(database, request),
  });
  return { service, action: approvedCall(parts, linkCall()) };

  function change(
    partnerId: string,
    account: string,
    decide: (owner: StoredAccount | undefined) => Statement[],
    ended?: () => void,
  ): Promise<boolean> {
    return changeOwned(database, partnerId, `account ${account}`, ownerFact(account), decide, ended);
  }
}

async function listAccounts(database: Database, { partnerId, account, afterAccount, limit }: ListAccountsRequest) {
  if (partnerId === '' && account === '') throw invalidField('partner_id', 'or `account` is required.');
  if (partnerId !== '') await requirePartner(database, partnerId);
  const { MoreThan } = await import('typeorm');
  const where = { ...(partnerId && { partnerId }), account: account || MoreThan(afterAccount) };
  const { rows, hasMore } = await listed(limit, (take) =>
    database.manage((manager) =>
      manager.find<StoredAccount>(accounts.name, { where, order: { account: 'ASC' }, take }),
    ),
  );
  return { accounts: rows.map(toMessage), hasMore };
}

async function ownerOf(database: Database, account: string): Promise<StoredAccount | undefined> {
  const [row] = await readUpToDate(database, accounts.find({ account }));
  return row && accounts.all.read(row);
}

function toMessage(account: StoredAccount) {
  return { ...account, application: account.applicationId };
}

function nameOf(partner: SqlRow | undefined): string | undefined {
  return partner && partners.all.read(partner).name;
}

function anotherPartners(): AdminError {
  return new AdminError(status.ALREADY_EXISTS, "the account is another partner's");
}
