import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { ApiError } from '../../../../../src/gateway/edge/errors.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../../src/gateway/trading/broker/broker.ts';
import { NotBegun } from '../../../../../src/gateway/trading/orders/bulk-cancels/job.ts';
import type { BulkCancel, BulkCancelOrder } from '../../../../../src/gateway/trading/orders/bulk-cancels/table.ts';
import { BulkCancelWorker } from '../../../../../src/gateway/trading/orders/bulk-cancels/worker.ts';
import type { StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { UnavailableError } from '../../../../../src/kit/refusal.ts';
import { eventually } from '../../../../support/eventually.ts';
import { plainOrder } from '../../../../support/plain-order.ts';

const now = plainOrder.createdAt;
const job: BulkCancel = {
  ...{ id: 'blk_a', partnerId: null, account: null, symbol: 'S', side: null, keyId: null, reason: 'a test' },
  ...{ startedBy: 'ada', requestId: 'req', createdAt: now, giveUpAt: now + 60_000, matched: 2, cancelled: 0 },
  ...{
    notCancelable: 0,
    unconfirmed: 0,
    waitsFor: null,
    updatedAt: now,
    endedAt: null,
    endedBy: null,
    endReason: null,
  },
};

/** The row of an object as the database has it. */
function rowOf(object: object): SqlRow {
  const isInstant = (name: string) => /At$/.test(name);
  const entries = Object.entries(object).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    isInstant(name) && typeof value === 'number' ? new Date(value) : value,
  ]);
  return Object.fromEntries(entries) as SqlRow;
}

/** A worker over jobs and orders in memory: one order for each partner that is named, all of them due. */
function open(t: TestContext, partners: readonly string[], jobs: readonly BulkCancel[] = [job]) {
  const orders = new Map(
    partners.map((partnerId, at): [string, StoredOrder] => {
      const id = `ord_${at}`;
      return [id, { ...plainOrder, partnerId, id, state: 'pending', checkAt: null }];
    }),
  );
  const state = {
    due: new Map(
      [...orders.values()].map(({ partnerId, id: orderId }): [string, BulkCancelOrder] => [
        orderId,
        {
          ...{ partnerId, orderId, bulkCancelId: job.id, result: null, detail: null },
          ...{ sentAt: null, dueAt: now },
        },
      ]),
    ),
    cancel: async (_: StoredOrder): Promise<void> => {},
    /** Whether the job has orders that are due later. */
    hasLater: false,
    looksForLater: 0,
    /** Thrown by each transaction of a partner. */
    locked: undefined as Error | undefined,
  };
  const [sent, ended, stuck, recorded]: [string[], unknown[][], string[], string[]] = [[], [], [], []];
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.startsWith('FIND')) return [orders.get(String(values[0])) as unknown as SqlRow];
    if (sql.includes('due_at IS NOT NULL')) {
      state.looksForLater += 1;
      return [...state.due.values(), ...(state.hasLater ? [{ orderId: 'later' }] : [])].map(rowOf);
    }
    if (!sql.includes('due_at <= ?')) return jobs.filter(({ id }) => ended.every(([, , of]) => of !== id)).map(rowOf);
    const without = values.flat();
    return [...state.due.values()].filter((item) => !without.includes(item.partnerId)).map(rowOf);
  };
  const database = {
    read: async (query: Statement) => answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
    transaction: async (reads: readonly Statement[], decide: (rows: SqlRow[][]) => { result: unknown }) => {
      const isLease = reads[0]?.sql.includes('leases');
      return decide(isLease ? [[], [{ fence: 0, free: 1 }]] : reads.map(answer)).result;
    },
    write: async ({ sql, values }: Statement) => {
      if (sql.includes('ended_at = ?')) ended.push([...values]);
      return 1;
    },
    inPartnerTransaction: async (_: string, work: { touches: string[]; decide: (facts: object) => { writes: [] } }) => {
      if (state.locked !== undefined) throw state.locked;
      const [orderId = ''] = work.touches;
      const { writes } = work.decide({ item: state.due.get(orderId), hasEnded: false });
      if (writes.length > 0) recorded.push(orderId);
      state.due.delete(orderId);
    },
  };
  const { worker } = new BulkCancelWorker({
    ...{ database: database as never, clock: { now: () => now, realNow: () => now }, holder: 'a', clockSkewMs: 2_000 },
    broker: {
      id: firstBroker,
      orders: { connected: true } as never,
    },
    canceller: {
      cancel: async (order) => {
        sent.push(order.id);
        await state.cancel(order);
        state.due.delete(order.id);
        return order;
      },
      reconcileNow: async () => assert.fail('nothing is asked'),
    },
    kind: {
      table: {
        ...{ all: { read: (row: unknown) => row }, isKnown: () => true },
        find: ({ id }: { readonly id: string }) => statement('FIND', id),
      },
    } as never,
    stuck: { note: (id: string) => void stuck.push(id) } as never,
    ...{ perSecond: 1_000, log: createLogger({ name: 'test', level: 'silent' }) },
  });
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const running = worker.run(stopping.signal);
  const stop = async () => {
    stopping.abort();
    await running;
  };
  return { state, sent, ended, stuck, recorded, running, stop };
}

describe('the worker of jobs that cancel orders', () => {
  it('an order whose partner is damaged is put off, and the orders of others are cancelled', async (t) => {
    const { state, sent, stuck, recorded, stop } = open(t, ['a', 'b', 'c']);
    state.cancel = async ({ partnerId }) => {
      if (partnerId === 'b') throw new Error('its row is damaged');
    };
    await eventually(() => assert.deepEqual([sent.toSorted(), recorded], [['ord_0', 'ord_1', 'ord_2'], ['ord_1']]));
    assert.deepEqual(stuck, ['b']);
    await stop();
  });

  it('a partner whose row is locked rests, and keeps none of the others from their turn', async (t) => {
    const { state, sent, stuck, stop } = open(t, ['a', 'a', 'a', 'b', 'c']);
    state.locked = new UnavailableError();
    state.cancel = async ({ partnerId }) => {
      if (partnerId === 'a') throw new UnavailableError();
    };
    await eventually(() => assert.ok(sent.includes('ord_3') && sent.includes('ord_4')));
    const first = sent.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(sent.length, first, 'its orders are not tried again at once');
    assert.ok(state.due.size > 0);
    assert.deepEqual([...new Set(stuck)], ['a']);
    await stop();
  });

  it('the worker ends with the error of what is no fault of a partner', async (t) => {
    const { state, running } = open(t, ['a']);
    state.locked = new TypeError('a mistake');
    state.cancel = async () => {
      throw new Error('damaged');
    };
    await assert.rejects(running, /a mistake/);
  });

  it('a cancel without a clear answer, or that was too late or not begun, is no fault of its partner', async (t) => {
    const errors = [new ApiError('cancel_unconfirmed'), new ApiError('order_not_cancelable'), new NotBegun()];
    for (const error of errors) {
      const { state, sent, stuck, recorded, stop } = open(t, ['a']);
      state.cancel = async ({ id }) => {
        state.due.delete(id);
        throw error;
      };
      await eventually(() => assert.deepEqual([sent, state.due.size], [['ord_0'], 0]));
      await stop();
      assert.deepEqual([stuck, recorded], [[], []], error.code);
    }
  });

  it('a job ends when it is done with its orders, and one whose time is over ends with a reason and sends nothing', async (t) => {
    const done = open(t, []);
    await eventually(() => assert.deepEqual(done.ended, [[new Date(now), null, job.id]]));
    await done.stop();
    const later = open(t, []);
    later.state.hasLater = true;
    await eventually(() => assert.equal(later.state.looksForLater, 1));
    await later.stop();
    assert.deepEqual(later.ended, [], 'some of its orders are due later');
    for (const [giveUpAt, isOver] of [
      [now, true],
      [now + 1, false],
    ] as const) {
      const { sent, ended, stop } = open(t, ['a'], [{ ...job, giveUpAt }]);
      if (isOver)
        await eventually(() => assert.deepEqual(ended, [[new Date(now), 'It had run for 24 hours.', job.id]]));
      else await eventually(() => assert.deepEqual([sent, ended], [['ord_0'], []]));
      if (isOver) assert.deepEqual(sent, []);
      await stop();
    }
  });
});
