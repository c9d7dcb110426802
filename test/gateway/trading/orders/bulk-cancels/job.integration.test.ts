import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import type { Cancelled } from '../../../../../src/gateway/trading/broker/broker.ts';
import { orderOfJob, recordStep } from '../../../../../src/gateway/trading/orders/bulk-cancels/job.ts';
import {
  type BulkCancelOrder,
  bulkCancelOrders,
  bulkCancels,
  endJob,
} from '../../../../../src/gateway/trading/orders/bulk-cancels/table.ts';
import type { StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { clockSkewMs, openSettling, type Settling, submitTimeoutMs } from '../../../../support/settling.ts';

const id = `bcl_${'a'.repeat(20)}`;
const unclear: Cancelled = { outcome: 'unclear', evidence: 'no answer' };

describe('the account that a job keeps of a cancel', () => {
  let settling: Settling;
  let order: StoredOrder;
  let item: BulkCancelOrder;
  let sends: number;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    const { database, clock, broker } = settling;
    const partnerId = await settling.newPartner();
    order = await settling.storeOrder({ partnerId, state: 'pending', exchangeOrderId: 'X1', lastReport: 1n });
    const [now, realNow] = [clock.now(), clock.realNow()];
    item = {
      ...{ partnerId, bulkCancelId: id, orderId: order.id },
      ...{ result: null, detail: null, sentAt: null, dueAt: realNow },
    };
    await database.writeAll([
      statement('DELETE FROM bulk_cancels'),
      bulkCancels.insert({
        ...{ id, partnerId, account: null, symbol: null, side: null, keyId: null, reason: 'a test', startedBy: 'ada' },
        ...{ requestId: 'request', createdAt: now, giveUpAt: realNow + 86_400_000, updatedAt: now, matched: 1 },
        ...{ cancelled: 0, notCancelable: 0, unconfirmed: 0, waitsFor: null },
        ...{ endedAt: null, endedBy: null, endReason: null },
      }),
      bulkCancelOrders.insert(item),
    ]);
    sends = 0;
    broker.cancelOrder = async () => {
      sends += 1;
      return unclear;
    };
  });

  const parts = () => ({ database: settling.database, clock: settling.clock, clockSkewMs });

  /** Cancels as a process would that read the job's row before anything happened. Answers with the code or name of its error. */
  async function cancel(): Promise<string> {
    const call = {
      log: createLogger({ name: 'test', level: 'silent' }),
      origin: { partnerId: order.partnerId, requestId: null, traceParent: null },
      permission: { renew: async () => {}, isLatest: () => true },
      job: orderOfJob(parts(), item),
    };
    const thrown = await settling
      .newCanceller()
      .cancel(order, call)
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    return String((thrown as { code?: string }).code ?? (thrown as Error).name);
  }

  /** The counters of the job, and the result of its order. */
  async function counted(): Promise<unknown[]> {
    const [[job] = [], [row] = []] = await settling.database.readAll([
      bulkCancels.find({ id }),
      bulkCancelOrders.find({ partnerId: order.partnerId, bulkCancelId: id, orderId: order.id }),
    ]);
    assert.ok(job !== undefined && row !== undefined);
    const { cancelled, notCancelable, unconfirmed } = bulkCancels.all.read(job);
    return [cancelled, notCancelable, unconfirmed, bulkCancelOrders.all.read(row).result];
  }

  it('lets no process send a second cancel for the job, though the first had no answer and is long over', async () => {
    assert.equal(await cancel(), 'cancel_unconfirmed');
    settling.clock.advance(submitTimeoutMs + clockSkewMs + 1);
    assert.equal(await cancel(), 'service_unavailable');
    assert.equal(sends, 1);
    assert.deepEqual(await counted(), [0, 0, 1, 'unconfirmed']);
  });

  it('lets no process send a cancel for a job that has ended', async () => {
    await settling.database.write(endJob(id, null, settling.clock.now()));
    assert.equal(await cancel(), 'service_unavailable');
    assert.equal(sends, 0);
    assert.equal((await settling.readOrder(order)).cancelUntil, null);
  });

  it('counts an order in one counter alone, when its result changes and when it is recorded twice', async () => {
    await cancel();
    const end = { do: 'end', result: 'cancelled', detail: 'the order is cancelled' } as const;
    await Promise.all([recordStep(parts(), item, end), recordStep(parts(), item, end)]);
    assert.deepEqual(await counted(), [1, 0, 0, 'cancelled']);
  });
});
