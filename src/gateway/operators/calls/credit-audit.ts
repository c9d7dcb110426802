import type { Database } from '../../store/database.ts';
import type { LedgerEntry, LedgerFault, Transfer, TransferTypeWord } from '../../trading/wallet/rules.ts';
import { type AuditEntry, auditEntries } from './audit.ts';

/** The call that records a payment, as the audit names it. */
export const creditAction = 'Wallets.CreditWallet';

/** The call that records an entry of each type. */
export const paymentActions = {
  credit: creditAction,
  debit: 'Wallets.DebitWallet',
  credit_reversal: 'Wallets.ReverseCredit',
} as const satisfies Partial<Record<TransferTypeWord, string>>;

const detailOnly = auditEntries.only('detail');

/** A payment, as its entry of the ledger has it. */
export interface Payment {
  readonly id: string;
  readonly partnerId: string;
  readonly amountKobo: bigint;
  readonly bankReference: string;
  readonly createdAt: number;
}

/**
 * The entry of the audit that belongs to a payment or a correction, without its reason. It is written in its transaction, with the
 * action of its type.
 */
export function paymentEntry({
  id,
  partnerId,
  amountKobo,
  bankReference,
  reverses,
}: Omit<Payment, 'createdAt'> & Pick<Transfer, 'reverses'>): AuditEntry {
  return { partnerId, detail: { entry: id, amountKobo, bankReference, reverses: reverses ?? undefined } };
}

/**
 * The payments and corrections that have no entry of the audit, written in the same transaction with the same time, or one of
 * something else. Every version writes one.
 */
export async function paymentFaults(
  database: Database,
  partnerId: string,
  entries: readonly LedgerEntry[],
): Promise<LedgerFault[]> {
  const payments = entries.flatMap((entry) => (isPaymentType(entry.type) ? [{ ...entry, type: entry.type }] : []));
  const types = [...new Set(payments.map(({ type }) => type))];
  const finds = types.map((type) => {
    const at = [...new Set(payments.flatMap((payment) => (payment.type === type ? [payment.createdAt] : [])))];
    // A server that misjudges the table would read everything that was ever done for the partner.
    const index = 'audit_entries_action';
    return auditEntries.find({ partnerId, action: paymentActions[type], at }, detailOnly, undefined, index);
  });
  const found = await database.readAll(finds);
  const audited = new Map(
    types.map((type, at) => [type, new Set(found[at]?.map(({ detail }) => paymentIn(String(detail))))]),
  );
  return payments
    .filter(({ type, id, amountKobo, bankReference, reverses }) => {
      return !audited.get(type)?.has(paymentText(id, amountKobo, bankReference, reverses));
    })
    .map(({ sequence, id, type }) => ({
      kind: 'unaudited',
      sequence,
      id,
      detail: `no entry of the audit records this ${type === 'credit' ? 'payment' : 'correction'}`,
    }));
}

function isPaymentType(type: string): type is keyof typeof paymentActions {
  return Object.hasOwn(paymentActions, type);
}

/** The payment in an entry of the audit; undefined if it has another form. */
function paymentIn(detail: string): string | undefined {
  try {
    const { entry, amountKobo, bankReference, reverses } = JSON.parse(detail) as Record<string, unknown>;
    return paymentText(entry, amountKobo, bankReference, reverses);
  } catch {
    return undefined;
  }
}

function paymentText(entry: unknown, amountKobo: unknown, bankReference: unknown, reverses: unknown): string {
  return JSON.stringify([entry, String(amountKobo), bankReference, String(reverses ?? '')]);
}
