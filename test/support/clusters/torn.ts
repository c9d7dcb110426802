import assert from 'node:assert/strict';
import type { PoolConnection } from 'mysql2';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { connect, type DatabasePools } from '../../../src/gateway/store/data-source.ts';
import { Database, openDatabase } from '../../../src/gateway/store/database.ts';
import { CommitUnknownError } from '../../../src/gateway/store/errors.ts';
import { rowsFact } from '../../../src/gateway/store/facts.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { guard, type Statement, statement, toBigInt } from '../../../src/gateway/store/statement.ts';
import { runAtOnce } from '../../../src/gateway/store/transaction.ts';
import { Refusal } from '../../../src/kit/refusal.ts';
import { createPartner } from '../../../src/sandbox/provision.ts';
import { type Random, seededRandom } from '../../../src/simulator/random.ts';
import { ready } from '../eventually.ts';
import { execute } from '../servers.ts';

/** How many rows all transactions change, and how many partners there are: few, so that transactions meet. */
const counters = 6;
const partners = 3;
/** Each transaction inserts so many rows and changes a counter before each of them but the first. */
const parts = 4;

type Outcome = 'committed' | 'refused' | 'unknown';

/** One attempt to commit: a transaction that is tried again makes a new one. */
interface Attempt {
  readonly transaction: number;
  readonly counters: readonly number[];
}

/** The outcomes of some transactions, and the errors found in them. */
export interface Verdict {
  readonly counts: Readonly<Record<Outcome, number>>;
  readonly attempts: number;
  readonly wrong: readonly string[];
}

/** A database of a cluster, or of one server, with the rows that the transactions fight for. */
export class TornTransactions {
  readonly #attempts = new Map<number, Attempt>();
  readonly #outcomes = new Map<number, Outcome>();
  readonly #wrongReads: string[] = [];
  #lastTransaction = 0;
  #lastAttempt = 0;

  private constructor(
    private readonly random: Random,
    private readonly partnerIds: readonly string[],
  ) {}

  static async prepare(databaseUrl: string, seed: number): Promise<TornTransactions> {
    await migrate(databaseUrl);
    for (const sql of [
      'CREATE TABLE torn_counters (id INT NOT NULL PRIMARY KEY, n INT NOT NULL)',
      'CREATE TABLE torn_marks (attempt INT NOT NULL, part INT NOT NULL, PRIMARY KEY (attempt, part))',
    ]) {
      await execute(databaseUrl, sql);
    }
    const database = await openDatabase({ url: databaseUrl, environment: 'sandbox', poolSize: 2 });
    try {
      for (let id = 0; id < counters; id += 1)
        await database.write(statement('INSERT INTO torn_counters VALUES (?, 0)', id));
      const partnerIds: string[] = [];
      for (let index = 0; index < partners; index += 1) {
        partnerIds.push(await createPartner(database, { name: 'Torn', limits: {}, features: [] }));
      }
      // Several nodes can be the one that gateways write through, which no gateway would do.
      await execute(databaseUrl, 'ALTER TABLE writer DROP PRIMARY KEY, ADD PRIMARY KEY (id, node)');
      return new TornTransactions(seededRandom(seed), partnerIds);
    } finally {
      await database.close();
    }
  }

  /** Runs one transaction of a random kind on a writer. Never rejects. */
  async run(writer: Writer): Promise<void> {
    this.#lastTransaction += 1;
    const transaction = this.#lastTransaction;
    const kind = this.random.whole(0, 2);
    const chosen = Array.from({ length: parts - 1 }, () => this.random.whole(0, counters - 1));
    const partnerId = this.partnerIds[this.random.whole(0, partners - 1)] ?? '';
    const write = () => this.#writes(transaction, chosen);
    const work = () => {
      if (kind === 0) return writer.lockedAndRead(chosen, write);
      if (kind === 1) return writer.atOnce(chosen, write());
      return writer.inPartner(partnerId, write);
    };
    if (kind !== 1) {
      const state = await writer.readingState();
      if (state !== undefined && state !== 'autocommit 1, in a transaction 0') this.#wrongReads.push(state);
    }
    this.#outcomes.set(transaction, 'unknown');
    this.#outcomes.set(transaction, await work().then(() => 'committed' as const, outcomeOf));
  }

  #writes(transaction: number, chosen: readonly number[]): Statement[] {
    this.#lastAttempt += 1;
    const attempt = this.#lastAttempt;
    this.#attempts.set(attempt, { transaction, counters: chosen });
    const mark = (part: number) => statement('INSERT INTO torn_marks (attempt, part) VALUES (?, ?)', attempt, part);
    return [
      mark(0),
      ...chosen.flatMap((id, index) => [
        statement('UPDATE torn_counters SET n = n + 1 WHERE id = ?', id),
        mark(index + 1),
      ]),
    ];
  }

  /** Runs so many, some at once. `choose` says through which writer a worker runs its next one. */
  async runMany(count: number, atOnce: number, choose: (worker: number) => Writer): Promise<void> {
    const work = async (worker: number) => {
      while (this.#lastTransaction < count) await this.run(choose(worker));
    };
    await Promise.all(Array.from({ length: atOnce }, (_, worker) => work(worker)));
  }

  /** Compares what is stored on a server with what the writers were answered. A node may be taking part again only now. */
  check(databaseUrl: string): Promise<Verdict> {
    return ready(() => this.#check(databaseUrl), 60_000);
  }

  async #check(databaseUrl: string): Promise<Verdict> {
    const connection = await createConnection(databaseUrl);
    try {
      // The server first applies the transactions that other nodes committed before this one. One server knows no such
      // setting.
      for (const setting of ['wsrep_sync_wait = 15', "group_replication_consistency = 'BEFORE'"]) {
        await connection.query(`SET SESSION ${setting}`).catch(() => undefined);
      }
      const [marks] = await connection.query<RowDataPacket[]>(
        'SELECT attempt, COUNT(*) AS parts FROM torn_marks GROUP BY attempt',
      );
      const [totals] = await connection.query<RowDataPacket[]>('SELECT id, n FROM torn_counters');
      return this.#judge(
        new Map(marks.map((row) => [Number(row.attempt), Number(row.parts)])),
        new Map(totals.map(({ id, n }) => [Number(id), Number(toBigInt(n))])),
      );
    } finally {
      await connection.end();
    }
  }

  #judge(marks: ReadonlyMap<number, number>, totals: ReadonlyMap<number, number>): Verdict {
    const wrong = this.#wrongReads.map((state) => `a read was made with ${state}`);
    const whole = new Map<number, number>();
    const expected = new Map<number, number>();
    for (const [attempt, { transaction, counters: chosen }] of this.#attempts) {
      const found = marks.get(attempt) ?? 0;
      if (found === 0) continue;
      if (found !== parts) {
        wrong.push(
          `transaction ${transaction} (${this.#outcomes.get(transaction)}) is torn: ${found} of ${parts} rows`,
        );
      }
      whole.set(transaction, (whole.get(transaction) ?? 0) + 1);
      for (const id of chosen) expected.set(id, (expected.get(id) ?? 0) + 1);
    }
    const counts = { committed: 0, refused: 0, unknown: 0 };
    for (const [transaction, outcome] of this.#outcomes) {
      counts[outcome] += 1;
      const times = whole.get(transaction) ?? 0;
      if (outcome === 'committed' && times === 0) wrong.push(`transaction ${transaction} was acknowledged and is lost`);
      if (outcome === 'refused' && times > 0) wrong.push(`transaction ${transaction} was refused and is there`);
      if (times > 1) wrong.push(`transaction ${transaction} (${outcome}) is there ${times} times`);
    }
    for (const [id, total] of totals) {
      const sum = expected.get(id) ?? 0;
      if (sum !== total) wrong.push(`counter ${id} is ${total}, and ${sum} were counted`);
    }
    return { counts, attempts: this.#attempts.size, wrong };
  }
}

function outcomeOf(error: unknown): Outcome {
  const cause = error instanceof Refusal ? error.cause : error;
  if (cause instanceof CommitUnknownError) return 'unknown';
  return 'refused';
}
/** A process that writes: our own database code over its own connections. */
export class Writer {
  private constructor(
    private readonly database: Database,
    private readonly connections: DatabasePools,
  ) {}

  static async open(databaseUrl: string): Promise<Writer> {
    const [connections, own] = await Promise.all([
      connect({ url: databaseUrl, poolSize: 8 }),
      connect({ url: databaseUrl, poolSize: 8 }),
    ]);
    const database = new Database(connections, 'sandbox', 8);
    await database.atNode(({ name, writeUnchecked }) =>
      writeUnchecked([statement('INSERT IGNORE INTO writer (id, node, fence, since) VALUES (1, ?, 0, NOW(3))', name)]),
    );
    return new Writer(database, own);
  }

  async close(): Promise<void> {
    await Promise.all([this.database.close(), this.connections.close()]);
  }

  /** The state of a connection that reads, which transactions used before: undefined if the server ended the read. */
  async readingState(): Promise<string | undefined> {
    const inside = '/*M!100000 , @@in_transaction AS is_inside */';
    const state = statement(`SELECT @@autocommit AS autocommit ${inside}`);
    const [row] = await this.database.read(state).catch(() => []);
    return row && `autocommit ${Number(row.autocommit)}, in a transaction ${Number(row.is_inside ?? 0)}`;
  }

  /** Two round trips: it locks rows and reads them, then writes. */
  async lockedAndRead(chosen: readonly number[], write: () => readonly Statement[]): Promise<void> {
    await this.database.transaction([lockCounters(chosen)], ([rows]) => {
      assert.ok(rows !== undefined && rows.length > 0, 'the rows are there');
      return { writes: write(), result: undefined };
    });
  }

  /** One round trip, with locks and guards, as of the orders of a known partner. */
  async atOnce(chosen: readonly number[], writes: readonly Statement[]): Promise<void> {
    const connection = await new Promise<PoolConnection>((resolve, reject) => {
      this.connections.pool.getConnection((error, taken) => (taken === undefined ? reject(error) : resolve(taken)));
    });
    const guards = guard([statement('(SELECT SUM(n) FROM torn_counters) >= 0')]);
    try {
      await runAtOnce(connection, await this.connections.frame(connection), [lockCounters(chosen), guards, ...writes]);
      connection.release();
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  /** As partners' requests do: on expected values if they are known, otherwise under the lock of the partner's row. */
  async inPartner(partnerId: string, write: () => readonly Statement[]): Promise<void> {
    await this.database.inPartnerTransaction(partnerId, {
      touches: [],
      fact: { ...rowsFact(), expected: { value: [], guards: [] } },
      decide: (_, partner) => {
        partner.takeVersions(1);
        return { writes: write(), result: undefined };
      },
    });
  }
}

function lockCounters(chosen: readonly number[]): Statement {
  return statement('SELECT id, n FROM torn_counters WHERE id IN (?) FOR UPDATE', [...new Set(chosen)]);
}

/** Ends statements and connections of the writers on one server, at random, until it is stopped. */
export async function killAtRandom(databaseUrl: string, seed: number, stopped: AbortSignal): Promise<void> {
  const random = seededRandom(seed, 'kills');
  const name = new URL(databaseUrl).pathname.slice(1);
  const connection = await createConnection(databaseUrl);
  try {
    while (!stopped.aborted) {
      const [rows] = await connection.query<RowDataPacket[]>('SHOW PROCESSLIST');
      const own = connection.threadId;
      const victims = rows.filter(({ Id, db }) => db === name && Id !== own);
      const victim = victims[random.whole(0, victims.length - 1)];
      const how = random.next() < 0.8 ? 'KILL QUERY' : 'KILL';
      // It may be gone.
      if (victim !== undefined) await connection.query(`${how} ${Number(victim.Id)}`).catch(() => undefined);
    }
  } finally {
    await connection.end();
  }
}
