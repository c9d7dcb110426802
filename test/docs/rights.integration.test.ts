import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Connection, createConnection } from 'mysql2/promise';
import { openDatabase } from '../../src/gateway/store/database.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { createDatabases, type Databases, grantRights } from '../../src/sandbox/databases.ts';
import { createPartner } from '../../src/sandbox/provision.ts';
import { temporaryFolder } from '../support/folders.ts';
import { creditWallet } from '../support/ledger.ts';
import { type RestartableServer, startTestMariaDb } from '../support/servers.ts';

const denied = 1142;

/** That they are enough, every test of a gateway shows: `startGateway` gives its account these rights and no others. */
describe("the rights of the gateway's database account", () => {
  let server: RestartableServer;
  let databases: Databases;
  let connection: Connection;
  before(async () => {
    server = await startTestMariaDb();
    databases = await createDatabases(server.url, temporaryFolder());
    await migrate(databases.ownerUrl);
    await databases.grant();
    connection = await createConnection(databases.gatewayUrl);
  });
  after(async () => {
    await connection.end();
    await server.stop();
  });

  it('are enough to record a payment', async () => {
    const database = await openDatabase({ url: databases.gatewayUrl, environment: 'sandbox', poolSize: 2 });
    try {
      const partnerId = await createPartner(database, { name: 'Lagoon Invest' });
      await creditWallet(database, { partnerId, amountKobo: 100n, bankReference: 'payment 1' });
    } finally {
      await database.close();
    }
    const [rows] = await connection.query('SELECT type FROM wallet_transfers');
    assert.deepEqual(rows, [{ type: 'credit' }]);
  });

  for (const [table, column] of [
    ['wallet_transfers', 'amount_kobo'],
    ['order_steps', 'detail'],
    ['object_steps', 'detail'],
    ['audit_entries', 'detail'],
  ] as const) {
    it(`are not enough to change or remove anything in ${table}`, async () => {
      for (const sql of [
        `UPDATE ${table} SET ${column} = 1`,
        `DELETE FROM ${table}`,
        `TRUNCATE TABLE ${table}`,
        `DROP TABLE ${table}`,
        `ALTER TABLE ${table} DROP COLUMN ${column}`,
        `REPLACE INTO ${table} SELECT * FROM ${table}`,
      ]) {
        await assert.rejects(connection.query(sql), { errno: denied }, sql);
      }
      await connection.query(`SELECT COUNT(*) FROM ${table}`);
    });
  }

  for (const table of [
    ...['orders', 'allocations', 'applications', 'wallets', 'api_keys', 'partners', 'usage_days', 'environment'],
    ...['webhook_endpoints', 'key_uses', 'look_ups', 'positions', 'feed_purges', 'feed_skips', 'migrations'],
  ]) {
    it(`are not enough to remove anything from ${table}`, async () => {
      for (const sql of [`DELETE FROM ${table}`, `TRUNCATE TABLE ${table}`, `DROP TABLE ${table}`]) {
        await assert.rejects(connection.query(sql), { errno: denied }, sql);
      }
    });
  }

  it('takes back rights that were given before and are not needed', async () => {
    const root = await createConnection(server.url);
    try {
      await root.query("GRANT DELETE, ALTER ON marina.orders TO 'marina'@'127.0.0.1'");
      await root.query("GRANT UPDATE ON marina.wallet_transfers TO 'marina'@'127.0.0.1'");
      // A connection has the rights of the moment its statement runs.
      await connection.query('DELETE FROM orders');
      await databases.grant();
    } finally {
      await root.end();
    }
    for (const sql of ['DELETE FROM orders', 'ALTER TABLE orders DROP COLUMN symbol']) {
      await assert.rejects(connection.query(sql), { errno: denied }, sql);
    }
    await assert.rejects(connection.query('UPDATE wallet_transfers SET amount_kobo = 1'), { errno: denied });
    await connection.query("UPDATE orders SET symbol = 'NONE'");
  });

  it('takes back rights on the whole database too', async () => {
    const root = await createConnection(server.url);
    try {
      await root.query("GRANT ALL PRIVILEGES ON marina.* TO 'marina'@'127.0.0.1'");
      await databases.grant();
      // A connection that is open keeps such rights until it names its database again.
      await connection.query('USE marina');
      await assert.rejects(connection.query('DELETE FROM audit_entries'), { errno: denied });
      await connection.query('SELECT COUNT(*) FROM audit_entries');

      // Again, and for a name with an underscore.
      await root.query('CREATE DATABASE marina_restored');
      await root.query('CREATE TABLE marina_restored.orders (id INT)');
      await root.query("GRANT DELETE ON `marina\\_restored`.* TO 'marina'@'127.0.0.1'");
      const restored = new URL(server.url);
      restored.pathname = '/marina_restored';
      for (let times = 0; times < 2; times += 1) await grantRights(restored.href, 'marina', '127.0.0.1');
      const [rows] = await root.query("SHOW GRANTS FOR 'marina'@'127.0.0.1'");
      assert.doesNotMatch(JSON.stringify(rows), /DELETE ON `marina[^`]*`\.\*/);
    } finally {
      await root.end();
    }
  });
});
