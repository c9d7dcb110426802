import { hkdfSync, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { accountHandlers } from './accounts/handlers.ts';
import { EnvironmentState } from './admin/environment.ts';
import { words } from './admin/handlers.ts';
import { ledgerCheck } from './admin/ledger-check.ts';
import { createAdminServer } from './admin/server.ts';
import { allocationHandlers } from './allocations/handlers.ts';
import { AllocationKind } from './allocations/kind.ts';
import { finalStates as finalAllocationStates } from './allocations/rules.ts';
import { operatorServices } from './app-admin.ts';
import { documentHandlers } from './applications/documents/handlers.ts';
import { DocumentSender } from './applications/documents/sender.ts';
import { applicationHandlers } from './applications/handlers.ts';
import { ImageChecker } from './applications/images/checker.ts';
import { ApplicationKind } from './applications/kind.ts';
import { finalStates as finalApplicationStates } from './applications/rules.ts';
import { Authenticator } from './auth/authenticate.ts';
import { clientAddressBehind } from './auth/client-address.ts';
import { UpstreamCalls } from './broker/calls.ts';
import { GrpcAllocations } from './broker/grpc-allocations.ts';
import { GrpcApplications } from './broker/grpc-applications.ts';
import { GrpcBroker } from './broker/grpc-broker.ts';
import { GrpcRecords } from './broker/grpc-records.ts';
import { GrpcSubmissions } from './broker/grpc-submissions.ts';
import type { Config, Role } from './config.ts';
import { type Database, openDatabase } from './db/database.ts';
import { missingMigrations } from './db/migrate.ts';
import { Site } from './docs/site.ts';
import { Carrier } from './events/carrier.ts';
import { FeedTaker } from './events/feed.ts';
import { FeedWatch } from './events/feed-watch.ts';
import { eventHandlers } from './events/handlers.ts';
import { Relay } from './events/relay.ts';
import { feedRetention } from './events/retention.ts';
import { Accounts } from './gen/marina/gateway/v1/accounts_pb.ts';
import { Allocations } from './gen/marina/gateway/v1/allocations_pb.ts';
import { Applications } from './gen/marina/gateway/v1/applications_pb.ts';
import { Events } from './gen/marina/gateway/v1/events_pb.ts';
import { Keys } from './gen/marina/gateway/v1/keys_pb.ts';
import { Limits } from './gen/marina/gateway/v1/limits_pb.ts';
import { Orders } from './gen/marina/gateway/v1/orders_pb.ts';
import { Reference } from './gen/marina/gateway/v1/reference_pb.ts';
import { Sandbox } from './gen/marina/gateway/v1/sandbox_pb.ts';
import { Wallet } from './gen/marina/gateway/v1/wallet_pb.ts';
import { Controls } from './gen/marina/simulator/v1/controls_pb.ts';
import { keyHandlers } from './keys/handlers.ts';
import { KeyUses } from './keys/uses.ts';
import { SystemClock } from './lib/clock.ts';
import { armCrash } from './lib/crash.ts';
import { createGrpcClient } from './lib/grpc-client.ts';
import { IdentityCredentials } from './lib/grpc-tls.ts';
import { IdMaker } from './lib/ids.ts';
import { createLogger, type Logger } from './lib/log.ts';
import { Metrics } from './lib/metrics.ts';
import { Cursors } from './lib/paging.ts';
import { Seal } from './lib/seal.ts';
import { openIdentity } from './lib/server-identity.ts';
import { passingTracer, type Tracer } from './lib/trace.ts';
import { version } from './lib/version.ts';
import { Supervisor } from './lib/worker.ts';
import { limitHandlers } from './limits/handlers.ts';
import { LocalLimits } from './limits/local.ts';
import { ReadQueue } from './limits/read-queue.ts';
import { SharedLimits } from './limits/shared.ts';
import { SharedBuckets } from './limits/shared-buckets.ts';
import { SharedSlots } from './limits/shared-slots.ts';
import { Sharing } from './limits/sharing.ts';
import { SlotBoard } from './limits/slot-board.ts';
import { Canceller } from './orders/cancel.ts';
import { orderHandlers } from './orders/handlers.ts';
import { OrderKind } from './orders/kind.ts';
import { finalStates as finalOrderStates } from './orders/rules.ts';
import { TradingContexts } from './orders/trading-context.ts';
import { referenceHandlers } from './reference/handlers.ts';
import { sandboxHandlers } from './sandbox/handlers.ts';
import { StartGate } from './submission/gate.ts';
import { keyRetention } from './submission/key-retention.ts';
import { Notes } from './submission/notes.ts';
import { Reconciler } from './submission/reconcile.ts';
import { Recorder } from './submission/record.ts';
import { Recovery } from './submission/recovery.ts';
import { ReportTaker } from './submission/reports.ts';
import { Submitter } from './submission/submit.ts';
import { Gauges } from './telemetry/gauges.ts';
import { Health } from './telemetry/health.ts';
import { lookAtParts } from './telemetry/parts.ts';
import { maxBodyBytes } from './transport/body-limit.ts';
import { createGrpcServer } from './transport/grpc.ts';
import { defineOperations } from './transport/operations.ts';
import { createOpsServer } from './transport/ops.ts';
import { Pipeline } from './transport/pipeline.ts';
import { createRestServer } from './transport/rest/server.ts';
import { walletHandlers } from './wallet/handlers.ts';
import { Dispatcher } from './webhooks/dispatcher.ts';
import { dispatcherLeasePrefix } from './webhooks/endpoint-store.ts';
import { webhookRetention } from './webhooks/retention.ts';
import { Sender } from './webhooks/sender.ts';
import { signingKeys } from './webhooks/signing-keys.ts';
import { WebhookTaker } from './webhooks/taker.ts';

/** A running gateway. */
export interface App {
  /** The partners' ports are 0 in a process that does not serve them. */
  readonly restPort: number;
  readonly grpcPort: number;
  readonly adminPort: number;
  readonly opsPort: number;
  /** Stops taking requests, lets what is under way end, and closes everything, in bounded time. */
  stop(): Promise<void>;
}

/** Puts the gateway together and starts it. The one place that knows every part. */
export async function startApp(config: Config, log: Logger = createLogger({ name: 'marina', level: config.logLevel })) {
  const database = await openDatabase({
    url: config.databaseUrl,
    environment: config.environment,
    poolSize: config.databasePool,
  });
  try {
    return await startOn(database, config, log);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function startOn(database: Database, config: Config, log: Logger): Promise<App> {
  const missing = await missingMigrations(database);
  if (missing.length > 0) throw new Error(`the database lacks ${missing.join(', ')}: migrate it first`);
  const does = (role: Role) => config.roles.includes(role);
  if (config.crashPoint !== undefined) armCrash(config.crashPoint, config.crashSignal);
  const isSandbox = config.environment === 'sandbox';
  const holder = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`.slice(-64);
  const startedAt = Date.now();
  const metrics = new Metrics();
  const tracer = await openTracer(config, holder, log);
  const clock = new SystemClock();
  const ids = new IdMaker(() => clock.now());
  const environment = new EnvironmentState(database, clock, log);
  await environment.refresh();
  if (!isSandbox && clock.offsetMs > 0) throw new Error('the clock of a live gateway cannot be ahead');
  const cursors = new Cursors(subkey(config.secretKey, 'cursors'));
  const digestKey = subkey(config.secretKey, 'request digests');

  const carrier = new Carrier({ url: config.natsUrl, prefix: config.natsPrefix, log });
  const sharing = new Sharing(
    new SlotBoard({ url: config.natsUrl, prefix: config.natsPrefix, replica: randomUUID(), log }),
    log,
  );
  const slots = new SharedSlots(sharing, log);
  const feedWatch = new FeedWatch(database);
  const feed = new FeedTaker(database, carrier, (taken) => {
    const now = clock.realNow();
    for (const { committedAt } of taken) metrics.feedArrivals.observe(Math.max(0, now - committedAt) / 1_000);
    feedWatch.wake();
    carrier.say('feed');
  });
  const seal = new Seal(subkey(config.secretKey, 'webhook secrets'));
  const keysOf = signingKeys(seal);
  const { webhookAllowLoopback: allowLoopback, webhookAuthorities: extraAuthorities } = config;
  const sender = new Sender({ clock, allowLoopback, extraAuthorities });
  const dispatcher = new Dispatcher({
    database,
    clock,
    log,
    holder,
    leaseName: `${dispatcherLeasePrefix}${randomUUID().replaceAll('-', '').slice(0, 24)}`,
    send: (delivery) => sender.send(delivery),
    keysOf,
    tracer,
    meters: {
      attempted: (outcome, errorClass, seconds) =>
        metrics.webhookAttempts.observe({ outcome, error_class: errorClass ?? 'none' }, seconds),
      waited: (seconds) => metrics.webhookWaits.observe(seconds),
      arrived: (seconds) => metrics.webhookArrivals.observe(seconds),
    },
  });
  const webhooks = new WebhookTaker(database, carrier, clock, (partnerIds) => {
    const others = dispatcher.wake(partnerIds);
    if (others.length > 0) carrier.say('webhooks', others.join(','));
  });
  const relay = new Relay({ database, carrier, clock, log, holder, takers: [feed, webhooks] });

  const calls = new UpstreamCalls({
    log,
    tracer,
    onEnded: ({ method, outcome, seconds }) => metrics.upstreamCalls.observe({ method, outcome }, seconds),
  });
  const upstream = {
    address: config.brokerAddress,
    submitTimeoutMs: config.submitTimeoutMs,
    readTimeoutMs: config.readTimeoutMs,
    calls,
  };
  const broker = new GrpcBroker(upstream);
  const applicationBroker = new GrpcApplications(upstream);
  const allocationBroker = new GrpcAllocations(upstream);
  const records = new GrpcRecords({ address: config.brokerAddress, calls });
  const reads = new ReadQueue({ slots, timeoutMs: config.recordsTimeoutMs });
  const gate = new StartGate();
  const recorder = new Recorder(
    database,
    clock,
    ids,
    () => relay.tell(),
    ({ kind, partnerId, id, state, detail }) => {
      metrics.contradictions.inc({ kind });
      log.error(
        { kind, partnerId, objectId: id, state, contradiction: detail },
        'the upstream says what contradicts the state of an object',
      );
    },
    gate,
  );
  const submitter = new Submitter(database, recorder, () => environment.paused, gate);
  const notes = new Notes(new Seal(subkey(config.secretKey, 'submission notes')));
  const contexts = new TradingContexts(broker);
  const { submitTimeoutMs, clockSkewMs } = config;
  const kind = new OrderKind({ broker, contexts, clock, ids, notes, submitTimeoutMs, clockSkewMs });
  const canceller = new Canceller({ kind, broker, recorder, clock, submitTimeoutMs, clockSkewMs });
  const honoursNotAfter = () => broker.honoursNotAfter();
  const reconciler = new Reconciler({ kind, database, recorder, clock, log, holder, clockSkewMs, honoursNotAfter });
  const reportMeters = (kind: 'order' | 'application') => ({
    delayed: (seconds: number) => metrics.reportDelays.observe({ kind }, seconds),
  });
  const reports = new ReportTaker({
    kind,
    database,
    recorder,
    clock,
    log,
    holder,
    findLost: () => recovery.look(),
    meters: reportMeters('order'),
  });
  const allocationKind = new AllocationKind({
    broker: allocationBroker,
    clock,
    ids,
    notes,
    log,
    submitTimeoutMs,
    clockSkewMs,
  });
  const allocationReconciler = new Reconciler({
    kind: allocationKind,
    database,
    recorder,
    clock,
    log,
    holder,
    clockSkewMs,
    honoursNotAfter,
  });

  const applicationKind = new ApplicationKind({
    broker: applicationBroker,
    database,
    clock,
    ids,
    notes,
    log,
    submitTimeoutMs,
    clockSkewMs,
  });
  const applicationReconciler = new Reconciler({
    kind: applicationKind,
    database,
    recorder,
    clock,
    log,
    holder,
    clockSkewMs,
    honoursNotAfter,
  });
  const applicationReports = new ReportTaker({
    kind: applicationKind,
    database,
    recorder,
    clock,
    log,
    holder,
    findLost: () => recovery.look(),
    meters: reportMeters('application'),
  });
  const submissions = new GrpcSubmissions(upstream);
  const recovery: Recovery = new Recovery({
    database,
    broker: submissions,
    kinds: [kind, applicationKind, allocationKind],
    notes,
    gate,
    log,
    holder,
  });
  const images = new ImageChecker({ log });
  const documents = new DocumentSender({
    kind: applicationKind,
    recorder,
    broker,
    clock,
    digestKey: subkey(config.secretKey, 'document digests'),
    isPaused: () => environment.paused,
    submitTimeoutMs,
    clockSkewMs,
    onSent: (outcome) => metrics.documents.inc({ outcome }),
  });

  const keyUses = new KeyUses(database, clock);
  const authenticator = new Authenticator(database, config.environment, (partnerId, keyId) =>
    keyUses.note(partnerId, keyId),
  );
  const keyEnded = (keyId: string) => {
    authenticator.forget(keyId);
    carrier.say(words.keyRevoked, keyId);
  };
  const local = new LocalLimits();
  const limits = new SharedLimits(local, slots, new SharedBuckets(sharing));
  const pipeline = new Pipeline({
    identify: authenticator.identify,
    limits,
    log,
    tracer,
    onFinished: ({ door, operation = 'none', status, code, limit, durationMs }) => {
      metrics.requests.observe({ door, operation, status }, durationMs / 1_000);
      if (code !== undefined) metrics.refusals.inc({ door, operation, code });
      if (limit !== undefined) metrics.limitRefusals.inc({ limit });
    },
  });
  const simulator =
    isSandbox && config.simulatorAddress !== undefined
      ? createGrpcClient(Controls, config.simulatorAddress)
      : undefined;
  const operations = [
    ...defineOperations(
      Orders,
      orderHandlers({ database, broker, submitter, canceller, kind, contexts, cursors, digestKey }),
    ),
    ...defineOperations(
      Allocations,
      allocationHandlers({ database, submitter, kind: allocationKind, cursors, digestKey }),
    ),
    ...defineOperations(Wallet, walletHandlers({ database, cursors })),
    ...defineOperations(Applications, {
      ...applicationHandlers({ database, submitter, kind: applicationKind, cursors, digestKey }),
      ...documentHandlers({ database, images, sender: documents }),
    }),
    ...defineOperations(Accounts, accountHandlers({ database, records, reads, cursors, clock })),
    ...defineOperations(Reference, referenceHandlers({ records, reads, readTimeoutMs: config.readTimeoutMs })),
    ...defineOperations(Events, eventHandlers({ database, cursors, feedWatch })),
    ...defineOperations(
      Limits,
      limitHandlers({
        database,
        clock,
        underWay: (caller) => limits.underWay(caller),
        requestBodyBytes: maxBodyBytes,
      }),
    ),
    ...defineOperations(Keys, keyHandlers({ database, clock, ids, cursors, uses: keyUses, ended: keyEnded })),
    ...(simulator === undefined
      ? []
      : defineOperations(Sandbox, sandboxHandlers({ database, simulator, timeoutMs: config.readTimeoutMs }))),
  ];

  const identity = await openIdentity(config.tlsCertificate, config.tlsKey, undefined, log);
  const address = { restPort: config.restPort };
  const doorOptions = {
    identity,
    credentials: identity && new IdentityCredentials(identity),
    pipeline,
    operations,
    log,
    clientAddress: clientAddressBehind(config.trustedProxies),
    pages: new Site({ operations, environment: config.environment, baseUrl: (): string => doorOptions.baseUrl }),
    // Read at each answer: the port may be known only when it is open.
    get baseUrl(): string {
      return (
        config.baseUrl ??
        `${config.tlsCertificate === undefined ? 'http' : 'https'}://${config.host}:${address.restPort}`
      );
    },
  };
  const { adminTlsCertificate, adminTlsKey, adminTlsAuthorities } = config;
  const adminIdentity = await openIdentity(adminTlsCertificate, adminTlsKey, adminTlsAuthorities, log);
  const rest = createRestServer(doorOptions);
  const grpc = createGrpcServer(doorOptions);

  const moveSimulator =
    simulator &&
    (async (offsetMs: number) => {
      await simulator.setClock({ offsetMs: BigInt(offsetMs) }, { timeoutMs: config.readTimeoutMs });
    });
  const services = operatorServices({
    config,
    log,
    database,
    clock,
    ids,
    cursors,
    environment,
    carrier,
    moveSimulator,
    authenticator,
    contexts,
    broker,
    reconcilers: { order: reconciler, application: applicationReconciler, allocation: allocationReconciler },
    canceller,
    feedWatch,
    dispatcher,
    sender,
    seal,
    keysOf,
    keyEnded,
    troubles: () => health.troubles(),
    holder,
    startedAt,
  });
  const admin = createAdminServer({
    services,
    operators: config.operators,
    log,
    onCalled: (call, code) => metrics.operatorCalls.inc({ call, code }),
    credentials: adminIdentity && new IdentityCredentials(adminIdentity),
  });

  const supervisor = new Supervisor(log);
  let stopping = false;
  const health = new Health(
    () =>
      lookAtParts({
        database,
        broker,
        carrier,
        sharing,
        reports,
        applicationReports,
        gate,
        failingWorkers: () => supervisor.failing,
        isStopping: () => stopping,
      }),
    () => clock.realNow(),
  );
  const gauges = new Gauges({
    metrics,
    database,
    clock,
    health,
    holder,
    pipeline,
    local,
    slots,
    reads,
    images,
    dispatcher,
    carrier,
    reports: { order: reports, application: applicationReports },
    isPaused: () => environment.paused,
  });
  const ops = createOpsServer({
    troubles: () => health.troubles(),
    metrics: async () => {
      await gauges.set();
      return { body: await metrics.registry.metrics(), contentType: metrics.registry.contentType };
    },
  });

  carrier.listen('relay', () => relay.wake());
  carrier.listen('feed', () => feedWatch.wake());
  carrier.listen('webhooks', (partnerIds) => dispatcher.wake(partnerIds.split(',')));
  carrier.listen('webhooks-changed', () => dispatcher.changed());
  carrier.listen(words.environmentChanged, () => environment.wakeup.wake());
  carrier.listen(words.keyRevoked, (keyId) => authenticator.forget(keyId));
  carrier.listen(words.partnerChanged, (partnerId) => authenticator.forgetPartner(partnerId));
  carrier.listen(words.accountUnlinked, (text) => {
    const [partnerId = '', account = ''] = text.split(' ');
    contexts.forget(partnerId, account);
  });
  await Promise.all([carrier.start(), sharing.start()]);
  for (const { worker } of [environment, feedWatch]) supervisor.start(worker);
  for (const { worker } of does('webhooks') ? [webhooks, dispatcher] : []) supervisor.start(worker);
  for (const { worker } of does('worker') ? [relay, feed] : []) supervisor.start(worker);
  // What changes objects waits until it is known that none is missing.
  const settling = [reports, reconciler, applicationReports, applicationReconciler, allocationReconciler, recovery];
  for (const { worker } of does('worker') ? settling : []) supervisor.start(gate.behind(worker));
  supervisor.start(recovery.starting);
  await gate.pass().catch(() => undefined); // Without the broker it starts all the same, and takes nothing new.
  supervisor.start(keyUses.worker);
  supervisor.start(health.worker);
  for (const watched of [identity, adminIdentity]) if (watched !== undefined) supervisor.start(watched.worker);
  const checked = (faultyLedgers: number) => metrics.faultyLedgers.set(faultyLedgers);
  const upkeep = [
    ledgerCheck({ database, log, holder, checked }),
    feedRetention(database, clock, holder),
    webhookRetention(database, clock, holder),
    keyRetention(database, clock, holder, { name: 'order', table: 'orders', finalStates: finalOrderStates }),
    keyRetention(database, clock, holder, {
      name: 'application',
      table: 'applications',
      finalStates: finalApplicationStates,
    }),
    keyRetention(database, clock, holder, {
      name: 'allocation',
      table: 'allocations',
      finalStates: finalAllocationStates,
    }),
  ];
  for (const worker of does('worker') ? upkeep : []) supervisor.start(worker);

  async function stop(): Promise<void> {
    stopping = true;
    rest.drain();
    grpc.drain();
    if (does('api')) await new Promise((resolve) => setTimeout(resolve, config.drainMs));
    const graceMs = config.shutdownTimeoutMs;
    await Promise.all([rest.close(graceMs), grpc.close(graceMs), admin.close(graceMs)]);
    if (!(await supervisor.stop(graceMs))) log.warn('background work did not end in time');
    await Promise.all([carrier.close(), sharing.close()]);
    await sender.close();
    await tracer.close();
    broker.close();
    applicationBroker.close();
    allocationBroker.close();
    submissions.close();
    records.close();
    images.close();
    simulator?.close();
    await ops.close();
    await database.close();
  }

  try {
    address.restPort = does('api') ? await rest.listen(config.restPort, config.host) : 0;
    const grpcPort = does('api') ? await grpc.listen(config.grpcPort, config.host) : 0;
    const adminPort = await admin.listen(config.adminPort, config.adminHost);
    const opsPort = await ops.listen(config.opsPort, config.opsHost);
    return { restPort: address.restPort, grpcPort, adminPort, opsPort, stop };
  } catch (error) {
    await stop().catch(() => undefined); // What could not be started is the error to tell.
    throw error;
  }
}

/** What exporting spans needs is loaded where they are exported, and costs nothing elsewhere. */
async function openTracer(
  { otlpUrl, tracePercent, environment }: Config,
  holder: string,
  log: Logger,
): Promise<Tracer> {
  if (otlpUrl === undefined) return passingTracer;
  const { otlpTracer } = await import('./telemetry/otlp-tracer.ts');
  const resource = {
    'service.name': 'marina',
    'service.version': version,
    'service.instance.id': holder,
    'deployment.environment.name': environment,
  };
  return otlpTracer({ url: otlpUrl, ratio: tracePercent / 100, resource, log });
}

/** A key of its own for each use of the one secret. */
function subkey(secret: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `marina ${use}`, 32));
}
