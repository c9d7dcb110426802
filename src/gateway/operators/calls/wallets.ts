import { status } from '@grpc/grpc-js';
import { Wallets } from '../../../gen/marina/admin/v1/wallets_pb.ts';
import type { AuditedBy } from '../../edge/auth/audit-store.ts';
import type { Database } from '../../store/database.ts';
import { isDuplicate } from '../../store/errors.ts';
import { allFacts, queryFact, sharedFact } from '../../store/facts.ts';
import type { Decision, SqlRow } from '../../store/statement.ts';
import { type LedgerEntry, maxInWalletKobo } from '../../trading/wallet/rules.ts';
import {
  ledgerHead,
  listCredits,
  listWallets,
  toEntry,
  transfer,
  transfers,
  type WalletSeals,
  wallet,
} from '../../trading/wallet/store.ts';
import { type AdminParts, adminService, listed, requirePartner } from './call.ts';
import { auditPayment, type Payment } from './credit-audit.ts';
import { AdminError } from './errors.ts';
import { walkLedger } from './ledger.ts';

const usuallyListed = 100;

/** The operators' calls on wallets. */
export function walletService({ database, clock, ids }: AdminParts, walletSeals: WalletSeals) {
  let verifying = false;

  return adminService(Wallets, {
    async creditWallet({ partnerId, amountKobo, bankReference, reason }, call) {
      const id = ids.object('wtr');
      const createdAt = clock.now();
      const credit = { id, partnerId, amountKobo, bankReference, createdAt };
      const { entry, recorded } = await recordCredit(database, walletSeals, credit, { ...call, reason });
      return { recorded, credit: toMessage(entry) };
    },

    async listCredits({ partnerId, beforeSequence, limit }) {
      await requirePartner(database, partnerId);
      const read = (most: number) => database.read(listCredits(partnerId, beforeSequence, most));
      const { rows, hasMore } = await listed(limit, read, usuallyListed);
      return { credits: rows.map(toEntry).map(toMessage), hasMore };
    },

    async listWallets({ afterPartnerId, limit }) {
      const read = (most: number) => database.read(listWallets(afterPartnerId, most));
      const { rows, hasMore } = await listed(limit, read, usuallyListed);
      return { wallets: rows.map(ledgerHead.read), hasMore };
    },

    async verifyLedger({ partnerId, afterSequence }) {
      if (verifying) throw new AdminError(status.RESOURCE_EXHAUSTED, 'another ledger is being walked: call again');
      verifying = true;
      try {
        const walk = await walkLedger(database, partnerId, afterSequence, { seals: walletSeals });
        if (walk === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such partner, or no such entry');
        return { ...walk, lastSequence: walk.last.lastSequence, lastHash: walk.last.lastHash };
      } finally {
        verifying = false;
      }
    },
  });
}

interface RecordedCredit {
  readonly entry: LedgerEntry;
  /** False: an earlier call recorded it. */
  readonly recorded: boolean;
}

/** Records a payment once for its bank reference, with its entry of the audit if it is new. Throws an AdminError. */
export async function recordCredit(
  database: Database,
  seals: WalletSeals,
  credit: Payment,
  by: AuditedBy & { readonly reason?: string },
): Promise<RecordedCredit> {
  const { partnerId, amountKobo, bankReference } = credit;
  await requirePartner(database, partnerId);
  const find = transfers.find({ bankReference });
  try {
    return await database.inPartnerTransaction(partnerId, {
      touches: [`bank reference ${bankReference}`],
      fact: allFacts({ prior: queryFact(find, ([row]) => row), shared: sharedFact(wallet(partnerId, seals)) }),
      decide: ({ prior }, partner): Decision<RecordedCredit> => {
        if (prior !== undefined) return { writes: [], result: recordedBefore(prior, credit) };
        const { availableKobo, reservedKobo, postedKobo } = partner.get(wallet(partnerId, seals)).head;
        if (availableKobo + reservedKobo + postedKobo + amountKobo > maxInWalletKobo) {
          throw new AdminError(status.FAILED_PRECONDITION, 'the wallet would hold more than 10^18 kobo in all');
        }
        const { partnerId: _, ...paid } = credit;
        const entry = transfer(partner, { ...paid, type: 'credit', allocation: null, account: null }, seals);
        return { writes: [auditPayment(by, credit)], result: { entry, recorded: true } };
      },
    });
  } catch (error) {
    // Two partners have two locks. If both use the same reference, the database accepts only one.
    const [row] = isDuplicate(error) ? await database.read(find) : [];
    if (row === undefined) throw error;
    return recordedBefore(row, credit);
  }
}

/** The entry of an earlier call. Throws unless it was for the same payment. */
function recordedBefore(row: SqlRow, { partnerId, amountKobo }: Payment): RecordedCredit {
  const entry = toEntry(row);
  if (entry.partnerId !== partnerId) {
    throw new AdminError(status.ALREADY_EXISTS, 'the bank reference is recorded for another partner');
  }
  if (entry.amountKobo !== amountKobo) {
    const amount = entry.amountKobo.toLocaleString('en-US');
    throw new AdminError(status.ALREADY_EXISTS, `the bank reference is recorded with another amount, ${amount} kobo`);
  }
  return { entry, recorded: false };
}

function toMessage(entry: LedgerEntry) {
  return { ...entry, availableAfterKobo: entry.availableKobo };
}
