import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { statement } from '../../src/db/statement.ts';
import { createLogger } from '../../src/lib/log.ts';
import { WriteProbe } from '../../src/telemetry/write-probe.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers.ts';

describe('a gateway that may not check whether its database takes writes', () => {
  let test: TestDatabase;
  let database: Database;
  before(async () => {
    test = await createTestDatabase();
    await migrate(test.url);
    database = await openDatabase({ url: test.url, environment: 'sandbox', poolSize: 4 });
    // As where the rights of the new table were not granted.
    await database.write(statement('DROP TABLE write_checks'));
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  it('is in trouble when a write is refused, and not for ever', async () => {
    const probe = new WriteProbe(database, 'test', createLogger({ name: 'test', level: 'silent' }));
    const stopping = new AbortController();
    const running = probe.worker.run(stopping.signal);
    try {
      const full = database.write(statement("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'full'"));
      await assert.rejects(full);
      assert.equal(probe.trouble, 'disk-full');
      await eventually(() => assert.equal(probe.trouble, undefined, 'it stays in trouble'), 20_000);
    } finally {
      stopping.abort();
      await running;
    }
  });
});
