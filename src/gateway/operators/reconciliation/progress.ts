import type { Database } from '../../store/database.ts';
import { fenced, type Lease } from '../../store/lease.ts';
import type { SqlRow, Statement } from '../../store/statement.ts';
import { breakId, type Difference, goneNow, seenAgain } from './rules.ts';
import { breaksById, ownersOf } from './store.ts';
import { comparedDay, reconciliationBreaks, reconciliationRuns, type StoredBreak, type StoredRun } from './table.ts';

/** Another process has the lease by now, and goes on with the run. */
export class RunLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/**
 * Saves what a run has done. Each piece is in one transaction with the run's position, and only the holder of the lease can
 * save it. So a killed run goes on where it was, and no piece counts twice.
 */
export class RunProgress {
  #hasAdvanced = false;

  constructor(
    private readonly database: Database,
    private readonly lease: Pick<Lease, 'name' | 'fence' | 'signal' | 'isHeld'>,
    private readonly now: () => number,
    /** As it is saved. */
    public run: StoredRun,
    /** Aborted when other runs may go on. */
    private readonly turn: AbortSignal = lease.signal,
  ) {}

  /** Whether the work on the run is interrupted. A turn lasts until something was saved, so that a run always comes to its end. */
  get isInterrupted(): boolean {
    return this.lease.signal.aborted || (this.turn.aborted && this.#hasAdvanced);
  }

  /** Saves changes of the run, with other writes. */
  save(changes: Partial<StoredRun>, writes: readonly Statement[] = []): Promise<void> {
    return this.#save(changes, [], () => writes);
  }

  /** Saves differences as breaks of the run's day, with changes of the run. */
  async saveFound(changes: Partial<StoredRun>, found: readonly Difference[]): Promise<void> {
    if (found.length === 0) return this.save(changes);
    for (let at = 0; at < found.length; at += maxAtOnce) {
      const isLast = at + maxAtOnce >= found.length;
      await this.#saveBreaks(isLast ? changes : {}, await this.#withOwners(found.slice(at, at + maxAtOnce)));
    }
  }

  async #saveBreaks(changes: Partial<StoredRun>, found: readonly Difference[]): Promise<void> {
    const { run } = this;
    const byId = new Map(found.map((one) => [breakId(run, one), one]));
    await this.#save(changes, [breaksById([...byId.keys()])], (rows) => {
      const stored = new Map(rows.map(reconciliationBreaks.all.read).map((row) => [row.id, row]));
      const now = this.now();
      return [...byId].flatMap(([id, one]) => {
        const before = stored.get(id);
        if (before === undefined) return [reconciliationBreaks.insert(newBreak(id, run, one, now))];
        const { ours, brokers, isUnsettled } = shortened(one);
        return reconciliationBreaks.update(before, {
          ...seenAgain(before, { ours, brokers }, run.number, now),
          isUnsettled,
        });
      });
    });
  }

  /** Marks breaks as gone, with changes of the run. */
  saveGone(changes: Partial<StoredRun>, ids: readonly string[]): Promise<void> {
    return this.#save(changes, ids.length === 0 ? [] : [breaksById(ids)], (rows) =>
      rows
        .map(reconciliationBreaks.all.read)
        .flatMap((row) => reconciliationBreaks.update(row, goneNow(row, this.now()))),
    );
  }

  /** Saves changes of the run with writes that depend on the rows of the given reads. */
  async #save(
    changes: Partial<StoredRun>,
    reads: readonly Statement[],
    writesOf: (rows: readonly SqlRow[]) => readonly Statement[],
  ): Promise<void> {
    const { run } = this;
    const after = { ...run, ...changes };
    await this.database.transaction<void>([...reads, fenced(this.lease)], (found) => {
      const isHeld = (found[reads.length] ?? []).length > 0;
      if (!isHeld) throw new RunLostError('another process compares days by now');
      const rows = found.slice(0, reads.length).flat();
      return { writes: [...writesOf(rows), ...reconciliationRuns.update(run, after)], result: undefined };
    });
    this.#hasAdvanced ||= after.step !== run.step || after.position !== run.position;
    this.run = after;
  }

  /** Names the partner of a difference by its account, if it has no object of a partner. */
  async #withOwners(found: readonly Difference[]): Promise<readonly Difference[]> {
    const accounts = [...new Set(found.filter(({ partnerId }) => partnerId === '').map(({ account }) => account))];
    if (accounts.length === 0) return found;
    const [rows = []] = await this.database.readAll([ownersOf(accounts)]);
    const owners = new Map(rows.map(({ account, partner_id: id }) => [String(account), String(id)]));
    return found.map((one) => (one.partnerId === '' ? { ...one, partnerId: owners.get(one.account) ?? '' } : one));
  }
}

/** How many breaks a transaction saves. */
const maxAtOnce = 100;
const longestSide = 300;

/** The sides as they are stored, so that the next run can tell whether they changed. */
function shortened(one: Difference): Difference {
  return { ...one, ours: one.ours.slice(0, longestSide), brokers: one.brokers.slice(0, longestSide) };
}

function newBreak(id: string, of: StoredRun, found: Difference, now: number): StoredBreak {
  const { subject: _, ...members } = shortened(found);
  return {
    ...members,
    ...{ id, ...comparedDay(of), run: of.number, isOpen: true, firstSeenAt: now, lastSeenAt: now, goneAt: null },
    ...{ acknowledgedBy: null, acknowledgedAt: null, acknowledgedReason: null },
  };
}
