import type { Database } from '../db/database.ts';
import type { SqlRow } from '../db/statement.ts';
import type { SystemClock } from '../lib/clock.ts';
import type { Metrics } from '../lib/metrics.ts';
import { countPaused, dispatcherLeasePrefix } from '../webhooks/endpoint-store.ts';
import { type BacklogFigures, readBacklog } from './backlog.ts';
import { readDatabaseClock } from './database-clock.ts';
import type { Health } from './health.ts';

/** What the gauges show. */
export interface GaugeSources {
  readonly metrics: Metrics;
  readonly database: Database;
  readonly clock: SystemClock;
  readonly health: Health;
  /** This process's name among the holders of leases. */
  readonly holder: string;
  readonly pipeline: { readonly underWay: number };
  readonly connections: { readonly total: number };
  readonly local: { readonly streams: number; readonly files: number };
  readonly slots: { readonly takenHere: number };
  readonly reads: { readonly waiting: number; readonly underWay: number };
  readonly images: {
    readonly waiting: number;
    readonly decoding: number;
    readonly walls: readonly (readonly [wall: string, holds: boolean])[];
  };
  readonly dispatcher: { readonly lagMs: number };
  readonly carrier: { pending(): Promise<ReadonlyMap<string, number>> };
  readonly reports: Readonly<Record<'order' | 'application', { position: bigint; isFollowing: boolean }>>;
  readonly isPaused: () => boolean;
  readonly brokerClock: { readonly estimateMs: number | undefined };
}

/** How old what was read from the database may be: many who scrape cost no more than one. */
const usableMs = 1_000;

/** Sets the gauges when somebody looks at them. What cannot be read is absent, not old. */
export class Gauges {
  #reading: { readonly at: number; readonly done: Promise<void> } | undefined;

  constructor(private readonly sources: GaugeSources) {}

  /** Sets all gauges. Never throws. */
  async set(): Promise<void> {
    this.#setOwn();
    if (this.#reading === undefined || performance.now() - this.#reading.at > usableMs) {
      this.#reading = { at: performance.now(), done: this.#read() };
    }
    await this.#reading.done;
  }

  /** What this process knows by itself. */
  #setOwn(): void {
    const { metrics, database, clock, pipeline, local, reads, images, dispatcher, reports, isPaused } = this.sources;
    metrics.requestsUnderWay.set(pipeline.underWay);
    metrics.connections.set(this.sources.connections.total);
    metrics.streams.set(local.streams);
    metrics.files.set(local.files);
    metrics.limitPlaces.set(this.sources.slots.takenHere);
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
    metrics.paused.set(isPaused() ? 1 : 0);
    metrics.clockOffset.set(clock.offsetMs / 1_000);
    const { estimateMs } = this.sources.brokerClock;
    if (estimateMs === undefined) metrics.brokerClockOffset.remove();
    else metrics.brokerClockOffset.set(estimateMs / 1_000);
  }

  /** What has to be asked for. */
  async #read(): Promise<void> {
    const { database, clock, carrier, health } = this.sources;
    const [backlog, paused, pending, troubles, databaseClock] = await Promise.all([
      readBacklog(database, clock).catch(() => undefined),
      database.read(countPaused()).then(
        ([row]) => row,
        () => undefined,
      ),
      carrier.pending().catch(() => new Map<string, number>()),
      health.troubles(),
      readDatabaseClock(database, clock).catch(() => undefined),
    ]);
    const { metrics } = this.sources;
    this.#setBacklog(backlog);
    this.#setPaused(paused);
    metrics.databaseAhead.reset();
    if (databaseClock !== undefined) metrics.databaseAhead.set(databaseClock.aheadMs / 1_000);
    metrics.streamPending.reset();
    for (const [taker, count] of pending) metrics.streamPending.set({ taker }, count);
    metrics.troubles.reset();
    const now = clock.realNow();
    for (const { part, sinceMs } of troubles) metrics.troubles.set({ part }, Math.max(0, now - sinceMs) / 1_000);
  }

  #setBacklog(backlog: BacklogFigures | undefined): void {
    const { metrics, holder } = this.sources;
    const { unsettled, unsettledAge, outbox, outboxAge, leasesHeld, leasesTaken } = metrics;
    for (const gauge of [unsettled, unsettledAge, outbox, outboxAge, leasesHeld, leasesTaken]) gauge.reset();
    for (const { kind, state, count, oldestMs } of backlog?.unsettled ?? []) {
      unsettled.set({ kind, state }, count);
      unsettledAge.set({ kind, state }, oldestMs / 1_000);
    }
    for (const { taker, count, oldestMs } of backlog?.outbox ?? []) {
      outbox.set({ taker }, count);
      outboxAge.set({ taker }, oldestMs / 1_000);
    }
    for (const { name, holder: who } of backlog?.leases ?? []) {
      // Each process has a dispatcher's lease of its own, by a name of its own.
      const lease = name.startsWith(dispatcherLeasePrefix) ? 'dispatcher' : name;
      leasesTaken.inc({ lease });
      if (who === holder) leasesHeld.inc({ lease });
    }
  }

  #setPaused(row: SqlRow | undefined): void {
    const { webhookPaused } = this.sources.metrics;
    webhookPaused.reset();
    if (row === undefined) return;
    webhookPaused.set({ by: 'failures' }, Number(row.failing));
    webhookPaused.set({ by: 'operator' }, Number(row.held));
  }
}
