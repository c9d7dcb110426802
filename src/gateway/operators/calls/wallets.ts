import { status } from '@grpc/grpc-js';
import {
  type CreditWalletRequest,
  CreditWalletRequestSchema,
  Wallets,
} from '../../../gen/marina/admin/v1/wallets_pb.ts';
import { isDuplicate } from '../../store/errors.ts';
import { allFacts, queryFact, sharedFact } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { readUpToDate } from '../../trading/submission/table.ts';
import { maxInWalletKobo } from '../../trading/wallet/rules.ts';
import {
  findPayment,
  ledgerHead,
  listPayments,
  listWallets,
  type RecordedPayment,
  toPayment,
  transfer,
  type WalletSeals,
  wallet,
} from '../../trading/wallet/store.ts';
import { adminService, listed, oneAtATime, requirePartner } from './call.ts';
import { creditAction, type Payment, paymentEntry } from './credit-audit.ts';
import { AdminError } from './errors.ts';
import { walkLedger } from './ledger.ts';
import { paidAloneToday, touchedByPayments } from './payments-alone.ts';
import { approvedCall, askFor, type FourEyesParts, type GuardedCall, type GuardedWork } from './proposals/four-eyes.ts';
import { isAbove } from './proposals/rules.ts';
import { correctionCalls, type Recorded, recordedBefore } from './wallet-corrections.ts';

const usuallyListed = 100;

/** Called with the amounts of what was recorded. */
export interface RecordedAmounts {
  credited(amountKobo: bigint): void;
  corrected(amountKobo: bigint): void;
}

/** The operators' calls on wallets, and what approving one of them does. */
export function walletService(parts: FourEyesParts, walletSeals: WalletSeals, recorded: RecordedAmounts) {
  const { database } = parts;
  const credit = creditCall(parts, walletSeals, recorded.credited);
  const corrections = correctionCalls(parts, walletSeals, recorded.corrected);
  const walking = oneAtATime('another ledger is being walked');

  const service = adminService(Wallets, {
    ...corrections.calls,

    async creditWallet(request, call) {
      const { result, proposal } = await askFor(parts, credit, request, call);
      return { recorded: result?.recorded ?? false, credit: result && toMessage(result.payment), proposal };
    },

    async listCredits({ partnerId, beforeSequence, limit }) {
      await requirePartner(database, partnerId);
      const read = (most: number) => database.read(listPayments(partnerId, 'credit', beforeSequence, most));
      const { rows, hasMore } = await listed(limit, read, usuallyListed);
      return { credits: rows.map(toPayment).map(toMessage), hasMore };
    },

    async listWallets({ afterPartnerId, limit }) {
      const read = (most: number) => database.read(listWallets(afterPartnerId, most));
      const { rows, hasMore } = await listed(limit, read, usuallyListed);
      return { wallets: rows.map(ledgerHead.read), hasMore };
    },

    async verifyLedger({ partnerId, afterSequence }) {
      const walk = await walking(() => walkLedger(database, partnerId, afterSequence, { seals: walletSeals }));
      if (walk === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such partner, or no such entry');
      return { ...walk, lastSequence: walk.last.lastSequence, lastHash: walk.last.lastHash };
    },
  });
  return { service, actions: [approvedCall(parts, credit), ...corrections.actions] };
}

interface Prior extends Readonly<Record<string, unknown>> {
  /** The entry with the same bank reference, of any partner. */
  readonly prior: RecordedPayment | undefined;
  /** The amount that was credited today without a second operator, in kobo. */
  readonly aloneKobo: bigint;
}

/** The call that records a payment once for its bank reference. One above the amount needs a second operator. */
export function creditCall(
  parts: FourEyesParts,
  seals: WalletSeals,
  recorded: (amountKobo: bigint) => void = () => undefined,
): GuardedCall<typeof CreditWalletRequestSchema, Prior, Recorded> {
  const { database, ids, fourEyesAboveKobo } = parts;
  const asked = ({ partnerId, amountKobo, bankReference }: CreditWalletRequest) => {
    const about = `bank reference ${bankReference}`;
    const payment = { id: ids.object('wtr'), partnerId, amountKobo, bankReference };
    const find = findPayment(bankReference);
    const work: GuardedWork<Prior, Recorded> = {
      ...{ partnerId, objectId: partnerId, about, touches: touchedByPayments },
      fact: allFacts({
        prior: queryFact(find, ([row]) => row && toPayment(row)),
        aloneKobo: paidAloneToday(parts, partnerId, 'credit'),
        shared: sharedFact(wallet(partnerId, seals)),
      }),
      decide: ({ prior, aloneKobo }, partner) => {
        if (prior !== undefined) return { unchanged: recordedBefore(prior, payment) };
        const { availableKobo, reservedKobo, postedKobo } = partner.get(wallet(partnerId, seals)).head;
        if (availableKobo + reservedKobo + postedKobo + amountKobo > maxInWalletKobo) {
          throw new AdminError(status.FAILED_PRECONDITION, 'the wallet would hold more than 10^18 kobo in all');
        }
        return {
          needsSecond: isAbove(aloneKobo + amountKobo, fourEyesAboveKobo),
          seen: {},
          apply: (createdAt) => ({
            ...{ writes: [], entry: paymentEntry(payment), after: { entry: payment.id } },
            result: { payment: addCredit(partner, { ...payment, createdAt }, seals), recorded: true },
          }),
        };
      },
      ended: (result) => result?.recorded && recorded(amountKobo),
      // Two partners have two locks. If both use the same reference, the database accepts only one.
      async failed(error) {
        const [row] = isDuplicate(error) ? await readUpToDate(database, find) : [];
        if (row === undefined) throw error;
        return recordedBefore(toPayment(row), payment);
      },
    };
    return work;
  };
  return { name: creditAction, schema: CreditWalletRequestSchema, asked };
}

function addCredit(
  partner: PartnerTransaction,
  { partnerId: _, ...paid }: Payment,
  seals: WalletSeals,
): RecordedPayment {
  const entry = transfer(partner, { ...paid, type: 'credit', allocation: null, account: null }, seals);
  return { entry, reversedKobo: 0n, creditBankReference: null };
}

function toMessage({ entry, reversedKobo }: RecordedPayment) {
  return { ...entry, reversedKobo, availableAfterKobo: entry.availableKobo };
}
