import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import type { MigrationInterface } from 'typeorm';
import { migrations as ownMigrations } from '../../migrations/index.ts';
import { type App, startApp } from '../../src/gateway/app/app.ts';
import { readConfig } from '../../src/gateway/app/config.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { createLogger } from '../../src/kit/log.ts';
import { extractRelease, lastRelease, whyNotHere } from '../../src/tools/release.ts';
import { dump, restore } from '../support/dump.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';
import { restCaller, startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import { runCommand } from '../support/secret-files.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers.ts';

const release = lastRelease('.');
const skip = (await whyNotHere('.', release)) ?? false;

/** The tables without which a partner cannot call. */
const copied = ['environment', 'partners', 'api_keys', 'accounts'];

describe(`a backup of release ${release.version}, restored by docs/operations/backup.md after the upgrade`, {
  skip,
}, () => {
  const folder = temporaryFolder();
  let gateway: TestGateway;
  let partner: TestPartner;
  let old: TestDatabase;
  let restored: TestDatabase;
  let app: App | undefined;
  /** Whether migrations came after the release. */
  let isBehind: boolean;
  before(async () => {
    gateway = await startGateway();
    partner = await gateway.newPartner();
    [old, restored] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    await extractRelease('.', release, join(folder, 'release'), ['migrations']);
    const file = pathToFileURL(join(folder, 'release/migrations/index.ts')).href;
    const { migrations } = (await import(file)) as { migrations: (new () => MigrationInterface)[] };
    await migrate(old.url, migrations);
    isBehind = migrations.length < ownMigrations.length;
    await copyInto(old.name);
  });
  after(async () => {
    await app?.stop();
    await gateway.stop();
    for (const database of [old, restored]) await database?.drop();
  });

  /** Copies the partner into the release's tables, with the columns that it knows. */
  async function copyInto(name: string): Promise<void> {
    const current = new URL(gateway.databaseUrl).pathname.slice(1);
    const connection = await createConnection(old.url);
    try {
      for (const table of copied) {
        const [columns] = await connection.query<RowDataPacket[]>(
          'SELECT column_name AS name FROM information_schema.columns WHERE table_schema = ? AND table_name = ?',
          [name, table],
        );
        const list = columns.map((column) => column.name).join(', ');
        await connection.query(`REPLACE INTO ${name}.${table} (${list}) SELECT ${list} FROM ${current}.${table}`);
      }
    } finally {
      await connection.end();
    }
  }

  async function onRestored(text: string): Promise<void> {
    const connection = await createConnection(restored.url);
    await connection.query(text).finally(() => connection.end());
  }

  const run = async (args: readonly string[], url: string) => {
    const command = runCommand(args, { ...gateway.variables, MARINA_DATABASE_URL: url });
    return { code: await command.ended, printed: command.printed() };
  };

  it('comes up with the page alone, and has the order that was placed since', async () => {
    const key = randomUUID();
    const terms = { side: 'buy', quantity: 100, type: 'limit', price_kobo: 1000, symbol: 'SIM-FILL' };
    const request = { key: partner.key, idempotencyKey: key, body: { account: partner.account, ...terms } };
    const placed = await gateway.rest('POST', '/v1/orders', request);
    assert.equal(placed.status, 201);
    await gateway.app.stop();
    const backup = join(folder, 'marina.sql');
    await dump(old.url, backup);
    await restore(backup, restored.url);
    if (isBehind) {
      const early = await run(['restored'], restored.url);
      assert.equal(early.code, 1, 'tables of the release');
      assert.match(early.printed, /migrate it first/);
    }

    const page = readFileSync('docs/operations/backup.md', 'utf8');
    const steps = ['gunzip < marina.sql.gz', 'src/main.js migrate', 'docs/deploy/rights.sql', 'src/main.js restored'];
    const places = steps.map((step) => page.indexOf(step, page.indexOf('## Restore')));
    assert.ok(!places.includes(-1), `the page has each of the steps: ${places}`);
    assert.deepEqual(
      places,
      [...places].sort((one, other) => one - other),
      'in this order',
    );

    assert.equal((await run(['migrate'], restored.url)).code, 0);
    const url = await restored.grantGateway();
    await onRestored(
      `INSERT INTO outbox (partner_id, version, id, type, body, occurred_at, publish_at)
        VALUES ('par_x', 1, 'msg_x', 'order.pending', '{}', NOW(3), NOW(3))`,
    );
    const unread = await run(['restored'], url);
    assert.equal(unread.code, 1, 'an event that only 0.2.0 can deliver');
    assert.match(unread.printed, /restore it with 0\.2\.0/);
    await onRestored('DELETE FROM outbox');
    const declared = await run(['restored'], url);
    assert.deepEqual(declared, { code: 0, printed: 'declared: no event version is used again\n' });
    const log = createLogger({ name: 'marina', level: 'silent' });
    app = await startApp(readConfig({ ...gateway.variables, MARINA_DATABASE_URL: url }), log);
    const call = restCaller(app);
    await eventually(async () => {
      const { status, body: order } = await call('GET', `/v1/orders/${placed.body.id}`, { key: partner.key });
      assert.deepEqual([status, order.state], [200, 'filled']);
    });
    const again = await call('POST', '/v1/orders', request);
    assert.deepEqual([again.status, again.body.id], [200, placed.body.id], 'the key leads to the order');
    const ready = await fetch(`http://127.0.0.1:${app.opsPort}/readyz`);
    assert.equal(ready.status, 200);
  });
});
