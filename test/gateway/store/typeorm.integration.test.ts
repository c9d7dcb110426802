import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { tables } from '../../../src/gateway/app/base.ts';
import { partners } from '../../../src/gateway/edge/auth/store.ts';
import { type Database, openDatabase } from '../../../src/gateway/store/database.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { createTestDatabase, type RestartableServer, startTestMariaDb } from '../../support/servers.ts';

describe('TypeORM, which is loaded when it is first needed', () => {
  let server: RestartableServer;
  let database: Database;
  before(async () => {
    server = await startTestMariaDb();
    const { url } = await createTestDatabase(server.url);
    await migrate(url);
    database = await openDatabase({ url, environment: 'sandbox', poolSize: 2, tables });
  });
  after(async () => {
    await database.close();
    await server.stop();
  });

  it('works as soon as the database is back, if it was away then', async () => {
    const count = () => database.manage((manager) => manager.countBy(partners.name, {}));
    await server.kill();
    await assert.rejects(count(), { name: 'UnavailableError' });
    await server.restart();
    assert.equal((await database.read(statement('SELECT 1 AS one')))[0]?.one, 1);
    assert.equal(await count(), 0);
  });
});
