import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Database } from '../db/database.ts';
import { type Lease, underLease } from '../db/lease.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';
import type { Clock } from '../lib/clock.ts';
import { coalesce } from '../lib/coalesce.ts';
import { crash } from '../lib/crash.ts';
import { groupBy } from '../lib/group.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { Change, passOver } from './change.ts';
import type { AnyKind, Kind } from './kind.ts';
import type { Recorder } from './record.ts';
import {
  checkEveryMs,
  DatabaseDiffersError,
  LeaseLostError,
  positionNameOf,
  ReportPosition,
} from './report-position.ts';
import type { StuckPartners } from './stuck-partners.ts';
import { byId, isBehind, type Submission } from './table.ts';
import { keepUnclaimed } from './unclaimed-reports.ts';

/** A report with its number in the upstream's sequence. */
interface Numbered {
  readonly number: bigint;
  /** The upstream's time of it, in business time; absent if the upstream does not know it. */
  readonly at?: Timestamp | undefined;
}

/** A kind of object about which the upstream sends reports. */
export interface ReportedKind<Row extends Submission, Report extends Numbered> extends Kind<Row, Report> {
  /** Batches of reports above a number, in order. An empty batch is a heartbeat. Throws when the stream breaks. */
  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly Report[]>;
  /** The id of a report's object. */
  objectIdOf(report: Report): string;
  /** What a report says in a word, and the upstream's own id of the object; empty if it has none. */
  describeReport(report: Report): { readonly report: string; readonly reference: string };
}

export interface ReportConsumerOptions<Row extends Submission, Report extends Numbered> {
  readonly kind: ReportedKind<Row, Report>;
  readonly database: Database;
  readonly recorder: Recorder;
  readonly log: Logger;
  readonly holder: string;
  readonly clock: Clock;
  /** Restores objects that the broker was sent and the database has lost. */
  readonly findLost: () => Promise<void>;
  readonly stuck: StuckPartners;
  /** Called for each batch with the age of its last report that has a time, when it was applied, in seconds. */
  readonly onApplied?: (kind: string, seconds: number) => void;
  /** Called when the database turns out to have lost commits that it had acknowledged. */
  readonly onWentBack?: (kind: string) => void;
  /** Called for each object that a report is about and that is not stored. */
  readonly onUnclaimed?: (kind: string) => void;
}

const mostAtOnce = 1_000;
const partnersAtOnce = 4;
/**
 * How long the first of some reports waits for others, in milliseconds. The answer to a send carries the same report and
 * is then recorded first, and reports that come together are applied together.
 */
const batchingWindowMs = 20;
/** A stream counts as healthy once it has lasted this long after its first message. */
const healthyAfterMs = 2_000;
const firstRefetchMs = 50;
const longestRefetchMs = 5_000;

/**
 * Applies the upstream's numbered stream of reports about one kind of object: each once, and each object's in the order of
 * their numbers. The position moves only after a whole batch, so a crash repeats reports, and an object ignores those it has
 * seen. A gap in the numbers ends the stream, and the missing reports are fetched again. Each stream begins at the position
 * that the database has, and the position moves only with the proof that the database has the reports (`ReportPosition`).
 */
export class ReportConsumer<Row extends Submission, Report extends Numbered> {
  readonly worker: Worker;
  readonly #position: ReportPosition;
  #fruitless = 0;
  #followingSince: number | undefined;
  /** When the present stream had its first message. A frozen broker accepts the call and sends none. */
  #firstMessageAt: number | undefined;

  constructor(private readonly options: ReportConsumerOptions<Row, Report>) {
    const { kind, database, holder, clock, log, onWentBack } = options;
    this.#position = new ReportPosition({
      database,
      kind: kind.name,
      findObjects: (ids) => findObjects(kind, ids),
      realNow: () => clock.realNow(),
      onWentBack: (details) => {
        log.error({ kind: kind.name, ...details }, 'the database has lost commits: it was restored, or failed over');
        onWentBack?.(kind.name);
      },
    });
    this.worker = underLease(database, positionNameOf(kind.name), holder, async (lease) => {
      try {
        await this.#run(lease);
      } finally {
        this.#fruitless = 0; // Another process may follow the stream now: what failed here says nothing of it.
      }
    });
  }

  /** The number of the last report applied. It is a metric too. */
  get position(): bigint {
    return this.#position.number;
  }

  /** Whether the stream broke several times in a row and no report was applied: a person should look. */
  get isBroken(): boolean {
    const isHealthy = this.#firstMessageAt !== undefined && performance.now() - this.#firstMessageAt > healthyAfterMs;
    return this.#fruitless >= 5 && !isHealthy;
  }

  /** Whether this process follows the stream now. */
  get isFollowing(): boolean {
    return this.#followingSince !== undefined;
  }

  async #run(lease: Lease): Promise<void> {
    let waitMs = firstRefetchMs;
    while (!lease.signal.aborted) {
      let before = this.position;
      try {
        // What is in memory may be of a database that has lost it since.
        await this.#position.read(lease);
        before = this.position;
        this.#followingSince = performance.now();
        await this.#follow(lease);
      } catch (error) {
        if (lease.signal.aborted) return;
        if (error instanceof LeaseLostError) return;
        this.options.log.warn({ err: error, position: Number(this.position) }, 'the stream of reports broke');
      }
      this.#followingSince = undefined;
      this.#firstMessageAt = undefined;
      this.#fruitless = this.position > before ? 0 : this.#fruitless + 1;
      waitMs = this.position > before ? firstRefetchMs : Math.min(waitMs * 2, longestRefetchMs);
      await pause(waitMs, lease.signal);
    }
  }

  /** Follows one stream until it breaks or has a gap. */
  async #follow(lease: Lease): Promise<void> {
    const { kind, log } = this.options;
    const leaving = new AbortController();
    const signal = AbortSignal.any([lease.signal, leaving.signal]);
    const stream = kind.streamReports(this.position, signal);
    const watching = this.#watchPosition(lease, signal).finally(() => leaving.abort());
    watching.catch(() => {}); // It is awaited below.
    try {
      for await (const reports of coalesce(this.#noteMessages(stream), mostAtOnce)) {
        const { fresh, gapBefore } = inSequence(reports, this.position);
        if (fresh.length > 0) await this.#applyBatch(fresh);
        await this.#position.store(lease, false);
        if (gapBefore === undefined) {
          await pause(batchingWindowMs, lease.signal);
          continue;
        }
        log.warn({ after: Number(this.position), got: Number(gapBefore) }, 'reports are missing; fetching again');
        return;
      }
    } finally {
      leaving.abort();
      await watching;
      await this.#position.store(lease, true);
    }
  }

  /** While no report comes, too: the database can lose what it had of the last ones. */
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

  async #applyBatch(reports: readonly Report[]): Promise<void> {
    const { kind } = this.options;
    crash(`${kind.name}-report.before-apply`);
    const byObject = groupBy(reports, (report) => kind.objectIdOf(report));
    let [owners = []] = await this.options.database.readAll([findObjects(kind, [...byObject.keys()])]);
    if (owners.length < byObject.size) owners = [...owners, ...(await this.#findMissing(byObject.keys(), owners))];
    const known = new Set(owners.map((owner) => String(owner.id)));
    // The answer to a send has the same report, and is usually recorded by now.
    const behind = owners.filter((owner) => {
      const last = byObject.get(String(owner.id))?.at(-1)?.number ?? 0n;
      return last > toBigInt(owner.last_report);
    });
    const byPartner = groupBy(behind, (owner) => String(owner.partner_id));
    const partners = byPartner.entries();
    const appliers = Array.from({ length: Math.min(partnersAtOnce, byPartner.size) }, async () => {
      for (const [partnerId, objects] of partners) {
        await this.#applyToPartner(
          partnerId,
          objects.map((object) => String(object.id)),
          byObject,
        );
      }
    });
    await Promise.all(appliers);
    crash(`${kind.name}-report.applied`);
    const last = reports.at(-1);
    if (last === undefined) return;
    const claims = [...byObject].map(([id, ofObject]) => {
      const { number } = ofObject.at(-1) ?? last;
      return known.has(id) ? ([id, number] as const) : ([id, number, this.#noteUnclaimed(id, ofObject)] as const);
    });
    this.#position.applied(last.number, claims);
    const { onApplied, clock } = this.options;
    const lastTimed = reports.findLast(({ at }) => at !== undefined);
    if (lastTimed?.at !== undefined) {
      onApplied?.(kind.name, Math.max(0, clock.now() - timestampMs(lastTimed.at)) / 1_000);
    }
  }

  async #applyToPartner(partnerId: string, ids: string[], byObject: Map<string, Report[]>): Promise<void> {
    const { kind, recorder, clock, stuck } = this.options;
    const of = (row: Row) => byObject.get(row.id) ?? [];
    const decideUnknown = (row: Row) => passOver(kind, row, of(row), row.checkAt ?? clock.realNow(), clock.now());
    const lookUpLater = (row: Row) => passOver(kind, row, of(row), clock.realNow(), clock.now());
    const position = this.#position;
    const extra = position.fact;
    const decide = (row: Row, stored: bigint) => {
      position.check(stored, row);
      // Reports are applied in the order of their numbers: first the ones that were not applied before.
      if (isBehind(row)) return lookUpLater(row);
      const change = new Change(kind, row, clock.now()).reports(of(row));
      return change.after === row ? undefined : change;
    };
    try {
      await recorder.changeMany(kind, { partnerId, ids, decide, decideUnknown, extra });
    } catch (error) {
      if (error instanceof DatabaseDiffersError) throw error;
      stuck.note(partnerId, ids, error);
      // A partner's damaged events must not hold up the reports of all others: these are looked up once it is repaired.
      await recorder.changeMany(kind, { partnerId, ids, decide: lookUpLater, decideUnknown });
    }
  }

  /**
   * Those of some objects that a read did not find. They are restored if the broker was sent them, and looked for in a
   * transaction, because the read can have come from a replica that lags.
   */
  async #findMissing(ids: Iterable<string>, owners: readonly SqlRow[]): Promise<SqlRow[]> {
    const { kind, database, findLost } = this.options;
    const found = new Set(owners.map((owner) => String(owner.id)));
    const missing = [...ids].filter((id) => !found.has(id));
    // Before a report is passed over: an object that is restored a moment later would lack it.
    await findLost();
    return database.transaction([findObjects(kind, missing)], ([rows = []]) => ({ writes: [], result: rows }));
  }

  /** A person must find out whose object it is. Returns what is stored of it with the position. */
  #noteUnclaimed(id: string, reports: readonly Report[]): Statement | undefined {
    const { kind, log, clock, onUnclaimed } = this.options;
    const numbers = reports.map(({ number }) => Number(number));
    log.error(
      { objectId: id, numbers: numbers.slice(0, 10) },
      'the upstream reports about an object that is not stored here',
    );
    onUnclaimed?.(kind.name);
    return keepUnclaimed(kind, id, reports, clock.realNow());
  }
}

/** Finds some objects and their partners, because reports name only the objects. */
function findObjects(kind: AnyKind, ids: readonly string[]): Statement {
  const marks = ids.map(() => '?').join(', ');
  const columns = 'id, partner_id, last_report, missed_report';
  return statement(`SELECT ${columns} FROM ${byId(kind)} WHERE id IN (${marks})`, ...ids);
}

/** The reports that follow a position without a gap, and the number after the first gap. */
function inSequence<Report extends Numbered>(
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
