import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from 'mysql2/promise';
import type { QueryRunner } from 'typeorm';
import { migrations } from '../../../migrations/index.ts';
import { patient } from '../../support/patience.ts';
import { openScaleDatabase, type ScaleDatabase } from '../../support/scale/server.ts';

const orders = Number(process.env.ORDERS ?? 1_000_000);
/** The longest that a replica's statement may wait for a migration: below what a partner's request may take. */
const longestWaitMs = patient(1_000);
/** The server says that it cannot change the table that way. */
const unsupported = [1845, 1846];
const ways = ['ALGORITHM=INSTANT', 'ALGORITHM=INPLACE, LOCK=NONE'];

/** The changes that each migration makes to existing tables. A new table keeps nobody waiting. */
const changes = await Promise.all(
  migrations.map(async (Migration) => {
    const migration = new Migration();
    const statements: string[] = [];
    // Of TypeORM's runner migrations use nothing but `query`.
    await migration.up({ query: async (sql: string) => statements.push(sql) } as unknown as QueryRunner);
    const made = statements.flatMap((sql) => /^CREATE TABLE (?:IF NOT EXISTS )?(\w+)/.exec(sql)?.[1] ?? []);
    const isOfMade = (sql: string) =>
      made.some((table) => new RegExp(`^(CREATE TABLE|INSERT).*\\b${table}\\b`).test(sql));
    return { name: migration.name, statements: statements.filter((sql) => !isOfMade(sql)) };
  }),
);

describe(`with ${orders} orders, replicas read and write while a migration changes their tables`, () => {
  let database: ScaleDatabase;
  let others: Connection;

  before(async () => {
    database = await openScaleDatabase(orders, (line) => process.stderr.write(`  ${line}\n`));
    others = await database.connect();
  });
  after(async () => {
    await others?.end();
    await database?.close();
  });

  // The newest first, because an index of a newer one can be of an older one's column.
  for (const { name, statements } of changes.filter((each) => each.statements.length > 0).reverse()) {
    it(`${name} lets them go on`, async () => {
      for (const sql of [...statements].reverse()) await takeBack(database.connection, sql);
      const watch = watchTables(others, [...new Set(statements.map(tableOf))]);
      const done: string[] = [];
      for (const sql of statements) {
        const startedAt = performance.now();
        const how = await runOnline(database.connection, sql);
        done.push(`${tableOf(sql)} ${how} in ${(performance.now() - startedAt).toFixed(0)} ms`);
      }
      const waitedMs = await watch.stop();
      process.stderr.write(`  ${name}: ${done.join(', ')}; others waited ${waitedMs.toFixed(0)} ms at most\n`);
      assert.ok(waitedMs < longestWaitMs, `a statement of a replica waited ${waitedMs} ms`);
    });
  }
});

function tableOf(sql: string): string {
  const [, table] = /^(?:ALTER TABLE|UPDATE) (\w+)/.exec(sql.trim()) ?? [];
  if (table === undefined) throw new Error(`which table does it change? ${sql}`);
  return table;
}

/** Drops what an ALTER adds. */
async function takeBack(connection: Connection, sql: string): Promise<void> {
  const keys = [...sql.matchAll(/ADD KEY (\w+)/g)].map(([, key]) => `DROP KEY ${key}`);
  const columns = [...sql.matchAll(/ADD COLUMN (\w+)/g)].map(([, column]) => `DROP COLUMN ${column}`);
  if (keys.length + columns.length > 0) {
    await connection.query(`ALTER TABLE ${tableOf(sql)} ${[...keys, ...columns].join(', ')}`);
  }
}

/** Runs a migration's statement, and says how. An ALTER that would copy the table or keep writers out fails. */
async function runOnline(connection: Connection, sql: string): Promise<string> {
  if (!sql.startsWith('ALTER TABLE')) {
    await connection.query(sql);
    return 'changed rows';
  }
  // A statement that names its way is refused by the server if it cannot be done so.
  if (/LOCK ?= ?NONE/.test(sql)) {
    await connection.query(sql);
    return 'online';
  }
  for (const way of ways) {
    try {
      await connection.query(`${sql}, ${way}`);
      return way.includes('INSTANT') ? 'at once' : 'online';
    } catch (error) {
      if (!unsupported.includes((error as { errno?: number }).errno ?? 0)) throw error;
    }
  }
  throw new Error(`the server would copy the table or lock it: ${sql}`);
}

/** Reads and writes each table all the time, as replicas do, and tells the longest that this took. */
function watchTables(connection: Connection, tables: readonly string[]): { stop(): Promise<number> } {
  let isStopped = false;
  let longestMs = 0;
  const run = async () => {
    while (!isStopped) {
      for (const table of tables) {
        const startedAt = performance.now();
        await connection.query(`SELECT 1 FROM ${table} LIMIT 1`);
        // The row is there already: everything but the row itself is written.
        await connection.query(`INSERT IGNORE INTO ${table} SELECT * FROM ${table} LIMIT 1`);
        longestMs = Math.max(longestMs, performance.now() - startedAt);
      }
      await sleep(5);
    }
  };
  const running = run();
  return {
    async stop() {
      isStopped = true;
      await running;
      return longestMs;
    },
  };
}
