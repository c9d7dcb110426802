import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Database } from '../../../src/gateway/store/database.ts';
import type { OnConnection } from '../../../src/gateway/store/renewed-pool.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

/** A database whose connections come when the test gives them. */
function withoutConnections() {
  const waiting: OnConnection[] = [];
  const take = (_: unknown, done: OnConnection) => void waiting.push(done);
  const database = new Database({ pool: {}, take, isCluster: () => false } as never, 'sandbox', 1);
  return { database, waiting };
}

/** A connection that counts how often it is given back. */
function connection() {
  const counted = { released: 0, destroyed: 0 };
  const given = { release: () => (counted.released += 1), destroy: () => (counted.destroyed += 1) };
  return { counted, given: given as never };
}

const query = statement('SELECT 1');

describe('a caller that waits for a database connection', () => {
  it('a caller without a connection is answered after five seconds, and what comes for it later is given back once, each time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { database, waiting } = withoutConnections();
    for (const which of ['first', 'second', 'third']) {
      const answers = [database.readOfServer(query), database.write(query), database.readAll([query])];
      assert.deepEqual([database.load.waiting, waiting.length], [3, 3], which);
      t.mock.timers.tick(4_999);
      assert.equal(database.load.waiting, 3, which);
      t.mock.timers.tick(1);
      for (const answer of answers) await assert.rejects(answer, UnavailableError);
      assert.deepEqual([database.load.waiting, database.load.inUse], [0, 0], which);
      for (const done of waiting.splice(0, 2)) {
        const { given, counted } = connection();
        done(undefined, given);
        assert.deepEqual(counted, { released: 1, destroyed: 0 }, `${which}: the pool has lost a connection`);
      }
      // No connection could be made for the last one, and nobody is told any more.
      for (const done of waiting.splice(0)) done(new Error('the host is away'));
      assert.deepEqual([database.load.waiting, database.load.inUse], [0, 0], which);
    }
  });

  it('a caller is told at once why there is none, and waits no more', async () => {
    const { database, waiting } = withoutConnections();
    const answer = database.readOfServer(query);
    waiting[0]?.(new Error('the host is away'));
    await assert.rejects(answer);
    assert.deepEqual([database.load.waiting, database.load.inUse], [0, 0]);
  });
});
