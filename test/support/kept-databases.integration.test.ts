import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { keptDatabase } from './kept-databases.ts';
import { execute, type TestDatabase, testServers } from './servers.ts';

/** The rows of a table, read by the administrator. */
async function rowsOf(database: TestDatabase, table: string): Promise<unknown[]> {
  const connection = await createConnection(database.url);
  try {
    return (await connection.query<RowDataPacket[]>(`SELECT * FROM ${table}`))[0];
  } finally {
    await connection.end();
  }
}

const nodeOf = (row: unknown) => (row as { node: string }).node;
const idOf = (row: unknown) => (row as { id: number }).id;

/** Gives a database back after a change, and returns whether it is still there. */
async function isKeptAfter(change: (database: TestDatabase) => Promise<unknown>): Promise<boolean> {
  const database = await keptDatabase('gateway');
  await change(database);
  await database.drop();
  const { databaseUrl } = await testServers();
  return execute(databaseUrl, `USE ${database.name}`).then(
    () => true,
    () => false,
  );
}

describe('a database that tests use one after the other', () => {
  it('comes back with the rows of a new one, and counts anew', async () => {
    const added = "INSERT INTO write_checks (holder, filler, checked_at) VALUES ('a', '', NOW(3))";
    const changes = ["UPDATE writer SET node = 'other'", 'DELETE FROM migrations', added, added];
    const before = await keptDatabase('gateway');
    const rows = [await rowsOf(before, 'writer'), await rowsOf(before, 'migrations')];
    for (const change of changes) await execute(before.url, change);
    await before.drop();
    // Another process can have taken it meanwhile: then this is another one, of which the same holds.
    const after = await keptDatabase('gateway');
    try {
      assert.equal((await rowsOf(after, 'writer')).length, 1);
      assert.deepEqual((await rowsOf(after, 'writer')).map(nodeOf), rows[0]?.map(nodeOf));
      assert.equal((await rowsOf(after, 'migrations')).length, rows[1]?.length);
      await execute(after.url, added);
      assert.deepEqual((await rowsOf(after, 'write_checks')).map(idOf), [1]);
    } finally {
      await after.drop();
    }
  });

  it('does not come back if a test changed a table, a trigger or a right of its account', async () => {
    const changes: ((database: TestDatabase) => Promise<unknown>)[] = [
      ({ url }) => execute(url, 'CREATE TABLE further (id INT)'),
      ({ url }) => execute(url, 'DROP TABLE write_checks'),
      ({ url }) => execute(url, 'ALTER TABLE orders ADD further INT NULL'),
      ({ url }) => execute(url, 'CREATE TRIGGER further BEFORE DELETE ON orders FOR EACH ROW SET @a = 1'),
      ({ url, name }) => execute(url, `GRANT DELETE ON ${name}.orders TO '${name}'@'127.0.0.1'`),
    ];
    for (const change of changes) assert.equal(await isKeptAfter(change), false, String(change));
  });

  it('does not come back while somebody is connected to it', async () => {
    let close = async () => {};
    const isKept = await isKeptAfter(async ({ url }) => {
      const connection = await createConnection(url);
      close = () => connection.end();
    });
    await close();
    assert.equal(isKept, false);
  });
});
