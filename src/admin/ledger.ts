import { allocationStates } from '../allocations/rules.ts';
import { allocations } from '../allocations/table.ts';
import type { Database } from '../db/database.ts';
import { underLease } from '../db/lease.ts';
import { statement, toBigInt } from '../db/statement.ts';
import type { ShownBy } from '../db/table.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';
import {
  emptyLedger,
  entryFaults,
  headAt,
  headFaults,
  type LedgerEntry,
  type LedgerFault,
  type LedgerHead,
} from '../wallet/rules.ts';
import { listEntries, listWallets, toEntry, transfers, wallets } from '../wallet/store.ts';

interface LedgerWalk {
  readonly complete: boolean;
  readonly faults: readonly LedgerFault[];
  readonly entries: number;
  readonly last: LedgerHead;
}

/** Entries of one walk, and entries read at a time. */
const longestWalk = 50_000;
const pageSize = 1_000;
const mostFaults = 100;

/**
 * Walks a partner's ledger after an entry: each entry against the one before, its hash and its allocation, then the wallet's
 * sums. Entries committed after its start are ignored. Undefined if the partner or the entry does not exist.
 */
export async function walkLedger(
  database: Database,
  partnerId: string,
  after: bigint,
): Promise<LedgerWalk | undefined> {
  const [row] = await database.read(statement(whole, partnerId));
  if (row === undefined) return undefined;
  const wallet = row.partner_id === null ? emptyLedger(partnerId) : wallets.all.read(row);
  let last = emptyLedger(partnerId);
  if (after > 0n) {
    const [from] = await database.read(transfers.find({ partnerId, sequence: after }));
    if (from === undefined) return undefined;
    last = headAt(toEntry(from));
  }
  const faults: LedgerFault[] = [];
  let entries = 0;
  let atEnd = last.lastSequence >= wallet.lastSequence;
  while (!atEnd && entries < longestWalk && faults.length < mostFaults) {
    const rows = await database.read(listEntries(partnerId, last.lastSequence, pageSize));
    const page = rows.map(toEntry).filter(({ sequence }) => sequence <= wallet.lastSequence);
    for (const entry of page) {
      faults.push(...entryFaults(last, entry));
      last = headAt(entry);
    }
    faults.push(...(await allocationFaults(database, partnerId, page)));
    entries += page.length;
    atEnd = page.length < pageSize || last.lastSequence >= wallet.lastSequence;
  }
  if (atEnd) {
    faults.push(...headFaults(wallet, last, toBigInt(row.highest_sequence ?? 0)));
    const unsettled = toBigInt(row.unsettled_kobo);
    // This version does not know whether an allocation in a state of another version is reserved.
    const most = unsettled + toBigInt(row.unknown_kobo);
    if (wallet.reservedKobo < unsettled || wallet.reservedKobo > most) {
      const detail = `${wallet.reservedKobo} kobo are reserved, and unsettled allocations come to ${unsettled}`;
      faults.push({ kind: 'allocation', sequence: 0n, id: '', detail });
    }
  }
  return { complete: atEnd, faults: faults.slice(0, mostFaults), entries, last };
}

/** One consistent read: the wallet, the ledger's highest number, and the sums of unsettled and of unknown allocations. */
const whole = `SELECT w.*,
  (SELECT MAX(t.sequence) FROM wallet_transfers t WHERE t.partner_id = p.id) AS highest_sequence,
  (SELECT COALESCE(SUM(a.amount_kobo), 0) FROM allocations a FORCE INDEX (allocations_state)
    WHERE a.partner_id = p.id AND a.state IN ('sending', 'uncertain')) AS unsettled_kobo,
  (SELECT COALESCE(SUM(a.amount_kobo), 0) FROM allocations a FORCE INDEX (allocations_state)
    WHERE a.partner_id = p.id AND NOT ${allocations.isKnownSql}) AS unknown_kobo
  FROM partners p LEFT JOIN wallets w ON w.partner_id = p.id WHERE p.id = ?`;

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

interface LedgerCheckParts {
  readonly database: Database;
  readonly log: Logger;
  readonly holder: string;
  /** Called after each round with the number of faulty ledgers. */
  readonly checked: (faultyLedgers: number) => void;
  /** The pause between two rounds, in milliseconds. */
  readonly betweenRoundsMs?: number;
  /** How long a proof is valid, in milliseconds. Then the ledger is walked from its first entry again. */
  readonly believedMs?: number;
}

/** A pause after each walk, so that nothing else waits for it. */
const betweenWalksMs = 200;
const walletsAtOnce = 100;

interface Proven {
  readonly upTo: bigint;
  /** When it was last walked from the first entry on, on a monotonic clock. */
  readonly wholeAt: number;
}

/**
 * Verifies all ledgers continuously, as VerifyLedger does on demand: new entries each minute, the whole ledger once a day
 * and after another process takes over. A faulty ledger is walked from its start in every round.
 */
export function ledgerCheck(parts: LedgerCheckParts): Worker {
  const { database, log, holder, checked, betweenRoundsMs = 60_000, believedMs = 86_400_000 } = parts;
  return underLease(database, 'ledger-check', holder, async ({ signal }) => {
    const proven = new Map<string, Proven>();
    while (!signal.aborted) {
      let faulty = 0;
      for (let after = ''; !signal.aborted; ) {
        const heads = (await database.read(listWallets(after, walletsAtOnce))).map(wallets.all.read);
        for (const { partnerId, lastSequence } of heads) {
          if (signal.aborted) return;
          const known = proven.get(partnerId);
          const isOld = known === undefined || performance.now() - known.wholeAt > believedMs;
          if (!isOld && known.upTo === lastSequence) continue;
          const wholeAt = isOld ? performance.now() : known.wholeAt;
          const upTo = await prove(partnerId, isOld ? 0n : known.upTo, signal);
          if (upTo === undefined) {
            faulty += 1;
            proven.delete(partnerId);
          } else proven.set(partnerId, { upTo, wholeAt });
          await pause(Math.min(betweenWalksMs, betweenRoundsMs), signal);
        }
        after = heads.at(-1)?.partnerId ?? '';
        if (heads.length < walletsAtOnce) break;
      }
      if (!signal.aborted) checked(faulty);
      await pause(betweenRoundsMs, signal);
    }
  });

  /** Walks a ledger to its end; undefined if it has a fault. */
  async function prove(partnerId: string, from: bigint, signal: AbortSignal): Promise<bigint | undefined> {
    for (let after = from; ; ) {
      const walk = await walkLedger(database, partnerId, after);
      // If the entry it starts from is gone, the walk begins at the first entry.
      if (walk === undefined) return after === 0n ? 0n : prove(partnerId, 0n, signal);
      const [fault] = walk.faults;
      if (fault !== undefined) {
        const { kind, sequence, id, detail } = fault;
        const first = { sequence: Number(sequence), objectId: id, kind, detail };
        log.error({ partnerId, faults: walk.faults.length, ...first }, 'a ledger is at fault');
        return undefined;
      }
      after = walk.last.lastSequence;
      if (walk.complete || signal.aborted) return after;
    }
  }
}
