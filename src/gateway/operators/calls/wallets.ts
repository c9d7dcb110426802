import { status } from '@grpc/grpc-js';
import {
  type CreditWalletRequest,
  CreditWalletRequestSchema,
  Wallets,
} from '../../../gen/marina/admin/v1/wallets_pb.ts';
import { isDuplicate } from '../../store/errors.ts';
import { allFacts, queryFact, sharedFact } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import type { SqlRow } from '../../store/statement.ts';
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
import { adminService, listed, requirePartner } from './call.ts';
import { creditAction, type Payment, paymentEntry } from './credit-audit.ts';
import { AdminError } from './errors.ts';
import { walkLedger } from './ledger.ts';
import { approvedCall, askFor, type FourEyesParts, type GuardedCall, type GuardedWork } from './proposals/four-eyes.ts';
import { isAbove } from './proposals/rules.ts';

const usuallyListed = 100;

/** The operators' calls on wallets, and what approving a credit does. `recorded` is called with each payment that was recorded. */
export function walletService(parts: FourEyesParts, walletSeals: WalletSeals, recorded: (amountKobo: bigint) => void) {
  const { database } = parts;
  const credit = creditCall(parts, walletSeals, recorded);
  let verifying = false;

  const service = adminService(Wallets, {
    async creditWallet(request, call) {
      const { result, proposal } = await askFor(parts, credit, request, call);
      return { recorded: result?.recorded ?? false, credit: result && toMessage(result.entry), proposal };
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
  return { service, action: approvedCall(parts, credit) };
}

interface RecordedCredit {
  readonly entry: LedgerEntry;
  /** False: an earlier call recorded it. */
  readonly recorded: boolean;
}

interface Prior extends Readonly<Record<string, unknown>> {
  /** The entry with the same bank reference, of any partner. */
  readonly prior: SqlRow | undefined;
}

/** The call that records a payment once for its bank reference. One above the amount needs a second operator. */
export function creditCall(
  { database, ids, fourEyesAboveKobo }: FourEyesParts,
  seals: WalletSeals,
  recorded: (amountKobo: bigint) => void = () => undefined,
): GuardedCall<typeof CreditWalletRequestSchema, Prior, RecordedCredit> {
  const asked = ({ partnerId, amountKobo, bankReference }: CreditWalletRequest) => {
    const about = `bank reference ${bankReference}`;
    const payment = { id: ids.object('wtr'), partnerId, amountKobo, bankReference };
    const find = transfers.find({ bankReference });
    const work: GuardedWork<Prior, RecordedCredit> = {
      ...{ partnerId, objectId: partnerId, about, touches: about },
      fact: allFacts({ prior: queryFact(find, ([row]) => row), shared: sharedFact(wallet(partnerId, seals)) }),
      decide: ({ prior }, partner) => {
        if (prior !== undefined) return { unchanged: recordedBefore(prior, payment) };
        const { availableKobo, reservedKobo, postedKobo } = partner.get(wallet(partnerId, seals)).head;
        if (availableKobo + reservedKobo + postedKobo + amountKobo > maxInWalletKobo) {
          throw new AdminError(status.FAILED_PRECONDITION, 'the wallet would hold more than 10^18 kobo in all');
        }
        return {
          needsSecond: isAbove(amountKobo, fourEyesAboveKobo),
          seen: {},
          apply: (createdAt) => ({
            ...{ writes: [], entry: paymentEntry(payment), after: { entry: payment.id } },
            result: { entry: addCredit(partner, { ...payment, createdAt }, seals), recorded: true },
          }),
        };
      },
      ended: (result) => result?.recorded && recorded(amountKobo),
      // Two partners have two locks. If both use the same reference, the database accepts only one.
      async failed(error) {
        const [row] = isDuplicate(error) ? await database.read(find) : [];
        if (row === undefined) throw error;
        return recordedBefore(row, payment);
      },
    };
    return work;
  };
  return { name: creditAction, schema: CreditWalletRequestSchema, asked };
}

function addCredit(partner: PartnerTransaction, { partnerId: _, ...paid }: Payment, seals: WalletSeals): LedgerEntry {
  return transfer(partner, { ...paid, type: 'credit', allocation: null, account: null }, seals);
}

/** The entry of an earlier call. Throws unless it was for the same payment. */
function recordedBefore(row: SqlRow, { partnerId, amountKobo }: Omit<Payment, 'createdAt'>): RecordedCredit {
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
