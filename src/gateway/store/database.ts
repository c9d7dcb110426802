import type { PoolConnection } from 'mysql2';
import type { EntityManager, EntitySchemaOptions, QueryRunner } from 'typeorm';
import type { Logger } from '../../kit/log.ts';
import { Refusal, UnavailableError } from '../../kit/refusal.ts';
import { connect, type DatabasePools, type Reached } from './data-source.ts';
import {
  isOptimismWrong,
  isRetryable,
  isTableMissing,
  NotBegunError,
  toRefusal,
  type WriteObstacle,
  writeObstacle,
} from './errors.ts';
import type { Shared } from './facts.ts';
import { GroupCommit, PartnerQueue, type PartnerWork, type WaitingWork } from './group-commit.ts';
import type { DatabaseHosts } from './hosts.ts';
import {
  lockPartner,
  lockPartnerAtOnce,
  PartnerCache,
  PartnerTransaction,
  partnerGuard,
} from './partner-transaction.ts';
import { ReadLease } from './read-lease.ts';
import type { RenewedPool } from './renewed-pool.ts';
import { type Decision, guard, joinLists, type SqlRow, type Statement, statement } from './statement.ts';
import {
  type Decided,
  giveBack,
  inTime,
  isUsable,
  leaveTransactions,
  mayGoOn,
  runAlone,
  runAtOnce,
  runBatch,
  runTransaction,
  type TransactionFrame,
} from './transaction.ts';
import { type ClusterNode, WriterNode } from './writer.ts';

export type Environment = 'sandbox' | 'live';

/** How long a caller waits for a connection. */
const acquireTimeoutMs = 5_000;
/** How long the server may take to end a connection. */
const killTimeoutMs = 5_000;
/** How many times a transaction is tried in total, if a deadlock or a wait for a lock ends it. */
const maxTries = 4;
/**
 * No new try begins after this time. A deadlock is found at once, so several tries fit into it. A wait for a lock takes long,
 * so it is not repeated often.
 */
const retriedForMs = 8_000;

/** Opens a gateway's database, stamps a new one with the environment, and refuses one of another environment. */
export async function openDatabase(
  options: Reached & {
    environment: Environment;
    poolSize?: number;
    log?: Logger;
    /** The tables that cold paths use through TypeORM. */
    tables?: readonly EntitySchemaOptions<object>[];
  },
): Promise<Database> {
  const { poolSize = 16 } = options;
  const database = new Database(await connect({ ...options, poolSize }), options.environment, poolSize);
  try {
    await database.settle();
    await database.write(statement('INSERT IGNORE INTO environment (id, name) VALUES (1, ?)', options.environment));
    const [row] = await database.read(statement('SELECT name FROM environment WHERE id = 1'));
    if (row?.name !== options.environment) {
      throw new Error(
        `this database belongs to the ${String(row?.name)} environment, and this gateway is of the ${options.environment} environment`,
      );
    }
    await checkGuards(database);
  } catch (error) {
    await database.close();
    if (!isTableMissing(error)) throw error;
    throw new Error('the database has no tables of a gateway: migrate it first (node src/main.js migrate)', {
      cause: error,
    });
  }
  return database;
}

/**
 * Opens a gateway's database for a command that mostly reads and does not store an environment. Only one such command runs at a
 * time, under a lock.
 */
export async function openForReading(reached: Reached): Promise<Database> {
  const poolSize = 2;
  const connections = await connect({ ...reached, poolSize });
  try {
    const [row] = await new Database(connections, 'live', poolSize).read(
      statement('SELECT name FROM environment WHERE id = 1'),
    );
    const name = row?.name;
    if (name !== 'sandbox' && name !== 'live') throw new Error('no gateway has used this database yet');
    return new Database(connections, name, poolSize);
  } catch (error) {
    await connections.close();
    throw error;
  }
}

/**
 * Checks that a false guard fails. A server that does not enforce CHECK constraints would commit a decision although its guard
 * is false. MySQL before 8.0.16 does so: it accepts CHECK and ignores it. A database without the table `guards` has not been
 * migrated yet. Another check refuses it.
 */
async function checkGuards(database: Database): Promise<void> {
  try {
    await database.transaction([guard([statement('1 = 0')])], () => {
      throw new Error(
        'this server does not enforce CHECK constraints: MySQL 8.0.16 or MariaDB 10.6 is needed, or a newer one',
      );
    });
  } catch (error) {
    if (!isOptimismWrong(error) && !isTableMissing(error)) throw error;
  }
}

/**
 * The gateway's database. It can be used in six ways: a read; a write of one statement; a write of several statements at once;
 * a short transaction for internal records; a partner's transaction, the only way to change a partner's objects; and TypeORM's
 * repositories, for rare calls such as those of operators.
 */
export class Database {
  #inUse = 0;
  #waiting = 0;
  #refusedWrite: WriteObstacle | undefined;
  #reads: ReadLease | undefined;
  readonly #partners = new PartnerQueue((partnerId, group) => this.#runTogether(partnerId, group));
  readonly #cache = new PartnerCache();
  readonly #commits = new GroupCommit(
    (statements) => this.#runAtOnce(statements, this.connections.pool),
    (statements) => this.#runAtOnce(statements, this.connections.sharedTransactions),
  );

  constructor(
    private readonly connections: DatabasePools,
    readonly environment: Environment,
    private readonly poolSize: number,
  ) {}

  /**
   * Waits until this process may write, as a gateway must before it uses the database. After that, if the database is a
   * cluster, it reads only from a node that has all commits.
   */
  async settle(): Promise<void> {
    const writer = new WriterNode(this);
    this.#reads = new ReadLease(() => writer.renew());
    await writer.settle();
  }

  /** Whether reads are refused, because the node of a cluster has not taken over yet. */
  get refusesReads(): boolean {
    return this.connections.isCluster() && this.#reads?.isOver === true;
  }

  /** Reads facts about the server itself, such as its time. A node of a cluster that is behind may answer too. */
  async readOfServer(query: Statement): Promise<SqlRow[]> {
    return this.#withConnection(async (connection) => (await runBatch(connection, [query]))[0] ?? []);
  }

  /** Why the server refused a write since the last `forgetRefusedWrite`. */
  get refusedWrite(): WriteObstacle | undefined {
    return this.#refusedWrite;
  }

  forgetRefusedWrite(): void {
    this.#refusedWrite = undefined;
  }

  /** Reads with one prepared statement, which can have no list among its values. */
  async read(query: Statement): Promise<SqlRow[]> {
    if (query.values.some(Array.isArray)) throw new Error('a statement with a list cannot be prepared');
    const values = query.values as (string | number | Date | Buffer | null)[];
    return this.#reading((connection) =>
      inTime<SqlRow[]>((done) => connection.execute(query.sql, values, (error, rows) => done(error, rows as SqlRow[]))),
    );
  }

  /** Reads with several statements in one round trip. Each sees what was committed when it ran. */
  async readAll(queries: readonly Statement[]): Promise<SqlRow[][]> {
    if (queries.length === 0) return [];
    return this.#reading((connection) => runBatch(connection, queries));
  }

  /**
   * Runs one statement that commits by itself, and answers how many rows it changed or found. If a deadlock undid the
   * statement, it is tried again.
   */
  async write(change: Statement): Promise<number> {
    return retrying(() =>
      this.#inTransaction(async (connection, frame) => {
        const result = await runAlone(connection, frame, change);
        return (result as { affectedRows?: number }).affectedRows ?? 0;
      }),
    );
  }

  /**
   * A transaction on one partner's objects. It decides on expected values and writes in one round trip if it can;
   * otherwise it locks the partner's row and reads, decides, and writes in a second one. Work of one partner that waits at
   * the same time shares a transaction. It is tried again after a deadlock. If no answer came to COMMIT, it ends with
   * an `UnavailableError` and is never tried again.
   */
  inPartnerTransaction<Value, T>(partnerId: string, work: PartnerWork<Value, T>): Promise<T> {
    return this.#partners.run(partnerId, work);
  }

  /** Runs some work of one partner in one transaction, and settles each piece by its own outcome. */
  async #runTogether(partnerId: string, group: readonly WaitingWork[]): Promise<void> {
    try {
      const outcomes = (await this.#runOptimistic(partnerId, group)) ?? (await this.#runLocked(partnerId, group));
      for (const [index, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[index];
        if (outcome !== undefined && 'result' in outcome) resolve(outcome.result);
        else reject(outcome?.refusal);
      }
    } catch (error) {
      // A statement of one piece of work must not fail the others: if nothing was committed, each tries alone.
      if (group.length > 1 && !(error instanceof Refusal)) {
        for (const entry of group) await this.#runTogether(partnerId, [entry]);
      } else for (const { reject } of group) reject(error);
    }
  }

  /** Locks the partner, reads and decides: two round trips. */
  async #runLocked(partnerId: string, group: readonly WaitingWork[]): Promise<Decided<unknown>[]> {
    const reads = [...new Set(group.flatMap(({ work }) => work.fact.reads))];
    const shared = sharedOf(group);
    const statements = [lockPartner(partnerId), ...reads, ...shared.map(({ read }) => read)];
    const { partner, outcomes } = await this.transaction(statements, ([partners, ...rows]) => {
      const row = partners?.[0];
      if (row === undefined) throw new Error(`there is no partner ${partnerId}`);
      const rowsOf = new Map(reads.map((read, index) => [read, rows[index] ?? []]));
      const values = shared.map(({ name, value }, at) => [name, value(rows[reads.length + at] ?? [])] as const);
      const partner = new PartnerTransaction({ row, shared: new Map(values) });
      const { writes, result } = decideAll(partner, group, rowsOf);
      return { writes, result: { partner, outcomes: result } };
    });
    this.#cache.learn(partnerId, partner.after(this.#cache.values(partnerId)));
    return outcomes;
  }

  /**
   * Decides on expected values and proves them in the transaction that writes: one round trip. It returns undefined if it wrote
   * nothing: because an expected value was missing or wrong, or because the decision was a refusal. Then the work is decided
   * again, under the lock.
   */
  async #runOptimistic(partnerId: string, group: readonly WaitingWork[]): Promise<Decided<unknown>[] | undefined> {
    const state = this.#cache.expected(partnerId);
    if (state === undefined) return undefined;
    const expected = group.flatMap(({ work }) => work.fact.expected ?? []);
    const shared = sharedOf(group);
    if (expected.length < group.length) return undefined;
    if (!shared.every(({ name }) => state.shared.has(name))) return undefined;
    const partner = new PartnerTransaction({
      row: state.row,
      shared: new Map(shared.map(({ name }) => [name, state.shared.get(name)])),
    });
    let decisions: Decision<unknown>[];
    try {
      decisions = group.map(({ work }, at) => work.decide(expected[at]?.value, partner));
    } catch {
      return undefined; // The decision under the lock refuses again.
    }
    const writes = [...new Set(decisions.flatMap((decision) => decision.writes)), ...partner.save()];
    if (writes.length === 0) return undefined;
    const guards = [
      partnerGuard(state),
      ...expected.flatMap((one) => one.guards),
      ...shared.map((one) => one.guard(state.shared.get(one.name))),
    ];
    const locks = [lockPartnerAtOnce(partnerId), ...new Set(expected.flatMap((one) => one.locks ?? []))];
    try {
      await this.#commits.commit({ locks, guards, writes }, this.#cache.isSteady(partnerId));
    } catch (error) {
      if (!((error as Error).cause instanceof NotBegunError)) this.#cache.noteMiss(partnerId);
      if (!isOptimismWrong((error as Error).cause ?? error)) throw error;
      return undefined;
    }
    this.#cache.noteHit(partnerId);
    this.#cache.learn(partnerId, partner.after(state.shared));
    return decisions.map(({ result }) => ({ result }));
  }

  /** A transaction that writes in one round trip. A false guard undoes the transaction, like any other statement that fails. */
  async writeAll(changes: readonly Statement[]): Promise<void> {
    await retrying(() => this.#runAtOnce(changes, this.connections.pool));
  }

  /** A short transaction: reads in one round trip, decides, writes and commits in another. It locks no partner. */
  async transaction<T>(reads: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<T>): Promise<T> {
    const decided = await retrying(() =>
      this.#inTransaction((connection, frame) => runTransaction(connection, frame, reads, decide)),
    );
    if ('refusal' in decided) throw decided.refusal;
    return decided.result;
  }

  /**
   * Work at one node of a cluster, which may be one that gateways do not write through. Undefined if the server does not belong
   * to a cluster in which every node accepts writes.
   */
  async atNode<T>(work: (node: ClusterNode) => Promise<T>): Promise<T | undefined> {
    if (!this.connections.isCluster()) return undefined;
    return this.#inTransaction(async (connection, frame) => {
      const { node, beginUnchecked } = frame;
      if (node === undefined) return undefined;
      return work({
        name: node,
        ask: async (query) => {
          await leaveTransactions(connection, frame);
          return (await runBatch(connection, [query]))[0] ?? [];
        },
        write: (statements) => runAtOnce(connection, frame, statements),
        writeUnchecked: (statements) => runAtOnce(connection, frame, statements, beginUnchecked),
      });
    });
  }

  /** Gateways write through this node: a write that began at `beganAt` was committed there. Closes unused connections to others. */
  keepTo(node: string, beganAt: number): void {
    this.#reads?.note(node, beganAt);
    this.connections.keepTo(node);
  }

  /** Work of a cold path, such as an operator's call, with TypeORM's repositories and query builder. */
  async manage<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    let runner: QueryRunner | undefined;
    let connection: PoolConnection | undefined;
    const reads = this.connections.isCluster() ? this.#reads : undefined;
    if (reads?.isOver) await reads.prove();
    try {
      runner = (await this.connections.source()).createQueryRunner();
      connection = (await runner.connect()) as PoolConnection;
      reads?.check((await this.connections.frame(connection)).node);
      return await work(runner.manager);
    } catch (error) {
      // The server may still run a statement that we gave up. So the connection is destroyed, and no other work gets it.
      if (!isUsable(error)) connection?.destroy();
      throw toRefusal(error);
    } finally {
      await runner?.release();
    }
  }

  /**
   * How busy the database is: the limit of connections, the number in use, the work that waits for a connection, and the work
   * that waits for its partner's turn.
   */
  get load(): { limit: number; inUse: number; waiting: number; partnersWaiting: number } {
    return {
      limit: this.poolSize,
      inUse: this.#inUse,
      waiting: this.#waiting + this.#commits.waiting,
      partnersWaiting: this.#partners.waiting,
    };
  }

  /** Which of its hosts is used. */
  get hosts(): DatabaseHosts {
    return this.connections.hosts;
  }

  close(): Promise<void> {
    return this.connections.close();
  }

  #inTransaction<T>(
    work: (connection: PoolConnection, frame: TransactionFrame) => Promise<T>,
    pool = this.connections.pool,
  ): Promise<T> {
    const { frame, takeForTransactions } = this.connections;
    return this.#withConnection(
      async (connection) => work(connection, await frame(connection)),
      () => this.#acquire(pool, takeForTransactions),
    );
  }

  /** In a cluster, reads only while the node has all commits (`ReadLease`). To prove this, a connection is needed too. */
  async #reading<T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> {
    const reads = this.connections.isCluster() ? this.#reads : undefined;
    if (reads === undefined) return this.#withConnection(work);
    if (reads.isOver) await reads.prove();
    return this.#withConnection(async (connection) => {
      reads.check((await this.connections.frame(connection)).node);
      return work(connection);
    });
  }

  async #withConnection<T>(
    work: (connection: PoolConnection) => Promise<T>,
    acquire = () => this.#acquire(),
  ): Promise<T> {
    let connection: PoolConnection | undefined;
    try {
      connection = await acquire();
      this.#inUse += 1;
      const result = await work(connection);
      connection.release();
      this.connections.hosts.noteServed();
      return result;
    } catch (error) {
      if (connection !== undefined) giveBack(connection, error);
      if (connection !== undefined && mayGoOn(error)) this.#endAtServer(connection).catch(() => {});
      this.#refusedWrite = writeObstacle(error) ?? this.#refusedWrite;
      throw toRefusal(error);
    } finally {
      if (connection !== undefined) this.#inUse -= 1;
    }
  }

  /**
   * Ends the statements that still run on a connection that was given up. Each of its statements has its limit, but a batch
   * goes on with the next one and keeps its locks. If this fails, the locks last until the batch ends. A proxy, or a change of
   * the host, may connect us to another server now. There, the same connection number belongs to another connection, so nothing
   * is killed.
   */
  async #endAtServer(spent: PoolConnection): Promise<void> {
    const there = await this.connections.frame(spent);
    const connection = await this.#acquire();
    const here = await this.connections.frame(connection);
    if (there.place !== here.place) return connection.release();
    connection.query({ sql: `KILL ${Number(spent.threadId)}`, timeout: killTimeoutMs }, (error) => {
      if (error) giveBack(connection, error);
      else connection.release();
    });
  }

  #runAtOnce(statements: readonly Statement[], pool: RenewedPool): Promise<void> {
    return this.#inTransaction((connection, frame) => runAtOnce(connection, frame, statements), pool);
  }

  /** Waits for a connection that has its settings: a query on one that never gets them would have no answer. */
  #acquire(pool = this.connections.pool, take = this.connections.take): Promise<PoolConnection> {
    return new Promise((resolve, reject) => {
      let late = false;
      this.#waiting += 1;
      const timer = setTimeout(() => {
        late = true;
        this.#waiting -= 1;
        reject(new UnavailableError({ cause: new NotBegunError('no database connection became free') }));
      }, acquireTimeoutMs);
      take(pool, (error, connection) => {
        clearTimeout(timer);
        if (!late) this.#waiting -= 1;
        if (late) connection?.release();
        else if (connection === undefined) reject(error);
        else resolve(connection);
      });
    });
  }
}

/** If the server undid the work because of a deadlock or a lock wait, tries it again. Other errors are thrown at once. */
async function retrying<T>(work: () => Promise<T>): Promise<T> {
  const end = performance.now() + retriedForMs;
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      const isLast = tries >= maxTries || performance.now() > end;
      if (isLast || !isRetryable((error as Error).cause ?? error)) throw error;
    }
  }
}

/** Decides piece by piece. Each piece sees the shared values as the pieces before it left them. */
function decideAll(
  partner: PartnerTransaction,
  group: readonly WaitingWork[],
  rowsOf: ReadonlyMap<Statement, SqlRow[]>,
): Decision<Decided<unknown>[]> {
  const writes: Statement[] = [];
  const outcomes = group.map(({ work }): Decided<unknown> => {
    const ownRows = work.fact.reads.map((read) => rowsOf.get(read) ?? []);
    try {
      const decision = partner.attempt(() => work.decide(work.fact.value(ownRows), partner));
      writes.push(...decision.writes);
      return { result: decision.result };
    } catch (refusal) {
      return { refusal };
    }
  });
  return { writes: joinLists([...writes, ...partner.save()]), result: outcomes };
}

/** The shared values of some work, each once. */
function sharedOf(group: readonly WaitingWork[]): Shared<unknown>[] {
  const byName = new Map(group.flatMap(({ work }) => work.fact.shared ?? []).map((shared) => [shared.name, shared]));
  return [...byName.values()];
}
