import { isLoopback } from '../../kit/addresses.ts';
import { createLogger, type Logger } from '../../kit/log.ts';
import type { LogOutput } from '../../kit/log-output.ts';
import { warnOfTokensWithoutRole } from '../../kit/operator-tokens.ts';
import { Supervisor } from '../../kit/worker.ts';
import { type Base, openBase } from './base.ts';
import { type Config, fourEyesKobo } from './config.ts';
import { warnOfPlainLinks } from './links.ts';
import { createOperators } from './operators.ts';
import { createServers } from './partners.ts';
import { createParts } from './parts.ts';
import { createTelemetry } from './telemetry.ts';

export interface App {
  /** 0 in a process that does not serve partners. */
  readonly restPort: number;
  readonly grpcPort: number;
  readonly adminPort: number;
  readonly opsPort: number;
  /** Counts an uncaught error by its effect on the process. */
  countUncaught(outcome: 'survived' | 'stopped'): void;
  /** Stops accepting requests, lets running ones end, and closes everything, in bounded time. */
  stop(): Promise<void>;
}

/** Builds the gateway and starts it. If the start fails, it closes at once: no client is connected yet. */
export async function startApp(
  config: Config,
  log: Logger = createLogger({ name: 'marina', level: config.logLevel }),
  output?: LogOutput,
): Promise<App> {
  const base = await openBase(config, log, output);
  let close = () => closeBase(base);
  try {
    const gateway = createGateway(base);
    close = () => closeAll(gateway);
    await startWork(gateway);
    warnOfPlainText(config, log);
    warnOfPlainLinks(config, log);
    if (config.environment === 'live' && base.acceptsUnsealed) log.warn('rows without a seal are accepted');
    if (config.environment === 'live') warnOfTokensWithoutRole(base.operatorTokens, log);
    if (config.singleOperator) log.warn('operators may approve their own proposals');
    if (config.environment === 'live' && fourEyesKobo(config) === undefined) log.warn('four eyes are off');
    return {
      ...(await listen(gateway)),
      countUncaught: (outcome) => base.metrics.uncaughtErrors.inc({ outcome }),
      stop: () => stop(gateway),
    };
  } catch (error) {
    // A failure to close must not hide the error that stopped the start.
    await close().catch((failure: unknown) => log.error({ err: failure }, 'could not close after a failed start'));
    throw error;
  }
}

type Gateway = ReturnType<typeof createGateway>;

/** Makes the parts and connects them. It opens nothing: they connect, work and listen later. */
function createGateway(base: Base) {
  const supervisor = new Supervisor(base.log);
  const parts = createParts(base);
  const servers = createServers(base, parts);
  const telemetry = createTelemetry(base, { ...parts, servers, failingWorkers: () => supervisor.failing });
  const operators = createOperators(base, { ...parts, health: telemetry.health });
  return { base, supervisor, ...parts, servers, telemetry, operators };
}

/** Connects to NATS and starts this process's workers. Workers that change objects wait for the start-up gate. */
async function startWork(gateway: Gateway): Promise<void> {
  const { base, supervisor, callers, events, brokers, images, telemetry } = gateway;
  const { does, environment, nats } = base;
  const { stream, feedWatch, webhooks, relay } = events;
  // First, because reads rely on it too.
  supervisor.start(base.writer.worker);
  callers.sharing.start();
  await Promise.all([nats.start(), does('api') ? images.start() : undefined]);
  supervisor.start(environment.worker);
  supervisor.start(feedWatch.worker);
  if (does('api')) supervisor.start(callers.authenticator.worker);
  if (does('webhooks')) {
    supervisor.start(stream.worker(webhooks.consumer));
    supervisor.start(webhooks.dispatcher.worker);
  }
  if (does('worker')) {
    supervisor.start(relay.worker);
    if (base.config.natsConsumers.length > 0) supervisor.start(events.subscribers);
    for (const worker of brokers.flatMap(({ workers }) => workers)) supervisor.start(worker);
  }
  for (const worker of brokers.flatMap(({ watchers }) => watchers)) supervisor.start(worker);
  // Without a broker the gateway starts too, but accepts no submissions to it.
  await Promise.allSettled(brokers.map(({ gate }) => gate.pass()));
  supervisor.start(callers.keyUses.worker);
  supervisor.start(telemetry.health.worker);
  supervisor.start(telemetry.writes.worker);
  for (const { worker } of base.watchedFiles) supervisor.start(worker);
  if (base.database.hosts.areMany) supervisor.start(base.database.hosts.worker);
  supervisor.start(base.keyUseWorker);
  if (does('worker')) for (const worker of gateway.maintenance) supervisor.start(worker);
}

/** In live, keys must not cross a network in plain text. Only the operator knows whether a proxy ends TLS in front. */
function warnOfPlainText({ environment, host, tlsCertificate }: Config, log: Logger): void {
  if (environment === 'live' && tlsCertificate === undefined && !isLoopback(host)) {
    log.warn({ host }, "partners' ports speak no TLS");
  }
}

async function listen({ base: { config }, servers, operators, telemetry }: Gateway) {
  const { restPort, grpcPort } = await servers.listen();
  const adminPort = await operators.listen(config.adminPort, config.adminHost);
  const opsPort = await telemetry.ops.listen(config.opsPort, config.opsHost);
  return { restPort, grpcPort, adminPort, opsPort };
}

/** Sends clients away while everything still works, then closes. */
function stop(gateway: Gateway): Promise<void> {
  return inOrder([
    () => gateway.telemetry.health.sayStopping(),
    () => gateway.servers.drain(),
    () => closeAll(gateway),
  ]);
}

/** Closes everything: first the sources of work, then the work, then the connections it needs. */
function closeAll({ base, supervisor, ...gateway }: Gateway) {
  const { log, nats, tracer, database } = base;
  const graceMs = base.config.shutdownTimeoutMs;
  return inOrder([
    () => Promise.all([gateway.servers.close(graceMs), gateway.operators.close(graceMs)]),
    async () => {
      if (!(await supervisor.stop(graceMs))) log.warn('background work did not end in time');
    },
    () => gateway.callers.sharing.close(),
    () => nats.close(),
    () => gateway.events.webhooks.sender.close(),
    () => tracer.close(),
    () => [...gateway.brokers.map(({ broker }) => broker), gateway.simulator].map((each) => each?.close()),
    () => gateway.images.close(),
    () => gateway.telemetry.ops.close(),
    async () => void base.stopLoggingUnknownNames(),
    () => database.close(),
  ]);
}

function closeBase({ tracer, database, stopLoggingUnknownNames }: Base) {
  return inOrder([() => tracer.close(), async () => void stopLoggingUnknownNames(), () => database.close()]);
}

/** Runs steps in order, also after one fails. Throws the failures at the end. */
export async function inOrder(steps: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, 'several steps failed');
}
