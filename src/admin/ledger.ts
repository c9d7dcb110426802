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

/** What a walk along a ledger came to. */
interface LedgerWalk {
  readonly complete: boolean;
  readonly faults: readonly LedgerFault[];
  readonly entries: number;
  readonly last: LedgerHead;
}

/** How many entries one walk takes, and how many are read at a time. */
const longestWalk = 50_000;
const pageSize = 1_000;
const mostFaults = 100;

/**
 * Walks a partner's ledger after an entry and compares each entry with the one before, with its hash and with its
 * allocation; at the end, the wallet's sums with the ledger's. The end is where it was when the walk began: what is
 * committed meanwhile does not matter. Undefined: there is no such partner, or no such entry to go on from.
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

/** The wallet, the highest number in its ledger, what is not settled and what is not known: all as they are at one moment. */
const whole = `SELECT w.*,
  (SELECT MAX(t.sequence) FROM wallet_transfers t WHERE t.partner_id = p.id) AS highest_sequence,
  (SELECT COALESCE(SUM(a.amount_kobo), 0) FROM allocations a
    WHERE a.partner_id = p.id AND a.state IN ('sending', 'uncertain')) AS unsettled_kobo,
  (SELECT COALESCE(SUM(a.amount_kobo), 0) FROM allocations a
    WHERE a.partner_id = p.id AND NOT ${allocations.isKnownSql}) AS unknown_kobo
  FROM partners p LEFT JOIN wallets w ON w.partner_id = p.id WHERE p.id = ?`;

/** What the ledger must agree with, of an allocation. */
const allocationFacts = allocations.only('id', 'state', 'account', 'amountKobo');

/** The entries that do not agree with their allocations. A settled allocation never changes, so it does not matter when it is read. */
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
  /** Called after each round over all ledgers with how many of them are at fault. */
  readonly checked: (faultyLedgers: number) => void;
  /** How long after a round over all ledgers the next begins. */
  readonly betweenRoundsMs?: number;
  /** How long what was proven is believed: then a ledger is walked from its first entry again. */
  readonly believedMs?: number;
}

/** How long is paused after each walk, so that nothing else waits for it. */
const betweenWalksMs = 200;
const walletsAtOnce = 100;

/** How far a ledger is proven. */
interface Proven {
  readonly upTo: bigint;
  /** When it was last walked from the first entry on, on a clock that never goes back. */
  readonly wholeAt: number;
}

/**
 * Proves the wallets' ledgers all the time, as VerifyLedger does when asked: what is new each minute, and each ledger as a
 * whole once a day and whenever another process takes over. One that is at fault is walked from its start in every round.
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

  /** Walks a ledger to its end; undefined when anything is wrong with it. */
  async function prove(partnerId: string, from: bigint, signal: AbortSignal): Promise<bigint | undefined> {
    for (let after = from; ; ) {
      const walk = await walkLedger(database, partnerId, after);
      // An entry that was proven and is gone now is walked to from the start.
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
