import { status } from '@grpc/grpc-js';
import { Accounts, type ListAccountsRequest } from '../../../gen/marina/admin/v1/accounts_pb.ts';
import { partners } from '../../edge/auth/store.ts';
import type { Database } from '../../store/database.ts';
import { isDuplicate } from '../../store/errors.ts';
import { queryFact } from '../../store/facts.ts';
import type { SqlRow, Statement } from '../../store/statement.ts';
import { accounts, insertAccount, type StoredAccount } from '../../trading/accounts/store.ts';
import { type AccountsAtBroker, requireAtBroker } from './account-at-broker.ts';
import { audit } from './audit.ts';
import { type AdminParts, adminService, changeOwned, listed, requirePartner } from './call.ts';
import { AdminError, invalidField } from './errors.ts';

/**
 * The operators' calls on partners' accounts. `atBroker` asks the broker about an account. `unlinked` notifies all replicas that
 * an account was unlinked.
 */
export function accountService(
  { database, clock }: AdminParts,
  atBroker: AccountsAtBroker,
  unlinked: (partnerId: string, account: string) => void,
) {
  return adminService(Accounts, {
    async lookUpAccount({ account }) {
      const [found, owner] = await Promise.all([atBroker.ask(account), ownerOf(database, account)]);
      const [partner] = owner === undefined ? [] : await database.read(partners.find({ id: owner.partnerId }));
      return { account, atBroker: found, linked: owner && toMessage(owner), partnerName: nameOf(partner) };
    },

    async linkAccount({ partnerId, account, unchecked, reason }, call) {
      await requirePartner(database, partnerId);
      const before = await ownerOf(database, account);
      if (before !== undefined && before.partnerId !== partnerId) throw anotherPartners();
      const found = await atBroker.ask(account);
      if (before !== undefined) return { changed: false, atBroker: found };
      if (database.environment === 'live') requireAtBroker(found, unchecked);
      const detail = { reason, atBroker: found.answer, ...(unchecked ? { unchecked } : {}) };
      const createdAt = clock.now();
      try {
        const changed = await change(partnerId, account, (owner) => {
          if (owner?.partnerId === partnerId) return [];
          if (owner !== undefined) throw anotherPartners();
          const entry = { partnerId, subject: account, detail, after: { partner: partnerId } };
          return [insertAccount(partnerId, account, createdAt), audit(call, createdAt, entry)];
        });
        return { changed, atBroker: found };
      } catch (error) {
        // Two partners have two locks. If both link the same account, the database accepts only one.
        throw isDuplicate(error) ? anotherPartners() : error;
      }
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

  function change(
    partnerId: string,
    account: string,
    decide: (owner: StoredAccount | undefined) => Statement[],
    ended?: () => void,
  ): Promise<boolean> {
    const owner = queryFact(accounts.find({ account }), ([row]) => row && accounts.all.read(row));
    return changeOwned(database, partnerId, `account ${account}`, owner, decide, ended);
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
  const [row] = await database.read(accounts.find({ account }));
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
