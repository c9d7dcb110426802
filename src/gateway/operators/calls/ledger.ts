import type { Database } from '../../store/database.ts';
import { statement, toBigInt } from '../../store/statement.ts';
import type { ShownBy } from '../../store/table.ts';
import { allocationStates } from '../../trading/allocations/rules.ts';
import { allocations } from '../../trading/allocations/table.ts';
import {
  checkedFaults,
  emptyLedger,
  entryFaults,
  headAt,
  headFaults,
  type LedgerEntry,
  type LedgerFault,
  type LedgerHead,
} from '../../trading/wallet/rules.ts';
import { listEntries, toEntry, transfers, type WalletSeals, wallets } from '../../trading/wallet/store.ts';
import { withdrawals } from '../../trading/withdrawals/table.ts';
import { paymentFaults } from './credit-audit.ts';
import { reversalFaults } from './credit-reversals.ts';
import { checkedPosition, readChecked } from './ledger-position.ts';
import { SealedPart } from './sealed-part.ts';

export interface LedgerWalk {
  readonly complete: boolean;
  readonly faults: readonly LedgerFault[];
  readonly entries: number;
  readonly last: LedgerHead;
}

interface WalkOptions {
  /** The seals that the wallet is checked with. Absent: the chain alone is checked, which proves nothing of who wrote it. */
  readonly seals?: WalletSeals;
  readonly mostEntries?: number;
}

/** Entries of one walk, and entries read at a time. */
const longestWalk = 50_000;
const pageSize = 1_000;
const maxFaults = 100;

/**
 * Walks a partner's ledger after an entry: each entry against the one before, its hash, its allocation, its withdrawal or the credit
 * that it reverses, and the audit of its payment; then the wallet's sums and its seal. The entry that the ledger check found last
 * must still be the same. Entries committed after its start are ignored.
 * Undefined if the partner or the entry does not exist.
 */
export async function walkLedger(
  database: Database,
  partnerId: string,
  after: bigint,
  { seals, mostEntries = longestWalk }: WalkOptions = {},
): Promise<LedgerWalk | undefined> {
  const [row] = await database.read(statement(whole, partnerId));
  if (row === undefined) return undefined;
  const none = { ...emptyLedger(partnerId), withdrawnKobo: 0n, seal: null };
  const { seal, withdrawnKobo, ...wallet } = row.partner_id === null ? none : wallets.all.read(row);
  const sealed = new SealedPart(seals, seal);
  const checked = readChecked(row.checked);
  const faults: LedgerFault[] = [];
  let last = emptyLedger(partnerId);
  if (after > 0n) {
    const [from] = await database.read(transfers.find({ partnerId, sequence: after }));
    if (from === undefined) return undefined;
    const entry = toEntry(from);
    faults.push(...checkedFaults(checked, entry));
    last = headAt(entry);
    faults.push(...sealed.begin(entry));
  }
  let entries = 0;
  let withdrawn = 0n;
  let atEnd = last.lastSequence >= wallet.lastSequence;
  while (!atEnd && entries < mostEntries && faults.length < maxFaults) {
    const wanted = Math.min(pageSize, mostEntries - entries);
    const rows = await database.read(listEntries(partnerId, last.lastSequence, wanted));
    const page = rows.map(toEntry).filter(({ sequence }) => sequence <= wallet.lastSequence);
    const unchanged: LedgerEntry[] = [];
    for (const entry of page) {
      const found = entryFaults(last, entry);
      if (found.every(({ kind }) => kind !== 'changed')) unchanged.push(entry);
      faults.push(...(found.length > 0 ? found : checkedFaults(checked, entry)));
      last = headAt(entry);
      if (entry.type === 'withdrawal') withdrawn += entry.amountKobo;
      faults.push(...sealed.add(entry));
    }
    faults.push(...(await paymentFaults(database, partnerId, unchanged)));
    for (const check of objectChecks) faults.push(...(await check(database, partnerId, page)));
    entries += page.length;
    atEnd = page.length < wanted || last.lastSequence >= wallet.lastSequence;
  }
  faults.push(...sealed.end(wallet));
  if (atEnd) {
    faults.push(...headFaults(wallet, last, toBigInt(row.highest_sequence ?? 0), checked));
    const unsettled = toBigInt(row.unsettled_kobo);
    if (!isReserveRight(wallet.reservedKobo, unsettled, toBigInt(row.unknown_kobo))) {
      const detail = `${wallet.reservedKobo} kobo are reserved, and unsettled allocations come to ${unsettled}`;
      faults.push({ kind: 'allocation', sequence: 0n, id: '', detail });
    }
    // Only a walk of all entries adds up theirs.
    if (after === 0n && withdrawnKobo !== withdrawn) {
      const detail = `the wallet has ${withdrawnKobo} kobo of withdrawals, and their entries come to ${withdrawn}`;
      faults.push({ kind: 'wrong_sum', sequence: 0n, id: '', detail });
    }
  }
  return { complete: atEnd, faults: faults.slice(0, maxFaults), entries, last };
}

/**
 * Whether a wallet reserves what its unsettled allocations need. This version does not know whether an allocation in a state of
 * another version is reserved.
 */
export function isReserveRight(reservedKobo: bigint, unsettledKobo: bigint, unknownKobo: bigint): boolean {
  return reservedKobo >= unsettledKobo && reservedKobo <= unsettledKobo + unknownKobo;
}

/**
 * One consistent read: the wallet, the ledger's highest number, how far it was checked, and the sums of unsettled and of
 * unknown allocations.
 */
const whole = `SELECT w.*, ${checkedPosition} AS checked,
  (SELECT MAX(t.sequence) FROM wallet_transfers t WHERE t.partner_id = p.id) AS highest_sequence,
  (SELECT COALESCE(SUM(a.amount_kobo), 0) FROM allocations a FORCE INDEX (allocations_state)
    WHERE a.partner_id = p.id AND a.state IN ('sending', 'uncertain')) AS unsettled_kobo,
  (SELECT COALESCE(SUM(a.amount_kobo), 0) FROM allocations a FORCE INDEX (allocations_state)
    WHERE a.partner_id = p.id AND NOT ${allocations.isKnownSql}) AS unknown_kobo
  FROM partners p LEFT JOIN wallets w ON w.partner_id = p.id WHERE p.id = ?`;

/** Each compares entries with what they belong to. */
const objectChecks = [allocationFaults, withdrawalFaults, reversalFaults];

/** The columns of a withdrawal that the ledger must agree with. */
const withdrawalFacts = withdrawals.only('id', 'state', 'account', 'amountKobo', 'destination');

/** The entries that contradict their withdrawals. One to the wallet that was paid never changes, so it may be read later. */
async function withdrawalFaults(
  database: Database,
  partnerId: string,
  entries: readonly LedgerEntry[],
): Promise<LedgerFault[]> {
  const paid = entries.flatMap(({ withdrawal, ...entry }) => (withdrawal ? [{ ...entry, withdrawal }] : []));
  if (paid.length === 0) return [];
  const ids = paid.map(({ withdrawal }) => withdrawal);
  const [rows = []] = await database.readAll([withdrawals.find({ partnerId, id: ids }, withdrawalFacts)]);
  const byId = new Map(rows.map(withdrawalFacts.read).map((row) => [row.id, row]));
  return paid.flatMap(({ withdrawal, amountKobo, account, sequence, id }) => {
    const row = byId.get(withdrawal);
    const isRight =
      row?.destination === 'wallet' &&
      row.state === 'completed' &&
      row.amountKobo === amountKobo &&
      row.account === account;
    return isRight
      ? []
      : [{ kind: 'withdrawal' as const, sequence, id, detail: 'it is not that of a paid withdrawal' }];
  });
}

/** The columns of an allocation that the ledger must agree with. */
const allocationFacts = allocations.only('id', 'state', 'account', 'amountKobo');

/** The entries that contradict their allocations. A settled allocation never changes, so it may be read later. */
async function allocationFaults(
  database: Database,
  partnerId: string,
  entries: readonly LedgerEntry[],
): Promise<LedgerFault[]> {
  const ids = [...new Set(entries.flatMap(({ allocation }) => (allocation === null ? [] : [allocation])))];
  if (ids.length === 0) return [];
  const [rows = []] = await database.readAll([allocations.find({ partnerId, id: ids }, allocationFacts)]);
  const byId = new Map(rows.map(allocationFacts.read).map((row) => [row.id, row]));
  return entries.flatMap((entry) => {
    const detail = entry.allocation === null ? undefined : disagreement(entry, byId.get(entry.allocation));
    return detail === undefined
      ? []
      : [{ kind: 'allocation' as const, sequence: entry.sequence, id: entry.id, detail }];
  });
}

function disagreement(entry: LedgerEntry, allocation: ShownBy<typeof allocationFacts> | undefined): string | undefined {
  if (allocation === undefined) return 'there is no such allocation';
  if (allocation.amountKobo !== entry.amountKobo) return 'the allocation is of another amount';
  if (allocationStates.transitions[allocation.state] === undefined) return undefined;
  const isBooked = allocation.state === 'booked';
  if (entry.type === 'post' && !isBooked) return `it is posted, and the allocation is ${allocation.state}`;
  if (entry.type === 'post' && allocation.account !== entry.account) return 'the allocation is for another account';
  const isReturned = allocation.state === 'refused' || allocation.state === 'rejected';
  if (entry.type === 'return' && !isReturned) return `it is returned, and the allocation is ${allocation.state}`;
  return undefined;
}
