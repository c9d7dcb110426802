import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { readBacklog } from '../../../src/gateway/operators/telemetry/backlog.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { removalWorker } from '../../../src/gateway/store/removal.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { ArchiveRows, dayMs } from '../../support/archive.ts';
import { whileRunning, withDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { insertRows } from '../../support/insert-rows.ts';

describe('the removal of old rows', () => {
  let database: Database;
  withDatabase((opened) => {
    database = opened;
  });

  /** Runs a worker whose batches take so long, until there were some; answers their sizes and the rests between them. */
  async function batches(tookMs: number, count: number): Promise<{ sizes: number[]; restsMs: number[] }> {
    const sizes: number[] = [];
    const restsMs: number[] = [];
    let endedAt: number | undefined;
    const options = { database, holder: 'test', timeOf: async () => 0, name: 'test-removal', restMs: 10 };
    const worker = removalWorker(options, async (_, most) => {
      if (endedAt !== undefined) restsMs.push(performance.now() - endedAt);
      sizes.push(most);
      await delay(tookMs);
      endedAt = performance.now();
      return most;
    });
    await whileRunning(worker, () => eventually(() => assert.ok(sizes.length >= count, 'too few batches')));
    return { sizes, restsMs };
  }

  it('takes fewer rows at a time from a slow server, and rests nine times as long as a batch took', async () => {
    const { sizes, restsMs } = await batches(130, 5);
    assert.deepEqual(sizes.slice(0, 5), [500, 250, 125, 100, 100]);
    for (const restMs of restsMs) assert.ok(restMs >= 9 * 125, `it rested ${restMs} ms`);
  });

  it('takes more rows at a time while the server is quick, up to a bound', async () => {
    const { sizes } = await batches(0, 6);
    assert.equal(sizes[0], 500);
    assert.ok(Math.max(...sizes) <= 4_000 && (sizes[5] ?? 0) > 500, `batches of ${sizes}`);
  });

  it('tries again within seconds while it is not known what is old, as at the start', async () => {
    const times = [undefined, 0];
    const timeOf = async () => times.shift() ?? 0;
    let removals = 0;
    const worker = removalWorker(
      { database, holder: 'test', timeOf, name: 'test-removal', restMs: 60_000 },
      async () => {
        removals += 1;
        return 0;
      },
    );
    await whileRunning(worker, () => eventually(() => assert.equal(removals, 1)));
  });

  it('shows how long each worker is behind', async () => {
    const now = Date.UTC(2026, 10, 20);
    const overdueDays = async () => {
      const { removal } = await readBacklog(database, { now: () => now, realNow: () => now });
      return Object.fromEntries(removal.map(({ worker, overdueMs }) => [worker, overdueMs / dayMs]));
    };
    const none = {
      'feed-retention': 0,
      'webhook-retention': 0,
      'unclaimed-report-retention': 0,
      'bulk-cancel-retention': 0,
      'proposal-expiry': 0,
      'order-key-retention': 0,
      'application-key-retention': 0,
      'allocation-key-retention': 0,
      'withdrawal-key-retention': 0,
    };
    assert.deepEqual(await overdueDays(), none);
    const rows = new ArchiveRows(database);
    await rows.delivery('par_1', 1n, now - 33 * dayMs);
    const order = await rows.order('par_1', 'filled', now - 35 * dayMs);
    await rows.order('par_1', 'filled', now - 29 * dayMs);
    await rows.allocation('par_1', 'booked', now - 32 * dayMs);
    const columns = ['partner_id', 'version', 'id', 'body', 'occurred_at'];
    await database.write(
      insertRows('feed_events', columns, [['par_1', 1, 'msg_1', '{}', new Date(now - 30.5 * dayMs)]]),
    );
    assert.deepEqual(await overdueDays(), {
      ...none,
      'feed-retention': 0.5,
      'webhook-retention': 3,
      'order-key-retention': 5,
      'allocation-key-retention': 2,
    });
    await database.write(
      statement("INSERT INTO positions (name, position) VALUES ('order-key-retention', ?)", order.id),
    );
    assert.equal((await overdueDays())['order-key-retention'], 0);
  });
});
