import type { Logger } from '../../../kit/log.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { fenced, type Lease, underLease } from '../../store/lease.ts';
import type { SqlRow, Statement } from '../../store/statement.ts';
import type { CheckedEntry, LedgerFault, LedgerHead } from '../../trading/wallet/rules.ts';
import { emptyLedger } from '../../trading/wallet/rules.ts';
import { ledgerHead, type WalletSeals } from '../../trading/wallet/store.ts';
import { type LedgerWalk, walkLedger } from './ledger.ts';
import { listChecks, type Recheck, readChecked, readRecheck, saveChecked, saveRecheck } from './ledger-position.ts';

interface LedgerCheckParts {
  readonly database: Database;
  readonly seals: WalletSeals;
  readonly log: Logger;
  readonly holder: string;
  /** Called with the partners of faulty ledgers after each round, earlier when they are more, and with none at the end. */
  readonly checked: (faulty: readonly string[]) => void;
  /** The pause between two rounds, in milliseconds. */
  readonly betweenRoundsMs?: number;
  /** How long after a check of a whole ledger the next one begins, in milliseconds. */
  readonly recheckAfterMs?: number;
  /** The most entries of one walk. */
  readonly mostEntries?: number;
}

/** A pause after each walk, so that nothing else waits for it. */
const betweenWalksMs = 200;

/** A ledger with the positions of its check. */
interface CheckedLedger {
  /** Undefined before its first check. */
  readonly checked: CheckedEntry | undefined;
  readonly recheck: Recheck;
  /** The database's time of the read. */
  readonly nowMs: number;
  /** The wallet's row, and its seal. */
  readonly head: LedgerHead;
  readonly seal: Buffer | null;
}

/**
 * Verifies all ledgers continuously, as VerifyLedger does on demand: new entries in each round, and the whole ledger again
 * every day, one walk in a round. Its positions are stored, so another process goes on where this one ends. A position
 * never passes a fault: each round finds it again until it is gone.
 */
export function ledgerCheck(parts: LedgerCheckParts): Worker {
  const { betweenRoundsMs = 60_000 } = parts;
  return underLease(parts.database, 'ledger-check', parts.holder, async (lease) => {
    const check = new LedgerCheck(parts, lease, Math.min(betweenWalksMs, betweenRoundsMs));
    try {
      while (!lease.signal.aborted) {
        await check.round();
        await pause(betweenRoundsMs, lease.signal);
      }
    } finally {
      // Another process reports them from now on.
      parts.checked([]);
    }
  });
}

class LedgerCheck {
  /** The number of faulty ledgers that was reported last. */
  #reported = 0;

  constructor(
    private readonly parts: LedgerCheckParts,
    private readonly lease: Lease,
    private readonly pauseMs: number,
  ) {}

  /** Checks each ledger once. */
  async round(): Promise<void> {
    const faulty: string[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const ledgers: CheckedLedger[] = (await this.parts.database.read(listChecks(after))).map(toLedger);
      for (const ledger of ledgers) {
        const isRight = (await this.#checkNew(ledger)) && (await this.#checkAgain(ledger)) && this.#checkSeal(ledger);
        if (this.lease.signal.aborted) return;
        if (!isRight) faulty.push(ledger.head.partnerId);
        if (faulty.length > this.#reported) this.#report(faulty);
      }
      after = ledgers.at(-1)?.head.partnerId;
    }
    this.#report(faulty);
  }

  #report(faulty: readonly string[]): void {
    this.#reported = faulty.length;
    this.parts.checked([...faulty]);
  }

  /**
   * Checks the seal of the wallet's row, in each round, because it needs no further read. False if it is wrong. Entries behind
   * the seal are found by the walk.
   */
  #checkSeal({ head, seal }: CheckedLedger): boolean {
    if (head.lastSequence === 0n || this.parts.seals.accepts(this.parts.seals.prove(head, seal))) return true;
    this.#log(head.partnerId, [{ kind: 'unsealed', sequence: 0n, id: '', detail: 'the wallet has no right seal' }]);
    return false;
  }

  /** Checks the entries since the last check. False if there is a fault. */
  async #checkNew({ head: { partnerId, lastSequence, lastHash }, checked, nowMs }: CheckedLedger): Promise<boolean> {
    const known = checked?.sequence ?? 0n;
    if (known === lastSequence && (checked === undefined || lastHash.equals(checked.hash))) return true;
    for (let after = known; ; ) {
      const walk = await this.#walk(partnerId, after);
      if (walk === undefined) return false;
      // The first check is one of the whole ledger.
      const first = after === 0n ? [saveRecheck(partnerId, { after: 0n, endedAt: nowMs })] : [];
      await this.#save(saveChecked(partnerId, walk.last), ...first);
      if (walk.complete || this.lease.signal.aborted) return true;
      after = walk.last.lastSequence;
    }
  }

  /** Checks a part of a ledger again that was checked before. False if there is a fault. */
  async #checkAgain({ head: { partnerId }, checked, recheck, nowMs }: CheckedLedger): Promise<boolean> {
    const { recheckAfterMs = 86_400_000 } = this.parts;
    const { after, endedAt } = recheck;
    if (checked === undefined || !isRecheckDue(endedAt, nowMs, recheckAfterMs)) return true;
    const walk = await this.#walk(partnerId, after);
    // It stays due until it has ended, also if it stopped at a fault and a clock is set back.
    if (walk === undefined) await this.#save(saveRecheck(partnerId, { after, endedAt: 0 }));
    else if (!walk.complete) await this.#save(saveRecheck(partnerId, { after: walk.last.lastSequence, endedAt: 0 }));
    else await this.#save(saveRecheck(partnerId, { after: 0n, endedAt: nowMs }));
    return walk !== undefined;
  }

  /** Walks a part of a ledger. Logs the first of its faults and answers undefined if it has any. */
  async #walk(partnerId: string, after: bigint): Promise<LedgerWalk | undefined> {
    const { database, seals, mostEntries } = this.parts;
    const walk = await walkLedger(database, partnerId, after, { seals, mostEntries });
    await pause(this.pauseMs, this.lease.signal);
    const faults = walk?.faults ?? [lost(after)];
    if (faults.length === 0) return walk;
    this.#log(partnerId, faults);
    return undefined;
  }

  #log(partnerId: string, faults: readonly LedgerFault[]): void {
    const [fault] = faults;
    if (fault === undefined) return;
    const { kind, sequence, id, detail } = fault;
    const first = { sequence: Number(sequence), objectId: id, kind, detail };
    this.parts.log.error({ partnerId, faults: faults.length, ...first }, 'a ledger is at fault');
  }

  /** Stores positions, unless another process has the lease by now: it may have found a fault that they would pass. */
  async #save(...writes: readonly Statement[]): Promise<void> {
    await this.parts.database.transaction([fenced(this.lease)], ([leases]) => ({
      writes: leases?.[0] === undefined ? [] : writes,
      result: undefined,
    }));
  }
}

/** Whether a ledger is checked again. A check that ended later than now ended before the database's clock was set back. */
export function isRecheckDue(endedAt: number, nowMs: number, recheckAfterMs: number): boolean {
  return endedAt > nowMs || nowMs - endedAt >= recheckAfterMs;
}

/** The fault of a ledger that no longer has the entry up to which it was checked. */
function lost(sequence: bigint): LedgerFault {
  return { kind: 'missing', sequence, id: '', detail: `entry ${sequence} is missing, which an earlier check found` };
}

function toLedger(row: SqlRow): CheckedLedger {
  const partnerId = String(row.id);
  return {
    checked: readChecked(row.checked),
    recheck: readRecheck(row.rechecked),
    nowMs: Number(row.now_ms),
    head: row.last_sequence === null ? emptyLedger(partnerId) : ledgerHead.read({ ...row, partner_id: partnerId }),
    seal: row.seal instanceof Buffer ? row.seal : null,
  };
}
