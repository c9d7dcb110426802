import type { PoolConnection } from 'mysql2';
import { runAtOnce } from '../../src/db/batch.ts';
import { type Connections, connect } from '../../src/db/data-source.ts';
import type { Frame } from '../../src/db/frame.ts';
import { migrate } from '../../src/db/migrate.ts';
import { guard, type Statement, statement } from '../../src/db/statement.ts';
import { createTestDatabase, execute } from '../support/servers.ts';
import { median } from './support/load.ts';
import { type Row, ratioRow } from './support/report.ts';

/** How many connections commit at once, each for rows of its own. */
const atOnce = 4;
/** How many of one kind follow each other: what comes after COMMIT takes the time of the next one. */
const inTurn = 20;

/**
 * What it costs on a cluster that a transaction cannot tear and is refused at another node: transactions like those of an
 * order, with what keeps them whole against the same without, in turns on each connection.
 */
export async function frameRow(name: string, serverUrl: string, rounds: number, durationMs: number): Promise<Row> {
  const { url, drop } = await createTestDatabase(serverUrl);
  await migrate(url);
  await execute(url, 'CREATE TABLE bench_counters (id INT NOT NULL PRIMARY KEY, n INT NOT NULL)');
  await execute(
    url,
    'CREATE TABLE bench_rows (own INT NOT NULL, id BIGINT NOT NULL, filler VARCHAR(800) NOT NULL, PRIMARY KEY (own, id))',
  );
  const connections = await connect({ url, poolSize: atOnce });
  const taken = await Promise.all(Array.from({ length: atOnce }, () => take(connections)));
  const figures: [number[], number[]] = [[], []];
  try {
    const [{ node, beginUnchecked }] = taken.map(({ frame }) => frame) as [Frame];
    if (node !== undefined) await execute(url, `UPDATE writer SET node = '${node}' WHERE id = 1`);
    const unsafe: Pick<Frame, 'begin' | 'commit' | 'restore'> = {
      begin: node === undefined ? beginUnchecked : [statement('START TRANSACTION')],
      commit: node === undefined ? (taken[0]?.frame.commit ?? []) : [statement('COMMIT')],
      restore: [],
    };
    for (const own of taken.keys()) await execute(url, `INSERT INTO bench_counters VALUES (${own}, 0)`);
    for (let round = -1; round < rounds; round += 1) {
      const times: [number[], number[]] = [[], []];
      const end = performance.now() + durationMs;
      await Promise.all(
        taken.map(async ({ connection, frame }, own) => {
          for (let turn = 0; performance.now() < end; turn += 1) {
            const side = turn % 2 === 0 ? 0 : 1;
            const from = performance.now();
            for (let count = 0; count < inTurn; count += 1) {
              await runAtOnce(connection, side === 0 ? frame : { ...frame, ...unsafe }, likeAnOrder(own));
            }
            times[side].push((performance.now() - from) / inTurn);
          }
        }),
      );
      if (round >= 0) for (const side of [0, 1] as const) figures[side].push(1_000 / median(times[side]));
    }
  } finally {
    for (const { connection } of taken) connection.release();
    await connections.close();
    await drop();
  }
  return ratioRow(`${name}: transactions that cannot tear, against plain ones`, ...figures, '≥ 0.97×');
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

async function take(connections: Connections): Promise<{ connection: PoolConnection; frame: Frame }> {
  const connection = await new Promise<PoolConnection>((resolve, reject) => {
    connections.take(connections.pool, (error, one) => (one === undefined ? reject(error) : resolve(one)));
  });
  return { connection, frame: await connections.frame(connection) };
}
