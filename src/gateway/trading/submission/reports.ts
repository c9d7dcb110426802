import { atMost } from '../../../kit/at-most.ts';
import { coalesce } from '../../../kit/coalesce.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import { type Lease, underLease } from '../../store/lease.ts';
import { LaneSlots } from './lane-slots.ts';
import { reportsPosition } from './report-days.ts';
import { checkEveryMs, LeaseLostError, ReportPosition } from './report-position.ts';
import {
  findObjects,
  type Numbered,
  type ReportConsumerOptions,
  type ReportProblem,
  ReportSession,
  ReportsLeftOutError,
} from './report-session.ts';
import type { Submission } from './table.ts';

const maxAtOnce = 1_000;
/**
 * How long the first of some reports waits for others, in milliseconds. During this time the answer to the send usually comes,
 * with the same report, and is recorded first. Reports that come within this time are applied together.
 */
const batchingWindowMs = 20;
/** How long reports may still be applied when a stream has ended. What is not applied by then is read again. */
const settleMs = 1_000;
/**
 * When a process stops, it waits at most this long for the transactions of all its streams. It is longer than 8 s, because a
 * transaction may wait that long for a lock.
 */
const stopMs = 10_000;
/** A stream counts as healthy once it has lasted this long after its first message. */
const healthyAfterMs = 2_000;
const firstRefetchMs = 50;
const longestRefetchMs = 5_000;

/**
 * Applies the broker's numbered reports about one kind of object. Each report is applied once, and the reports of one object
 * are applied in the order of their numbers. If the reports of one partner cannot be applied now, the reports of other partners
 * do not wait (`ReportSession`). The position moves up to the first report that is not applied, so a crash repeats reports, and
 * an object ignores those it has seen. A gap in the numbers ends the stream, and the missing reports are fetched again. Each
 * stream begins at the position that the database has, and the position moves only with the proof that the database has the
 * reports (`ReportPosition`).
 */
export class ReportConsumer<Row extends Submission, Report extends Numbered> {
  readonly worker: Worker;
  readonly #position: ReportPosition;
  #session: ReportSession<Row, Report> | undefined;
  readonly #slots = new LaneSlots();
  #fruitless = 0;
  #followingSince: number | undefined;
  /** When the present stream had its first message. A frozen broker accepts the call and sends none. */
  #firstMessageAt: number | undefined;

  constructor(private readonly options: ReportConsumerOptions<Row, Report>) {
    const { broker, kind, database, holder, clock, log, onWentBack } = options;
    this.#position = new ReportPosition({
      database,
      broker,
      kind: kind.name,
      findObjects: (ids) => findObjects(kind, ids),
      realNow: () => clock.realNow(),
      onWentBack: (details) => {
        log.error({ kind: kind.name, ...details }, 'the database has lost commits: it was restored, or failed over');
        onWentBack?.(kind.name);
      },
    });
    this.worker = underLease(database, reportsPosition(broker, kind.name), holder, async (lease) => {
      try {
        await this.#run(lease);
      } finally {
        this.#fruitless = 0; // Another process may follow the stream now, so the failures counted here no longer matter.
      }
    });
  }

  /** All reports up to this number are applied. It is a metric too. */
  get position(): bigint {
    return this.#position.number;
  }

  /**
   * Why a person should look: the stream broke several times in a row and no report was read, or some reports cannot be
   * applied again and again. Undefined: all is well.
   */
  get problem(): ReportProblem | undefined {
    const isHealthy = this.#firstMessageAt !== undefined && performance.now() - this.#firstMessageAt > healthyAfterMs;
    return this.#session?.problem ?? (this.#fruitless >= 5 && !isHealthy ? 'stream' : undefined);
  }

  /** Whether this process follows the stream now. */
  get isFollowing(): boolean {
    return this.#followingSince !== undefined;
  }

  async #run(lease: Lease): Promise<void> {
    let waitMs = firstRefetchMs;
    while (!lease.signal.aborted) {
      this.#session = undefined;
      try {
        // The position in memory may be newer than the database, if the database lost commits. So it is read again.
        await this.#position.read(lease);
        this.#followingSince = performance.now();
        await this.#follow(lease);
      } catch (error) {
        if (lease.signal.aborted || error instanceof LeaseLostError) break;
        this.#logEnd(error);
      } finally {
        this.#followingSince = undefined;
        this.#firstMessageAt = undefined;
      }
      const hasRead = this.#hasRead();
      this.#fruitless = hasRead ? 0 : this.#fruitless + 1;
      waitMs = hasRead ? firstRefetchMs : Math.min(waitMs * 2, longestRefetchMs);
      await pause(waitMs, lease.signal);
    }
    try {
      await atMost(stopMs, this.#slots.idle());
    } finally {
      this.#session = undefined; // Another process applies the reports now, and it reports the ones that still fail.
    }
  }

  #logEnd(error: unknown): void {
    const { kind, log } = this.options;
    const about = { kind: kind.name, position: Number(this.position) };
    if (error instanceof ReportsLeftOutError) log.info(about, "a partner's reports were left out, and are read again");
    else log.warn({ err: error, ...about }, 'the stream of reports broke');
  }

  /** Whether the last stream had a report that was new. */
  #hasRead(): boolean {
    return this.#session?.hasRead === true;
  }

  /** Follows one stream until it breaks or has a gap. */
  async #follow(lease: Lease): Promise<void> {
    const { kind, log } = this.options;
    const [leaving, ended] = [new AbortController(), new AbortController()];
    const signal = AbortSignal.any([lease.signal, leaving.signal]);
    let failure: { readonly error: unknown } | undefined;
    const fail = (error: unknown) => {
      failure ??= { error };
      ended.abort();
      leaving.abort();
    };
    const sessionSignal = AbortSignal.any([lease.signal, ended.signal]);
    const session = new ReportSession(this.options, this.#position, lease, sessionSignal, this.#slots, fail);
    this.#session = session;
    const stream = kind.streamReports(session.read, signal);
    const watching = this.#watchPosition(lease, signal).catch(fail);
    try {
      for await (const reports of coalesce(this.#noteMessages(stream), maxAtOnce)) {
        const { fresh, gapBefore } = inSequence(reports, session.read);
        if (fresh.length > 0) await session.add(fresh);
        await this.#position.store(lease, false);
        if (gapBefore !== undefined) {
          log.warn(
            { kind: kind.name, after: Number(session.read), got: Number(gapBefore) },
            'reports are missing; fetching again',
          );
          break;
        }
        await pause(batchingWindowMs, lease.signal);
      }
      // The next stream begins at the position. Only a partner that is locked takes longer.
      await atMost(settleMs, session.idle());
    } catch (error) {
      failure ??= { error }; // Keep the first error: it is the cause. A later error only says that the stream was ended.
    } finally {
      leaving.abort();
      await watching;
      await this.#position.store(lease, true).finally(() => ended.abort());
    }
    if (failure !== undefined) throw failure.error;
  }

  /** Stores the position also while no report comes, to notice if the database has lost the last reports. */
  async #watchPosition(lease: Lease, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(checkEveryMs, signal);
      if (!signal.aborted) await this.#position.store(lease, false);
    }
  }

  async *#noteMessages(stream: AsyncIterable<readonly Report[]>): AsyncIterable<readonly Report[]> {
    for await (const reports of stream) {
      this.#firstMessageAt ??= performance.now();
      yield reports;
    }
  }
}

/** The reports that follow a position without a gap, and the number after the first gap. */
export function inSequence<Report extends Numbered>(
  reports: readonly Report[],
  position: bigint,
): { fresh: Report[]; gapBefore: bigint | undefined } {
  const fresh: Report[] = [];
  let last = position;
  for (const report of reports) {
    if (report.number <= last) continue; // Seen before.
    if (report.number !== last + 1n) return { fresh, gapBefore: report.number };
    fresh.push(report);
    last = report.number;
  }
  return { fresh, gapBefore: undefined };
}
