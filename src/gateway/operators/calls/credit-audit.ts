import type { Database } from '../../store/database.ts';
import type { LedgerEntry, LedgerFault } from '../../trading/wallet/rules.ts';
import { type AuditEntry, auditEntries } from './audit.ts';

/** The call that records a payment, as the audit names it. */
export const creditAction = 'Wallets.CreditWallet';

const detailOnly = auditEntries.only('detail');

/** A payment, as its entry of the ledger has it. */
export interface Payment {
  readonly id: string;
  readonly partnerId: string;
  readonly amountKobo: bigint;
  readonly bankReference: string;
  readonly createdAt: number;
}

/** The entry of the audit that belongs to a payment, without its reason. It is written in its transaction with `creditAction`. */
export function paymentEntry({ id, partnerId, amountKobo, bankReference }: Omit<Payment, 'createdAt'>): AuditEntry {
  return { partnerId, detail: { entry: id, amountKobo, bankReference } };
}

/**
 * The credits that have no entry of the audit, written in the same transaction with the same time, or one of another payment.
 * Every version writes one.
 */
export async function creditFaults(
  database: Database,
  partnerId: string,
  entries: readonly LedgerEntry[],
): Promise<LedgerFault[]> {
  const credits = entries.filter(({ type }) => type === 'credit');
  if (credits.length === 0) return [];
  const at = [...new Set(credits.map(({ createdAt }) => createdAt))];
  // A server that misjudges the table would read everything that was ever done for the partner.
  const find = auditEntries.find(
    { partnerId, action: creditAction, at },
    detailOnly,
    undefined,
    'audit_entries_action',
  );
  const [rows = []] = await database.readAll([find]);
  const audited = new Set(rows.map(({ detail }) => paymentIn(String(detail))));
  return credits
    .filter(({ id, amountKobo, bankReference }) => !audited.has(paymentText(id, amountKobo, bankReference)))
    .map(({ sequence, id }) => ({
      kind: 'unaudited',
      sequence,
      id,
      detail: 'no entry of the audit records this payment',
    }));
}

/** The payment in an entry of the audit; undefined if it has another form. */
function paymentIn(detail: string): string | undefined {
  try {
    const { entry, amountKobo, bankReference } = JSON.parse(detail) as Record<string, unknown>;
    return paymentText(entry, amountKobo, bankReference);
  } catch {
    return undefined;
  }
}

function paymentText(entry: unknown, amountKobo: unknown, bankReference: unknown): string {
  return JSON.stringify([entry, String(amountKobo), bankReference]);
}
