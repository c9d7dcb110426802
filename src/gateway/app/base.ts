import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { EntitySchemaOptions } from 'typeorm';
import { SystemClock } from '../../kit/clock.ts';
import { logUnknownNames } from '../../kit/enums.ts';
import { keysFor } from '../../kit/key-ring.ts';
import { openSecret } from '../../kit/link.ts';
import type { Logger } from '../../kit/log.ts';
import type { LogOutput } from '../../kit/log-output.ts';
import { Nats } from '../../kit/nats.ts';
import { passingTracer, type Tracer } from '../../kit/trace.ts';
import { version } from '../../kit/version.ts';
import { feedEvents, feedPurges, feedSkips, outbox } from '../delivery/events/table.ts';
import { Notifications } from '../delivery/notifications.ts';
import { attempts, deliveries, endpoints } from '../delivery/webhooks/table.ts';
import { auditEntries } from '../edge/auth/audit-store.ts';
import { KeySeals, keySealUse } from '../edge/auth/key-seals.ts';
import { keyChanges } from '../edge/auth/key-store.ts';
import { keyMacKeys } from '../edge/auth/keys.ts';
import { apiKeys, keyUses, partners } from '../edge/auth/store.ts';
import { IdMaker } from '../edge/ids.ts';
import { Metrics } from '../edge/metrics.ts';
import { Cursors } from '../edge/paging.ts';
import { PeerMac } from '../edge/peers/mac.ts';
import { PeerMessages } from '../edge/peers/messages.ts';
import { countUntrusted } from '../edge/peers/untrusted.ts';
import { archiveState } from '../operators/archive/table.ts';
import { AuditSeals, auditSealUse } from '../operators/audit/seals.ts';
import { auditSeals as auditSealTable } from '../operators/audit/table.ts';
import { acknowledgements } from '../operators/calls/diagnostics/acknowledgements.ts';
import { proposals } from '../operators/calls/proposals/table.ts';
import { reconciliationBreaks, reconciliationItems, reconciliationRuns } from '../operators/reconciliation/table.ts';
import { openRing } from '../operators/secret-keys/open-ring.ts';
import { secretKeys } from '../operators/secret-keys/table.ts';
import { writeChecks } from '../operators/telemetry/write-probe.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { leases } from '../store/lease.ts';
import { missingMigrations } from '../store/migrate.ts';
import type { Table } from '../store/table.ts';
import { WriterNode } from '../store/writer.ts';
import { writer, writerBeats } from '../store/writer-table.ts';
import { accounts } from '../trading/accounts/store.ts';
import { documents } from '../trading/applications/documents/store.ts';
import { storedKinds } from '../trading/kinds.ts';
import { bulkCancelOrders, bulkCancels } from '../trading/orders/bulk-cancels/table.ts';
import { openCancels, orderSteps } from '../trading/orders/table.ts';
import { stops } from '../trading/stops/table.ts';
import { contradictions } from '../trading/submission/contradictions.ts';
import { usageDays } from '../trading/submission/day-limit.ts';
import { EnvironmentState, environments } from '../trading/submission/environment.ts';
import { positions } from '../trading/submission/positions.ts';
import { lookUps, objectSteps } from '../trading/submission/table.ts';
import { unclaimedReports } from '../trading/submission/unclaimed-reports.ts';
import { transfers, WalletSeals, walletSealUse, wallets } from '../trading/wallet/store.ts';
import { acceptsUnsealedRows, type Config, type Role } from './config.ts';
import { type Links, openLinks } from './links.ts';

/** The parts that all others need. */
export type Base = Awaited<ReturnType<typeof openOn>>;

/** Opens the database, checks that this gateway may use it, and opens the other parts that can fail. */
export async function openBase(config: Config, log: Logger, output?: LogOutput): Promise<Base> {
  const { environment, databasePool: poolSize } = config;
  const links = await openLinks(config, log);
  const database = await openDatabase({ access: links.database, environment, poolSize, tables, log });
  try {
    return await openOn(database, links, config, log, output);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function openOn(database: Database, links: Links, config: Config, log: Logger, output: LogOutput | undefined) {
  const missing = await missingMigrations(database);
  if (missing.length > 0) throw new Error(`the database lacks ${missing.join(', ')}: migrate it first`);
  const clock = new SystemClock();
  const environment = new EnvironmentState(database, clock, log);
  await environment.refresh();
  if (config.environment === 'live' && clock.offsetMs > 0) {
    throw new Error('the clock of a live gateway cannot be ahead');
  }
  const holder = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`.slice(-64);
  const { ring, worker: keyUseWorker } = await openRing(config.secretKey, { database, clock, log });
  const operatorTokens = await openSecret({ name: 'operator tokens', secret: config.operators, log });
  const keys = (use: string) => keysFor(ring, use);
  const acceptsUnsealed = acceptsUnsealedRows(config);
  const metrics = new Metrics();
  const nats = new Nats({
    access: () => links.nats.current,
    log,
    countFailure: () => metrics.uncaughtErrors.inc({ outcome: 'survived' }),
  });
  const peerMac = new PeerMac(keys('peers'));
  const distrust = countUntrusted(metrics.untrusted, log);
  const peers = new PeerMessages(nats, peerMac, distrust);
  return {
    config,
    log,
    output,
    database,
    clock,
    environment,
    does: (role: Role) => config.roles.includes(role),
    /** This process's name as a holder of leases. */
    holder,
    /** Real time. */
    startedAt: Date.now(),
    metrics,
    nats,
    /** The messages, and the MAC, of the gateway's processes. */
    peers,
    peerMac,
    distrust,
    notifications: new Notifications(peers, config.natsPrefix),
    ids: new IdMaker(clock),
    ring,
    /** Derives separate keys for each use of the secrets. */
    keys,
    keyMacKeys: keyMacKeys(ring),
    keySeals: new KeySeals(keys(keySealUse), config.environment, acceptsUnsealed),
    auditSeals: new AuditSeals(keys(auditSealUse), config.environment),
    walletSeals: new WalletSeals(keys(walletSealUse), config.environment, acceptsUnsealed),
    /** Whether rows without a seal are accepted. */
    acceptsUnsealed,
    keyUseWorker,
    writer: new WriterNode(database, log),
    cursors: new Cursors(keys('cursors')),
    operatorTokens,
    links,
    /** All certificates and secrets that are read again when their files change. */
    watchedFiles: [...Object.values(links), ring, operatorTokens].flatMap((each) => (each?.hasFiles ? [each] : [])),
    stopLoggingUnknownNames: logUnknownNames(log),
    // Opened last, because nothing would close it if a later step failed.
    tracer: await openTracer(config, links, holder, log),
  };
}

/** Loads the exporter only if spans are exported. */
async function openTracer(
  { otlpUrl, tracePercent, environment }: Config,
  { otlp }: Links,
  holder: string,
  log: Logger,
): Promise<Tracer> {
  if (otlpUrl === undefined || otlp === undefined) return passingTracer;
  const { otlpTracer } = await import('../operators/telemetry/otlp-tracer.ts');
  const resource = {
    'service.name': 'marina',
    'service.version': version,
    'service.instance.id': holder,
    'deployment.environment.name': environment,
  };
  return otlpTracer(otlpUrl, otlp, tracePercent / 100, resource, log);
}

// biome-ignore lint/suspicious/noExplicitAny: tables of all rows stand in one list.
const described: readonly Table<any>[] = [
  ...storedKinds.map(({ table }) => table),
  orderSteps,
  openCancels,
  documents,
  objectSteps,
  lookUps,
  contradictions,
  usageDays,
  wallets,
  transfers,
  environments,
  stops,
  bulkCancels,
  bulkCancelOrders,
  partners,
  apiKeys,
  keyUses,
  keyChanges,
  accounts,
  auditEntries,
  auditSealTable,
  proposals,
  acknowledgements,
  positions,
  leases,
  writeChecks,
  writer,
  writerBeats,
  outbox,
  feedEvents,
  feedPurges,
  feedSkips,
  endpoints,
  deliveries,
  attempts,
  archiveState,
  secretKeys,
  reconciliationRuns,
  reconciliationItems,
  reconciliationBreaks,
  unclaimedReports,
];

export const tables: readonly EntitySchemaOptions<object>[] = described.map(({ schema }) => schema);
