import { StatementError } from '../broker/statements.ts';
import type { Database } from '../db/database.ts';
import type { Lease } from '../db/lease.ts';
import type { Clock } from '../lib/clock.ts';
import { type CrashPoint, crash } from '../lib/crash.ts';
import { ApiError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { type Compared, compareHoldings, compareOurs, compareStatement } from './compare.ts';
import { fetchStatement, IncompleteDayError, type Statements } from './fetch.ts';
import { LeaseLostError, Progress } from './progress.ts';
import { type BreakKindName, lastDueDay, mostDaysBack, needsDayBefore } from './rules.ts';
import { breaksOfDay, removeItems } from './store.ts';
import { type RunState, type RunStep, reconciliationBreaks, type StoredRun } from './table.ts';

export interface RunnerOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly broker: Statements;
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

/** What a run did not compare that had no statement of the day before. */
const withoutBefore = 'positions and money were not compared: the broker has no complete statement of the day before';

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
    const turn = AbortSignal.any([lease.signal, AbortSignal.timeout(turnMs)]);
    const progress = new Progress(database, lease, () => clock.now(), run, turn);
    const startedAt = performance.now();
    const tookMs = () => run.tookMs + BigInt(Math.round(performance.now() - startedAt));
    try {
      if (run.state !== 'running') {
        const begin = { step: 'clear', position: '', records: 0n, objects: 0n, breaks: 0n } as const;
        const tries = run.tries + 1;
        await progress.save({ ...begin, state: 'running', tries, periodFrom: null, periodTo: null });
      }
      while (!turn.aborted && !isLast(progress.run.step)) {
        const next = await this.#step(progress);
        if (next !== undefined) await progress.save({ step: next, position: '', tookMs: tookMs() });
        if (next !== undefined) crash(behind[next]);
      }
      if (!lease.signal.aborted && !isLast(progress.run.step)) {
        // Behind those that have waited.
        return await progress.save({ nextAt: clock.now(), tookMs: tookMs() });
      }
      const problem = progress.run.step === 'end_without_before' ? withoutBefore : '';
      if (!lease.signal.aborted) await this.#end(progress, lease, 'complete', problem, tookMs());
      crash('reconciliation.ended');
    } catch (error) {
      // What stops leaves the run as it is: another process, or the next start, goes on with it.
      if (lease.signal.aborted) return;
      if (error instanceof LeaseLostError) throw error;
      await this.#failed(progress, lease, error, tookMs());
    }
  }

  async #failed(progress: Progress, lease: Lease, error: unknown, tookMs: bigint): Promise<void> {
    if (error instanceof StatementError) {
      const state = error.problem === 'not_offered' ? 'not_offered' : 'failed';
      await this.#end(progress, lease, state, error.message, tookMs, error);
    } else if (error instanceof IncompleteDayError) {
      await this.#end(progress, lease, 'incomplete', error.message, tookMs);
    } else {
      const failed = error instanceof Error ? error : new Error(String(error));
      const cause = failed.cause instanceof Error ? failed.cause : failed;
      const problem = `the gateway could not compare it: ${cause.message}`;
      if (error instanceof ApiError && !this.#isTooOld(progress.run)) {
        await this.#wait(progress, problem, tookMs, error);
      } else await this.#end(progress, lease, 'failed', problem, tookMs, failed);
    }
  }

  /** The database refused something: the run goes on where it is, after others. Throws the refusal if nothing can be saved. */
  async #wait(progress: Progress, problem: string, tookMs: bigint, error: ApiError): Promise<void> {
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
        { err: error, day },
        "the comparison with the broker's statement waits, because the database refused something",
      );
    }
  }

  /** Does one step of the run. Answers the next step; undefined if it was interrupted. */
  async #step(progress: Progress): Promise<RunStep | undefined> {
    const { run } = progress;
    switch (run.step) {
      case 'clear':
        return (await this.#clear(run, progress.signal)) ? 'fetch' : undefined;
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
        return (await compareOurs(progress, this.#compared(run))) ? 'gone_without_before' : undefined;
      case 'holdings':
        return (await compareHoldings(progress, this.#compared(run))) ? 'gone' : undefined;
      case 'gone_without_before':
        return (await this.#markGone(progress, (kind) => !needsDayBefore(kind))) ? 'end_without_before' : undefined;
      case 'gone':
        return (await this.#markGone(progress, () => true)) ? 'end' : undefined;
      default:
        return 'end';
    }
  }

  #compared({ periodFrom, periodTo }: StoredRun): Compared {
    const { database, isShared } = this.options;
    return { database, isShared, period: { from: periodFrom ?? 0, to: periodTo ?? 0 } };
  }

  /** Removes the statement's records. */
  async #clear({ day }: StoredRun, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const removed = await this.options.database.write(removeItems(day, removedTogether));
      if (removed < removedTogether) return true;
    }
    return false;
  }

  /** Marks the day's breaks that this run compared and did not find, and counts those that it found. */
  async #markGone(progress: Progress, isCompared: (kind: BreakKindName) => boolean): Promise<boolean> {
    const { database } = this.options;
    while (!progress.signal.aborted) {
      const { day, number, position, breaks } = progress.run;
      const rows = await database.read(breaksOfDay(day, position, breaksTogether));
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
    return Date.parse(lastDueDay(this.options.clock.now(), 0)) - Date.parse(day) > mostDaysBack * 86_400_000;
  }

  async #end(
    progress: Progress,
    lease: Lease,
    state: RunState,
    problem: string,
    tookMs: bigint,
    error?: Error,
  ): Promise<void> {
    const { clock, log, ended } = this.options;
    await this.#clear(progress.run, lease.signal);
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

function isLast(step: RunStep): boolean {
  return step === 'end' || step === 'end_without_before';
}

/** Where a test can end the process when a step follows. */
const behind: Readonly<Record<RunStep, CrashPoint>> = {
  clear: 'reconciliation.cleared',
  fetch: 'reconciliation.cleared',
  statement: 'reconciliation.fetched',
  without_before: 'reconciliation.fetched',
  objects: 'reconciliation.statement-compared',
  objects_without_before: 'reconciliation.statement-compared',
  holdings: 'reconciliation.objects-compared',
  gone_without_before: 'reconciliation.objects-compared',
  gone: 'reconciliation.holdings-compared',
  end_without_before: 'reconciliation.gone-marked',
  end: 'reconciliation.gone-marked',
};
