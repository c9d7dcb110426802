import type { Database } from '../db/database.ts';
import type { SqlRow } from '../db/statement.ts';
import type { SystemClock } from '../lib/clock.ts';
import type { Metrics } from '../lib/metrics.ts';
import { countPaused, dispatcherLeasePrefix } from '../webhooks/endpoint-store.ts';
import { type BacklogFigures, readBacklog } from './backlog.ts';
import type { DatabaseProbe } from './database-clock.ts';
import type { Health } from './health.ts';
import { Reading } from './reading.ts';

/** What the gauges show. */
export interface GaugeSources {
  readonly metrics: Metrics;
  readonly database: Database;
  readonly probe: DatabaseProbe;
  readonly clock: SystemClock;
  readonly health: Health;
  /** This process's name among the holders of leases. */
  readonly holder: string;
  readonly pipeline: { readonly underWay: number };
  readonly connections: { readonly total: number };
  readonly limits: { readonly streams: number; readonly files: number };
  readonly slots: { readonly usedHere: number };
  readonly reads: { readonly waiting: number; readonly underWay: number };
  readonly images: {
    readonly waiting: number;
    readonly decoding: number;
    readonly walls: readonly (readonly [wall: string, holds: boolean])[];
  };
  readonly dispatcher: { readonly lagMs: number };
  readonly stream: { pending(): Promise<ReadonlyMap<string, number>> };
  readonly reports: Readonly<Record<'order' | 'application', { position: bigint; isFollowing: boolean }>>;
  readonly environment: { readonly paused: boolean };
  readonly brokerClock: { readonly estimateMs: number | undefined };
  /** Absent: no line of the log can be dropped. */
  readonly log: { readonly dropped: number } | undefined;
}

/** How long a scrape waits for what is read from the database and from NATS. It must be answered within a second. */
const readWithinMs = 500;

/** Sets the gauges when Prometheus asks for them. A figure that cannot be read in time is absent, not old. */
export class Gauges {
  readonly #readings: readonly { refresh(withinMs: number): Promise<void> }[];
  /** Dropped lines of the log that have been counted. */
  #dropped = 0;

  constructor(private readonly sources: GaugeSources) {
    const { database, clock, stream, probe } = sources;
    const readClock = async () => {
      await probe.ask();
      return probe.clockAheadMs;
    };
    this.#readings = [
      new Reading(() => readBacklog(database, clock), this.#setBacklog),
      new Reading<SqlRow | undefined>(async () => (await database.read(countPaused()))[0], this.#setPaused),
      new Reading<number | undefined>(readClock, this.#setDatabaseClock),
      new Reading(() => stream.pending(), this.#setPending),
    ];
  }

  /** Sets all gauges, within a second. Never throws. */
  async set(): Promise<void> {
    await Promise.all(this.#readings.map((reading) => reading.refresh(readWithinMs)));
    this.#setOwn();
  }

  /** What this process knows by itself. */
  #setOwn(): void {
    const { metrics, database, clock, pipeline, limits, reads, images, dispatcher, reports, environment } =
      this.sources;
    metrics.requestsUnderWay.set(pipeline.underWay);
    metrics.connections.set(this.sources.connections.total);
    metrics.streams.set(limits.streams);
    metrics.files.set(limits.files);
    metrics.limitSlots.set(this.sources.slots.usedHere);
    metrics.reads.set({ state: 'waiting' }, reads.waiting);
    metrics.reads.set({ state: 'under_way' }, reads.underWay);
    metrics.images.set({ state: 'waiting' }, images.waiting);
    metrics.images.set({ state: 'decoding' }, images.decoding);
    for (const [wall, holds] of images.walls) metrics.decoderWalls.set({ wall }, holds ? 1 : 0);
    metrics.webhookLag.set(dispatcher.lagMs / 1_000);
    for (const [kind, { position, isFollowing }] of Object.entries(reports)) {
      metrics.reportPosition.set({ kind }, Number(position));
      metrics.reportStreams.set({ kind }, isFollowing ? 1 : 0);
    }
    const { limit, inUse, waiting, partnersWaiting } = database.load;
    metrics.databaseConnections.set({ state: 'limit' }, limit);
    metrics.databaseConnections.set({ state: 'in_use' }, inUse);
    metrics.databaseConnections.set({ state: 'waiting' }, waiting);
    metrics.partnerQueue.set(partnersWaiting);
    metrics.paused.set(environment.paused ? 1 : 0);
    metrics.clockOffset.set(clock.offsetMs / 1_000);
    const { estimateMs } = this.sources.brokerClock;
    if (estimateMs === undefined) metrics.brokerClockOffset.remove();
    else metrics.brokerClockOffset.set(estimateMs / 1_000);
    this.#setTroubles();
    this.#countDropped();
  }

  #setTroubles(): void {
    const { metrics, clock, health } = this.sources;
    metrics.troubles.reset();
    const now = clock.realNow();
    for (const { part, sinceMs } of health.known()) metrics.troubles.set({ part }, Math.max(0, now - sinceMs) / 1_000);
  }

  #countDropped(): void {
    const { metrics, log } = this.sources;
    const dropped = log?.dropped ?? 0;
    metrics.logLinesDropped.inc(dropped - this.#dropped);
    this.#dropped = dropped;
  }

  readonly #setDatabaseClock = (aheadMs: number | undefined): void => {
    const { databaseAhead } = this.sources.metrics;
    databaseAhead.reset();
    if (aheadMs !== undefined) databaseAhead.set(aheadMs / 1_000);
  };

  readonly #setPending = (pending: ReadonlyMap<string, number> | undefined): void => {
    const { streamPending } = this.sources.metrics;
    streamPending.reset();
    for (const [consumer, count] of pending ?? []) streamPending.set({ consumer }, count);
  };

  readonly #setBacklog = (backlog: BacklogFigures | undefined): void => {
    const { metrics, holder } = this.sources;
    const { unsettled, unsettledAge, outbox, outboxAge, leasesHeld, leasesTaken } = metrics;
    for (const gauge of [unsettled, unsettledAge, outbox, outboxAge, leasesHeld, leasesTaken]) gauge.reset();
    for (const { kind, state, count, oldestMs } of backlog?.unsettled ?? []) {
      unsettled.set({ kind, state }, count);
      unsettledAge.set({ kind, state }, oldestMs / 1_000);
    }
    for (const { consumer, count, oldestMs } of backlog?.outbox ?? []) {
      outbox.set({ consumer }, count);
      outboxAge.set({ consumer }, oldestMs / 1_000);
    }
    for (const { name, holder: who } of backlog?.leases ?? []) {
      // Each process has a dispatcher's lease of its own, by a name of its own.
      const lease = name.startsWith(dispatcherLeasePrefix) ? 'dispatcher' : name;
      leasesTaken.inc({ lease });
      if (who === holder) leasesHeld.inc({ lease });
    }
  };

  readonly #setPaused = (row: SqlRow | undefined): void => {
    const { webhookPaused } = this.sources.metrics;
    webhookPaused.reset();
    if (row === undefined) return;
    webhookPaused.set({ by: 'failures' }, Number(row.failing));
    webhookPaused.set({ by: 'operator' }, Number(row.held));
  };
}
