import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { EntitySchemaColumnOptions, EntitySchemaOptions } from 'typeorm';
import { tables } from '../../../src/gateway/app/base.ts';
import { type Database, openDatabase } from '../../../src/gateway/store/database.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';

describe('the tables that the code describes', () => {
  let test: TestDatabase;
  let database: Database;
  before(async () => {
    test = await createTestDatabase();
    await migrate(test.url);
    database = await openDatabase({ url: test.url, environment: 'sandbox', poolSize: 2, tables });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  /** A column as both sides name it. */
  interface Column {
    readonly type: string;
    readonly length: number | null;
    readonly precision: number | null;
    readonly isNullable: boolean;
  }

  function described({ type, length, precision, nullable }: EntitySchemaColumnOptions): Column {
    return {
      type: String(type),
      length: length === undefined ? null : Number(length),
      precision: precision ?? null,
      isNullable: nullable === true,
    };
  }

  async function columnsOf(table: string): Promise<Map<string, Column>> {
    const rows = await database.read(
      statement(
        `SELECT column_name AS name, data_type AS type, character_maximum_length AS length, datetime_precision AS prec,
          is_nullable AS nullable FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?`,
        table,
      ),
    );
    const lengths = ['varchar', 'varbinary', 'binary'];
    return new Map(
      rows.map(({ name, type, length, prec, nullable }) => [
        String(name),
        {
          type: String(type),
          length: lengths.includes(String(type)) ? Number(length) : null,
          precision: String(type) === 'datetime' ? Number(prec) : null,
          isNullable: nullable === 'YES',
        },
      ]),
    );
  }

  /** Every index of a table but its primary key, and the primary key, as lists of columns. */
  async function indexesOf(table: string): Promise<Record<string, string>> {
    const rows = await database.read(
      statement(
        `SELECT index_name AS name, MIN(non_unique) AS many,
          GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ' ') AS columns
          FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? GROUP BY index_name`,
        table,
      ),
    );
    return Object.fromEntries(
      rows.map(({ name, many, columns }) => [name, `${Number(many) === 0 ? 'unique ' : ''}${columns}`]),
    );
  }

  function describedIndexes(options: EntitySchemaOptions<object>): Record<string, string> {
    const columns = options.columns as Record<string, EntitySchemaColumnOptions>;
    const names = (fields: readonly string[]) => fields.map((field) => columns[field]?.name).join(' ');
    const indexes = (options.indices ?? []).map(({ name, columns: fields, unique }) => [
      name,
      `${unique === true ? 'unique ' : ''}${names(fields as string[])}`,
    ]);
    const key = Object.keys(columns).filter((field) => columns[field]?.primary === true);
    return Object.fromEntries([...indexes, ['PRIMARY', `unique ${names(key)}`]]);
  }

  for (const table of tables) {
    const name = String(table.tableName);
    it(`are what the migrations make: ${name}`, async () => {
      const stored = await columnsOf(name);
      assert.ok(stored.size > 0, 'there is such a table');
      const wanted = Object.values(table.columns as Record<string, EntitySchemaColumnOptions>);
      assert.deepEqual(
        Object.fromEntries(wanted.map((column) => [column.name, described(column)]).sort()),
        Object.fromEntries([...stored].sort()),
      );
      const indexes = Object.entries(await indexesOf(name)).map(([index, columns]) =>
        index === 'PRIMARY' ? [index, sortedKey(columns)] : [index, columns],
      );
      const mine = describedIndexes(table);
      assert.deepEqual({ ...mine, PRIMARY: sortedKey(mine.PRIMARY ?? '') }, Object.fromEntries(indexes));
    });
  }

  it('leave no table of the database out', async () => {
    const rows = await database.read(
      statement('SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()'),
    );
    // `migrations` is TypeORM's; no row ever enters the others.
    const others = ['migrations', 'guards', 'writer_guards'];
    const missing = rows.map(({ name }) => String(name)).filter((name) => !others.includes(name));
    assert.deepEqual(missing.filter((name) => !tables.some(({ tableName }) => tableName === name)).sort(), []);
  });

  it('are read and written by TypeORM with the same values as by our statements', async () => {
    await database.manage(async (manager) => {
      for (const table of tables) await manager.getRepository(String(table.name)).find({ take: 1 });
    });
  });
});

/** The columns of a primary key; a schema does not keep their order. */
function sortedKey(columns: string): string {
  return columns.replace('unique ', '').split(' ').sort().join(' ');
}
