import type { Kept, LockedPartner } from '../db/locked-partner.ts';
import { insertRows, type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';
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
  type WalletSums,
} from './rules.ts';

const columns = [
  'partner_id',
  'sequence',
  'id',
  'type',
  'amount_kobo',
  'available_after_kobo',
  'reserved_after_kobo',
  'posted_after_kobo',
  'allocation_id',
  'account',
  'bank_reference',
  'created_at',
  'previous_hash',
  'hash',
] as const;
const all = columns.join(', ');

/**
 * What partners see of an entry. Its sums and hashes are for those who prove the ledger. What an entry of another version's
 * type moved is told by the sums after it and after the entry before.
 */
const shown = `t.sequence, t.id, t.type, t.amount_kobo, t.allocation_id, t.account, t.bank_reference, t.created_at,
  IF(t.type IN (${Object.keys(movements)
    .map((type) => `'${type}'`)
    .join(', ')}), NULL, t.available_after_kobo - COALESCE((SELECT p.available_after_kobo FROM wallet_transfers p
    WHERE p.partner_id = t.partner_id AND p.sequence = t.sequence - 1), 0)) AS available_change_kobo`;

const keptName = 'wallet';

/** A wallet in a transaction, with the entries made in it so far. */
class LockedWallet implements Kept {
  constructor(
    readonly head: LedgerHead,
    private readonly entries: readonly LedgerEntry[],
  ) {}

  /** With one entry more. */
  with(entry: LedgerEntry): LockedWallet {
    return new LockedWallet(headAt(entry), [...this.entries, entry]);
  }

  save(): Statement[] {
    return this.entries.length === 0 ? [] : [insertEntries(this.entries), saveHead(this.head)];
  }
}

/** Reads a partner's wallet; to be read under the partner's lock by all work that calls `sumsOf` or `transfer`. */
export function readWallet(partnerId: string): Statement {
  return statement('SELECT * FROM wallets WHERE partner_id = ?', partnerId);
}

/** What is in a wallet: what was read, and what work before ours in the same transaction moved. */
export function sumsOf(partner: LockedPartner, rows: readonly SqlRow[] | undefined): WalletSums {
  return lockedWallet(partner, rows).head;
}

/**
 * Makes an entry in a partner's ledger, after those that work before ours in the same transaction made. It is written when
 * the transaction is. Throws where it would take what is not there: whether there is enough is asked before.
 */
export function transfer(
  partner: LockedPartner,
  rows: readonly SqlRow[] | undefined,
  transferred: Transfer,
): LedgerEntry {
  const wallet = lockedWallet(partner, rows);
  const entry = nextEntry(wallet.head, transferred);
  partner.keep(keptName, wallet.with(entry));
  return entry;
}

function lockedWallet(partner: LockedPartner, rows: readonly SqlRow[] | undefined): LockedWallet {
  const kept = partner.kept(keptName);
  if (kept instanceof LockedWallet) return kept;
  const row = rows?.[0];
  return new LockedWallet(row === undefined ? emptyLedger(partner.id) : toHead(row), []);
}

function insertEntries(entries: readonly LedgerEntry[]): Statement {
  return insertRows(
    'wallet_transfers',
    columns,
    entries.map((entry) => [
      entry.partnerId,
      entry.sequence,
      entry.id,
      entry.type,
      entry.amountKobo,
      entry.availableKobo,
      entry.reservedKobo,
      entry.postedKobo,
      entry.allocation,
      entry.account,
      entry.bankReference === null ? null : Buffer.from(entry.bankReference),
      new Date(entry.createdAt),
      entry.previousHash,
      entry.hash,
    ]),
  );
}

function saveHead(head: LedgerHead): Statement {
  return statement(
    `INSERT INTO wallets (partner_id, last_sequence, last_hash, available_kobo, reserved_kobo, posted_kobo)
      VALUES (?, ?, ?, ?, ?, ?)
      ON DUPLICATE KEY UPDATE last_sequence = VALUES(last_sequence), last_hash = VALUES(last_hash),
        available_kobo = VALUES(available_kobo), reserved_kobo = VALUES(reserved_kobo), posted_kobo = VALUES(posted_kobo)`,
    head.partnerId,
    head.lastSequence,
    head.lastHash,
    head.availableKobo,
    head.reservedKobo,
    head.postedKobo,
  );
}

/** A page of a partner's ledger as partners see it, newest first, from before an entry on. */
export function listTransfers(partnerId: string, before: bigint | undefined, most: number): Statement {
  const from = before === undefined ? [] : [before.toString()];
  return statement(
    `SELECT ${shown} FROM wallet_transfers t WHERE t.partner_id = ? ${from.length > 0 ? 'AND t.sequence < ?' : ''}
      ORDER BY t.sequence DESC LIMIT ${most}`,
    partnerId,
    ...from,
  );
}

/** The credit with a bank reference, whoever's it is. */
export function findCredit(bankReference: string): Statement {
  return statement(`SELECT ${all} FROM wallet_transfers WHERE bank_reference = ?`, Buffer.from(bankReference));
}

/** A page of a partner's credits, newest first, from before an entry on; 0: from the newest. */
export function listCredits(partnerId: string, before: bigint, most: number): Statement {
  return statement(
    `SELECT ${all} FROM wallet_transfers WHERE partner_id = ? AND type = 'credit' ${before > 0n ? 'AND sequence < ?' : ''}
      ORDER BY sequence DESC LIMIT ${most}`,
    partnerId,
    ...(before > 0n ? [before.toString()] : []),
  );
}

/** A page of wallets in the order of the partners' ids. */
export function listWallets(afterPartnerId: string, most: number): Statement {
  return statement(`SELECT * FROM wallets WHERE partner_id > ? ORDER BY partner_id LIMIT ${most}`, afterPartnerId);
}

/** A page of a partner's ledger, oldest first, after an entry. */
export function listEntries(partnerId: string, after: bigint, most: number): Statement {
  return statement(
    `SELECT ${all} FROM wallet_transfers WHERE partner_id = ? AND sequence > ? ORDER BY sequence LIMIT ${most}`,
    partnerId,
    after.toString(),
  );
}

export function findEntry(partnerId: string, sequence: bigint): Statement {
  return statement(
    `SELECT ${all} FROM wallet_transfers WHERE partner_id = ? AND sequence = ?`,
    partnerId,
    sequence.toString(),
  );
}

export function toHead(row: SqlRow): LedgerHead {
  return {
    partnerId: String(row.partner_id),
    lastSequence: toBigInt(row.last_sequence),
    lastHash: row.last_hash as Buffer,
    availableKobo: toBigInt(row.available_kobo),
    reservedKobo: toBigInt(row.reserved_kobo),
    postedKobo: toBigInt(row.posted_kobo),
  };
}

/** An entry as partners see it, with the place it has in the ledger. */
export type ShownTransfer = Transfer & Pick<LedgerEntry, 'sequence'> & { readonly availableChangeKobo: bigint };

export function toShownTransfer(row: SqlRow): ShownTransfer {
  const entry = toTransfer(row);
  const isKnown = isKnownType(entry.type);
  return { ...entry, availableChangeKobo: isKnown ? availableChange(entry) : toBigInt(row.available_change_kobo) };
}

function toTransfer(row: SqlRow): Transfer & Pick<LedgerEntry, 'sequence'> {
  return {
    sequence: toBigInt(row.sequence),
    id: String(row.id),
    type: row.type as TransferTypeWord,
    amountKobo: toBigInt(row.amount_kobo),
    allocation: row.allocation_id as string | null,
    account: row.account as string | null,
    bankReference: row.bank_reference === null ? null : String(row.bank_reference),
    createdAt: (row.created_at as Date).getTime(),
  };
}

export function toEntry(row: SqlRow): LedgerEntry {
  return {
    ...toTransfer(row),
    partnerId: String(row.partner_id),
    availableKobo: toBigInt(row.available_after_kobo),
    reservedKobo: toBigInt(row.reserved_after_kobo),
    postedKobo: toBigInt(row.posted_after_kobo),
    previousHash: row.previous_hash as Buffer,
    hash: row.hash as Buffer,
  };
}
