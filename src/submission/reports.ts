import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Database } from '../db/database.ts';
import { fenced, type Lease, underLease } from '../db/lease.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import type { Clock } from '../lib/clock.ts';
import { coalesce } from '../lib/coalesce.ts';
import { crash } from '../lib/crash.ts';
import { groupBy } from '../lib/group.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { Change, passOver } from './change.ts';
import type { AnyKind, Kind } from './kind.ts';
import type { Recorder } from './record.ts';
import type { StuckPartners } from './stuck-partners.ts';
import { byId, isBehind, readPosition, type Submission, savePosition } from './table.ts';

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
}

const mostAtOnce = 1_000;
const partnersAtOnce = 4;
/**
 * How long the first of some reports waits for others, in milliseconds. The answer to a send carries the same report and
 * is then recorded first, and reports that come together are applied together.
 */
const batchingWindowMs = 20;
/** How often the position is stored. After a crash, later reports are applied again and change nothing. */
const storeEveryMs = 250;
/** A stream counts as healthy once it has lasted this long after its first message. */
const healthyAfterMs = 2_000;
const firstRefetchMs = 50;
const longestRefetchMs = 5_000;

/**
 * Applies the upstream's numbered stream of reports about one kind of object: each once, and each object's in the order of
 * their numbers. The position moves only after a whole batch, so a crash repeats reports, and an object ignores those it has
 * seen. A gap in the numbers ends the stream, and the missing reports are fetched again.
 */
export class ReportConsumer<Row extends Submission, Report extends Numbered> {
  readonly worker: Worker;
  /** The number of the last report applied: a new stream begins after it. It is a metric too. */
  position = 0n;
  /** The name of the stored position, and of the lease on the stream. */
  readonly #positionName: string;
  #stored = 0n;
  #storedAt = 0;
  #fruitless = 0;
  #followingSince: number | undefined;
  /** When the present stream had its first message. A frozen broker accepts the call and sends none. */
  #firstMessageAt: number | undefined;

  constructor(private readonly options: ReportConsumerOptions<Row, Report>) {
    const { kind, database, holder } = options;
    this.#positionName = `${kind.name}-reports`;
    this.worker = underLease(database, this.#positionName, holder, async (lease) => {
      try {
        await this.#run(lease);
      } finally {
        this.#fruitless = 0; // Another process may follow the stream now: what failed here says nothing of it.
      }
    });
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
    this.position = BigInt((await readPosition(this.options.database, this.#positionName)) ?? 0);
    this.#stored = this.position;
    while (!lease.signal.aborted) {
      const before = this.position;
      try {
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
    const stream = kind.streamReports(this.position, AbortSignal.any([lease.signal, leaving.signal]));
    try {
      for await (const reports of coalesce(this.#noteMessages(stream), mostAtOnce)) {
        const { fresh, gapBefore } = inSequence(reports, this.position);
        if (fresh.length > 0) await this.#applyBatch(fresh);
        await this.#storePosition(lease, false);
        if (gapBefore === undefined) {
          await pause(batchingWindowMs, lease.signal);
          continue;
        }
        log.warn({ after: Number(this.position), got: Number(gapBefore) }, 'reports are missing; fetching again');
        return;
      }
    } finally {
      leaving.abort();
      await this.#storePosition(lease, true);
    }
  }

  async *#noteMessages(stream: AsyncIterable<readonly Report[]>): AsyncIterable<readonly Report[]> {
    for await (const reports of stream) {
      this.#firstMessageAt ??= performance.now();
      yield reports;
    }
  }

  async #applyBatch(reports: readonly Report[]): Promise<void> {
    const { kind, database, log } = this.options;
    crash(`${kind.name}-report.before-apply`);
    const byObject = groupBy(reports, (report) => kind.objectIdOf(report));
    let [owners = []] = await database.readAll([findPartners(kind, [...byObject.keys()])]);
    if (owners.length < byObject.size) {
      // Before a report is dropped: an object that is restored a moment later would lack it.
      await this.options.findLost();
      [owners = []] = await database.readAll([findPartners(kind, [...byObject.keys()])]);
    }
    const known = new Set(owners.map((owner) => String(owner.id)));
    for (const id of byObject.keys()) {
      if (!known.has(id)) log.error({ objectId: id }, 'the upstream reports about an object that is not stored here');
    }
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
    this.position = last.number;
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
    const decide = (row: Row) => {
      // Reports are applied in the order of their numbers: first the ones that were not applied before.
      if (isBehind(row)) return lookUpLater(row);
      const change = new Change(kind, row, clock.now()).reports(of(row));
      return change.after === row ? undefined : change;
    };
    try {
      await recorder.changeMany(kind, { partnerId, ids, decide, decideUnknown });
    } catch (error) {
      stuck.note(partnerId, ids, error);
      // A partner's damaged events must not hold up the reports of all others: these are looked up once it is repaired.
      await recorder.changeMany(kind, { partnerId, ids, decide: lookUpLater, decideUnknown });
    }
  }

  /** Stores the position, unless another holder has the lease by now. */
  async #storePosition(lease: Lease, now: boolean): Promise<void> {
    if (this.#stored === this.position) return;
    if (!now && performance.now() - this.#storedAt < storeEveryMs) return;
    const position = this.position;
    const isOurs = await this.options.database.transaction([fenced(lease)], ([leases]) => {
      if (leases?.[0] === undefined) return { writes: [], result: false };
      const move = savePosition(this.#positionName, position.toString());
      return { writes: [move], result: true };
    });
    if (!isOurs) throw new LeaseLostError();
    this.#stored = position;
    this.#storedAt = performance.now();
    crash(`${this.options.kind.name}-report.position-moved`);
  }
}

/** Finds the partners of some objects, because reports name only the objects. */
function findPartners(kind: AnyKind, ids: readonly string[]): Statement {
  const marks = ids.map(() => '?').join(', ');
  return statement(`SELECT id, partner_id, last_report FROM ${byId(kind)} WHERE id IN (${marks})`, ...ids);
}

class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
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
