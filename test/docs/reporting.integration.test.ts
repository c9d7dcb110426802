import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { openDatabase } from '../../src/gateway/store/database.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { createDatabases, type Databases, grantRights } from '../../src/sandbox/databases.ts';
import { createPartner } from '../../src/sandbox/provision.ts';
import { temporaryFolder } from '../support/folders.ts';
import { creditWallet } from '../support/ledger.ts';
import { type RestartableServer, startTestMariaDb } from '../support/servers.ts';

const reportingFile = new URL('../../docs/deploy/reporting.sql', import.meta.url);
const password = 'reporting-password-0123456789';
const views = ['allocations', 'orders', 'partners', 'wallet_transfers', 'wallets', 'withdrawals'];
/** The table or the database is not the account's to use. */
const denied = [1044, 1142, 1143, 1370];

describe("the account for reports, by the deployment's file", () => {
  let server: RestartableServer;
  let databases: Databases;
  let connection: Connection;
  let root: Connection;
  before(async () => {
    server = await startTestMariaDb();
    databases = await createDatabases(server.url, temporaryFolder());
    await migrate(databases.ownerUrl);
    await databases.grant();
    root = await createConnection(server.url);
    await root.query(`CREATE USER 'reporting'@'127.0.0.1' IDENTIFIED BY '${password}'`);
    const url = new URL(server.url);
    url.pathname = '/marina';
    // Twice, as after an upgrade.
    for (let times = 0; times < 2; times += 1) await grantRights(url.href, 'reporting', '127.0.0.1', reportingFile);
    Object.assign(url, { username: 'reporting', password, pathname: '/marina_reports' });
    connection = await createConnection(url.href);
    const database = await openDatabase({ url: databases.gatewayUrl, environment: 'sandbox', poolSize: 2 });
    const partnerId = await createPartner(database, { name: 'Lagoon Invest' });
    await creditWallet(database, { partnerId, amountKobo: 100n, bankReference: 'payment 1' });
    await database.close();
  });
  after(async () => {
    await connection?.end();
    await root?.end();
    await server.stop();
  });

  it('reads each view', async () => {
    for (const view of views) await connection.query(`SELECT * FROM ${view}`);
    const [rows] = await connection.query<RowDataPacket[]>(
      'SELECT p.name, t.type, t.amount_kobo, w.available_kobo FROM partners p JOIN wallet_transfers t ON t.partner_id = p.id JOIN wallets w ON w.partner_id = p.id',
    );
    assert.deepEqual(rows, [{ name: 'Lagoon Invest', type: 'credit', amount_kobo: 100, available_kobo: 100 }]);
    const [found] = await connection.query<RowDataPacket[]>('SHOW TABLES');
    assert.deepEqual(found.flatMap((row) => Object.values(row)).sort(), views);
  });

  it('reads no table, and no view shows a secret, a hash, a seal or a text that a partner or its customer chose', async () => {
    const [tables] = await root.query<RowDataPacket[]>('SHOW TABLES FROM marina');
    const names = tables.flatMap((row) => Object.values(row).map(String));
    assert.ok(names.includes('orders') && names.includes('api_keys') && names.length > 30);
    for (const name of names) {
      const error = await connection.query(`SELECT * FROM marina.${name} LIMIT 1`).catch((thrown) => thrown);
      assert.ok(denied.includes(error.errno), `${name}: ${error.message ?? 'it can be read'}`);
    }
    const [columns] = await root.query<RowDataPacket[]>(
      `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'marina_reports'`,
    );
    const shown = new Set(columns.map(({ name }) => String(name)));
    for (const name of shown) {
      assert.doesNotMatch(
        name,
        /hash|seal|digest|secret|mac$|key|trace|request|client_reference|bank_reference|reason$(?<!reject_reason)/,
      );
    }
  });

  it('changes nothing, also not through a view', async () => {
    for (const sql of [
      'UPDATE orders SET symbol = 1',
      'DELETE FROM wallets',
      "INSERT INTO partners (id) VALUES ('x')",
      'DROP VIEW orders',
      'CREATE TABLE more (id INT)',
      'CREATE OR REPLACE VIEW orders AS SELECT 1',
    ]) {
      const error = await connection.query(sql).catch((thrown) => thrown);
      assert.ok(denied.includes(error.errno), `${sql}: ${error.message ?? 'it was done'}`);
    }
  });
});
