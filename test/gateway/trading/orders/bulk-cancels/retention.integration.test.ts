import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { readBacklog } from '../../../../../src/gateway/operators/telemetry/backlog.ts';
import type { Database } from '../../../../../src/gateway/store/database.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { bulkCancelRetention } from '../../../../../src/gateway/trading/orders/bulk-cancels/retention.ts';
import { bulkCancelOrders, bulkCancels, endJob } from '../../../../../src/gateway/trading/orders/bulk-cancels/table.ts';
import { openTestDatabase, startWorker } from '../../../../support/database.ts';
import { eventually } from '../../../../support/eventually.ts';

const dayMs = 86_400_000;
const now = Date.UTC(2026, 10, 20);

describe('jobs that cancelled open orders', () => {
  let database: Database;
  /** With the rights that a gateway has. */
  let gateways: Database;
  let close: () => Promise<void> = async () => {};
  let stop: () => Promise<void> = async () => {};
  before(async () => {
    const opened = await openTestDatabase();
    [database, close] = [opened.database, opened.close];
    gateways = await opened.openAsGateway();
  });
  after(() => close());
  beforeEach(async () => {
    for (const table of ['bulk_cancels', 'bulk_cancel_orders']) await database.write(statement(`DELETE FROM ${table}`));
  });
  afterEach(() => stop());

  /** Stores a job of two partners with so many orders, which ended then, or runs. */
  async function store(id: string, endedAt: number | null, count: number): Promise<void> {
    const createdAt = now - 900 * dayMs;
    const rows = Array.from({ length: count }, (_, at) => ({
      ...{ partnerId: `par_${at % 2}`, bulkCancelId: id, orderId: `ord_${String(at).padStart(5, '0')}` },
      ...{ result: 'cancelled' as const, detail: null, sentAt: createdAt, dueAt: null },
    }));
    const job = bulkCancels.insert({
      ...{ id, partnerId: null, account: null, symbol: null, side: null, keyId: null, reason: 'a test' },
      ...{ startedBy: 'ada', requestId: 'request', createdAt, giveUpAt: createdAt + dayMs, updatedAt: createdAt },
      ...{ matched: count, cancelled: count, notCancelable: 0, unconfirmed: 0, waitsFor: null },
      ...{ endedAt, endedBy: null, endReason: null },
    });
    await database.writeAll(count === 0 ? [job] : [job, bulkCancelOrders.insert(...rows)]);
  }

  /** The jobs that are left, each with how many orders it has. */
  async function left(): Promise<string[]> {
    const rows = await database.read(
      statement(`SELECT id, (SELECT COUNT(*) FROM bulk_cancel_orders WHERE bulk_cancel_id = bulk_cancels.id) AS found
        FROM bulk_cancels ORDER BY id`),
    );
    return rows.map(({ id, found }) => `${id} ${found}`);
  }

  async function overdueDays(): Promise<number | undefined> {
    const { removal } = await readBacklog(database, { now: () => now, realNow: () => now });
    return removal.map((one) => (one.worker === 'bulk-cancel-retention' ? one.overdueMs / dayMs : 0)).find(Boolean);
  }

  it('are removed 400 days after their end with what they say of each order, and one that runs or ended later stays', async () => {
    await store('bcl_old', now - 400 * dayMs - 1, 0);
    // The first batch removes 500 orders.
    await store('bcl_older', now - 403 * dayMs, 501);
    await store('bcl_at_the_bound', now - 400 * dayMs, 3);
    await store('bcl_running', null, 2);
    assert.equal(await overdueDays(), 3);
    stop = startWorker(bulkCancelRetention(gateways, async () => now, 'test'));
    await eventually(async () => assert.deepEqual(await left(), ['bcl_at_the_bound 3', 'bcl_running 2']));
    const [rows] = await database.read(statement('SELECT COUNT(*) AS found FROM bulk_cancel_orders'));
    assert.equal(Number(rows?.found), 5);
    assert.equal(await overdueDays(), undefined);
  });

  it('stay while the clocks differ', async () => {
    await store('bcl_old', now - 500 * dayMs, 1);
    let asked = 0;
    const unknownTime = async () => {
      asked += 1;
      return undefined;
    };
    stop = startWorker(bulkCancelRetention(gateways, unknownTime, 'test'));
    await eventually(async () => assert.ok(asked > 0));
    await stop();
    assert.deepEqual(await left(), ['bcl_old 1']);
  });

  it('a job that an operator has stopped does not end once more by itself', async () => {
    await store('bcl_stopped', now, 1);
    await store('bcl_running', null, 1);
    const ended: number[] = [];
    for (const id of ['bcl_stopped', 'bcl_running']) ended.push(await database.write(endJob(id, 'its time', now + 5)));
    assert.deepEqual(ended, [0, 1]);
    const rows = await database.read(statement('SELECT id, ended_at, end_reason FROM bulk_cancels ORDER BY id'));
    assert.deepEqual(
      rows.map(({ id, ended_at: at, end_reason: reason }) => [id, (at as Date).getTime(), reason]),
      [
        ['bcl_running', now + 5, 'its time'],
        ['bcl_stopped', now, null],
      ],
    );
  });
});
