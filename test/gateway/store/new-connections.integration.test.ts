import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Database, openDatabase } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { statementTimeoutMs } from '../../../src/gateway/store/transaction.ts';
import { openTestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { FaultProxy } from '../../support/fault-proxy.ts';

const poolSize = 4;

describe('new connections to a server that greets them and then answers nothing', { timeout: 120_000 }, () => {
  let close: () => Promise<void>;
  let proxy: FaultProxy;
  let database: Database;
  before(async () => {
    const opened = await openTestDatabase();
    close = opened.close;
    proxy = await FaultProxy.start(opened.url);
    database = await openDatabase({ url: proxy.through(opened.url), environment: 'sandbox', poolSize });
  });
  after(async () => {
    await database.close();
    await proxy.close();
    await close();
  });

  /** As many as the pool has connections, so that each needs its own. */
  const readAtOnce = (query: string) =>
    Promise.all(Array.from({ length: poolSize }, () => database.read(statement(query))));

  it('fail who asked for them within seconds, and the pool is whole when the server is well again', async () => {
    // A failover while requests are waiting: all connections are made again at once.
    proxy.reset();
    proxy.onBytes = (link, direction, bytes) => {
      if (direction === 'toServer' && bytes.includes('SHOW VARIABLES')) link.set('toClient', { hold: true });
    };
    const began = performance.now();
    const asked = [
      ...Array.from({ length: poolSize - 2 }, () => database.read(statement('SELECT 1'))),
      database.write(statement("UPDATE environment SET name = 'sandbox' WHERE id = 1")),
      database.manage((manager) => manager.query('SELECT 1')),
    ];
    for (const answer of await Promise.allSettled(asked)) {
      assert.equal(answer.status === 'rejected' && answer.reason.name, 'UnavailableError');
    }
    const tookMs = performance.now() - began;
    assert.ok(tookMs < statementTimeoutMs, `it took ${Math.round(tookMs)} ms`);
    proxy.heal();
    proxy.reset();
    await eventually(async () => {
      const rows = (await readAtOnce('SELECT CONNECTION_ID() AS id, SLEEP(0.3)')).flat();
      assert.equal(new Set(rows.map(({ id }) => id)).size, poolSize, 'each connection of the pool is there');
    });
    assert.deepEqual(database.load, { limit: poolSize, inUse: 0, waiting: 0, partnersWaiting: 0 });
  });
});
