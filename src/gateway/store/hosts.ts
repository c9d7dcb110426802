import { createConnection, type RowDataPacket } from 'mysql2';
import type { Logger } from '../../kit/log.ts';
import { periodic, type Worker } from '../../kit/worker.ts';
import { accessOptions, type DatabaseAccess } from './access.ts';
import { type DatabaseHost, databaseAddress } from './address.ts';
import { isFull } from './errors.ts';
import { askGroup, askServerKind, isPrimary, serverKind, whyUnsafe } from './server-kind.ts';

const pollIntervalMs = 1_000;
/** How long a host may take to answer whether it is good. */
const answerWithinMs = 2_000;
/** A host is left after so many polls in a row that did not find it good. */
const maxFailures = 2;
/** A host that takes no more connections is left, too, when it has answered nothing else for so long: longer than any work may take. */
const servesWithinMs = 20_000;

/** What a host answers about itself. `full`: it takes no more connections, and serves those that it has. Undefined: it cannot be used now. */
type Answer =
  | { readonly node: string | undefined; readonly writer: string | undefined; readonly isBehind?: boolean }
  | 'full'
  | undefined;
type Good = Exclude<Answer, 'full' | undefined>;

/** Another host is used. */
export interface HostChange {
  /** The former one does not answer, or cannot be used. */
  readonly isLost: boolean;
}

/**
 * The hosts of a database, one of which is used: the node that gateways write through if it is good, else the one that is in
 * use, else the first good one of the list. A node that is behind is used only if no other one is good: until it has applied what
 * it lacks, nothing can be read or written there (`ReadLease`). With one host there is nothing to choose.
 */
export class DatabaseHosts {
  readonly worker: Worker;
  readonly #hosts: readonly DatabaseHost[];
  readonly #listeners: ((change: HostChange) => void)[] = [];
  #current: DatabaseHost;
  #failures = 0;
  #servedAt: number;

  constructor(
    private readonly access: { readonly current: DatabaseAccess },
    private readonly log?: Logger,
    private readonly ask: (access: DatabaseAccess, host: DatabaseHost) => Promise<Answer> = askHost,
    private readonly now: () => number = () => performance.now(),
  ) {
    const { hosts } = databaseAddress(access.current.url);
    this.#hosts = hosts;
    this.#current = hosts[0];
    this.#servedAt = now();
    this.worker = periodic('database hosts', pollIntervalMs, () => this.poll());
  }

  get areMany(): boolean {
    return this.#hosts.length > 1;
  }

  /** Where to connect. */
  get current(): DatabaseHost {
    return this.#current;
  }

  /** Calls the listener when another host is to be used. */
  onChange(listener: (change: HostChange) => void): void {
    this.#listeners.push(listener);
  }

  /** Asks all hosts once and uses the best. To be called before the first connection. Throws if two nodes have one name. */
  async choose(): Promise<void> {
    if (!this.areMany) return;
    const answers = await this.#askAll();
    const nodes = [...answers.values()].flatMap(({ node }) => node ?? []);
    const twice = nodes.find((node, index) => nodes.indexOf(node) !== index);
    if (twice !== undefined) {
      throw new Error(
        `two hosts of the database call themselves ${twice}: give each node a wsrep_node_name of its own`,
      );
    }
    this.#use(this.#best(answers) ?? this.#current);
  }

  /** Notes that the host in use did what it was asked. */
  noteServed(): void {
    this.#servedAt = this.now();
  }

  /** Queries the host in use, and uses another one if that is better. */
  async poll(): Promise<void> {
    const said = await this.ask(this.access.current, this.#current);
    if (said === 'full' && this.now() - this.#servedAt < servesWithinMs) return;
    const answer = said === 'full' ? undefined : said;
    this.#failures = answer === undefined ? this.#failures + 1 : 0;
    const isElsewhere = answer?.writer !== undefined && answer.writer !== answer.node;
    if (answer === undefined ? this.#failures < maxFailures : !isElsewhere) return;
    const best = this.#best(await this.#askAll());
    if (best !== undefined) this.#use(best);
  }

  async #askAll(): Promise<Map<DatabaseHost, Good>> {
    const asked = this.#hosts.map(async (host) => [host, await this.ask(this.access.current, host)] as const);
    const answers = await Promise.all(asked);
    return new Map(
      answers.flatMap(([host, answer]) => (answer === undefined || answer === 'full' ? [] : [[host, answer] as const])),
    );
  }

  #best(good: ReadonlyMap<DatabaseHost, Good>): DatabaseHost | undefined {
    const writer = [...good].find(([, { node, writer }]) => node !== undefined && node === writer)?.[0];
    if (writer !== undefined) return writer;
    const upToDate = [...good].filter(([, { isBehind }]) => !isBehind).map(([host]) => host);
    const candidates = upToDate.length > 0 ? upToDate : [...good.keys()];
    return candidates.includes(this.#current) ? this.#current : candidates[0];
  }

  #use(host: DatabaseHost): void {
    if (host === this.#current) return;
    this.log?.warn({ host: host.host, port: host.port, former: this.#current }, 'another host of the database is used');
    const isLost = this.#failures > 0;
    this.#current = host;
    this.#failures = 0;
    this.noteServed();
    for (const listener of this.#listeners) listener({ isLost });
  }
}

const questions = [
  askServerKind.sql,
  "SHOW GLOBAL VARIABLES LIKE 'read_only'",
  `SHOW GLOBAL STATUS WHERE Variable_name IN
    ('wsrep_ready', 'wsrep_local_state', 'wsrep_cluster_status', 'wsrep_local_recv_queue')`,
].join('; ');

/**
 * What a node of a Galera cluster says when it takes part. Another server does not have these. A node of state 2 gives its
 * data to another one or takes a backup, and serves meanwhile.
 */
const goodStatus: Readonly<Record<string, readonly string[]>> = {
  wsrep_ready: ['ON'],
  wsrep_local_state: ['4', '2'],
  wsrep_cluster_status: ['Primary'],
};

/** The most writes of other nodes that may wait at a node which is up to date: as many as flow control lets (`gcs.fc_limit`). */
const maxWaiting = 256;

/** Whether a node lags: it gives its data to another one or is backed up, or many writes wait at it. */
function isBehind(status: ReadonlyMap<string, string>): boolean {
  return status.get('wsrep_local_state') !== '4' || Number(status.get('wsrep_local_recv_queue') ?? 0) > maxWaiting;
}

/** Asks a host on a connection of its own. Never rejects. */
async function askHost(access: DatabaseAccess, host: DatabaseHost): Promise<Answer> {
  const { database } = databaseAddress(access.url);
  const connection = createConnection({
    ...host,
    database,
    ...accessOptions(access, host),
    multipleStatements: true,
    connectTimeout: answerWithinMs,
  });
  connection.on('error', () => {}); // It may fail again when nobody waits any more.
  const timer = setTimeout(() => connection.destroy(), answerWithinMs);
  try {
    const query = async (sql: string) =>
      (await connection.promise().query({ sql, timeout: answerWithinMs }))[0] as RowDataPacket[][];
    const [variables = [], readOnly = [], status = []] = await query(questions);
    if (readOnly.some(({ Value: value }) => value !== 'OFF')) return undefined;
    const { galeraNode: node, isOfGroup } = serverKind(variables);
    if (isOfGroup) {
      const members: RowDataPacket[] = (await query(askGroup.sql)).flat();
      if (whyUnsafe(variables, members) !== undefined || !isPrimary(members)) return undefined;
    }
    if (node === undefined) return { node, writer: undefined };
    const said = new Map(status.map(({ Variable_name: name, Value: value }) => [String(name), String(value)]));
    if (Object.entries(goodStatus).some(([name, good]) => !good.includes(said.get(name) ?? good[0] ?? '')))
      return undefined;
    const rows: RowDataPacket[] = await query('SELECT node FROM writer WHERE id = 1').then(
      (found) => found.flat(),
      () => [],
    );
    return { node, writer: rows[0]?.node || undefined, isBehind: isBehind(said) };
  } catch (error) {
    return isFull(error) ? 'full' : undefined;
  } finally {
    clearTimeout(timer);
    connection.destroy();
  }
}
