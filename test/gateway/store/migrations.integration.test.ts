import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import type { MigrationInterface } from 'typeorm';
import { migrations } from '../../../migrations/index.ts';
import { startApp } from '../../../src/gateway/app/app.ts';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { openDatabase } from '../../../src/gateway/store/database.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statementTimeoutMs } from '../../../src/gateway/store/transaction.ts';
import { extractRelease, lastRelease, whyNotHere } from '../../../src/tools/release.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';
import { shownTables } from '../../support/shown-tables.ts';

/** The parts of a schema that a version's statements need: its columns, and the unique keys. */
interface Schema {
  readonly columns: ReadonlyMap<
    string,
    { readonly type: string; readonly nullable: string; readonly fallback: unknown }
  >;
  readonly unique: ReadonlySet<string>;
}

/** A migration's place in the order, which its class and its file have in their names. */
const timestampOf = (name: string) => /\d{13}/.exec(name)?.[0] ?? name;

describe('migrations', () => {
  let database: TestDatabase;
  /** The migrations of the last release; all there are where the history does not reach back to it. */
  let released: ReadonlySet<string>;
  before(async () => {
    database = await createTestDatabase();
    released = new Set(await releasedMigrations());
  });
  after(() => database.drop());

  async function releasedMigrations(): Promise<string[]> {
    const release = lastRelease('.');
    if ((await whyNotHere('.', release)) !== undefined) return migrations.map(({ name }) => timestampOf(name));
    const folder = temporaryFolder();
    try {
      await extractRelease('.', release, folder, ['migrations']);
      return readdirSync(join(folder, 'migrations')).map(timestampOf);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  async function query(sql: string): Promise<Record<string, unknown>[]> {
    const connection = await createConnection(database.url);
    try {
      const [rows] = await connection.query(sql);
      return rows as Record<string, unknown>[];
    } finally {
      await connection.end();
    }
  }

  async function readSchema(): Promise<Schema> {
    const columns = await query(
      `SELECT TABLE_NAME AS t, COLUMN_NAME AS c, COLUMN_TYPE AS type, IS_NULLABLE AS nullable, COLUMN_DEFAULT AS fallback
        FROM information_schema.columns WHERE TABLE_SCHEMA = DATABASE()`,
    );
    const keys = await query(
      `SELECT TABLE_NAME AS t, INDEX_NAME AS i, GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX) AS cs
        FROM information_schema.statistics WHERE TABLE_SCHEMA = DATABASE() AND NON_UNIQUE = 0 GROUP BY 1, 2`,
    );
    return {
      columns: new Map(
        columns.map(({ t, c, type, nullable, fallback }) => [
          `${t}.${c}`,
          { type: String(type), nullable: String(nullable), fallback },
        ]),
      ),
      unique: new Set(keys.map(({ t, cs }) => `${t}(${cs})`)),
    };
  }

  /** The columns that a newer schema has and an older one has not, those of new tables too. */
  function added(older: Schema, newer: Schema): string[] {
    return [...newer.columns.keys()].filter((name) => !older.columns.has(name));
  }

  /** Returns the parts of a newer schema that the statements of an older version cannot work with. */
  function obstacles(older: Schema, newer: Schema): string[] {
    const tables = new Set([...older.columns.keys()].map((name) => name.split('.')[0]));
    const found: string[] = [];
    for (const [name, column] of older.columns) {
      const now = newer.columns.get(name);
      if (now === undefined) found.push(`${name} is gone`);
      else if (now.type !== column.type || now.nullable !== column.nullable || now.fallback !== column.fallback)
        found.push(`${name} has changed`);
    }
    for (const [name, { nullable, fallback }] of newer.columns) {
      const isNew = !older.columns.has(name) && tables.has(name.split('.')[0] ?? '');
      if (isNew && nullable === 'NO' && fallback === null)
        found.push(`${name} must be given, and older versions do not`);
    }
    for (const key of newer.unique) {
      if (!older.unique.has(key) && tables.has(key.split('(')[0] ?? '')) found.push(`${key} must be unique now`);
    }
    return found;
  }

  it('only add: what an older version says to the database works on the newer tables, unless one is marked', async () => {
    const schemas: Schema[] = [];
    for (const [index] of migrations.entries()) {
      await migrate(database.url, migrations.slice(0, index + 1));
      schemas.push(await readSchema());
    }
    const wrong = migrations.slice(1).flatMap((Migration, index) => {
      const { contracts } = new Migration() as MigrationInterface & { contracts?: string };
      const [older, newer] = [schemas[index], schemas[index + 1]];
      assert.ok(older !== undefined && newer !== undefined, Migration.name);
      return contracts === undefined ? obstacles(older, newer).map((what) => `${Migration.name}: ${what}`) : [];
    });
    assert.deepEqual(wrong, []);
    const silent = migrations.slice(1).flatMap((Migration, index) => {
      const [older, newer] = [schemas[index], schemas[index + 1]];
      assert.ok(older !== undefined && newer !== undefined, Migration.name);
      const { olderVersions } = new Migration() as MigrationInterface & { olderVersions?: string };
      return released.has(timestampOf(Migration.name)) || olderVersions !== undefined ? [] : added(older, newer);
    });
    assert.deepEqual(
      silent,
      [],
      'a migration says in `olderVersions` what follows when an older version writes none of this',
    );
  });

  it('the rule itself sees what takes away', async () => {
    const before = await readSchema();
    await query(
      'ALTER TABLE partners ADD COLUMN wanted INT NOT NULL, DROP COLUMN name, ADD UNIQUE KEY one (created_at)',
    );
    await query('ALTER TABLE orders MODIFY COLUMN symbol VARCHAR(19) NOT NULL');
    assert.deepEqual(added(before, await readSchema()), ['partners.wanted']);
    assert.deepEqual(obstacles(before, await readSchema()).sort(), [
      'orders.symbol has changed',
      'partners(created_at) must be unique now',
      'partners.name is gone',
      'partners.wanted must be given, and older versions do not',
    ]);
  });

  it('run once when several processes start them at the same time, and again do nothing', async () => {
    const fresh = await createTestDatabase();
    try {
      await Promise.all([migrate(fresh.url), migrate(fresh.url), migrate(fresh.url)]);
      await migrate(fresh.url);
      const connection = await createConnection(fresh.url);
      const [rows] = await connection.query('SELECT name FROM migrations ORDER BY id');
      await connection.end();
      assert.deepEqual(
        (rows as { name: string }[]).map(({ name }) => name),
        migrations.map(({ name }) => name),
      );
    } finally {
      await fresh.drop();
    }
  });

  it('are taken up again after a run that was killed before it noted them, and leave the same tables', async () => {
    const fresh = await createTestDatabase();
    const connection = await createConnection(fresh.url);
    try {
      await migrate(fresh.url);
      const tables = () => shownTables(fresh.url);
      const before = await tables();
      for (const { name } of migrations) {
        await connection.query('DELETE FROM migrations WHERE name = ?', [name]);
        await migrate(fresh.url);
      }
      assert.deepEqual(await tables(), before);
      await connection.query('DELETE FROM migrations');
      const lines: string[] = [];
      await migrate(fresh.url, undefined, (line) => lines.push(line));
      assert.deepEqual(await tables(), before);
      assert.ok(
        lines.some((line) => line.includes('orders_symbol_state')),
        'it says what was there',
      );
    } finally {
      await connection.end();
      await fresh.drop();
    }
  });

  it('wait for another process that migrates, for longer than another statement may take', async () => {
    const fresh = await createTestDatabase();
    const other = await createConnection(fresh.url);
    try {
      const digest = createHash('sha256').update(new URL(fresh.url).pathname.slice(1)).digest('hex').slice(0, 32);
      await other.query('SELECT GET_LOCK(?, 0)', [`marina-migrate-${digest}`]);
      const beganAt = performance.now();
      const migrating = migrate(fresh.url);
      await Promise.race([migrating, delay(statementTimeoutMs + 500)]);
      assert.ok(performance.now() - beganAt > statementTimeoutMs, 'it did not wait for the other process');
      await other.query('DO RELEASE_ALL_LOCKS()');
      await migrating;
    } finally {
      await other.end();
      await fresh.drop();
    }
  });

  it('a gateway does not start on a server that enforces no checks, because nothing would prove what it expects', async () => {
    const unchecked = await createTestDatabase();
    try {
      await migrate(unchecked.url);
      const connection = await createConnection(unchecked.url);
      await connection.query('ALTER TABLE guards DROP CONSTRAINT marina_guard');
      await assert.rejects(openDatabase({ url: unchecked.url, environment: 'sandbox' }), /does not enforce CHECK/);
      const [rows] = await connection.query('SELECT * FROM guards');
      await connection.end();
      assert.deepEqual(rows, []);
    } finally {
      await unchecked.drop();
    }
  });

  it('a gateway does not start on tables that are older than it, and names what they lack', async () => {
    const old = await createTestDatabase();
    try {
      await migrate(old.url, migrations.slice(0, -1));
      const config = readConfig({
        MARINA_DATABASE_URL: old.url,
        MARINA_NATS_URL: 'nats://127.0.0.1:1',
        MARINA_BROKER_ADDRESS: '127.0.0.1:1',
        MARINA_SECRET_KEY: '42'.repeat(32),
        MARINA_LOG_LEVEL: 'silent',
      });
      await assert.rejects(startApp(config), new RegExp(`lacks ${migrations.at(-1)?.name}: migrate it first`));
    } finally {
      await old.drop();
    }
  });
});
