import { operatorsWithoutEnd, tokenExpiries } from '../../kit/operator-tokens.ts';
import { maxPartnersNamed } from '../edge/metrics.ts';
import { DatabaseProbe } from '../operators/telemetry/database-clock.ts';
import { type Figure, Gauges } from '../operators/telemetry/gauges.ts';
import { Health } from '../operators/telemetry/health.ts';
import { createOpsServer } from '../operators/telemetry/ops-server.ts';
import { WriteProbe } from '../operators/telemetry/write-probe.ts';
import type { Base } from './base.ts';
import { expiries, listExpiries } from './links.ts';
import type { Servers } from './partners.ts';
import type { Parts } from './parts.ts';

interface Watched extends Parts {
  readonly servers: Servers;
  readonly failingWorkers: () => readonly string[];
}

/** Readiness, alerts and metrics of this process, and the port that serves them. */
export function createTelemetry(base: Base, watched: Watched) {
  const { database, clock, holder, links, log, metrics, nats } = base;
  const { callers, brokers, failingWorkers } = watched;
  const { stream } = watched.events;
  const probe = new DatabaseProbe(database, clock);
  const writes = new WriteProbe(database, holder, log);
  const parts = {
    database: probe,
    writes,
    brokers,
    nats,
    stream,
    events: watched.events,
    sharing: callers.sharing,
    watchedFiles: base.watchedFiles,
    failingWorkers,
    log: base.output,
  };
  const health = new Health(parts, () => clock.realNow());
  const { reconciliationTime } = base.config;
  const sources = { metrics, database, probe, clock, holder, stream, reconciliationTime };
  const gauges = new Gauges(sources, figures(base, watched, health));
  const { operations: identity, operationsToken: token } = links;
  return { health, writes, ops: createOpsServer({ health, metrics, gauges, identity, token }) };
}

/** The metrics that this process reads from memory. */
function figures(base: Base, watched: Watched, health: Health): readonly Figure[] {
  const { clock, database, environment, metrics, output } = base;
  const { callers, servers, work, images } = watched;
  const { limits, slots } = callers;
  const { broker, reads } = work;
  const reports = Object.entries(work.reports);
  const inSeconds = (ms: number | undefined) => ms && ms / 1_000;
  const named = (ids: readonly string[]) =>
    [...new Set(ids)].slice(0, maxPartnersNamed).map((id): [string, number] => [id, 1]);
  const troubleMs = (sinceMs: number) => Math.max(0, clock.realNow() - sinceMs);
  return [
    [metrics.requestsUnderWay, () => servers.pipeline.underWay],
    [metrics.connections, () => servers.pipeline.connectionLimits.total],
    [metrics.streams, () => limits.streams],
    [metrics.files, () => limits.files],
    [metrics.limitSlots, () => slots.usedHere],
    [metrics.reads, 'state', () => Object.entries({ waiting: reads.waiting, under_way: reads.underWay })],
    [metrics.images, 'state', () => Object.entries({ waiting: images.waiting, decoding: images.decoding })],
    [metrics.decoderWalls, 'wall', () => images.walls.map(([wall, holds]) => [wall, Number(holds)])],
    [metrics.webhookLag, () => inSeconds(watched.events.webhooks.dispatcher.lagMs)],
    [metrics.reportPosition, 'kind', () => reports.map(([kind, { position }]) => [kind, Number(position)])],
    [metrics.reportStreams, 'kind', () => reports.map(([kind, { isFollowing }]) => [kind, Number(isFollowing)])],
    [
      metrics.databaseConnections,
      'state',
      () => {
        const { limit, inUse, waiting } = database.load;
        return Object.entries({ limit, in_use: inUse, waiting });
      },
    ],
    [metrics.stuckObjects, 'partner', () => named(work.stuck.all)],
    [metrics.stuckEvents, 'partner', () => named(watched.events.webhooks.consumer.stuck)],
    [metrics.partnerQueue, () => database.load.partnersWaiting],
    [metrics.paused, () => Number(environment.paused)],
    [metrics.stops, () => environment.stops.length],
    [metrics.clockOffset, () => inSeconds(clock.offsetMs)],
    [metrics.brokerClockOffset, () => inSeconds(broker.clock.estimateMs)],
    [metrics.troubles, 'part', () => health.known().map(({ part, sinceMs }) => [part, troubleMs(sinceMs) / 1_000])],
    [metrics.certificateExpires, 'link', () => expiries(base.links, clock.realNow())],
    [metrics.revocationListExpires, 'link', () => listExpiries(base.links, clock.realNow())],
    [
      metrics.changedFilesRefused,
      'link',
      () => base.watchedFiles.map(({ name, isRefused }) => [name, Number(isRefused)] as const),
    ],
    [
      metrics.operatorTokenEndless,
      'operator',
      () => operatorsWithoutEnd(base.operatorTokens.current).map((name) => [name, 1] as const),
    ],
    [metrics.operatorTokenExpires, 'operator', () => tokenExpiries(base.operatorTokens.current, clock.realNow())],
    [metrics.logLinesDropped, () => output?.dropped ?? 0],
  ];
}
