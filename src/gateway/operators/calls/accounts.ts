import { status } from '@grpc/grpc-js';
import { Accounts } from '../../../gen/marina/admin/v1/accounts_pb.ts';
import { isDuplicate } from '../../store/errors.ts';
import { queryFact } from '../../store/facts.ts';
import type { Statement } from '../../store/statement.ts';
import { accounts, insertAccount, type StoredAccount } from '../../trading/accounts/store.ts';
import { audit } from './audit.ts';
import { type AdminParts, adminService, changeOwned, listed, requirePartner } from './call.ts';
import { AdminError, invalidField } from './errors.ts';

/** The operators' calls on partners' accounts. `unlinked` notifies all replicas that an account was unlinked. */
export function accountService(
  { database, clock }: AdminParts,
  unlinked: (partnerId: string, account: string) => void,
) {
  return adminService(Accounts, {
    async linkAccount({ partnerId, account, reason }, call) {
      const createdAt = clock.now();
      try {
        const changed = await change(partnerId, account, (owner) => {
          if (owner?.partnerId === partnerId) return [];
          if (owner !== undefined) throw anotherPartners();
          const entry = { partnerId, subject: account, detail: { reason }, after: { partner: partnerId } };
          return [insertAccount(partnerId, account, createdAt), audit(call, createdAt, entry)];
        });
        return { changed };
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

    async listAccounts({ partnerId, account, afterAccount, limit }) {
      if (partnerId === '' && account === '') throw invalidField('partner_id', 'or `account` is required.');
      if (partnerId !== '') await requirePartner(database, partnerId);
      const { MoreThan } = await import('typeorm');
      const where = { ...(partnerId && { partnerId }), account: account || MoreThan(afterAccount) };
      const { rows, hasMore } = await listed(limit, (take) =>
        database.manage((manager) =>
          manager.find<StoredAccount>(accounts.name, { where, order: { account: 'ASC' }, take }),
        ),
      );
      return { accounts: rows.map((row) => ({ ...row, application: row.applicationId })), hasMore };
    },
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

function anotherPartners(): AdminError {
  return new AdminError(status.ALREADY_EXISTS, "the account is another partner's");
}
