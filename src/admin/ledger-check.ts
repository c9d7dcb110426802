import type { Database } from '../db/database.ts';
import { underLease } from '../db/lease.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { listWallets, wallets } from '../wallet/store.ts';
import { walkLedger } from './ledger.ts';

export interface LedgerCheckParts {
  readonly database: Database;
  readonly log: Logger;
  readonly holder: string;
  /** Hears what a round over all ledgers came to: how many of them are at fault. */
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
