import type { ClockAgreement } from '../broker/clock.ts';
import type { Finding } from './health.ts';
import type { WriteTrouble } from './write-probe.ts';

/** The parts whose health is checked. */
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

/** Everything that is wrong now. */
export function lookAtParts(parts: Parts): readonly Finding[] {
  const { database, broker, brokerClocks, nats, stream, sharing, reports, applicationReports, gate } = parts;
  const ownClockIsWrong = isWrong(database.clockAheadMs, parts.brokerClock.estimateMs);
  const checks: readonly [isWrong: boolean, part: string, reason: string, stops?: boolean][] = [
    [parts.isStopping(), 'process', 'stopping', true],
    [!database.isReachable, 'database', 'the database cannot be reached', true],
    ...(database.isReachable ? findWriteTrouble(parts.writes.trouble) : []),
    [ownClockIsWrong, 'clock', "this machine's clock is wrong: the database's and the broker's both say so", true],
    [!broker.connected, 'broker', 'the broker cannot be reached'],
    [
      brokerClocks.known === 'apart',
      'broker-clock',
      "the broker's clock and this process's are too far apart; what the broker does not have stays unclear",
    ],
    [nats.connection === undefined, 'nats', 'NATS cannot be reached; events go on without it'],
    [
      nats.connection !== undefined && !stream.isStoring,
      'jetstream',
      'JetStream stores no events; see to its memory and its disk',
    ],
    [!sharing.isShared, 'limits', 'limits are not counted across replicas'],
    [reports.isBroken, 'order-reports', "the exchange's reports cannot be applied"],
    [applicationReports.isBroken, 'application-reports', "the broker's reports about applications cannot be applied"],
    [!gate.isOpen, 'start', 'what the broker was given is not known yet, and nothing new is taken'],
    ...gate.held.map((kind): [boolean, string, string] => [
      true,
      `lost ${kind}s`,
      `${kind}s that were lost cannot be stored, and none is taken`,
    ]),
    [parts.log?.isStuck === true, 'log', 'the log cannot be written'],
    ...parts.failingWorkers().map((name): [boolean, string, string] => [true, `worker ${name}`, `${name} fails`]),
  ];
  return checks.filter(([isWrong]) => isWrong).map(([, part, reason, stops = false]) => ({ part, reason, stops }));
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
function findWriteTrouble(trouble: WriteTrouble | undefined): [boolean, string, string, boolean][] {
  if (trouble === undefined) return [];
  return [[true, trouble === 'disk-full' ? 'database-disk' : 'database-writes', writeReasons[trouble], true]];
}

const writeReasons: Readonly<Record<WriteTrouble, string>> = {
  'disk-full': 'the database takes no writes: its disk is full',
  'read-only': 'the database takes no writes: it is read-only',
  silent: 'the database does not answer writes; its disk may be full',
};
