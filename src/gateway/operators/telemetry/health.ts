import { atMost } from '../../../kit/at-most.ts';
import { periodic, type Worker } from '../../../kit/worker.ts';
import { type BrokerId, nameAt } from '../../trading/broker/broker.ts';
import type { ClockAgreement } from '../../trading/broker/clock.ts';
import type { WriteTrouble } from './write-probe.ts';

/** A part that does not work as it should. */
export interface Trouble {
  /** Which part; the same for as long as the trouble lasts. */
  readonly part: string;
  /** The reason, for people. */
  readonly reason: string;
  /** Whether this process should get no requests because of it. */
  readonly stops: boolean;
  /** Its start, in real time in milliseconds. */
  readonly sinceMs: number;
}

/** A stream of the broker's reports. */
interface Reports {
  /** Why they cannot be applied; undefined: they can. */
  readonly problem: 'stream' | 'locked' | 'damaged' | 'unfound' | undefined;
}

/** A broker and the work for it, as far as its health is checked. */
interface WatchedBroker {
  readonly broker: {
    readonly id: BrokerId;
    readonly orders: { readonly connected: boolean };
    readonly clock: { readonly estimateMs: number | undefined };
  };
  readonly clocks: { readonly known: ClockAgreement };
  readonly reports: { readonly order: Reports; readonly application: Reports };
  /** Partners whose objects cannot be changed. */
  readonly stuck: { readonly all: readonly string[] };
  readonly gate: Gate;
}

/** The parts whose health is checked. */
export interface HealthSources {
  readonly database: {
    readonly isReachable: boolean;
    /** Whether reads are refused, because its node may lag. */
    readonly isBehind?: boolean;
    readonly clockAheadMs: number | undefined;
    ask(): Promise<void>;
  };
  readonly writes: { readonly trouble: WriteTrouble | undefined };
  readonly brokers: readonly WatchedBroker[];
  readonly nats: { readonly connection: object | undefined };
  readonly stream: { readonly isStoring: boolean };
  /** Partners whose events cannot be consumed. */
  readonly events: { readonly webhooks: { readonly consumer: { readonly stuck: readonly string[] } } };
  readonly sharing: { readonly isShared: boolean };
  /** Certificates and secrets. */
  readonly watchedFiles: readonly { readonly name: string; readonly isRefused: boolean }[];
  readonly failingWorkers: () => readonly string[];
  readonly log: { readonly isStuck: boolean } | undefined;
}

/** The start gate, and the kinds and partners of lost objects that could not be restored: without a partner, of all. */
interface Gate {
  readonly isOpen: boolean;
  readonly held: readonly { readonly kind: string; readonly partnerId?: string }[];
}

/** How often parts are checked without a caller, so that the start of each trouble is known. */
const checkEveryMs = 1_000;
/** How long a caller waits for the database. If the answer is later, the caller gets the previous state. */
const answerWithinMs = 500;

/** Tracks which parts are in trouble, and since when. */
export class Health {
  readonly worker: Worker;
  #troubles: readonly Trouble[] = [];
  #isStopping = false;

  constructor(
    private readonly parts: HealthSources,
    private readonly realNow: () => number,
  ) {
    this.worker = periodic('health', checkEveryMs, async () => {
      await parts.database.ask();
      this.known();
    });
  }

  /** From now on this process is not ready. */
  sayStopping(): void {
    this.#isStopping = true;
  }

  /** The present troubles, within a second. */
  async troubles(): Promise<readonly Trouble[]> {
    await atMost(answerWithinMs, this.parts.database.ask());
    return this.known();
  }

  /** The known troubles, at once. */
  known(): readonly Trouble[] {
    const now = this.realNow();
    const since = new Map(this.#troubles.map(({ part, sinceMs }) => [part, sinceMs]));
    this.#troubles = this.#checks()
      .filter(([isWrong]) => isWrong)
      .map(([, part, reason, stops = false]) => ({ part, reason, stops, sinceMs: since.get(part) ?? now }));
    return this.#troubles;
  }

  #checks(): readonly Check[] {
    const { parts } = this;
    const { database, nats, stream, events, sharing } = parts;
    const ownClockIsWrong = parts.brokers.some(({ broker }) => isWrong(database.clockAheadMs, broker.clock.estimateMs));
    /** Checks of each broker, whose parts have its name. */
    const ofBrokers = (check: (of: WatchedBroker) => readonly Check[]): Check[] =>
      parts.brokers.flatMap((of) =>
        check(of).map(([isBad, part, reason]): Check => [isBad, nameAt(of.broker.id, part), reason]),
      );
    return [
      [this.#isStopping, 'process', 'stopping', true],
      [!database.isReachable, 'database', 'the database cannot be reached', true],
      [
        database.isReachable && database.isBehind === true,
        'database-reads',
        "the database's node has not taken over, and may lag: nothing is read there",
        true,
      ],
      ...(database.isReachable ? findWriteTrouble(parts.writes.trouble) : []),
      [
        ownClockIsWrong,
        'clock',
        "this machine's clock is wrong: it differs from the database's and the broker's",
        true,
      ],
      ...ofBrokers(({ broker, clocks }) => [
        [!broker.orders.connected, 'broker', 'the broker cannot be reached'],
        [
          clocks.known === 'apart',
          'broker-clock',
          "the broker's clock and this process's are too far apart; objects that the broker does not have stay unsettled",
        ],
      ]),
      [nats.connection === undefined, 'nats', 'NATS cannot be reached; events go on without it'],
      [
        nats.connection !== undefined && !stream.isStoring,
        'jetstream',
        'JetStream stores no events; check its memory and its disk',
      ],
      ...findStuck('events', 'events cannot be consumed', events.webhooks.consumer.stuck),
      ...ofBrokers(({ stuck }) => findStuck('objects', 'objects cannot be changed', stuck.all)),
      [!sharing.isShared, 'limits', 'limits are not counted across replicas'],
      ...ofBrokers(({ reports: { order, application }, gate }) => [
        ...findProblem('order-reports', "the exchange's reports cannot be applied", order),
        ...findProblem('application-reports', "the broker's reports about applications cannot be applied", application),
        [!gate.isOpen, 'start', "the broker's submissions are not checked yet, and nothing new is accepted"],
        ...findLost(gate),
      ]),
      ...findRefusedFiles(parts.watchedFiles),
      [parts.log?.isStuck === true, 'log', 'the log cannot be written'],
      ...parts.failingWorkers().map((name): Check => [true, `worker ${name}`, `${name} fails`]),
    ];
  }
}

const reportProblems = {
  stream: '',
  locked: ': those of a partner wait, because its row is locked or the database cannot serve',
  damaged: ': those of a partner fail, because its rows are damaged',
  unfound: ': those about objects that are not stored wait, because lost objects cannot be looked for',
};

function findProblem(part: string, reason: string, { problem }: Reports): Check[] {
  return problem === undefined ? [] : [[true, part, `${reason}${reportProblems[problem]}`]];
}

function findLost({ held }: Gate): Check[] {
  return [...new Set(held.map(({ kind }) => kind))].map((kind) => {
    const isOfAll = held.some((each) => each.kind === kind && each.partnerId === undefined);
    const whose = isOfAll ? '' : ' of the same partners';
    return [true, `lost ${kind}s`, `lost ${kind}s cannot be restored, and new ones${whose} are not accepted`];
  });
}

type Check = readonly [isWrong: boolean, part: string, reason: string, stops?: boolean];

/** Our clock is wrong if it differs from both others by more than this, and they do not differ from each other. */
const clockWrongMs = 10_000;

/**
 * Whether our own clock is the wrong one of three: orders would have a wrong time and count for a wrong day's limit. If
 * only one other clock differs, that one may be wrong.
 */
function isWrong(databaseAheadMs: number | undefined, brokerAheadMs: number | undefined): boolean {
  if (databaseAheadMs === undefined || brokerAheadMs === undefined) return false;
  const leastMs = Math.min(Math.abs(databaseAheadMs), Math.abs(brokerAheadMs));
  return leastMs > clockWrongMs && Math.abs(databaseAheadMs - brokerAheadMs) < clockWrongMs;
}

/** What does not work for some partners. Names the first: there may be many. */
function findStuck(part: string, what: string, partnerIds: readonly string[]): Check[] {
  const ids = [...new Set(partnerIds)];
  if (ids.length === 0) return [];
  const more = ids.length > 3 ? ` and ${ids.length - 3} more` : '';
  return [[true, part, `${what}, of ${ids.slice(0, 3).join(', ')}${more}`]];
}

/** Changed certificates and secrets that are refused. The former ones may expire, or their login may be removed. */
function findRefusedFiles(files: HealthSources['watchedFiles']): Check[] {
  const names = files.filter(({ isRefused }) => isRefused).map(({ name }) => name);
  const reason = `changed files are refused, and the former certificates and secrets are in use: ${names.join(', ')}`;
  return [[names.length > 0, 'changed-files', reason]];
}

/** The trouble with writes. The part names the disk if it is known to be full. */
function findWriteTrouble(trouble: WriteTrouble | undefined): Check[] {
  if (trouble === undefined) return [];
  return [[true, trouble === 'disk-full' ? 'database-disk' : 'database-writes', writeReasons[trouble], true]];
}

const writeReasons: Readonly<Record<WriteTrouble, string>> = {
  'disk-full': 'the database takes no writes: its disk is full',
  'read-only': 'the database takes no writes: it is read-only',
  'not-writer':
    "the database's node takes no writes: gateways write through another node of the cluster, or its group has several primaries",
  silent: 'the database does not answer writes; its disk may be full',
};
