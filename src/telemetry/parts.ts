import type { ClockAgreement } from '../broker/clock.ts';
import type { Finding } from './health.ts';
import type { WriteTrouble } from './write-probe.ts';

/** What is looked at to tell how the gateway fares. */
export interface Parts {
  readonly database: { readonly isReachable: boolean; readonly clockAheadMs: number | undefined };
  readonly writes: { readonly trouble: WriteTrouble | undefined };
  readonly broker: { readonly connected: boolean };
  readonly brokerClocks: { readonly known: ClockAgreement };
  readonly brokerClock: { readonly estimateMs: number | undefined };
  readonly nats: { readonly connection: object | undefined };
  readonly stream: { readonly isStoring: boolean };
  readonly sharing: { readonly isShared: boolean };
  readonly reports: { readonly isBroken: boolean };
  readonly applicationReports: { readonly isBroken: boolean };
  readonly gate: { readonly isOpen: boolean; readonly held: readonly string[] };
  /** Names of background work that fails. */
  readonly failingWorkers: () => readonly string[];
  readonly isStopping: () => boolean;
  /** Where the log goes; absent: it cannot be stuck. */
  readonly log: { readonly isStuck: boolean } | undefined;
}

/** What is known of each part. */
export function lookAtParts(parts: Parts): readonly Finding[] {
  const { database, broker, brokerClocks, nats, stream, sharing, reports, applicationReports, gate } = parts;
  const found = (isWell: boolean, part: string, reason: string, stops = false): Finding[] =>
    isWell ? [] : [{ part, reason, stops }];
  return [
    ...found(!parts.isStopping(), 'process', 'stopping', true),
    ...found(database.isReachable, 'database', 'the database cannot be reached', true),
    ...(database.isReachable ? findWriteTrouble(parts.writes.trouble) : []),
    ...found(
      !isWrong(database.clockAheadMs, parts.brokerClock.estimateMs),
      'clock',
      "this machine's clock is wrong: the database's and the broker's both say so",
      true,
    ),
    ...found(broker.connected, 'broker', 'the broker cannot be reached'),
    ...found(
      brokerClocks.known !== 'apart',
      'broker-clock',
      "the broker's clock and this process's are too far apart; what the broker does not have stays unclear",
    ),
    ...found(nats.connection !== undefined, 'nats', 'NATS cannot be reached; events go on without it'),
    ...found(
      nats.connection === undefined || stream.isStoring,
      'jetstream',
      'JetStream stores no events; see to its memory and its disk',
    ),
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
    ...found(parts.log?.isStuck !== true, 'log', 'the log cannot be written'),
    ...parts.failingWorkers().map((name) => ({ part: `worker ${name}`, reason: `${name} fails`, stops: false })),
  ];
}

/** By more than this our clock must differ from both others, and they may not differ from each other. */
const clockWrongMs = 10_000;

/**
 * Whether our own clock is the wrong one of three. Orders would be stored with a wrong time, and count for the limit of a
 * wrong day. One other clock that differs may itself be wrong.
 */
function isWrong(databaseAheadMs: number | undefined, brokerAheadMs: number | undefined): boolean {
  if (databaseAheadMs === undefined || brokerAheadMs === undefined) return false;
  const leastMs = Math.min(Math.abs(databaseAheadMs), Math.abs(brokerAheadMs));
  return leastMs > clockWrongMs && Math.abs(databaseAheadMs - brokerAheadMs) < clockWrongMs;
}

/** What writes meet. The part names the disk where it is known to be full. */
function findWriteTrouble(trouble: WriteTrouble | undefined): Finding[] {
  if (trouble === undefined) return [];
  return [
    { part: trouble === 'disk-full' ? 'database-disk' : 'database-writes', reason: writeReasons[trouble], stops: true },
  ];
}

const writeReasons: Readonly<Record<WriteTrouble, string>> = {
  'disk-full': 'the database takes no writes: its disk is full',
  'read-only': 'the database takes no writes: it is read-only',
  silent: 'the database does not answer writes; its disk may be full',
};
