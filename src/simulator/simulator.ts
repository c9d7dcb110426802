import { create } from '@bufbuild/protobuf';
import { Server } from '@grpc/grpc-js';
import { Accounts } from '../gen/marina/broker/v1/accounts_pb.ts';
import { Allocations } from '../gen/marina/broker/v1/allocations_pb.ts';
import { Applications, StreamApplicationReportsResponseSchema } from '../gen/marina/broker/v1/applications_pb.ts';
import { Orders, StreamReportsResponseSchema } from '../gen/marina/broker/v1/orders_pb.ts';
import { Reference } from '../gen/marina/broker/v1/reference_pb.ts';
import { Statements } from '../gen/marina/broker/v1/statements_pb.ts';
import { Submissions } from '../gen/marina/broker/v1/submissions_pb.ts';
import { StreamWithdrawalReportsResponseSchema, Withdrawals } from '../gen/marina/broker/v1/withdrawals_pb.ts';
import { Controls } from '../gen/marina/simulator/v1/controls_pb.ts';
import { addReflection } from '../kit/grpc-reflection.ts';
import { type GrpcImplementation, serviceDefinition, type TypedService } from '../kit/grpc-service.ts';
import { createLogger, type Logger } from '../kit/log.ts';
import { IdentityCredentials, openIdentity } from '../kit/server-identity.ts';
import { Supervisor } from '../kit/worker.ts';
import { allocationsService } from './back-office/allocations-service.ts';
import { applicationsService } from './back-office/applications-service.ts';
import { applicationReportMessage } from './back-office/messages.ts';
import { createBackOfficeNonsense } from './back-office/nonsense.ts';
import { decideIfDue } from './back-office/operations.ts';
import { BackOfficeRecords } from './back-office/records.ts';
import { referenceService } from './back-office/reference-service.ts';
import { WithdrawalRecords, withdrawalReportMessage } from './back-office/withdrawal-records.ts';
import { decideWithdrawalIfDue } from './back-office/withdrawals.ts';
import { checkOffered, withdrawalsService } from './back-office/withdrawals-service.ts';
import { accountsService } from './clearing/accounts-service.ts';
import type { FundsSettings } from './clearing/funds.ts';
import { clearingNonsense } from './clearing/nonsense.ts';
import { Reads } from './clearing/reads.ts';
import { ClearingRecords } from './clearing/records.ts';
import { controlsService } from './controls-service.ts';
import { advanceIfOpen } from './exchange/exchange.ts';
import { reportMessage } from './exchange/messages.ts';
import { createNonsense } from './exchange/nonsense.ts';
import { ordersService } from './exchange/orders-service.ts';
import type { FillDelay } from './exchange/planning.ts';
import { Plans } from './exchange/plans.ts';
import { Records } from './exchange/records.ts';
import { submissionsService } from './exchange/submissions-service.ts';
import { MarketCalendar, readHolidays, usualHolidays } from './market/calendar.ts';
import { Lies } from './statements/lies.ts';
import { StatementRecords } from './statements/records.ts';
import { statementsService } from './statements/service.ts';
import { SimulatorDatabase } from './store/database.ts';
import { Maintenance } from './store/maintenance.ts';
import { SimulatorWriter } from './store/writer.ts';
import { Directives } from './wire/directives.ts';
import { Front } from './wire/front.ts';
import { ReportFeed } from './wire/report-feed.ts';
import { SimulatorStreams } from './wire/report-streams.ts';
import { type SimulatorHandlers, unaryCalls } from './wire/rpc.ts';
import { Wire } from './wire/wire.ts';
import { World } from './world.ts';

export interface SimulatorConfig {
  /** mysql://user:password@host:port/database; a missing database is created. */
  readonly databaseUrl: string;
  readonly host?: string;
  /** 0: any free port. */
  readonly port?: number;
  /** The same seed gives the same market. */
  readonly seed?: number;
  readonly defaultFillDelayMs?: FillDelay;
  /** How far its clock is ahead of real time; negative: behind. */
  readonly clockErrorMs?: number;
  /** Whether it keeps the hours of the Nigerian Exchange; otherwise it is always open. */
  readonly keepsHours?: boolean;
  /** A file of the exchange's holidays, instead of the simulator's own. */
  readonly holidaysFile?: string | undefined;
  /**
   * The money and shares that accounts begin with; then an order that one cannot pay or deliver is rejected. Absent:
   * that is not checked.
   */
  readonly funds?: FundsSettings | undefined;
  /** The files of its certificate and of the authorities of its callers' certificates; absent: plain text. */
  readonly tls?: { readonly certificate: string; readonly key: string; readonly authorities?: string | undefined };
  readonly log?: Logger;
}

/** The default delays between the market's steps, and before the broker decides. */
const usualFillDelayMs: FillDelay = { min: 150, max: 450 };

/** How long calls under way may take to end at a stop. */
const graceMs = 500;
/** How long queued changes may take to be written at a stop. */
const drainMs = 1_500;

/** A simulated broker and exchange, listening. */
export interface Simulator {
  readonly port: number;
  /** Stops it, in bounded time. Its record stays. */
  close(): Promise<void>;
}

/** Starts a simulator on its database. Several can run in one process, each with its own database. */
export async function startSimulator(config: SimulatorConfig): Promise<Simulator> {
  const log = config.log ?? createLogger({ name: 'simulator', level: 'silent' });
  const calendar = new MarketCalendar(readHolidays(config.holidaysFile ?? usualHolidays));
  const database = await SimulatorDatabase.open(config.databaseUrl);
  const stopping = new AbortController();
  const grpc = new Server({
    'grpc-node.max_session_memory': 100,
    'grpc.max_concurrent_streams': 2_000,
    'grpc.max_receive_message_length': 1_048_576,
  });
  const world = new World(config.seed ?? 1, calendar, config.funds);
  world.venue.keepsHours = config.keepsHours ?? false;
  world.clock.errorMs = config.clockErrorMs ?? 0;
  const brokerTime = () => world.clock.statement();
  const records = new Records(database);
  const backOffice = new BackOfficeRecords(database, world.funds.startCashKobo);
  const feed = new ReportFeed((...place) => records.reportsAfter(...place));
  const applicationFeed = new ReportFeed((...place) => backOffice.reportsAfter(...place));
  const withdrawals = new WithdrawalRecords(database);
  const withdrawalFeed = new ReportFeed((...place) => withdrawals.reportsAfter(...place));
  const writer: SimulatorWriter = new SimulatorWriter(database, world, log, {
    committed: (unit) => {
      feed.publish(unit.reports);
      applicationFeed.publish(unit.backOffice.reports);
      withdrawalFeed.publish(unit.withdrawals.reports);
      for (const { clientOrderId, planAtMs } of unit.changedOrders) orderPlans.follow(clientOrderId, planAtMs);
      for (const { clientApplicationId, decideAtMs } of unit.backOffice.changedApplications) {
        decisions.follow(clientApplicationId, decideAtMs);
      }
      for (const { clientWithdrawalId, decideAtMs } of unit.withdrawals.changed) {
        payments.follow(clientWithdrawalId, decideAtMs);
      }
    },
    reloaded: () => {
      feed.restart(world.lastReport);
      applicationFeed.restart(world.lastApplicationReport);
      withdrawalFeed.restart(world.withdrawals.lastReport);
      decisions.reload();
      payments.reload();
      orderPlans.reload();
    },
  });
  const maintenance = new Maintenance(database, world, writer, log);
  const orderColumns = { table: 'orders', id: 'client_order_id', at: 'plan_at_ms' };
  const orderPlans = new Plans(database, world, log, orderColumns, (id) =>
    writer.run([id], (unit) => advanceIfOpen(unit, id)),
  );
  const applicationColumns = { table: 'applications', id: 'client_application_id', at: 'decide_at_ms' };
  const decisions = new Plans(database, world, log, applicationColumns, (id) =>
    writer.runOn({ applications: [id] }, (unit) => decideIfDue(unit, id)),
  );
  const withdrawalColumns = { table: 'withdrawals', id: 'client_withdrawal_id', at: 'decide_at_ms' };
  const payments = new Plans(database, world, log, withdrawalColumns, (id) =>
    writer.runOn({ withdrawals: [id] }, (unit) => decideWithdrawalIfDue(unit, id)),
  );
  const streams = new SimulatorStreams(
    feed,
    (reports, lastNumber) =>
      create(StreamReportsResponseSchema, {
        reports: reports.map(reportMessage),
        lastNumber,
        brokerTime: brokerTime(),
      }),
    log,
  );
  const applicationStreams = new SimulatorStreams(
    applicationFeed,
    (reports, lastNumber) =>
      create(StreamApplicationReportsResponseSchema, {
        reports: reports.map(applicationReportMessage),
        lastNumber,
        brokerTime: brokerTime(),
      }),
    log,
  );
  const withdrawalStreams = new SimulatorStreams(
    withdrawalFeed,
    (reports, lastNumber) =>
      create(StreamWithdrawalReportsResponseSchema, {
        reports: reports.map(withdrawalReportMessage),
        lastNumber,
        brokerTime: brokerTime(),
      }),
    log,
    () => checkOffered(world),
  );
  const directives = new Directives(() => world.clock.realNow());
  const { certificate, key, authorities } = config.tls ?? {};
  const identity = await openIdentity('simulator', { certificate, key, authorities }, log);
  const supervisor = new Supervisor(log);
  if (identity !== undefined) supervisor.start(identity.worker);
  const front = new Front(grpc, identity && new IdentityCredentials(identity));
  const wire = new Wire(directives, front, stopping.signal);
  const delay = config.defaultFillDelayMs ?? usualFillDelayMs;
  const exchange = { fillDelay: delay, directives };
  const settings = { decisionDelay: delay, directives };

  const orders = ordersService({ world, writer, records, wire, exchange, nonsense: createNonsense() });
  const streamReports: GrpcImplementation<typeof Orders>['streamReports'] = (call) => streams.serve(call);
  const streamApplicationReports: GrpcImplementation<typeof Applications>['streamApplicationReports'] = (call) =>
    applicationStreams.serve(call);
  const streamWithdrawalReports: GrpcImplementation<typeof Withdrawals>['streamWithdrawalReports'] = (call) =>
    withdrawalStreams.serve(call);
  const backOfficeContext = {
    world,
    writer,
    records: backOffice,
    wire,
    settings,
    nonsense: createBackOfficeNonsense(),
  };
  const reads = new Reads();
  const lies = new Lies();
  const accountsContext = {
    world,
    wire,
    records: new ClearingRecords(database, world),
    lies,
    reads,
    nonsense: clearingNonsense,
  };
  const statements = statementsService({ world, wire, lies, records: new StatementRecords(database, lies) });
  const controls = controlsService({
    lies,
    world,
    writer,
    records,
    backOffice,
    directives,
    reads,
    streams,
    applicationStreams,
    withdrawals,
    withdrawalStreams,
    dropOthers: (peer) => front.resetOthers(peer),
    clockMoved: () => maintenance.sweep(),
  });
  const served = <S extends TypedService>(service: S, handlers: SimulatorHandlers<S>) =>
    unaryCalls(service, handlers, log, brokerTime);
  grpc.addService(serviceDefinition(Orders), { ...served(Orders, orders), streamReports });
  grpc.addService(serviceDefinition(Applications), {
    ...served(Applications, applicationsService(backOfficeContext)),
    streamApplicationReports,
  });
  grpc.addService(serviceDefinition(Allocations), served(Allocations, allocationsService(backOfficeContext)));
  grpc.addService(serviceDefinition(Withdrawals), {
    ...served(Withdrawals, withdrawalsService({ ...backOfficeContext, withdrawals })),
    streamWithdrawalReports,
  });
  grpc.addService(serviceDefinition(Accounts), served(Accounts, accountsService(accountsContext)));
  grpc.addService(serviceDefinition(Reference), served(Reference, referenceService({ ...backOfficeContext, reads })));
  grpc.addService(serviceDefinition(Submissions), served(Submissions, submissionsService(writer, records)));
  grpc.addService(serviceDefinition(Statements), served(Statements, statements));
  grpc.addService(serviceDefinition(Controls), unaryCalls(Controls, controls, log));
  addReflection(grpc, [
    ...[Orders, Applications, Allocations, Withdrawals, Accounts],
    ...[Reference, Submissions, Statements, Controls],
  ]);

  let closed: Promise<void> | undefined;
  const close = async () => {
    stopping.abort();
    front.stopListening();
    streams.breakAll();
    applicationStreams.breakAll();
    withdrawalStreams.breakAll();
    await Promise.all([within(graceMs, shutDown(grpc)), within(drainMs, stopWriting())]);
    front.destroyConnections();
    grpc.forceShutdown();
    writer.abandon();
    await database.close();
    await supervisor.stop(graceMs);
  };
  const stopWriting = async () => {
    await Promise.all([maintenance.close(), orderPlans.close(), decisions.close(), payments.close()]);
    await writer.close();
  };

  try {
    await writer.open();
    maintenance.start();
    orderPlans.start();
    decisions.start();
    payments.start();
    const port = await front.listen(config.host ?? '127.0.0.1', config.port ?? 50_060);
    log.info({ port }, 'the simulator is ready');
    return { port, close: () => (closed ??= close()) };
  } catch (error) {
    await close();
    throw error;
  }
}

function shutDown(grpc: Server): Promise<void> {
  return new Promise((resolve) => grpc.tryShutdown(() => resolve()));
}

async function within(timeoutMs: number, work: Promise<void>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([
    work,
    new Promise<void>((resolve) => {
      const timeout = setTimeout(resolve, timeoutMs);
      timer.signal.addEventListener('abort', () => clearTimeout(timeout));
    }),
  ]);
  timer.abort();
}
