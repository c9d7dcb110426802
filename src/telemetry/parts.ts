import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import type { Finding } from './health.ts';

/** What is looked at to tell how the gateway fares. */
export interface Parts {
  readonly database: Database;
  readonly broker: { readonly connected: boolean };
  readonly brokerClock: { readonly agreement: string };
  readonly carrier: { readonly connected: boolean };
  readonly sharing: { readonly isShared: boolean };
  readonly reports: { readonly isBroken: boolean };
  readonly applicationReports: { readonly isBroken: boolean };
  readonly gate: { readonly isOpen: boolean; readonly held: readonly string[] };
  /** Names of background work that fails. */
  readonly failingWorkers: () => readonly string[];
  readonly isStopping: () => boolean;
}

/** How long the database may take to answer a look. */
const databaseTimeoutMs = 2_000;

/** Looks at each part. */
export async function lookAtParts(parts: Parts): Promise<readonly Finding[]> {
  const { broker, brokerClock, carrier, sharing, reports, applicationReports, gate } = parts;
  const found = (isWell: boolean, part: string, reason: string, stops = false): Finding[] =>
    isWell ? [] : [{ part, reason, stops }];
  return [
    ...found(!parts.isStopping(), 'process', 'stopping', true),
    ...found(await answers(parts.database), 'database', 'the database cannot be reached', true),
    ...found(broker.connected, 'broker', 'the broker cannot be reached'),
    ...found(
      brokerClock.agreement !== 'apart',
      'broker-clock',
      "the broker's clock and this process's are too far apart; what the broker does not have stays unclear",
    ),
    ...found(carrier.connected, 'nats', 'NATS cannot be reached; events go on without it'),
    ...found(sharing.isShared, 'limits', 'limits are not counted across replicas'),
    ...found(!reports.isBroken, 'order-reports', "the exchange's reports cannot be applied"),
    ...found(
      !applicationReports.isBroken,
      'application-reports',
      "the broker's reports about applications cannot be applied",
    ),
    ...found(gate.isOpen, 'start', 'what the broker was given is not known yet, and nothing new is taken'),
    ...gate.held.map((kind) => ({
      part: `lost ${kind}s`,
      reason: `${kind}s that were lost cannot be stored, and none is taken`,
      stops: false,
    })),
    ...parts.failingWorkers().map((name) => ({ part: `worker ${name}`, reason: `${name} fails`, stops: false })),
  ];
}

/** Whether the database answers, and soon: who asks for readiness does not wait long. */
async function answers(database: Database): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), databaseTimeoutMs);
  });
  const answer = database.read(statement('SELECT 1')).then(
    () => true,
    () => false,
  );
  const isThere = await Promise.race([answer, late]);
  clearTimeout(timer);
  return isThere;
}
