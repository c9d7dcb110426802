import { ApiError, UnprovenRowError } from '../../edge/errors.ts';
import type { Shared } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../../store/statement.ts';
import { bytes, bytesUpTo, defineTable, exactText, instant, optional, text, whole } from '../../store/table.ts';
import {
  availableChange,
  emptyLedger,
  headAt,
  isKnownType,
  type LedgerEntry,
  type LedgerHead,
  movements,
  nextEntry,
  storedType,
  type Transfer,
  type TransferTypeWord,
} from './rules.ts';
import { sealedSequence, WalletSeals, walletSealLength, walletSealUse } from './seals.ts';

export { sealedSequence, WalletSeals, walletSealUse };

/** The sums of each partner's ledger and its last entry. Amounts are in kobo. */
export const wallets = defineTable({
  name: 'wallets',
  columns: {
    partnerId: text(24),
    lastSequence: whole(),
    lastHash: bytes(32),
    availableKobo: whole(),
    reservedKobo: whole(),
    postedKobo: whole(),
    /** The sum of the ledger's withdrawals. */
    withdrawnKobo: whole(),
    /** Proves the end of the ledger (`WalletSeals`); null if only versions before seals wrote it. */
    seal: optional(bytesUpTo(walletSealLength)),
  },
  primary: ['partnerId'],
});

/** The end of a ledger. */
export const ledgerHead = wallets.only(
  ...(['partnerId', 'lastSequence', 'lastHash', 'availableKobo', 'reservedKobo', 'postedKobo'] as const),
);

/** The ledger: each entry with the sums after it, its hash, and the hash of the entry before. Rows are only added. */
export const transfers = defineTable({
  name: 'wallet_transfers',
  columns: {
    partnerId: text(24),
    sequence: whole(),
    id: text(24),
    /** As `storedType` writes it. */
    type: text(8),
    amountKobo: whole(),
    availableAfterKobo: whole(),
    reservedAfterKobo: whole(),
    postedAfterKobo: whole(),
    /** The allocation or withdrawal that it belongs to. */
    allocationId: optional(text(24)),
    account: optional(text(64)),
    bankReference: optional(exactText(64)),
    createdAt: instant(),
    previousHash: bytes(32),
    hash: bytes(32),
    /** The position of the credit that a reversal takes back. */
    reverses: optional(whole()),
  },
  primary: ['partnerId', 'sequence'],
  indexes: {
    wallet_transfers_type: ['partnerId', 'type', 'sequence'],
    wallet_transfers_reverses: ['partnerId', 'reverses'],
  },
  unique: {
    wallet_transfers_allocation: ['partnerId', 'allocationId', 'type'],
    wallet_transfers_bank_reference: ['bankReference'],
  },
});

const shownTransfer = transfers.only(
  ...(['sequence', 'id', 'type', 'amountKobo', 'allocationId', 'account', 'bankReference', 'createdAt'] as const),
);
const typeWords = Object.keys(movements) as TransferTypeWord[];
const knownTypes = typeWords.map((type) => `'${storedType(type)}'`);

/** The type of a stored entry. One of another version stays as it is stored. */
export function transferTypeOf(stored: string): TransferTypeWord {
  return typeWords.find((type) => storedType(type) === stored) ?? (stored as TransferTypeWord);
}

/** The columns that partners see. The movement of another version's entry type follows from the sums before and after. */
const shown = `${shownTransfer.list}, IF(type IN (${knownTypes.join(', ')}), NULL,
  available_after_kobo - COALESCE((SELECT p.available_after_kobo FROM wallet_transfers p
    WHERE p.partner_id = t.partner_id AND p.sequence = t.sequence - 1), 0)) AS available_change_kobo`;

/** A wallet in a transaction, with the entries made in it so far. */
export interface Wallet {
  readonly head: LedgerHead;
  /** The sum of the withdrawals in the ledger, in kobo. */
  readonly withdrawnKobo: bigint;
  readonly entries: readonly LedgerEntry[];
  /** The seal as it is stored. */
  readonly seal: Buffer | null;
  /** Whether its end is proven, so that what follows may be sealed. */
  readonly isSealed: boolean;
  /** Whether its money may move. */
  readonly isAccepted: boolean;
}

/** A partner's wallet, which all work in a transaction shares. */
export function wallet(partnerId: string, seals: WalletSeals): Shared<Wallet> {
  return {
    name: 'wallet',
    read: wallets.find({ partnerId }),
    value: ([row]) => toWallet(partnerId, row, seals),
    guard({ head, withdrawnKobo, seal, isSealed }) {
      const isStored = head.lastSequence > 0n;
      // One that is not sealed is read again once `keys seal` has sealed it.
      const stored = { ...head, withdrawnKobo, ...(isSealed ? {} : { seal }) };
      const { sql, values } = wallets.where(isStored ? stored : { partnerId });
      return { sql: `${isStored ? '' : 'NOT '}EXISTS (SELECT 1 FROM wallets WHERE ${sql})`, values };
    },
    save: (before, { head, withdrawnKobo, entries, seal, isSealed }) => [
      transfers.insert(...entries.slice(before.entries.length).map(toRow)),
      // A seal that does not reach the end stays: only `keys seal` proves what another version added.
      isSealed
        ? wallets.put({ ...head, withdrawnKobo, seal: seals.make(head) }, ...changing, 'seal')
        : wallets.put({ ...head, withdrawnKobo, seal }, ...changing),
    ],
    remembered: (saved) => ({ ...saved, entries: [] }),
  };
}

const changing = [
  ...(['lastSequence', 'lastHash', 'availableKobo', 'reservedKobo', 'postedKobo', 'withdrawnKobo'] as const),
];

function toWallet(partnerId: string, row: SqlRow | undefined, seals: WalletSeals): Wallet {
  if (row === undefined) {
    const none = { entries: [], withdrawnKobo: 0n, seal: null };
    return { ...none, head: emptyLedger(partnerId), isSealed: true, isAccepted: true };
  }
  const { seal, withdrawnKobo, ...head } = wallets.all.read(row);
  const proof = seals.prove(head, seal);
  return { head, withdrawnKobo, entries: [], seal, isSealed: proof === 'sealed', isAccepted: seals.accepts(proof) };
}

/** A wallet whose money may move. Throws `service_unavailable` with an `UnprovenRowError` if its row is not what a gateway wrote. */
export function usableWallet(partner: PartnerTransaction, seals: WalletSeals): Wallet {
  const found = partner.get(wallet(partner.id, seals));
  checkAccepted(found);
  return found;
}

/** The sums of a ledger as they are shown. Throws as `usableWallet` does. */
export function provenSums(partnerId: string, row: SqlRow | undefined, seals: WalletSeals) {
  const found = toWallet(partnerId, row, seals);
  checkAccepted(found);
  return { ...found.head, withdrawnKobo: found.withdrawnKobo };
}

function checkAccepted({ isAccepted, head: { partnerId, lastSequence } }: Wallet): void {
  if (isAccepted) return;
  const cause = new UnprovenRowError(`the wallet of ${partnerId} has no right seal at entry ${lastSequence}`);
  throw new ApiError('service_unavailable', { cause });
}

/**
 * Appends an entry after those of earlier work in the transaction. Throws if a sum would be negative or too large, or if the
 * wallet is not proven: nothing is sealed on top of what somebody else wrote.
 */
export function transfer(partner: PartnerTransaction, transferred: Transfer, seals: WalletSeals): LedgerEntry {
  const before = usableWallet(partner, seals);
  const entry = nextEntry(before.head, transferred);
  const withdrawn = entry.type === 'withdrawal' ? entry.amountKobo : 0n;
  partner.set(wallet(partner.id, seals), {
    ...before,
    head: headAt(entry),
    withdrawnKobo: before.withdrawnKobo + withdrawn,
    entries: [...before.entries, entry],
  });
  return entry;
}

function toRow({ availableKobo, reservedKobo, postedKobo, allocation, withdrawal, ...entry }: LedgerEntry) {
  const sums = { availableAfterKobo: availableKobo, reservedAfterKobo: reservedKobo, postedAfterKobo: postedKobo };
  const { type, reverses = null } = entry;
  return { ...entry, ...sums, type: storedType(type), allocationId: allocation ?? withdrawal ?? null, reverses };
}

/** A page of a partner's ledger as partners see it, newest first, from before an entry on. */
export function listTransfers(partnerId: string, before: bigint | undefined, most: number): Statement {
  const from = before === undefined ? [] : [before.toString()];
  return statement(
    `SELECT ${shown} FROM wallet_transfers t FORCE INDEX (PRIMARY) WHERE partner_id = ? ${from.length > 0 ? 'AND sequence < ?' : ''}
      ORDER BY sequence DESC LIMIT ${most}`,
    partnerId,
    ...from,
  );
}

/** An entry of a payment or a correction, with what belongs to it. Unless it is a credit, nothing of it is reversed. */
const payment = `${transfers.all.list},
  (SELECT COALESCE(SUM(r.amount_kobo), 0) FROM wallet_transfers r FORCE INDEX (wallet_transfers_reverses)
    WHERE r.partner_id = t.partner_id AND r.reverses = t.sequence) AS reversed_kobo,
  (SELECT c.bank_reference FROM wallet_transfers c
    WHERE c.partner_id = t.partner_id AND c.sequence = t.reverses) AS credit_bank_reference
  FROM wallet_transfers t`;

/** The entry of a payment or a correction, as operators see it. */
export interface RecordedPayment {
  readonly entry: LedgerEntry;
  /** The amount of a credit that was reversed, in kobo. */
  readonly reversedKobo: bigint;
  /** The bank reference of the credit that a reversal takes back. */
  readonly creditBankReference: string | null;
}

export function toPayment(row: SqlRow): RecordedPayment {
  const { reversed_kobo: reversed, credit_bank_reference: credit } = row;
  return {
    entry: toEntry(row),
    reversedKobo: toBigInt(reversed),
    creditBankReference: credit === null ? null : String(credit),
  };
}

/** The payment or correction with a bank reference, of whichever partner. */
export function findPayment(bankReference: string): Statement {
  return statement(`SELECT ${payment} WHERE t.bank_reference = ?`, Buffer.from(bankReference));
}

/** How many of the newest entries a sum is made of at most. */
const maxSummed = 1_000;

/**
 * The sum, as `kobo`, of a partner's newest entries of a type since an instant, without those above an amount. It is above the amount
 * if there are too many of them to be added up: otherwise entries of a kobo would push out the others.
 */
export function sumSince(partnerId: string, type: TransferTypeWord, since: number, maxKobo: bigint): Statement {
  return statement(
    `SELECT COALESCE(SUM(IF(amount_kobo <= ?, amount_kobo, 0)), 0) + IF(COUNT(*) < ${maxSummed}, 0, ?) AS kobo FROM (
      SELECT amount_kobo, created_at FROM wallet_transfers FORCE INDEX (wallet_transfers_type)
      WHERE partner_id = ? AND type = ? ORDER BY sequence DESC LIMIT ${maxSummed}) AS newest WHERE created_at >= ?`,
    ...[maxKobo, maxKobo, partnerId, storedType(type), new Date(since)],
  );
}

/** A page of a partner's entries of a type, newest first, from before an entry on; 0: from the newest. */
export function listPayments(partnerId: string, type: TransferTypeWord, before: bigint, most: number): Statement {
  const from = before > 0n ? [before.toString()] : [];
  return statement(
    `SELECT ${payment} FORCE INDEX (wallet_transfers_type) WHERE t.partner_id = ? AND t.type = ?
      ${from.length > 0 ? 'AND t.sequence < ?' : ''} ORDER BY t.sequence DESC LIMIT ${most}`,
    ...[partnerId, storedType(type), ...from],
  );
}

/** A page of wallets in the order of the partners' ids. */
export function listWallets(afterPartnerId: string, most: number): Statement {
  const list = `SELECT ${ledgerHead.list} FROM wallets WHERE partner_id > ? ORDER BY partner_id LIMIT ${most}`;
  return statement(list, afterPartnerId);
}

/** A page of a partner's ledger, oldest first, after an entry. */
export function listEntries(partnerId: string, after: bigint, most: number): Statement {
  const tail = statement(`AND sequence > ? ORDER BY sequence LIMIT ${most}`, after.toString());
  return transfers.find({ partnerId }, transfers.all, tail, 'PRIMARY');
}

/** An entry as partners see it, with its position in the ledger. */
export function toShownTransfer(row: SqlRow) {
  const { allocationId, type: stored, ...entry } = shownTransfer.read(row);
  const type = transferTypeOf(stored);
  const change = isKnownType(type) ? availableChange({ ...entry, type }) : toBigInt(row.available_change_kobo);
  return { ...entry, type, withdrawal: null, ...objectOf(type, allocationId), availableChangeKobo: change };
}

export function toEntry(row: SqlRow): LedgerEntry {
  const { availableAfterKobo, reservedAfterKobo, postedAfterKobo, allocationId, ...entry } = transfers.all.read(row);
  const sums = { availableKobo: availableAfterKobo, reservedKobo: reservedAfterKobo, postedKobo: postedAfterKobo };
  const type = transferTypeOf(entry.type);
  return { ...entry, ...sums, type, ...objectOf(type, allocationId) };
}

/** The object that an entry of a type belongs to. */
function objectOf(type: TransferTypeWord, id: string | null): Pick<LedgerEntry, 'allocation' | 'withdrawal'> {
  return type === 'withdrawal' ? { allocation: null, withdrawal: id } : { allocation: id };
}
