import { createHash } from 'node:crypto';
import type { LedgerFaultKind } from '../../../gen/marina/admin/v1/wallets_pb.ts';
import type { WalletTransferType } from '../../../gen/marina/gateway/v1/wallet_pb.ts';
import type { EnumName } from '../../../kit/enums.ts';

export type TransferTypeWord = EnumName<typeof WalletTransferType>;

/**
 * The sums of a wallet, in kobo. Every kobo that came in, by credit or withdrawal, and did not go out again, by debit or reversal
 * of a credit, is in exactly one of them.
 */
export interface WalletSums {
  readonly availableKobo: bigint;
  readonly reservedKobo: bigint;
  readonly postedKobo: bigint;
}

/** An entry of the ledger, without its position. */
export interface Transfer {
  readonly id: string;
  readonly type: TransferTypeWord;
  readonly amountKobo: bigint;
  /** Set on what an allocation moves. */
  readonly allocation: string | null;
  /** Only of a withdrawal. */
  readonly withdrawal?: string | null;
  /** Null unless it is a post or a withdrawal. */
  readonly account: string | null;
  /** Only of a credit, a debit and the reversal of a credit. */
  readonly bankReference: string | null;
  /** The position of the credit that it reverses. The hash leaves it out: the entry's audit entry proves it. */
  readonly reverses?: bigint | null;
  readonly createdAt: number;
}

/** An entry at its position (1, 2, 3 …), with the sums after it and the hash of the entry before. */
export interface LedgerEntry extends Transfer, WalletSums {
  readonly partnerId: string;
  readonly sequence: bigint;
  readonly previousHash: Buffer;
  readonly hash: Buffer;
}

/** The end of a ledger: its sums, and the entry that the next one follows. */
export interface LedgerHead extends WalletSums {
  readonly partnerId: string;
  readonly lastSequence: bigint;
  readonly lastHash: Buffer;
}

/** How often an entry's amount is added to each sum. */
export const movements: Readonly<Record<TransferTypeWord, Readonly<Record<keyof WalletSums, bigint>>>> = {
  credit: { availableKobo: 1n, reservedKobo: 0n, postedKobo: 0n },
  reserve: { availableKobo: -1n, reservedKobo: 1n, postedKobo: 0n },
  post: { availableKobo: 0n, reservedKobo: -1n, postedKobo: 1n },
  return: { availableKobo: 1n, reservedKobo: -1n, postedKobo: 0n },
  withdrawal: { availableKobo: 1n, reservedKobo: 0n, postedKobo: 0n },
  debit: { availableKobo: -1n, reservedKobo: 0n, postedKobo: 0n },
  credit_reversal: { availableKobo: -1n, reservedKobo: 0n, postedKobo: 0n },
};

/** The name of a type in the database: its first letters, because the column has no room for more. */
export function storedType(type: string): string {
  return type.slice(0, 8);
}

/** The most that a wallet may hold in all for a payment to be recorded. */
export const maxInWalletKobo = 10n ** 18n;

/** The most that a ledger's sums can be together: what the broker pays back out of accounts is credited above the other bound. */
const maxSumsKobo = 9n * maxInWalletKobo;

/** The end of a ledger without entries. */
export function emptyLedger(partnerId: string): LedgerHead {
  return {
    partnerId,
    lastSequence: 0n,
    lastHash: Buffer.alloc(32),
    availableKobo: 0n,
    reservedKobo: 0n,
    postedKobo: 0n,
  };
}

/** The entry of a transfer at the end of a ledger. Throws if a sum would be negative or too large. */
export function nextEntry(head: LedgerHead, transfer: Transfer): LedgerEntry {
  const { partnerId, lastSequence, lastHash } = head;
  const sums = sumsAfter(head, transfer);
  const wrong = wrongForm(transfer) ?? wrongSums(sums);
  if (wrong !== undefined) throw new Error(`the transfer ${transfer.id} of ${partnerId} cannot be: ${wrong}`);
  const entry = { ...transfer, ...sums, partnerId, sequence: lastSequence + 1n, previousHash: lastHash };
  return { ...entry, hash: hashOf(entry) };
}

/** The end of a ledger, made from its last entry. */
export function headAt(entry: LedgerEntry): LedgerHead {
  const { partnerId, sequence, hash, availableKobo, reservedKobo, postedKobo } = entry;
  return { partnerId, lastSequence: sequence, lastHash: hash, availableKobo, reservedKobo, postedKobo };
}

/** Whether this version knows a type of entry. */
export function isKnownType(type: string): type is TransferTypeWord {
  return Object.hasOwn(movements, type);
}

/** The change of the available sum by an entry, in kobo. */
export function availableChange({ type, amountKobo }: Pick<Transfer, 'type' | 'amountKobo'>): bigint {
  return movements[type].availableKobo * amountKobo;
}

function sameSums(one: WalletSums, other: WalletSums): boolean {
  return (
    one.availableKobo === other.availableKobo &&
    one.reservedKobo === other.reservedKobo &&
    one.postedKobo === other.postedKobo
  );
}

export type LedgerFaultWord = EnumName<typeof LedgerFaultKind>;

/** One fault of a ledger. */
export interface LedgerFault {
  readonly kind: LedgerFaultWord;
  /** The entry's number, the first one missing, or 0 for the wallet as a whole. */
  readonly sequence: bigint;
  /** Empty if the entry is missing. */
  readonly id: string;
  readonly detail: string;
}

/**
 * The faults of an entry, compared with the stored entry before it. The hash excludes the position, so a moved entry keeps a
 * correct hash and has the wrong predecessor. A changed entry has a wrong hash.
 */
export function entryFaults(before: LedgerHead, entry: LedgerEntry): LedgerFault[] {
  const fault = (kind: LedgerFaultWord, detail: string) => ({ kind, sequence: entry.sequence, id: entry.id, detail });
  const first = before.lastSequence + 1n;
  const gap =
    entry.sequence === first
      ? []
      : [{ kind: 'missing' as const, sequence: first, id: '', detail: missing(first, entry.sequence - 1n) }];
  // The movement of an entry type of another version is unknown. The rest of the entry is checked.
  const isKnown = isKnownType(entry.type);
  if (!hashOf(entry).equals(entry.hash)) return [...gap, fault('changed', 'it is not what its hash was made of')];
  const wrong = (isKnown ? wrongForm(entry) : undefined) ?? wrongSums(entry);
  if (wrong !== undefined) return [...gap, fault('changed', wrong)];
  if (gap.length > 0) return gap;
  if (!entry.previousHash.equals(before.lastHash)) {
    return [fault('reordered', 'it was made to follow another entry than the one before it')];
  }
  if (isKnown && !sameSums(sumsAfter(before, entry), entry)) {
    return [fault('wrong_sum', 'the sums after it do not follow from those before it')];
  }
  return [];
}

/** The last entry of an earlier check. That check found no fault up to this entry. */
export interface CheckedEntry {
  readonly sequence: bigint;
  readonly hash: Buffer;
}

/**
 * A fault if an earlier check found a different entry at this position. Its hash stands for all entries up to it, so this also
 * notices a whole chain that was rewritten.
 */
export function checkedFaults(checked: CheckedEntry | undefined, { sequence, id, hash }: LedgerEntry): LedgerFault[] {
  if (checked === undefined || sequence !== checked.sequence || hash.equals(checked.hash)) return [];
  return [{ kind: 'changed', sequence, id, detail: 'an earlier check found another entry here' }];
}

/** The faults at the end of a ledger: the wallet's row against the last entry, and both against an earlier check. */
export function headFaults(
  wallet: LedgerHead,
  last: LedgerHead,
  highestSequence: bigint,
  checked?: CheckedEntry,
): LedgerFault[] {
  const whole = (kind: LedgerFaultWord, detail: string) => ({ kind, sequence: 0n, id: '', detail });
  if (last.lastSequence < wallet.lastSequence) {
    const first = last.lastSequence + 1n;
    return [{ kind: 'missing', sequence: first, id: '', detail: missing(first, wallet.lastSequence) }];
  }
  if (highestSequence > wallet.lastSequence) {
    return [whole('wrong_sum', `the wallet knows ${wallet.lastSequence} entries, and there are ${highestSequence}`)];
  }
  if (checked !== undefined && checked.sequence > wallet.lastSequence) {
    const first = wallet.lastSequence + 1n;
    const detail = `${missing(first, checked.sequence)}, which an earlier check found`;
    return [{ kind: 'missing', sequence: first, id: '', detail }];
  }
  const faults = [];
  if (!last.lastHash.equals(wallet.lastHash)) {
    faults.push(whole('changed', 'the last entry is not the one the wallet knows as the last'));
  }
  if (!sameSums(wallet, last)) faults.push(whole('wrong_sum', "the wallet's sums are not those after the last entry"));
  return faults;
}

function missing(first: bigint, last: bigint): string {
  return first === last ? `entry ${first} is missing` : `entries ${first} to ${last} are missing`;
}

function sumsAfter(sums: WalletSums, { type, amountKobo }: Pick<Transfer, 'type' | 'amountKobo'>): WalletSums {
  const times = movements[type];
  return {
    availableKobo: sums.availableKobo + times.availableKobo * amountKobo,
    reservedKobo: sums.reservedKobo + times.reservedKobo * amountKobo,
    postedKobo: sums.postedKobo + times.postedKobo * amountKobo,
  };
}

/** The fields that not every entry has, with their names and the types that have them. */
const fields = [
  ['bankReference', 'bank reference', ['credit', 'debit', 'credit_reversal']],
  ['allocation', 'allocation', ['reserve', 'post', 'return']],
  ['withdrawal', 'withdrawal', ['withdrawal']],
  ['account', 'account', ['post', 'withdrawal']],
  ['reverses', 'reversed credit', ['credit_reversal']],
] as const satisfies readonly (readonly [keyof Transfer, string, readonly TransferTypeWord[]])[];

function wrongForm(entry: Transfer): string | undefined {
  if (entry.amountKobo <= 0n) return 'its amount is not positive';
  for (const [field, name, types] of fields) {
    const isThere = (entry[field] ?? null) !== null;
    const isNeeded = (types as readonly string[]).includes(entry.type);
    if (isThere !== isNeeded) return `an entry of the type ${entry.type} ${isThere ? 'has no' : 'needs its'} ${name}`;
  }
  return undefined;
}

function wrongSums({ availableKobo, reservedKobo, postedKobo }: WalletSums): string | undefined {
  if (availableKobo < 0n || reservedKobo < 0n || postedKobo < 0n) return 'a sum would be negative';
  if (availableKobo + reservedKobo + postedKobo > maxSumsKobo) return 'the sums would be too large';
  return undefined;
}

/**
 * Hashes an entry with its predecessor's hash. As JSON, two different entries never give the same text. Its type is as it is stored, so
 * that an earlier version that does not know it can check the hash too.
 */
function hashOf(entry: Omit<LedgerEntry, 'hash' | 'sequence'>): Buffer {
  const text = JSON.stringify([
    entry.partnerId,
    entry.previousHash.toString('hex'),
    entry.id,
    storedType(entry.type),
    entry.amountKobo.toString(),
    entry.availableKobo.toString(),
    entry.reservedKobo.toString(),
    entry.postedKobo.toString(),
    entry.allocation ?? entry.withdrawal ?? null,
    entry.account,
    entry.bankReference,
    new Date(entry.createdAt).toISOString(),
  ]);
  return createHash('sha256').update(text).digest();
}
