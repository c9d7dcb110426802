import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Clock } from '../../../kit/clock.ts';
import { groupBy } from '../../../kit/group.ts';
import type { Logger } from '../../../kit/log.ts';
import { Refusal } from '../../../kit/refusal.ts';
import { pause } from '../../../kit/worker.ts';
import { isUnproven } from '../../edge/errors.ts';
import type { Database } from '../../store/database.ts';
import type { Lease } from '../../store/lease.ts';
import { type Statement, statement, toBigInt } from '../../store/statement.ts';
import type { BrokerId } from '../broker/broker.ts';
import type { AnyKind, Kind } from './kind.ts';
import type { LaneSlots } from './lane-slots.ts';
import type { Recorder } from './record.ts';
import { PartnerReports, type Unapplied } from './report-applier.ts';
import { ReportLanes } from './report-lanes.ts';
import { DatabaseDiffersError, type ReportPosition } from './report-position.ts';
import type { StuckPartners } from './stuck-partners.ts';
import { byId, readUpToDate, type Submission } from './table.ts';
import { keepUnclaimed } from './unclaimed-reports.ts';

/** A report with its number in the upstream's sequence. */
export interface Numbered {
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
  readonly broker: BrokerId;
  readonly kind: ReportedKind<Row, Report>;
  readonly database: Database;
  readonly recorder: Recorder;
  readonly log: Logger;
  readonly holder: string;
  readonly clock: Clock;
  /** Restores objects that the broker was sent and the database has lost. */
  readonly findLost: () => Promise<void>;
  readonly stuck: StuckPartners;
  /** Called for reports that are applied together with the age of the last that has a time, in seconds. */
  readonly onApplied?: (kind: string, seconds: number) => void;
  /** Called when the database turns out to have lost commits that it had acknowledged. */
  readonly onWentBack?: (kind: string) => void;
  /** Called for each object that a report is about and that is not stored. */
  readonly onUnclaimed?: (kind: string) => void;
}

/** The first failure of a partner's reports may be a moment without the database. */
const noteworthy = 2;
const fullPauseMs = 100;
/** The lane of reports about objects that are not found. It is no partner's id. */
const unfound = 'objects that are not found';

/**
 * Why reports cannot be applied: the stream breaks; a partner's row is locked, or the database cannot serve; a partner's rows
 * are damaged, or one has no right seal; or lost objects cannot be looked for.
 */
export type ReportProblem = 'stream' | 'locked' | 'damaged' | 'unfound';

/** Thrown when reports that were left out, because their partner was locked, are to be read again. */
export class ReportsLeftOutError extends Error {
  override readonly name = 'ReportsLeftOutError';
}

/**
 * The reports of one stream on their way: each goes to its partner's lane, and the position follows the first that is not
 * applied. `ReportLanes` decides order and retries; `report-applier` applies a report.
 */
export class ReportSession<Row extends Submission, Report extends Numbered> {
  readonly #lanes: ReportLanes<Report>;
  /** The number of the last report that is on its way. */
  #read: bigint;
  readonly #from: bigint;
  /** The last report on its way about each object that was not found. Later ones wait behind it. */
  readonly #unfound = new Map<string, bigint>();

  constructor(
    private readonly options: ReportConsumerOptions<Row, Report>,
    private readonly position: ReportPosition,
    private readonly lease: Lease,
    /** Ends the session: what is under way writes nothing more. */
    private readonly signal: AbortSignal,
    slots: LaneSlots,
    /** Called when reports must be read again from the stored position. */
    private readonly fail: (error: unknown) => void,
  ) {
    const { kind, log } = options;
    this.#read = position.number;
    this.#from = position.number;
    this.#lanes = new ReportLanes<Report>({
      signal,
      slots,
      apply: (partnerId, reports) =>
        partnerId === unfound ? this.#applyUnfound(reports) : this.#apply(partnerId, reports),
      applied: () => this.#moved(),
      canLeaveOut: (partnerId) => partnerId !== unfound,
      readAgain: (from) => fail(new ReportsLeftOutError(`reports from ${from} were left out, and are read again`)),
      failed: (partnerId, error, failures) => {
        if (error instanceof DatabaseDiffersError) fail(error);
        else if (failures === noteworthy)
          log.warn({ err: error, ...named(partnerId, error), kind: kind.name }, "a partner's reports wait");
      },
      recovered: (partnerId, failures) => {
        if (failures >= noteworthy) log.info({ partnerId, kind: kind.name }, "a partner's reports are applied again");
      },
    });
  }

  get read(): bigint {
    return this.#read;
  }

  /** Whether it has read a report. */
  get hasRead(): boolean {
    return this.#read > this.#from;
  }

  /** Why reports cannot be applied again and again; undefined: they can. Damage comes first, because it does not end by itself. */
  get problem(): ReportProblem | undefined {
    const problems = this.#lanes.failing.map(({ partnerId, error }) => problemOf(partnerId, error));
    return problems.find((problem) => problem === 'damaged') ?? problems[0];
  }

  /** Waits until nothing is under way. */
  idle(): Promise<void> {
    return this.#lanes.idle();
  }

  /** Takes the next reports, in the order of their numbers. Waits while too many are on their way. */
  async add(reports: readonly Report[]): Promise<void> {
    const { kind, database } = this.options;
    await this.#room();
    const byObject = groupBy(reports, (report) => kind.objectIdOf(report));
    const [owners = []] = await database.readAll([findObjects(kind, [...byObject.keys()])]);
    const known = new Map(owners.map((owner) => [String(owner.id), owner]));
    for (const [id, own] of byObject) {
      if (!known.has(id) || this.#unfound.has(id)) this.#unfound.set(id, own.at(-1)?.number ?? 0n);
    }
    const ofPartners = groupBy(reports, (report) => {
      const id = kind.objectIdOf(report);
      if (this.#unfound.has(id)) return unfound;
      const owner = known.get(id);
      // The answer to a send has the same report, and is usually recorded by now.
      const isApplied = report.number <= toBigInt(owner?.last_report ?? 0);
      return isApplied ? undefined : String(owner?.partner_id);
    });
    this.#read = reports.at(-1)?.number ?? this.#read;
    for (const [partnerId, own] of ofPartners) {
      if (partnerId !== undefined) this.#lanes.add(partnerId, own);
      else this.#claim(own);
    }
    this.#moved();
  }

  async #room(): Promise<void> {
    const { position, lease, signal } = this;
    await this.#lanes.room();
    while (position.isFull && !signal.aborted) {
      await position.store(lease, false);
      await pause(fullPauseMs, signal);
    }
  }

  async #apply(partnerId: string, reports: readonly Report[]) {
    const { options, position, signal } = this;
    const unapplied = await new PartnerReports({ ...options, position, signal }, partnerId).apply(reports);
    if (signal.aborted) return unapplied;
    const left = new Set(unapplied?.reports);
    this.#claim(reports.filter((report) => !left.has(report)));
    return unapplied;
  }

  /** Notes reports that are applied. */
  #claim(reports: readonly Report[]): void {
    const { kind, clock, onApplied } = this.options;
    this.position.applied(reports.map((report) => [kind.objectIdOf(report), report.number] as const));
    const at = reports.findLast((report) => report.at !== undefined)?.at;
    if (at !== undefined) onApplied?.(kind.name, Math.max(0, clock.now() - timestampMs(at)) / 1_000);
  }

  /** Moves the position to before the first report that is not applied. */
  #moved(): void {
    const { position, lease, signal, fail } = this;
    if (signal.aborted) return;
    const first = this.#lanes.firstWaiting;
    position.moveTo(first === undefined ? this.#read : first - 1n);
    position.store(lease, false).catch(fail);
  }

  /**
   * Looks again for objects that a read did not find. They are restored if the broker was sent them. Reports about those that are
   * found go to their partners, and reports about the others are noted. Reports about known objects do not wait for it.
   */
  async #applyUnfound(reports: readonly Report[]): Promise<Unapplied<Report> | undefined> {
    const { position, signal } = this;
    const { kind, database, findLost } = this.options;
    const byObject = groupBy(reports, (report) => kind.objectIdOf(report));
    // Before a report is passed over: an object that is restored a moment later would lack it.
    await findLost();
    const rows = await readUpToDate(database, findObjects(kind, [...byObject.keys()]));
    if (signal.aborted) throw new DatabaseDiffersError('reports are read again since');
    const partners = new Map(rows.map((row) => [String(row.id), String(row.partner_id)]));
    const found = reports.filter((report) => partners.has(kind.objectIdOf(report)));
    for (const [partnerId, own] of groupBy(found, (report) => partners.get(kind.objectIdOf(report)))) {
      if (partnerId !== undefined) this.#lanes.add(partnerId, own);
    }
    for (const [id, own] of byObject) {
      const last = own.at(-1)?.number ?? 0n;
      if (!partners.has(id)) position.applied([[id, last, this.#noteUnclaimed(id, own)]]);
      if (this.#unfound.get(id) === last) this.#unfound.delete(id);
    }
    return undefined;
  }

  /** A person must find out whose object it is. Returns what is stored of it with the position. */
  #noteUnclaimed(id: string, reports: readonly Report[]): readonly Statement[] {
    const { broker, kind, log, clock, onUnclaimed } = this.options;
    const numbers = reports.map(({ number }) => Number(number));
    log.error(
      { objectId: id, numbers: numbers.slice(0, 10) },
      'the upstream reports about an object that is not stored here',
    );
    onUnclaimed?.(kind.name);
    return keepUnclaimed(broker, kind, id, reports, clock.realNow());
  }
}

/** Finds some objects and their partners, because reports name only the objects. */
export function findObjects(kind: AnyKind, ids: readonly string[]): Statement {
  const marks = ids.map(() => '?').join(', ');
  const columns = 'id, partner_id, last_report, missed_report';
  return statement(`SELECT ${columns} FROM ${byId(kind)} WHERE id IN (${marks})`, ...ids);
}

function problemOf(partnerId: string, error: unknown): ReportProblem {
  if (partnerId === unfound) return 'unfound';
  return error instanceof Refusal && !isUnproven(error) ? 'locked' : 'damaged';
}

function named(partnerId: string, error: unknown) {
  return { problem: problemOf(partnerId, error), partnerId: partnerId === unfound ? undefined : partnerId };
}
