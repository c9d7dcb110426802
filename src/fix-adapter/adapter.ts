import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { Client, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { fixMigrations } from '../../migrations/fix/index.ts';
import { openDatabaseAccess } from '../gateway/store/access.ts';
import { connect } from '../gateway/store/data-source.ts';
import { Database } from '../gateway/store/database.ts';
import { type Lease, underLease } from '../gateway/store/lease.ts';
import { statement } from '../gateway/store/statement.ts';
import { WriterNode } from '../gateway/store/writer.ts';
import { Accounts } from '../gen/marina/broker/v1/accounts_pb.ts';
import { Allocations } from '../gen/marina/broker/v1/allocations_pb.ts';
import { Applications } from '../gen/marina/broker/v1/applications_pb.ts';
import { Orders, type SubmitOrderRequest } from '../gen/marina/broker/v1/orders_pb.ts';
import { Reference } from '../gen/marina/broker/v1/reference_pb.ts';
import { Statements } from '../gen/marina/broker/v1/statements_pb.ts';
import { Submissions } from '../gen/marina/broker/v1/submissions_pb.ts';
import { Withdrawals } from '../gen/marina/broker/v1/withdrawals_pb.ts';
import { createGrpcClient } from '../kit/grpc-client.ts';
import { addReflection } from '../kit/grpc-reflection.ts';
import { serviceDefinition } from '../kit/grpc-service.ts';
import { channelTls, type LinkTls, openLink, openSecret } from '../kit/link.ts';
import type { Logger } from '../kit/log.ts';
import { IdentityCredentials, openIdentity } from '../kit/server-identity.ts';
import type { Live } from '../kit/watched-files.ts';
import { pause, periodic, Supervisor, type Worker } from '../kit/worker.ts';
import type { FixConfig } from './config.ts';
import { DropCopy } from './drop-copy/drop-copy.ts';
import { type OpenMessageLog, openMessageLog } from './messages/open.ts';
import { FixMetrics } from './metrics.ts';
import { SessionControl } from './operations/control.ts';
import type { Operators, OperatorsOptions } from './operations/server.ts';
import type { ActiveSession } from './operations/service.ts';
import { createOpsServer } from './ops-server.ts';
import type { ExchangeMessage } from './orders/execution.ts';
import type { OwnMessage } from './orders/own-message.ts';
import { rejectReasonOf } from './orders/reject-reasons.ts';
import { Throttle, withTurns } from './orders/throttle.ts';
import { Trading } from './orders/trading.ts';
import { PasswordChange } from './password/change.ts';
import { ordersService } from './service/orders.ts';
import { passThrough } from './service/pass-through.ts';
import { RpcError, unaryCalls } from './service/rpc.ts';
import { AdapterStreams } from './service/streams.ts';
import { submissionsService } from './service/submissions.ts';
import { openConnection } from './session/link.ts';
import { FixSession } from './session/session.ts';
import type { SessionRecord, SessionSettings } from './session/types.ts';
import { FixStore, leaseName } from './store/store.ts';
import { LookupFile } from './template/lookup-file.ts';
import { type Lookups, noLookups } from './template/lookups.ts';
import { personalTags, renderer } from './template/render.ts';
import { isAverage, toKobo, toPrice } from './wire/prices.ts';
import { tags } from './wire/tags.ts';
import { readUtcTimestamp } from './wire/times.ts';

/** One of them may be busy with the message log. */
const poolSize = 9;
/** How long calls under way may take to end at a stop. */
const graceMs = 2_000;
const doubtsEveryMs = 5_000;
const dayMs = 86_400_000;
const earliestTime = Date.UTC(2000);
const timeouts = {
  logonTimeoutMs: 10_000,
  logoutTimeoutMs: 2_000,
  gapTimeoutMs: 30_000,
  firstReconnectMs: 250,
  longestReconnectMs: 30_000,
  longestReconnectAfterUpMs: 2_000,
  // Brokers count refused Logons within minutes.
  refusedWaitMs: 30_000,
  // Longer than a pause of a line while it sends, and short beside the time that a part may take.
  gapQuietMs: 250,
  slowUpMs: 10_000,
};

/** A FIX adapter that runs. */
export interface FixAdapter {
  readonly opsPort: number;
  /** The operators' port; undefined: there is none. */
  readonly adminPort: number | undefined;
  /** Resolves when this process has the session and answers calls, with its gRPC port. */
  readonly active: Promise<number>;
  readonly isUp: boolean;
  /** Logs out and stops, in bounded time. */
  stop(): Promise<void>;
}

/** Starts an adapter. Of several on one database one has the session and answers calls; the others wait for its place. */
export async function startFixAdapter(
  config: FixConfig,
  log: Logger,
  /** Real time, in milliseconds. */
  now: () => number = Date.now,
): Promise<FixAdapter> {
  const metrics = new FixMetrics();
  const access = await openDatabaseAccess(config.databaseUrl, config.links.database, log);
  const database = new Database(await connect({ access, poolSize }), 'live', poolSize);
  try {
    await checkDatabase(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  const sessionLink = await openTlsLink('exchange', config.links.session, log);
  const backOfficeLink = await openTlsLink('back office', config.links.backOffice, log);
  const password = await openSecret({ name: 'FIX password', secret: config.password, log });
  const newPassword = await openSecret({ name: 'FIX new password', secret: config.newPassword, log });
  const dropCopyPassword = await openSecret({ name: 'FIX drop copy password', secret: config.dropCopyPassword, log });
  const lookupFile = await openLookups(config, log);
  const { tlsCertificate: certificate, tlsKey: key, tlsAuthorities: authorities } = config;
  const identity = await openIdentity('fix', { certificate, key, authorities }, log);
  const writer = new WriterNode(database, log);
  const supervisor = new Supervisor(log);
  const view = { isActive: false, isUp: false, isInHours: false, isLoggedOut: false, reason: '' };
  let store: FixStore | undefined;
  let activeSession: ActiveSession | undefined;
  let activated: (port: number) => void = () => {};
  const active = new Promise<number>((resolve) => {
    activated = resolve;
  });

  const ops = createOpsServer({
    metrics,
    reasons: () => [
      ...(view.isActive ? [] : ['another process has the session']),
      ...(view.isActive && view.isLoggedOut ? ['an operator has logged the session out'] : []),
      ...(view.isActive && view.isInHours && !view.isUp
        ? [`there is no session with the exchange: ${view.reason}`]
        : []),
    ],
    refresh: async () => {
      metrics.isActive.set(view.isActive ? 1 : 0);
      metrics.isUp.set(view.isUp ? 1 : 0);
      metrics.isInHours.set(view.isInHours ? 1 : 0);
      metrics.isLoggedOut.set(view.isLoggedOut ? 1 : 0);
      const counts = await store?.counts();
      metrics.inDoubt.set(counts?.inDoubt ?? 0);
      metrics.open.set(counts?.open ?? 0);
      metrics.unasked.set(counts?.unasked ?? 0);
      metrics.openFindings.set(counts?.findings ?? 0);
      metrics.isRestored.set((await store?.numbers())?.restored === true ? 1 : 0);
      metrics.oldestInDoubt.set(
        counts?.oldestInDoubtAt === undefined ? 0 : Math.max(0, now() - counts.oldestInDoubtAt) / 1_000,
      );
    },
  });
  ops.listen(config.opsPort, config.opsHost);
  await once(ops, 'listening');

  const run = async (lease: Lease): Promise<void> => {
    log.info({ fence: String(lease.fence) }, 'this process has the session');
    const own = new FixStore(database, lease);
    await own.take();
    store = own;
    const upstream = openBackOffice(config.backOfficeAddress, backOfficeLink.current.tls);
    try {
      const part = await activate(config, {
        ...{ store: own, database, lease, metrics, log, now, identity, view, upstream },
        sessionTls: () => sessionLink.current.tls,
        ...{ password, newPassword, dropCopyPassword },
        lookups: () => lookupFile?.current ?? noLookups,
      });
      view.isActive = true;
      activeSession = part;
      activated(part.port);
      await part.run();
    } finally {
      upstream.close();
      Object.assign(view, { isActive: false, isUp: false, isLoggedOut: false });
      store = undefined;
      activeSession = undefined;
      log.info('this process has the session no more');
    }
  };
  const holder = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`.slice(-64);
  const operators = await openOperatorsPort({
    ...{ config, database, now, log },
    active: () => activeSession,
    onCalled: (call, code) => metrics.operatorCalls.inc({ call, code }),
  });
  for (const worker of operators?.workers ?? []) supervisor.start(worker);
  for (const { worker } of [
    access,
    sessionLink,
    backOfficeLink,
    password,
    newPassword,
    dropCopyPassword,
    ...(identity ? [identity] : []),
    writer,
    ...(lookupFile ? [lookupFile] : []),
  ]) {
    supervisor.start(worker);
  }
  supervisor.start(underLease(database, leaseName, holder, run));

  return {
    opsPort: (ops.address() as AddressInfo).port,
    adminPort: operators?.port,
    active,
    get isUp() {
      return view.isUp;
    },
    stop: async () => {
      await Promise.all([
        // The Logout is written, and then answered.
        supervisor.stop(2 * timeouts.logoutTimeoutMs + graceMs + 2_000),
        operators?.close(graceMs) ?? Promise.resolve(),
      ]);
      ops.close();
      await database.close();
    },
  };
}

/** The operators' port, if there are operators. Its modules are loaded only then. */
async function openOperatorsPort(options: OperatorsOptions): Promise<Operators | undefined> {
  const { first, file } = options.config.operators;
  if (first.length === 0 && file === undefined) return undefined;
  const { openOperators } = await import('./operations/server.ts');
  return openOperators(options);
}

/** The settings that all sessions share. */
type SpokenAlike = Omit<SessionSettings, 'senderCompId' | 'targetCompId' | 'username' | 'password'>;

interface ActiveParts {
  readonly store: FixStore;
  readonly database: Database;
  readonly lease: Lease;
  readonly metrics: FixMetrics;
  readonly log: Logger;
  readonly now: () => number;
  readonly identity: Awaited<ReturnType<typeof openIdentity>>;
  readonly view: { isUp: boolean; isInHours: boolean; isLoggedOut: boolean; reason: string };
  readonly sessionTls: () => LinkTls | undefined;
  readonly upstream: BackOffice;
  readonly password: Live<string | undefined>;
  readonly newPassword: Live<string | undefined>;
  readonly dropCopyPassword: Live<string | undefined>;
  /** The values for the template's placeholders. */
  readonly lookups: () => Lookups;
}

type BackOffice = ReturnType<typeof openBackOffice>;

/** The clients of the back office. */
function openBackOffice(address: string, tls: LinkTls | undefined) {
  const { options, credentials } = channelTls(tls);
  const backOffice = new Client(address, credentials, {
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    ...options,
  });
  const orders = createGrpcClient(Orders, address, options, credentials);
  const submissions = createGrpcClient(Submissions, address, options, credentials);
  const close = () => {
    for (const client of [orders, submissions, backOffice]) client.close();
  };
  return { backOffice, orders, submissions, close };
}

/** Begins the work of the process that has the session. */
async function activate(config: FixConfig, parts: ActiveParts) {
  const { store, lease, metrics, log, now, identity, view } = parts;
  const unit = config.priceUnit;
  const symbolOf = (symbol: string) => config.symbols.get(symbol) ?? symbol;
  const { backOffice, orders, submissions } = parts.upstream;

  const { password, newPassword } = parts;
  const passwords = new PasswordChange({ database: parts.database, lease, password, newPassword, now, log });
  await passwords.load();

  const messages = openMessageLog({
    settings: { ...config, maskedTags: [...config.maskedTags, ...personalTags(config.orderTemplate)] },
    ...{ database: parts.database, fence: lease.fence, now, log },
    passwords: [parts.password, parts.newPassword, parts.dropCopyPassword],
    onDropped: (count) => metrics.messagesDropped.inc(count),
  });

  const record: SessionRecord<OwnMessage> = {
    numbers: async () => toNumbers(await store.numbers()),
    startDay: async (startedAt) => toNumbers(await store.startDay(startedAt)),
    sending: async (messages, nextOut, nextIn) => {
      const numbered = messages.map(({ number, message }) => ({ number, kept: message.kept }));
      const known = await store.sending(numbered, nextOut, nextIn);
      return messages.flatMap(({ message }) => {
        const isKnown = message.kept.kind === 'order' && known.has(message.kept.row.id);
        return isKnown ? [message] : [];
      });
    },
    unwritten: (messages) =>
      store.unsent(
        messages.flatMap(({ kept }) => (kept.kind === 'order' ? [kept.row.id] : [])),
        messages.flatMap(({ kept }) => (kept.kind === 'cancel' ? [kept.row.id] : [])),
      ),
    received: (messages, nextIn, passedOver) => trading.received(messages, nextIn, passedOver),
  };
  const spoken = {
    ...timeouts,
    beginString: config.version,
    heartbeatMs: config.heartbeatSeconds * 1_000,
    resetsByLogon: config.resetsByLogon,
    resetsOnLogon: config.resetsOnLogon,
    sendsNextExpected: config.sendsNextExpected,
    resendChunk: config.resendChunk === 0 ? undefined : config.resendChunk,
    logonTries: config.logonTries,
  };
  const session: FixSession<OwnMessage> = new FixSession<OwnMessage>({
    settings: {
      ...spoken,
      senderCompId: config.senderCompId,
      targetCompId: config.targetCompId,
      username: config.username,
      password: () => passwords.current(),
      passwords,
    },
    schedule: config.schedule,
    record,
    addresses: config.addresses,
    connect: (address, signal) => openConnection(address, parts.sessionTls(), signal),
    now,
    mayWrite: () => lease.isHeld(),
    events: {
      up: () => {
        view.isUp = true;
        log.info('the session with the exchange is up');
        trading.questions
          .connected()
          .catch((error: unknown) => log.warn({ err: error }, 'orders could not be asked about'));
      },
      down: () => {
        view.isUp = false;
        trading.disconnected();
      },
      missed: () => {
        trading.questions
          .missed()
          .catch((error: unknown) => log.warn({ err: error }, 'orders could not be asked about'));
      },
      gapFilled: (from, to, wasUp) => {
        trading.questions
          .gapFilled(from, to, wasUp)
          .catch((error: unknown) => log.warn({ err: error }, 'orders could not be asked about'));
      },
      trouble: (what) => metrics.troubles.inc({ what }),
    },
    log,
    tap: messages.tap,
  });
  const streams = new AdapterStreams(store, now, log);
  const { messagesPerSecond, throttleWindowMs: windowMs } = config;
  const throttle = new Throttle({ messages: messagesPerSecond, windowMs }, lease.signal);
  const trading: Trading = new Trading({
    store,
    session: withTurns(session, throttle),
    style: {
      symbols: config.symbols,
      more: renderer(config.orderTemplate, parts.lookups, symbolOf),
      nameLength: config.clOrdIdLength,
      toPrice: (kobo) => toPrice(kobo, unit),
    },
    throttle,
    weighing: {
      toKobo: (text) => toKobo(text, unit),
      isAverage: (text, valueKobo, quantity) => isAverage(text, unit, valueKobo, quantity),
      symbolOf,
      reasonOf: (message) => rejectReasonOf(message, config.rejectReasons),
      show: (tag, value) => messages.masking.field(tag, value),
    },
    timeOf: (message) => timeOf(message, now),
    now,
    requestId: () => `q${randomUUID().replaceAll('-', '').slice(0, 19)}`,
    asksMassStatus: config.asksMassStatus,
    absenceProofMs: config.absenceProofMs,
    cancelTimeoutMs: config.cancelTimeoutMs,
    messagesPerSecond: (messagesPerSecond * 1_000) / windowMs,
    dayStartedAt: () => session.dayStartedAt ?? 0,
    log,
    onReports: () => streams.notify(),
    onFinding: (what) => metrics.findings.inc({ what }),
    onMissingValue: () => metrics.missingValues.inc(),
  });

  const control = new SessionControl({
    ...{ database: parts.database, fence: lease.fence, session, now, log },
    show: (text) => messages.masking.value(text),
  });
  await control.open();

  const dropCopy = dropCopyOf(config, parts, spoken, messages.dropCopyTap);

  const service = ordersService({ trading, store, backOffice: orders, now });
  const server = new Server({ 'grpc.max_concurrent_streams': 2_000, 'grpc.max_receive_message_length': 16_777_216 });
  server.addService(
    serviceDefinition(Orders) as never,
    {
      ...unaryCalls(
        Orders,
        {
          ...service,
          submitOrder: (request, context) =>
            timed(metrics, () => service.submitOrder(request as SubmitOrderRequest, context)),
        },
        log,
        now,
      ),
      streamReports: (call: Parameters<AdapterStreams['serve']>[0]) => streams.serve(call),
    } as never,
  );
  const listing = submissionsService({ store, backOffice: submissions, now });
  server.addService(serviceDefinition(Submissions) as never, unaryCalls(Submissions, listing, log, now) as never);
  const passedOn = [Accounts, Allocations, Applications, Reference, Statements, Withdrawals];
  for (const passed of passedOn) {
    const { definition, handlers } = passThrough(passed, () => backOffice);
    server.addService(definition as never, handlers as never);
  }
  addReflection(server, [Orders, Submissions, ...passedOn]);
  const port = await listen(
    server,
    `${config.host}:${config.port}`,
    identity === undefined ? ServerCredentials.createInsecure() : new IdentityCredentials(identity),
  );
  log.info({ port }, 'gateways are answered');

  return {
    port,
    ask: (orderId: string) => trading.settle(orderId),
    logged: (timeoutMs: number) => messages.written(timeoutMs),
    /** Works until the lease ends. */
    run: async () => {
      const { questions } = trading;
      const helpers = new Supervisor(log);
      // A read of the database that fails in one of these ends neither the session nor another one.
      const workers = [
        periodic('doubts', doubtsEveryMs, () => questions.askAboutDoubts()),
        periodic('ended days', doubtsEveryMs, () => questions.askAboutEnded()),
        periodic('passed over', doubtsEveryMs, () => questions.askAboutPassedOver()),
        periodic('hours', 1_000, async () => {
          view.isInHours = session.isInHours;
          view.isLoggedOut = control.isLoggedOut;
          view.reason = session.status().logged;
        }),
        control.worker,
        ...messages.workers,
        ...(dropCopy === undefined ? [] : [dropCopy]),
      ];
      for (const worker of workers) helpers.start(worker);
      try {
        await control.run(lease.signal);
      } finally {
        await close(server);
        await helpers.stop(graceMs);
      }
    },
  };
}

/** Makes the worker that compares trades with a drop copy, apart from the sessions, so that orders go on without it. */
function dropCopyOf(
  config: FixConfig,
  parts: ActiveParts,
  spoken: SpokenAlike,
  tap: OpenMessageLog['dropCopyTap'],
): Worker | undefined {
  const { dropCopyAddress: address, dropCopySenderCompId, dropCopyTargetCompId } = config;
  if (address === undefined || dropCopySenderCompId === undefined || dropCopyTargetCompId === undefined)
    return undefined;
  const { database, lease, metrics, log, now } = parts;
  const dropCopy = new DropCopy({
    settings: {
      ...spoken,
      senderCompId: dropCopySenderCompId,
      targetCompId: dropCopyTargetCompId,
      username: config.dropCopyUsername,
      password: () => parts.dropCopyPassword.current,
    },
    ...{ address, schedule: config.schedule, database, lease, log, now, tap },
    connect: (to, signal) => openConnection(to, parts.sessionTls(), signal),
    graceMs: config.dropCopyGraceSeconds * 1_000,
    toKobo: (text) => toKobo(text, config.priceUnit),
    symbolOf: (symbol) => config.symbols.get(symbol) ?? symbol,
    onState: (isExpected, isUp) => {
      metrics.isDropCopyExpected.set(isExpected ? 1 : 0);
      metrics.isDropCopyUp.set(isUp ? 1 : 0);
    },
    onFinding: (what) => metrics.findings.inc({ what }),
    onOthers: (count) => metrics.dropCopyOthers.inc(count),
  });
  return { name: 'drop copy', run: (signal) => dropCopy.run(signal) };
}

function listen(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => (error ? reject(error) : resolve(port)));
  });
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  const ended = new AbortController();
  await Promise.race([closed, pause(graceMs, ended.signal)]);
  ended.abort();
  server.forceShutdown();
}

async function timed<T>(metrics: FixMetrics, work: () => Promise<T>): Promise<T> {
  const end = metrics.orders.startTimer();
  try {
    const answer = await work();
    end({ code: 'ok' });
    return answer;
  } catch (error) {
    end({ code: error instanceof RpcError ? (status[error.code] ?? '').toLowerCase() : 'unavailable' });
    throw error;
  }
}

function openTlsLink(name: string, tls: FixConfig['links']['session'], log: Logger) {
  return openLink({ name, tls, secrets: {}, make: (_texts, material) => ({ tls: material }), log });
}

async function openLookups(config: FixConfig, log: Logger): Promise<LookupFile | undefined> {
  const { orderLookupFile: path, orderTemplate } = config;
  return path === undefined ? undefined : LookupFile.open(path, orderTemplate, log);
}

async function checkDatabase(database: Database): Promise<void> {
  const rows = await database.read(statement('SELECT name FROM migrations')).catch(() => []);
  const done = new Set(rows.map(({ name }) => String(name)));
  const missing = fixMigrations.map((Migration) => new Migration().name).filter((name) => !done.has(name));
  if (missing.length > 0) {
    throw new Error(`the database lacks ${missing.join(', ')}: migrate it first (node src/main.js fix migrate)`);
  }
  await new WriterNode(database).settle();
}

/** When a message was made, by its own fields: one that is sent again has the time when it was sent first. */
function timeOf(message: ExchangeMessage, now: () => number): number {
  const times = [tags.TransactTime, tags.OrigSendingTime, tags.SendingTime].map((tag) =>
    readUtcTimestamp(message.get(tag)),
  );
  // A time that no order can have is none.
  return times.find((time) => time !== undefined && time >= earliestTime && time <= now() + dayMs) ?? now();
}

function toNumbers({ nextOut, nextIn, startedAt }: { nextOut: bigint; nextIn: bigint; startedAt: number }) {
  return { nextOut: Number(nextOut), nextIn: Number(nextIn), startedAt };
}
