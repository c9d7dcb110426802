import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WriteProbe } from '../../../src/gateway/operators/telemetry/write-probe.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { whileRunning, withDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

describe('a gateway that may not check whether its database takes writes', () => {
  let database: Database;
  withDatabase(async (opened) => {
    database = opened;
    // As where the rights of the new table were not granted.
    await database.write(statement('DROP TABLE write_checks'));
  });

  it('is in trouble when a write is refused, and not for ever', async () => {
    const probe = new WriteProbe(database, 'test', createLogger({ name: 'test', level: 'silent' }));
    await whileRunning(probe.worker, async () => {
      const full = database.write(statement("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'full'"));
      await assert.rejects(full);
      assert.equal(probe.trouble, 'disk-full');
      await eventually(() => assert.equal(probe.trouble, undefined, 'it stays in trouble'), 20_000);
    });
  });
});
