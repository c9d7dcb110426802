import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  DebitWalletRequestSchema,
  ReverseCreditRequestSchema,
  type Wallets,
} from '../../../gen/marina/admin/v1/wallets_pb.ts';
import { isDuplicate } from '../../store/errors.ts';
import { allFacts, queryFact, sharedFact } from '../../store/facts.ts';
import { readUpToDate } from '../../trading/submission/table.ts';
import {
  findPayment,
  listPayments,
  type RecordedPayment,
  toPayment,
  transfer,
  usableWallet,
  type WalletSeals,
  wallet,
} from '../../trading/wallet/store.ts';
import { type AdminCalls, listed, requirePartner } from './call.ts';
import { type Payment, paymentActions, paymentEntry } from './credit-audit.ts';
import { AdminError } from './errors.ts';
import { paidAloneToday, touchedByPayments } from './payments-alone.ts';
import {
  approvedCall,
  askFor,
  type FourEyesParts,
  type GuardedCall,
  type GuardedChange,
  type GuardedWork,
} from './proposals/four-eyes.ts';
import { isAbove } from './proposals/rules.ts';

type CorrectionCalls = Pick<AdminCalls<typeof Wallets>, 'debitWallet' | 'reverseCredit' | 'listCorrections'>;

/** A debit, or the reversal of the credit with a bank reference, as it is asked for. */
interface Correction extends Omit<Payment, 'createdAt'> {
  /** Null for a debit. */
  readonly creditBankReference: string | null;
  /** Whether it takes less if less is left of the credit or available. Absent: it is refused then. */
  readonly upToAvailable?: boolean;
}

export interface Recorded {
  readonly payment: RecordedPayment;
  /** False: an earlier call recorded it. */
  readonly recorded: boolean;
}

interface CorrectionFacts extends Readonly<Record<string, unknown>> {
  /** The entry with the same bank reference, of any partner. */
  readonly prior: RecordedPayment | undefined;
  /** The entry with the bank reference of the credit, of any partner. */
  readonly credit: RecordedPayment | undefined;
  /** The amount that was taken out today in the same way without a second operator, in kobo. */
  readonly aloneKobo: bigint;
}

type CorrectionCall<Schema extends DescMessage> = GuardedCall<Schema, CorrectionFacts, Recorded>;

/**
 * The operators' calls that take money out of a wallet again, and what approving one of them does. `recorded` is called with each
 * amount that was taken.
 */
export function correctionCalls(parts: FourEyesParts, seals: WalletSeals, recorded: (amountKobo: bigint) => void) {
  const { database, ids } = parts;
  const of = (correction: Omit<Correction, 'id'>) =>
    correctionWork(parts, seals, { ...correction, id: ids.object('wtr') }, recorded);
  const debit: CorrectionCall<typeof DebitWalletRequestSchema> = {
    ...{ name: paymentActions.debit, schema: DebitWalletRequestSchema },
    asked: ({ partnerId, amountKobo, bankReference }) =>
      of({ partnerId, amountKobo, bankReference, creditBankReference: null }),
  };
  const reversal: CorrectionCall<typeof ReverseCreditRequestSchema> = {
    ...{ name: paymentActions.credit_reversal, schema: ReverseCreditRequestSchema },
    asked: ({ partnerId, amountKobo, bankReference, creditBankReference, upToAvailable }) =>
      of({ partnerId, amountKobo, bankReference, creditBankReference, upToAvailable }),
  };
  const ask = async <Schema extends DescMessage>(
    correction: CorrectionCall<Schema>,
    request: MessageShape<Schema>,
    call: Parameters<CorrectionCalls['debitWallet']>[1],
  ) => {
    const { result, proposal } = await askFor(parts, correction, request, call);
    return { recorded: result?.recorded ?? false, correction: result && toMessage(result.payment), proposal };
  };
  const calls: CorrectionCalls = {
    debitWallet: (request, call) => ask(debit, request, call),

    async reverseCredit(request, call) {
      const made = await ask(reversal, request, call);
      const { correction } = made;
      return { ...made, notReversedKobo: correction && request.amountKobo - correction.amountKobo };
    },

    async listCorrections({ partnerId, beforeSequence, limit }) {
      await requirePartner(database, partnerId);
      const read = async (most: number) => {
        const types = ['debit', 'credit_reversal'] as const;
        const pages = types.map((type) => listPayments(partnerId, type, beforeSequence, most));
        const all = (await database.readAll(pages)).flat().map(toPayment);
        return all.sort((one, other) => Number(other.entry.sequence - one.entry.sequence)).slice(0, most);
      };
      const { rows, hasMore } = await listed(limit, read, 100);
      return { corrections: rows.map(toMessage), hasMore };
    },
  };
  return { calls, actions: [approvedCall(parts, debit), approvedCall(parts, reversal)] };
}

/** Records a correction once for its bank reference. One above the amount needs a second operator. */
function correctionWork(
  parts: FourEyesParts,
  seals: WalletSeals,
  correction: Correction,
  recorded: (amountKobo: bigint) => void,
): GuardedWork<CorrectionFacts, Recorded> {
  const { database, fourEyesAboveKobo } = parts;
  const { partnerId, amountKobo, bankReference, creditBankReference } = correction;
  const type = creditBankReference === null ? 'debit' : 'credit_reversal';
  const find = findPayment(bankReference);
  const findCredit = findPayment(creditBankReference ?? bankReference);
  return {
    ...{ partnerId, objectId: partnerId, about: `bank reference ${bankReference}` },
    touches: touchedByPayments,
    fact: allFacts({
      prior: queryFact(find, ([row]) => row && toPayment(row)),
      credit: queryFact(findCredit, ([row]) => row && toPayment(row)),
      aloneKobo: paidAloneToday(parts, partnerId, type),
      shared: sharedFact(wallet(partnerId, seals)),
    }),
    decide: ({ prior, credit, aloneKobo }, partner): GuardedChange<Recorded> => {
      if (prior !== undefined) return { unchanged: recordedBefore(prior, correction) };
      const reversed = creditBankReference === null ? undefined : reversedCredit(credit, correction);
      const takenKobo = amountTaken(correction, reversed, usableWallet(partner, seals).head.availableKobo);
      const reverses = reversed?.entry.sequence ?? null;
      const taken = { id: correction.id, amountKobo: takenKobo, bankReference, reverses };
      return {
        needsSecond: isAbove(aloneKobo + takenKobo, fourEyesAboveKobo),
        // A reversal that was recorded meanwhile may have corrected the same mistake.
        seen: reversed === undefined ? {} : { reversed_kobo: String(reversed.reversedKobo) },
        apply: (createdAt) => {
          const noObject = { allocation: null, account: null };
          const entry = transfer(partner, { ...taken, ...noObject, type, createdAt }, seals);
          const payment = { entry, reversedKobo: 0n, creditBankReference };
          const audited = paymentEntry({ ...taken, partnerId });
          const asked = correction.upToAvailable ? { up_to_kobo: amountKobo } : {};
          return {
            ...{ writes: [], after: { entry: taken.id } },
            entry: { ...audited, detail: { ...audited.detail, ...asked } },
            result: { payment, recorded: true },
          };
        },
      };
    },
    ended: (result) => result?.recorded && recorded(result.payment.entry.amountKobo),
    // Two pieces of work with one reference may have two locks, or one transaction. The database accepts only one of them.
    async failed(error) {
      const [row] = isDuplicate(error) ? await readUpToDate(database, find) : [];
      if (row === undefined) throw error;
      return recordedBefore(toPayment(row), correction);
    },
  };
}

/** The credit that a correction reverses. Throws unless it is one of the partner. */
function reversedCredit(credit: RecordedPayment | undefined, { partnerId }: Correction): RecordedPayment {
  if (credit === undefined || credit.entry.partnerId !== partnerId || credit.entry.type !== 'credit') {
    throw new AdminError(status.NOT_FOUND, 'the partner has no credit with this bank reference');
  }
  return credit;
}

/**
 * The amount that a correction takes: what it asks for, or with `upToAvailable` as much of it as is left of the credit and available.
 * Throws if that is nothing, and without `upToAvailable` if it is less than what it asks for.
 */
function amountTaken(
  { amountKobo, upToAvailable = false }: Correction,
  credit: RecordedPayment | undefined,
  availableKobo: bigint,
): bigint {
  const leftKobo = credit === undefined ? amountKobo : credit.entry.amountKobo - credit.reversedKobo;
  const neededKobo = upToAvailable ? 1n : amountKobo;
  if (credit !== undefined && leftKobo < neededKobo) {
    const detail = `of the credit ${kobo(leftKobo)} are left, and ${kobo(credit.reversedKobo)} are reversed already`;
    throw new AdminError(status.FAILED_PRECONDITION, detail);
  }
  if (availableKobo < neededKobo) {
    throw new AdminError(status.FAILED_PRECONDITION, `the wallet has ${kobo(availableKobo)} available`);
  }
  return [leftKobo, availableKobo].reduce((least, one) => (one < least ? one : least), amountKobo);
}

/** The entry of an earlier call. `creditBankReference` is undefined for a credit. Throws unless it was for the same thing. */
export function recordedBefore(
  payment: RecordedPayment,
  {
    partnerId,
    amountKobo,
    creditBankReference,
    upToAvailable = false,
  }: Pick<Payment, 'partnerId' | 'amountKobo'> & Partial<Pick<Correction, 'creditBankReference' | 'upToAvailable'>>,
): Recorded {
  const { entry } = payment;
  const refuse = (detail: string) => new AdminError(status.ALREADY_EXISTS, `the bank reference is recorded ${detail}`);
  if (entry.partnerId !== partnerId) throw refuse('for another partner');
  const type =
    creditBankReference === undefined ? 'credit' : creditBankReference === null ? 'debit' : 'credit_reversal';
  if (entry.type !== type) throw refuse(`for something else, a ${entry.type.replace('_', ' ')}`);
  const isSameAmount = entry.amountKobo === amountKobo || (upToAvailable && entry.amountKobo < amountKobo);
  if (!isSameAmount) throw refuse(`with another amount, ${kobo(entry.amountKobo)}`);
  if (type === 'credit_reversal' && payment.creditBankReference !== creditBankReference) {
    throw refuse(`for another credit, that of ${payment.creditBankReference}`);
  }
  return { payment, recorded: false };
}

function kobo(amount: bigint): string {
  return `${amount.toLocaleString('en-US')} kobo`;
}

function toMessage({ entry, creditBankReference }: RecordedPayment) {
  return { ...entry, kind: entry.type, creditBankReference, availableAfterKobo: entry.availableKobo };
}
