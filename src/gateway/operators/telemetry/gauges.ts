import type { Counter, Gauge } from 'prom-client';
import { atMost } from '../../../kit/at-most.ts';
import type { Clock } from '../../../kit/clock.ts';
import {
  countPaused,
  findUndelivered,
  readUndelivered,
  type Undelivered,
} from '../../delivery/webhooks/plan/endpoint-store.ts';
import { shownUndeliveredMs } from '../../delivery/webhooks/rules.ts';
import { dispatcherLeasePrefix } from '../../delivery/webhooks/table.ts';
import { type Metrics, maxPartnersNamed } from '../../edge/metrics.ts';
import type { Database } from '../../store/database.ts';
import type { SqlRow } from '../../store/statement.ts';
import { type RunningFigures, readRunning } from '../../trading/orders/bulk-cancels/figures.ts';
import { type ReconciliationFigures, readReconciliation } from '../reconciliation/figures-store.ts';
import { type BacklogFigures, readBacklog } from './backlog.ts';
import type { DatabaseProbe } from './database-clock.ts';

/** The sources of the gauges outside the process. */
export interface GaugeSources {
  readonly metrics: Metrics;
  readonly database: Database;
  readonly probe: DatabaseProbe;
  readonly clock: Clock;
  /** This process's name as a holder of leases. */
  readonly holder: string;
  readonly stream: { pending(): Promise<ReadonlyMap<string, number>> };
  /** The minute of the Lagos day at which it is compared with the broker's statement. */
  readonly reconciliationTime: number;
}

/** A metric and its figure, undefined if unknown. A metric with a label has a figure for each value of it. */
export type Figure =
  | readonly [metric: Gauge | Counter, figure: () => number | undefined]
  | readonly [metric: Gauge<string>, label: string, figures: () => Iterable<readonly [value: string, figure: number]>];

/** How long a scrape waits for the database and NATS. It must be answered within 1 s. */
const readWithinMs = 500;

/** Sets the gauges at each scrape. A figure that cannot be read in time is absent, not old. */
export class Gauges {
  readonly #readings: readonly { refresh(withinMs: number): Promise<void> }[];

  constructor(
    private readonly sources: GaugeSources,
    private readonly own: readonly Figure[],
  ) {
    const { database, clock, stream, probe, reconciliationTime } = sources;
    const readClock = async () => {
      await probe.ask();
      return probe.clockAheadMs;
    };
    this.#readings = [
      new Reading(() => readBacklog(database, clock), this.#setBacklog),
      new Reading(() => this.#readEndpoints(), this.#setEndpoints),
      new Reading<number | undefined>(readClock, this.#setDatabaseClock),
      new Reading(() => stream.pending(), this.#setPending),
      new Reading(() => readRunning(database, clock), this.#setBulkCancels),
      new Reading(() => readReconciliation(database, clock, reconciliationTime), this.#setReconciliation),
    ];
  }

  /** Sets all gauges, within a second. Never throws. */
  async set(): Promise<void> {
    await Promise.all(this.#readings.map((reading) => reading.refresh(readWithinMs)));
    for (const figure of this.own) setFigure(figure);
  }

  readonly #setDatabaseClock = (aheadMs: number | undefined): void => {
    setFigure([this.sources.metrics.databaseAhead, () => aheadMs && aheadMs / 1_000]);
  };

  readonly #setPending = (pending: ReadonlyMap<string, number> | undefined): void => {
    setFigure([this.sources.metrics.streamPending, 'consumer', () => pending ?? []]);
  };

  readonly #setBulkCancels = (running: RunningFigures | undefined): void => {
    const { metrics } = this.sources;
    setFigure([metrics.bulkCancels, () => running?.jobs]);
    setFigure([metrics.bulkCancelOrdersLeft, () => running?.ordersLeft]);
    setFigure([metrics.bulkCancelIdle, () => running && running.idleMs / 1_000]);
  };

  readonly #setReconciliation = (days: ReconciliationFigures | undefined): void => {
    const { metrics } = this.sources;
    const lastDayEndsAt = days?.lastDayEndsAt;
    setFigure([metrics.reconciliationBreaks, 'kind', () => days?.breaks ?? []]);
    setFigure([metrics.reconciliationLastDay, () => lastDayEndsAt && lastDayEndsAt / 1_000]);
    setFigure([metrics.reconciliationOverdue, () => days?.overdue]);
    setFigure([metrics.reconciliationOverdueAge, () => days && days.overdueMs / 1_000]);
    setFigure([metrics.reconciliationNotOffered, () => days && Number(days.isOffered === false)]);
  };

  readonly #setBacklog = (backlog: BacklogFigures | undefined): void => {
    const { metrics, holder } = this.sources;
    const { unsettled = [], removal = [], leases = [], outbox, proposals, held, contradictions } = backlog ?? {};
    metrics.unsettled.reset();
    metrics.unsettledAge.reset();
    metrics.acknowledged.reset();
    for (const { kind, state, count, acknowledged, oldestMs } of unsettled) {
      metrics.unsettled.set({ kind, state }, count);
      metrics.acknowledged.set({ kind, state }, acknowledged);
      metrics.unsettledAge.set({ kind, state }, oldestMs / 1_000);
    }
    metrics.openContradictions.reset();
    for (const { kind, partner, count } of contradictions?.byPartner ?? []) {
      metrics.openContradictions.set({ kind, partner }, count);
    }
    setFigure([metrics.held, () => held?.count]);
    setFigure([metrics.heldAge, () => held && held.oldestMs / 1_000]);
    setFigure([metrics.outbox, 'consumer', () => (outbox ? [['webhooks', outbox.count]] : [])]);
    setFigure([metrics.outboxAge, 'consumer', () => (outbox ? [['webhooks', outbox.oldestMs / 1_000]] : [])]);
    setFigure([metrics.openProposals, () => proposals?.count]);
    setFigure([metrics.openProposalsAge, () => proposals && proposals.oldestMs / 1_000]);
    setFigure([metrics.removalOverdue, 'worker', () => removal.map((one) => [one.worker, one.overdueMs / 1_000])]);
    const own = leases.filter((lease) => lease.holder === holder);
    setFigure([metrics.leasesTaken, 'lease', () => leases.map(({ name }) => [leaseOf(name), 1])]);
    setFigure([metrics.leasesHeld, 'lease', () => own.map(({ name }) => [leaseOf(name), 1])]);
  };

  async #readEndpoints() {
    const { database, clock } = this.sources;
    const until = clock.now() - shownUndeliveredMs;
    const [paused = [], undelivered = []] = await database.readAll([
      countPaused(),
      findUndelivered(until, maxPartnersNamed),
    ]);
    return { paused: paused[0], undelivered: undelivered.map(readUndelivered) };
  }

  readonly #setEndpoints = (
    found: { readonly paused: SqlRow | undefined; readonly undelivered: readonly Undelivered[] } | undefined,
  ): void => {
    const { webhookPaused, webhookUndelivered } = this.sources.metrics;
    webhookPaused.reset();
    webhookUndelivered.reset();
    if (found === undefined) return;
    webhookPaused.set({ by: 'failures' }, Number(found.paused?.failing));
    webhookPaused.set({ by: 'operator' }, Number(found.paused?.held));
    const now = this.sources.clock.now();
    for (const { partnerId: partner, by, since } of found.undelivered) {
      webhookUndelivered.set({ partner, by }, (now - since) / 1_000);
    }
  };
}

/** A lease's label. Each process has its own dispatcher lease, with its own name. */
function leaseOf(name: string): string {
  return name.startsWith(dispatcherLeasePrefix) ? 'dispatcher' : name;
}

function setFigure(figure: Figure): void {
  figure[0].reset();
  if (figure.length === 3) {
    const [metric, label, figures] = figure;
    for (const [value, number] of figures()) metric.inc({ [label]: value }, number);
    return;
  }
  const [metric, now] = figure;
  const number = now();
  if (number === undefined) metric.remove();
  else metric.inc(number);
}

/** The largest age of a figure, so that many scrapers cost no more than one. */
const usableMs = 1_000;

/**
 * Reads a figure from outside the process and shows it. While a read is late, the figure is absent, and no second read
 * starts.
 */
export class Reading<T> {
  #startedAt = Number.NEGATIVE_INFINITY;
  #underWay: Promise<void> | undefined;

  constructor(
    private readonly read: () => Promise<T>,
    /** Undefined: it could not be read, or not yet. */
    private readonly show: (value: T | undefined) => void,
  ) {}

  /** Shows the figure as it is now, or that it is late. Never throws. */
  async refresh(withinMs: number): Promise<void> {
    if (this.#underWay === undefined) {
      if (performance.now() - this.#startedAt < usableMs) return;
      this.#startedAt = performance.now();
      this.#underWay = this.#read();
    }
    if (!(await atMost(withinMs, this.#underWay))) this.show(undefined);
  }

  async #read(): Promise<void> {
    try {
      this.show(await this.read());
    } catch {
      this.show(undefined);
    } finally {
      this.#underWay = undefined;
    }
  }
}
