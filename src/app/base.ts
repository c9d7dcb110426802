import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { EntitySchemaOptions } from 'typeorm';
import { accounts } from '../accounts/store.ts';
import { auditEntries } from '../admin/audit.ts';
import { allocations } from '../allocations/table.ts';
import { documents } from '../applications/documents/store.ts';
import { applications } from '../applications/table.ts';
import { keyMacSecret } from '../auth/keys.ts';
import { apiKeys, keyUses, partners } from '../auth/store.ts';
import type { Config, Role } from '../config.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { leases } from '../db/lease.ts';
import { missingMigrations } from '../db/migrate.ts';
import type { Table } from '../db/table.ts';
import { feedEvents, feedPurges, feedSkips, outbox } from '../events/table.ts';
import { keyChanges } from '../keys/store.ts';
import { SystemClock } from '../lib/clock.ts';
import { armCrash } from '../lib/crash.ts';
import { logUnknownNames } from '../lib/enums.ts';
import { IdMaker } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { LogOutput } from '../lib/log-output.ts';
import { Metrics } from '../lib/metrics.ts';
import { Nats, Notifications } from '../lib/nats.ts';
import { Cursors } from '../lib/paging.ts';
import { subkey } from '../lib/seal.ts';
import { ServerIdentity } from '../lib/server-identity.ts';
import { passingTracer, type Tracer } from '../lib/trace.ts';
import { version } from '../lib/version.ts';

import { openCancels, orderSteps, orders } from '../orders/table.ts';
import { EnvironmentState, environments } from '../submission/environment.ts';
import { lookUps, objectSteps, positions, usageDays } from '../submission/table.ts';
import { writeChecks } from '../telemetry/write-probe.ts';
import { transfers, wallets } from '../wallet/store.ts';
import { attempts, deliveries, endpoints } from '../webhooks/table.ts';

/** The parts that all others need. */
export type Base = Awaited<ReturnType<typeof openOn>>;

/** Opens the database, checks that this gateway may use it, and opens the other parts that can fail. */
export async function openBase(config: Config, log: Logger, output?: LogOutput): Promise<Base> {
  const { databaseUrl: url, environment, databasePool: poolSize } = config;
  const database = await openDatabase({ url, environment, poolSize, tables });
  try {
    return await openOn(database, config, log, output);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function openOn(database: Database, config: Config, log: Logger, output: LogOutput | undefined) {
  const missing = await missingMigrations(database);
  if (missing.length > 0) throw new Error(`the database lacks ${missing.join(', ')}: migrate it first`);
  if (config.crashPoint !== undefined) armCrash(config.crashPoint, config.crashSignal);
  const clock = new SystemClock();
  const environment = new EnvironmentState(database, clock, log);
  await environment.refresh();
  if (config.environment === 'live' && clock.offsetMs > 0) {
    throw new Error('the clock of a live gateway cannot be ahead');
  }
  const holder = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`.slice(-64);
  const key = (use: string) => subkey(config.secretKey, use);
  const nats = new Nats({ url: config.natsUrl, log });
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
    metrics: new Metrics(),
    nats,
    notifications: new Notifications(nats, config.natsPrefix),
    ids: new IdMaker(clock),
    /** Derives a separate key for each use of the one secret. */
    key,
    keyMacSecret: keyMacSecret(config.secretKey),
    cursors: new Cursors(key('cursors')),
    identities: await openIdentities(config, log),
    stopLoggingUnknownNames: logUnknownNames(log),
    // Opened last, because nothing would close it if a later step failed.
    tracer: await openTracer(config, holder, log),
  };
}

/** The certificates of the partners' and the operators' ports, if they speak TLS. */
async function openIdentities(config: Config, log: Logger) {
  const { tlsCertificate, tlsKey, adminTlsCertificate, adminTlsKey, adminTlsAuthorities } = config;
  return {
    partners: await ServerIdentity.open(tlsCertificate, tlsKey, undefined, log),
    operators: await ServerIdentity.open(adminTlsCertificate, adminTlsKey, adminTlsAuthorities, log),
  };
}

/** Loads the exporter only if spans are exported. */
async function openTracer(
  { otlpUrl, tracePercent, environment }: Config,
  holder: string,
  log: Logger,
): Promise<Tracer> {
  if (otlpUrl === undefined) return passingTracer;
  const { otlpTracer } = await import('../telemetry/otlp-tracer.ts');
  const resource = {
    'service.name': 'marina',
    'service.version': version,
    'service.instance.id': holder,
    'deployment.environment.name': environment,
  };
  return otlpTracer(otlpUrl, tracePercent / 100, resource, log);
}

// biome-ignore lint/suspicious/noExplicitAny: tables of all rows stand in one list.
const described: readonly Table<any>[] = [
  orders,
  orderSteps,
  openCancels,
  applications,
  documents,
  allocations,
  objectSteps,
  lookUps,
  usageDays,
  wallets,
  transfers,
  environments,
  partners,
  apiKeys,
  keyUses,
  keyChanges,
  accounts,
  auditEntries,
  positions,
  leases,
  writeChecks,
  outbox,
  feedEvents,
  feedPurges,
  feedSkips,
  endpoints,
  deliveries,
  attempts,
];

export const tables: readonly EntitySchemaOptions<object>[] = described.map(({ schema }) => schema);
