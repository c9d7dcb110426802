import type { PoolConnection } from 'mysql2';
import { connect, type DatabasePools } from '../../src/gateway/store/data-source.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { guard, type Statement, statement } from '../../src/gateway/store/statement.ts';
import { leaveTransactions, runAtOnce, type TransactionFrame } from '../../src/gateway/store/transaction.ts';
import { createTestDatabase, execute } from '../support/servers.ts';
import type { Turns } from './run.ts';
import { median } from './support/load.ts';
import { type Row, ratioRow } from './support/report.ts';

/** How many connections commit at once, each for rows of its own. */
const atOnce = 4;
/** How many of one kind follow each other. */
const inTurn = 20;

/**
 * What it costs on a cluster that a transaction cannot tear and is refused at another node: transactions like those of an
 * order, with what keeps them whole against the same without, in turns on each connection.
 */
export async function frameRows(name: string, serverUrl: string, turns: Turns): Promise<Row[]> {
  const { url, drop } = await createTestDatabase(serverUrl);
  await migrate(url);
  await execute(url, 'CREATE TABLE bench_counters (id INT NOT NULL PRIMARY KEY, n INT NOT NULL)');
  await execute(
    url,
    'CREATE TABLE bench_rows (own INT NOT NULL, id BIGINT NOT NULL, filler VARCHAR(800) NOT NULL, PRIMARY KEY (own, id))',
  );
  for (let own = 0; own < atOnce; own += 1) await execute(url, `INSERT INTO bench_counters VALUES (${own}, 0)`);
  const connections = await connect({ url, poolSize: atOnce });
  const taken = await Promise.all(Array.from({ length: atOnce }, () => take(connections)));
  try {
    const node = taken[0]?.frame.node;
    if (node !== undefined) await execute(url, `UPDATE writer SET node = '${node}' WHERE id = 1`);
    const figures = await inTurns(taken, turns, [
      (frame) => frame,
      (frame) => ({ ...frame, begin: frame.begin.slice(0, 1) }),
      (frame) => (node === undefined ? { ...frame, begin: frame.beginUnchecked } : { ...frame, ...plain }),
    ]);
    const [whole, unchecked, without] = figures as [number[], number[], number[]];
    const rows = [ratioRow(`${name}: transactions with what a cluster needs, against plain ones`, whole, without)];
    if (node === undefined) return rows;
    return [...rows, ratioRow(`${name}: the part of it that keeps them from tearing`, unchecked, without, '≥ 0.97×')];
  } finally {
    for (const { connection } of taken) connection.release();
    await connections.close();
    await drop();
  }
}

const plain: Pick<TransactionFrame, 'enter' | 'leave' | 'begin' | 'commit'> = {
  enter: [],
  leave: [],
  begin: [statement('START TRANSACTION')],
  commit: [statement('COMMIT')],
};

/** Transactions a second with each frame, in each round. */
async function inTurns(
  taken: readonly Taken[],
  { rounds, durationMs }: Turns,
  kinds: readonly ((frame: TransactionFrame) => TransactionFrame)[],
): Promise<number[][]> {
  const figures: number[][] = kinds.map(() => []);
  for (let round = -1; round < rounds; round += 1) {
    const times: number[][] = kinds.map(() => []);
    const end = performance.now() + durationMs;
    await Promise.all(
      taken.map(async ({ connection, frame }, own) => {
        for (let turn = 0; performance.now() < end; turn += 1) {
          const kind = turn % kinds.length;
          const its = (kinds[kind] as (frame: TransactionFrame) => TransactionFrame)(frame);
          // As a connection is that has run such transactions before.
          await runAtOnce(connection, its, likeAnOrder(own));
          const from = performance.now();
          for (let count = 0; count < inTurn; count += 1) await runAtOnce(connection, its, likeAnOrder(own));
          times[kind]?.push((performance.now() - from) / inTurn);
          await leaveTransactions(connection, its);
        }
      }),
    );
    if (round >= 0) for (const [kind, own] of times.entries()) figures[kind]?.push(1_000 / median(own));
  }
  return figures;
}

let lastId = 0;

/** A lock, a guard, three rows and a counter. */
function likeAnOrder(own: number): Statement[] {
  const row = (length: number) => {
    lastId += 1;
    return statement('INSERT INTO bench_rows (own, id, filler) VALUES (?, ?, ?)', own, lastId, '-'.repeat(length));
  };
  return [
    statement('SELECT id FROM bench_counters WHERE id = ? FOR UPDATE NOWAIT', own),
    guard([statement('EXISTS (SELECT 1 FROM bench_counters WHERE id = ?)', own), statement('1 = 1')]),
    row(700),
    row(100),
    row(100),
    statement('UPDATE bench_counters SET n = n + 1 WHERE id = ?', own),
  ];
}

interface Taken {
  readonly connection: PoolConnection;
  readonly frame: TransactionFrame;
}

async function take(connections: DatabasePools): Promise<Taken> {
  const connection = await new Promise<PoolConnection>((resolve, reject) => {
    connections.take(connections.pool, (error, one) => (one === undefined ? reject(error) : resolve(one)));
  });
  return { connection, frame: await connections.frame(connection) };
}
