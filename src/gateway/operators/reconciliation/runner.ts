import type { Clock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import { Refusal } from '../../../kit/refusal.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Database } from '../../store/database.ts';
import type { Lease } from '../../store/lease.ts';
import type { Broker } from '../../trading/broker/broker.ts';
import type { ReadQueue } from '../../trading/broker/read-queue.ts';
import { StatementError } from '../../trading/broker/statements.ts';
import { compareHoldings, compareOurs, compareStatement } from './compare.ts';
import { fetchStatement, IncompleteDayError, type StatementsBroker } from './fetch.ts';
import type { Compared } from './ours.ts';
import { RunLostError, RunProgress } from './progress.ts';
import {
  type BreakKindName,
  isOfTransaction,
  isOfWithdrawal,
  lastDueDay,
  maxDaysBack,
  needsDayBefore,
} from './rules.ts';
import { anyItem, breaksOfDay, notesOf, removeItems } from './store.ts';
import {
  comparedDay,
  type RunNote,
  type RunState,
  type RunStep,
  reconciliationBreaks,
  type StoredRun,
} from './table.ts';
import { compareAccounts } from './transactions.ts';

export interface RunnerOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly broker: StatementsBroker & Pick<Broker, 'id' | 'records'>;
  readonly reads: Pick<ReadQueue, 'readFor'>;
  readonly isShared: boolean;
  readonly mostRecords: number;
  /** Called when a try of a day ended, with how long the run has taken. */
  readonly ended: (state: RunState, seconds: number) => void;
  /** How long the work on a run goes on while others wait; absent: a minute. */
  readonly turnMs?: number;
}

/** How long until a day is tried again that the broker has not closed, or whose statement could not be read. */
export const retryMs = 600_000;
/** How long the work on a run goes on while others wait, and how long until it goes on after the database refused something. */
const usualTurnMs = 60_000;
const pauseMs = 60_000;
const removedTogether = 1_000;
const breaksTogether = 100;

/** What a run has before the statement is read. */
const nothingYet = { records: 0n, objects: 0n, breaks: 0n, periodFrom: null, periodTo: null } as const;

/** What a run did not compare that had no statement of the day before. */
const withoutBefore = 'positions and money were not compared: the broker has no complete statement of the day before';
/** The parts that a run did not compare, by its notes. */
const leftOut: readonly (readonly [note: RunNote, problem: string])[] = [
  ['withdrawals_left_out', 'withdrawals were not compared: the broker takes none'],
  ['transactions_not_offered', 'transactions were not compared: the broker does not offer them'],
];

/** Compares one day with the broker's statement, step by step. It reads the broker and all objects, and changes neither. */
export class Runner {
  constructor(private readonly options: RunnerOptions) {}

  /**
   * Goes on with a run until it ends, its turn is over, its try fails, or the lease is lost. Throws if the database cannot be
   * used. Whatever else goes wrong ends the try, or makes the run wait. So no day stands in the way of the others, however long
   * it takes.
   */
  async run(run: StoredRun, lease: Lease): Promise<void> {
    const { database, clock, turnMs = usualTurnMs } = this.options;
    // Not `AbortSignal.timeout`: nothing would hold it, so it could be collected as garbage before it fires.
    const turn = new AbortController();
    const timer = setTimeout(() => turn.abort(), turnMs);
    const progress = new RunProgress(database, lease, () => clock.now(), run, turn.signal);
    const startedAt = performance.now();
    const tookMs = () => run.tookMs + BigInt(Math.round(performance.now() - startedAt));
    // Why it waited; the problem of an earlier try stays until this one ends.
    const settled = run.state === 'running' ? { problem: '' } : {};
    try {
      if (run.state !== 'running') {
        await progress.save({ ...nothingYet, step: 'clear', position: '', state: 'running', tries: run.tries + 1 });
      }
      while (!progress.isInterrupted && !isLast(progress.run.step)) {
        const next = await this.#step(progress);
        const fromStart = next === 'fetch' ? nothingYet : {};
        if (next !== undefined) {
          await progress.save({ ...fromStart, step: next, position: '', tookMs: tookMs(), ...settled });
        }
      }
      if (!lease.signal.aborted && !isLast(progress.run.step)) {
        // Behind those that have waited.
        return await progress.save({ nextAt: clock.now(), tookMs: tookMs(), ...settled });
      }
      if (!lease.signal.aborted)
        await this.#end(progress, lease, 'complete', await this.#leftOut(progress.run), tookMs());
    } catch (error) {
      // What stops leaves the run as it is: another process, or the next start, goes on with it.
      if (lease.signal.aborted) return;
      if (error instanceof RunLostError) throw error;
      await this.#failed(progress, lease, error, tookMs());
    } finally {
      clearTimeout(timer);
    }
  }

  /** Names the parts that a run did not compare; empty: none. */
  async #leftOut(run: StoredRun): Promise<string> {
    const notes = await notesOf(this.options.database, run);
    const problems = leftOut.filter(([note]) => notes.has(note)).map(([, problem]) => problem);
    return [...(run.step === 'end_without_before' ? [withoutBefore] : []), ...problems].join('; ');
  }

  async #failed(progress: RunProgress, lease: Lease, error: unknown, tookMs: bigint): Promise<void> {
    const [state, problem] = verdictOn(error);
    // A day that is too old is given up if the database refuses the same once more.
    const isGivenUp = this.#isTooOld(progress.run) && progress.run.problem === problem;
    if (error instanceof Refusal && !isGivenUp) return this.#wait(progress, problem, tookMs, error);
    try {
      await this.#end(progress, lease, state, problem, tookMs, error instanceof Error ? error : undefined);
    } catch (other) {
      if (!(other instanceof Refusal)) throw other;
      // The end could not be saved.
      await this.#wait(progress, verdictOn(other)[1], tookMs, other);
    }
  }

  /** The database refused something, or the broker did not answer: the run goes on where it is, after others. Throws the refusal if nothing can be saved. */
  async #wait(progress: RunProgress, problem: string, tookMs: bigint, error: Refusal): Promise<void> {
    const { clock, log } = this.options;
    const { day, problem: problemBefore } = progress.run;
    try {
      await progress.save({ problem, nextAt: clock.now() + pauseMs, tookMs });
    } catch (other) {
      log.debug({ err: other, day }, 'a comparison with the broker could not be put off');
      throw error;
    }
    if (problem !== problemBefore) {
      log.warn(
        { err: error, day, problem },
        "the comparison with the broker's statement waits, and goes on where it is",
      );
    }
  }

  /** Does one step of the run. Answers the next step; undefined if it was interrupted. */
  async #step(progress: RunProgress): Promise<RunStep | undefined> {
    const { run } = progress;
    switch (run.step) {
      case 'clear':
        return (await this.#clear(progress, () => progress.isInterrupted)) ? 'fetch' : undefined;
      case 'fetch': {
        const { broker, mostRecords } = this.options;
        const isWhole = await fetchStatement(progress, broker, mostRecords);
        if (isWhole === undefined) return undefined;
        return isWhole ? 'statement' : 'without_before';
      }
      case 'statement':
        return (await compareStatement(progress, this.#compared(run))) ? 'objects' : undefined;
      case 'without_before':
        return (await compareStatement(progress, this.#compared(run))) ? 'objects_without_before' : undefined;
      case 'objects':
        return (await compareOurs(progress, this.#compared(run))) ? 'holdings' : undefined;
      case 'objects_without_before':
        return (await compareOurs(progress, this.#compared(run))) ? 'accounts_without_before' : undefined;
      case 'holdings':
        return (await compareHoldings(progress, this.#compared(run))) ? 'accounts' : undefined;
      case 'accounts':
        return (await this.#compareTransactions(progress, true)) ? 'gone' : undefined;
      case 'accounts_without_before':
        return (await this.#compareTransactions(progress, false)) ? 'gone_without_before' : undefined;
      case 'gone_without_before':
        return (await this.#markGone(progress, false)) ? 'end_without_before' : undefined;
      case 'gone':
        return (await this.#markGone(progress, true)) ? 'end' : undefined;
      default:
        return 'end';
    }
  }

  #compared(run: StoredRun): Compared {
    const { database, isShared } = this.options;
    return { ...comparedDay(run), database, isShared, period: { from: run.periodFrom ?? 0, to: run.periodTo ?? 0 } };
  }

  #compareTransactions(progress: RunProgress, hasDayBefore: boolean): Promise<boolean> {
    const { broker, reads, clock } = this.options;
    const parts = { broker, reads, now: () => clock.now(), hasDayBefore };
    return compareAccounts(progress, this.#compared(progress.run), parts);
  }

  /** Removes the statement's records, as the holder of the lease. True when none is left. */
  async #clear(progress: RunProgress, isInterrupted: () => boolean): Promise<boolean> {
    while (!isInterrupted()) {
      const rows = await this.options.database.read(anyItem(progress.run));
      if (rows.length === 0) return true;
      await progress.save({}, [removeItems(progress.run, removedTogether)]);
    }
    return false;
  }

  /** Marks the day's breaks that this run compared and did not find, and counts those that it found. */
  async #markGone(progress: RunProgress, hasDayBefore: boolean): Promise<boolean> {
    const { database } = this.options;
    const notes = await notesOf(database, progress.run);
    const isCompared = (kind: BreakKindName) =>
      (hasDayBefore || !needsDayBefore(kind)) &&
      (!isOfWithdrawal(kind) || notes.has('withdrawals_read')) &&
      (!isOfTransaction(kind) || notes.has('transactions_read'));
    while (!progress.isInterrupted) {
      const { number, position, breaks } = progress.run;
      const rows = await database.read(breaksOfDay(progress.run, position, breaksTogether));
      const page = rows.map(reconciliationBreaks.all.read);
      const missed = page.filter(({ kind, run, goneAt }) => run !== number && goneAt === null && isCompared(kind));
      const gone = missed.map(({ id }) => id);
      const found = page.filter(({ run }) => run === number).length;
      await progress.saveGone({ position: page.at(-1)?.id ?? position, breaks: breaks + BigInt(found) }, gone);
      if (rows.length < breaksTogether) return true;
    }
    return false;
  }

  /** Whether a day is given up when its try fails, so that it is not tried for ever. */
  #isTooOld({ day }: StoredRun): boolean {
    return Date.parse(lastDueDay(this.options.clock.now(), 0)) - Date.parse(day) > maxDaysBack * 86_400_000;
  }

  async #end(
    progress: RunProgress,
    lease: Lease,
    state: RunState,
    problem: string,
    tookMs: bigint,
    error?: Error,
  ): Promise<void> {
    const { clock, log, ended } = this.options;
    // A run that is interrupted here begins again, because the records of the statement are not whole any more.
    if (!isLast(progress.run.step)) await progress.save({ step: 'clear', position: '' });
    await this.#clear(progress, () => lease.signal.aborted);
    const { day, startedBy, records, objects, breaks, problem: problemBefore, tries } = progress.run;
    const isFinal = state === 'complete' || state === 'not_offered';
    const isGivenUp = !isFinal && this.#isTooOld(progress.run);
    const nextAt = isFinal || isGivenUp ? null : clock.now() + retryMs;
    const endedAt = clock.now();
    await progress.save({ state, problem, step: 'end', position: '', endedAt, nextAt, tookMs });
    ended(state, Number(tookMs) / 1_000);
    const facts = { day, records: Number(records), objects: Number(objects), breaks: Number(breaks) };
    const whole = state === 'complete' && problem === '';
    if (whole && breaks === 0n) log.info(facts, "a day agrees with the broker's statement");
    else if (state === 'complete' && breaks === 0n) {
      log.info({ ...facts, problem }, "a day's orders, trades and allocations agree with the broker's statement");
    } else if (state === 'complete') log.warn({ ...facts, problem }, "a day differs from the broker's statement");
    else if (isGivenUp || (state === 'failed' && problem !== problemBefore)) {
      log.warn(
        { err: error, problem, day, tries, isGivenUp, startedBy },
        "a day could not be compared with the broker's statement",
      );
    } else log.info({ day, tries, problem }, "a day is not compared with the broker's statement yet");
  }
}

/** How a try ends with an error, and what is said of it. */
function verdictOn(error: unknown): [RunState, string] {
  if (error instanceof StatementError) {
    return [error.problem === 'not_offered' ? 'not_offered' : 'failed', error.message];
  }
  if (error instanceof IncompleteDayError) return ['incomplete', error.message];
  if (error instanceof ApiError && error.code === 'exchange_unavailable') {
    return ['failed', 'the broker did not answer with the transactions of an account'];
  }
  const failed = error instanceof Error ? error : new Error(String(error));
  const cause = failed.cause instanceof Error ? failed.cause : failed;
  return ['failed', `the gateway could not compare it: ${cause.message}`];
}

function isLast(step: RunStep): boolean {
  return step === 'end' || step === 'end_without_before';
}
