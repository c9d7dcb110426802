import type { Shared } from '../db/facts.ts';
import type { PartnerTransaction } from '../db/partner-transaction.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';
import { bytes, defineTable, exactText, instant, optional, text, whole } from '../db/table.ts';
import {
  availableChange,
  emptyLedger,
  headAt,
  isKnownType,
  type LedgerEntry,
  type LedgerHead,
  movements,
  nextEntry,
  type Transfer,
  type TransferTypeWord,
} from './rules.ts';

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
  },
  primary: ['partnerId'],
});

/** The ledger: each entry with the sums after it, its hash, and the hash of the entry before. Rows are only added. */
export const transfers = defineTable({
  name: 'wallet_transfers',
  columns: {
    partnerId: text(24),
    sequence: whole(),
    id: text(24),
    type: text<TransferTypeWord>(8),
    amountKobo: whole(),
    availableAfterKobo: whole(),
    reservedAfterKobo: whole(),
    postedAfterKobo: whole(),
    allocationId: optional(text(24)),
    account: optional(text(64)),
    bankReference: optional(exactText(64)),
    createdAt: instant(),
    previousHash: bytes(32),
    hash: bytes(32),
  },
  primary: ['partnerId', 'sequence'],
  indexes: { wallet_transfers_type: ['partnerId', 'type', 'sequence'] },
  unique: {
    wallet_transfers_allocation: ['partnerId', 'allocationId', 'type'],
    wallet_transfers_bank_reference: ['bankReference'],
  },
});

const shownTransfer = transfers.only(
  ...(['sequence', 'id', 'type', 'amountKobo', 'allocationId', 'account', 'bankReference', 'createdAt'] as const),
);
const knownTypes = Object.keys(movements).map((type) => `'${type}'`);

/** The columns that partners see. The movement of another version's entry type follows from the sums before and after. */
const shown = `${shownTransfer.list}, IF(type IN (${knownTypes.join(', ')}), NULL,
  available_after_kobo - COALESCE((SELECT p.available_after_kobo FROM wallet_transfers p
    WHERE p.partner_id = t.partner_id AND p.sequence = t.sequence - 1), 0)) AS available_change_kobo`;

/** A wallet in a transaction, with the entries made in it so far. */
export interface Wallet {
  readonly head: LedgerHead;
  readonly entries: readonly LedgerEntry[];
}

/** A partner's wallet, which all work in a transaction shares. */
export function wallet(partnerId: string): Shared<Wallet> {
  return {
    name: 'wallet',
    read: wallets.find({ partnerId }),
    value: ([row]) => ({ head: row === undefined ? emptyLedger(partnerId) : wallets.all.read(row), entries: [] }),
    guard({ head }) {
      const isStored = head.lastSequence > 0n;
      const { sql, values } = wallets.where(isStored ? head : { partnerId });
      return { sql: `${isStored ? '' : 'NOT '}EXISTS (SELECT 1 FROM wallets WHERE ${sql})`, values };
    },
    save: (before, { head, entries }) => [
      transfers.insert(...entries.slice(before.entries.length).map(toRow)),
      wallets.put(head, 'lastSequence', 'lastHash', 'availableKobo', 'reservedKobo', 'postedKobo'),
    ],
    remembered: ({ head }) => ({ head, entries: [] }),
  };
}

/** Appends an entry after those of earlier work in the transaction. Throws if a sum would be negative or too large. */
export function transfer(partner: PartnerTransaction, transferred: Transfer): LedgerEntry {
  const shared = wallet(partner.id);
  const { head, entries } = partner.get(shared);
  const entry = nextEntry(head, transferred);
  partner.set(shared, { head: headAt(entry), entries: [...entries, entry] });
  return entry;
}

function toRow({ availableKobo, reservedKobo, postedKobo, allocation, ...entry }: LedgerEntry) {
  const sums = { availableAfterKobo: availableKobo, reservedAfterKobo: reservedKobo, postedAfterKobo: postedKobo };
  return { ...entry, ...sums, allocationId: allocation };
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

/** A page of a partner's credits, newest first, from before an entry on; 0: from the newest. */
export function listCredits(partnerId: string, before: bigint, most: number): Statement {
  const order = `ORDER BY sequence DESC LIMIT ${most}`;
  const tail = before > 0n ? statement(`AND sequence < ? ${order}`, before.toString()) : statement(order);
  return transfers.find({ partnerId, type: 'credit' }, transfers.all, tail, 'wallet_transfers_type');
}

/** A page of wallets in the order of the partners' ids. */
export function listWallets(afterPartnerId: string, most: number): Statement {
  const list = `SELECT ${wallets.all.list} FROM wallets WHERE partner_id > ? ORDER BY partner_id LIMIT ${most}`;
  return statement(list, afterPartnerId);
}

/** A page of a partner's ledger, oldest first, after an entry. */
export function listEntries(partnerId: string, after: bigint, most: number): Statement {
  const tail = statement(`AND sequence > ? ORDER BY sequence LIMIT ${most}`, after.toString());
  return transfers.find({ partnerId }, transfers.all, tail, 'PRIMARY');
}

/** An entry as partners see it, with its position in the ledger. */
export function toShownTransfer(row: SqlRow) {
  const { allocationId: allocation, ...entry } = shownTransfer.read(row);
  const isKnown = isKnownType(entry.type);
  const availableChangeKobo = isKnown ? availableChange(entry) : toBigInt(row.available_change_kobo);
  return { ...entry, allocation, availableChangeKobo };
}

export function toEntry(row: SqlRow): LedgerEntry {
  const { availableAfterKobo, reservedAfterKobo, postedAfterKobo, allocationId, ...entry } = transfers.all.read(row);
  const sums = { availableKobo: availableAfterKobo, reservedKobo: reservedAfterKobo, postedKobo: postedAfterKobo };
  return { ...entry, ...sums, allocation: allocationId };
}
