import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createLogger } from '../../src/lib/log.ts';
import { type ReportedKind, ReportTaker, type ReportTakerOptions } from '../../src/submission/reports.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers.ts';

describe("the stream of the broker's reports", () => {
  let test: TestDatabase;
  let database: Database;
  before(async () => {
    test = await createTestDatabase();
    await migrate(test.url);
    database = await openDatabase({ url: test.url, environment: 'sandbox', poolSize: 2 });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  it('is told to be broken for as long as the broker takes the call and says nothing, and whole when it speaks', async () => {
    let broker: 'breaks' | 'silent' | 'speaks' = 'breaks';
    const kind = {
      name: 'order',
      async *streamReports(_after: bigint, signal: AbortSignal) {
        for (; !signal.aborted; await delay(50, undefined, { signal })) {
          if (broker === 'breaks') throw new Error('the stream ended');
          if (broker === 'speaks') yield [];
        }
      },
    } as Partial<ReportedKind<never, never>> as ReportedKind<never, never>;
    const options = { kind, database, log: createLogger({ name: 'test', level: 'silent' }), holder: 'a' };
    const taker = new ReportTaker(
      options as Partial<ReportTakerOptions<never, never>> as ReportTakerOptions<never, never>,
    );
    const stopping = new AbortController();
    const running = taker.worker.run(stopping.signal);
    try {
      await eventually(() => assert.ok(taker.isBroken), 15_000);
      broker = 'silent';
      await eventually(() => assert.ok(taker.isFollowing), 8_000);
      for (const until = performance.now() + 3_000; performance.now() < until; await delay(50)) {
        assert.ok(taker.isBroken, 'nobody has heard of it yet');
      }
      broker = 'speaks';
      await eventually(() => assert.ok(!taker.isBroken), 8_000);
    } finally {
      stopping.abort();
      await running;
    }
  });
});
