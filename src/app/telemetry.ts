import { DatabaseProbe } from '../telemetry/database-clock.ts';
import { Gauges } from '../telemetry/gauges.ts';
import { Health } from '../telemetry/health.ts';
import { createOpsServer } from '../telemetry/ops-server.ts';
import { lookAtParts } from '../telemetry/parts.ts';
import { WriteProbe } from '../telemetry/write-probe.ts';
import type { Base } from './base.ts';
import type { Servers } from './partners.ts';
import type { Parts } from './parts.ts';

export type Telemetry = ReturnType<typeof createTelemetry>;

/** What is looked at. */
interface Watched extends Parts {
  readonly servers: Servers;
  /** Names of background work that fails. */
  readonly failingWorkers: () => readonly string[];
}

/** What is seen of this process from outside: whether it is ready, what is wrong, its metrics; and the port for that. */
export function createTelemetry(base: Base, watched: Watched) {
  const { database, clock, environment, holder, log, metrics, output, nats } = base;
  const { callers, upstream, servers, failingWorkers } = watched;
  const { stream, webhooks } = watched.events;
  const { gate, images } = watched.submissions;
  const { reports } = watched.outcomes;
  let stopping = false;
  const probe = new DatabaseProbe(database, clock);
  const writes = new WriteProbe(database, holder, log);
  const parts = {
    database: probe,
    writes,
    broker: upstream.broker,
    brokerClocks: watched.submissions.clocks,
    brokerClock: upstream.clock,
    nats,
    stream,
    sharing: callers.sharing,
    reports: reports.order,
    applicationReports: reports.application,
    gate,
    failingWorkers,
    isStopping: () => stopping,
    log: output,
  };
  const health = new Health(
    () => lookAtParts(parts),
    () => probe.ask(),
    () => clock.realNow(),
  );
  const gauges = new Gauges({
    metrics,
    database,
    probe,
    clock,
    health,
    holder,
    pipeline: servers.pipeline,
    connections: servers.pipeline.connectionLimits,
    limits: callers.limits,
    slots: callers.slots,
    reads: callers.reads,
    images,
    dispatcher: webhooks.dispatcher,
    stream,
    reports,
    environment,
    brokerClock: upstream.clock,
    log: output,
  });
  const ops = createOpsServer({
    troubles: () => health.troubles(),
    metrics: async () => {
      await gauges.set();
      return { body: await metrics.registry.metrics(), contentType: metrics.registry.contentType };
    },
  });
  return {
    health,
    writes,
    ops,
    /** From now on this process says that it is not ready. */
    sayStopping: () => {
      stopping = true;
    },
  };
}
