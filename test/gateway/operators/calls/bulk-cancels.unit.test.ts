/** How jobs that cancel open orders are stored, shown and stopped, over jobs and orders that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bulkCancelCalls } from '../../../../src/gateway/operators/calls/bulk-cancels.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { longestMs } from '../../../../src/gateway/trading/orders/bulk-cancels/rules.ts';
import { type BulkCancel, bulkCancels } from '../../../../src/gateway/trading/orders/bulk-cancels/table.ts';
import { orders, type StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { BulkCancelResult } from '../../../../src/gen/marina/admin/v1/trading_pb.ts';
import { OrderSide } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { storedRow } from '../../../support/stored-row.ts';

const now = 1_000_000_000_000;
const realNow = 900_000_000_000;
const call = { operator: 'ada', action: 'Trading.CancelOpenOrders', requestId: 'req' };
const nothing = { partnerId: '', account: '', symbol: '', side: 0, keyId: '', atMost: 100, reason: 'why' };

const job: BulkCancel = {
  ...{ id: 'bcl_a', partnerId: 'par_a', account: null, symbol: null, side: null, keyId: null, reason: 'why' },
  ...{ startedBy: 'bola', requestId: 'r', createdAt: 1, giveUpAt: 2, matched: 10, cancelled: 3, notCancelable: 2 },
  ...{ unconfirmed: 1, waitsFor: 'the broker', updatedAt: 3, endedAt: null, endedBy: null, endReason: null },
};
const openOrder = (more: Partial<StoredOrder> = {}): StoredOrder => ({
  ...{ ...plainOrder, id: 'ord_a', partnerId: 'par_a', state: 'pending', createdAt: now - 1, ...more },
});

function open({ jobs = [] as readonly BulkCancel[], found = [] as readonly StoredOrder[] } = {}) {
  let writes: readonly Statement[] = [];
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.includes('FROM partners WHERE id =')) return values[0] === 'par_a' ? [{ id: 'par_a' }] : [];
    if (sql.includes('FROM partners')) return values[0] === '' ? [{ id: 'par_a' }] : [];
    if (sql.includes('FROM api_keys'))
      return values[0] === 'key_a' ? [{ partner_id: 'par_a' }] : [{ partner_id: 'par_b' }];
    if (sql.includes('FROM bulk_cancels')) return jobs.map((row) => storedRow(bulkCancels, row));
    const after = String(values.at(-1));
    return found
      .filter(({ id }) => id > after)
      .slice(0, 1_000)
      .map((row) => storedRow(orders, row));
  };
  const database = {
    read: async (query: Statement) => answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
    transaction: async (
      reads: readonly Statement[],
      decide: (rows: SqlRow[][]) => { writes: Statement[]; result: unknown },
    ) => {
      const decision = decide(reads.map(answer));
      if (decision.writes.length > 0) writes = decision.writes;
      return decision.result;
    },
  };
  const clock = { now: () => now, realNow: () => realNow };
  const calls = bulkCancelCalls({ database, clock, ids: { object: () => 'bcl_new' } } as never);
  const make = (name: keyof typeof calls, request: object) =>
    (calls[name] as (request: object, by: object) => Promise<never>)({ ...nothing, ...request }, call);
  return { make, written: () => writes };
}

describe('a job that cancels open orders', () => {
  const begin = async (request: object, more: Parameters<typeof open>[0] = {}) => {
    const { make, written } = open({ found: [openOrder()], ...more });
    const answer = (await make('cancelOpenOrders', request)) as {
      changed: boolean;
      bulkCancel?: Record<string, unknown>;
    };
    return { ...answer, written: written() };
  };

  it('a job that cancels open orders is stored together with its orders, due at once, and its audit entry', async () => {
    const found = [openOrder(), openOrder({ id: 'ord_b', keyId: 'key_a' })];
    const { changed, bulkCancel, written } = await begin({ partnerId: 'par_a', account: 'a1' }, { found });
    const { id, matched, left, state, account, giveUpAt, createdAt } = bulkCancel ?? {};
    assert.deepEqual([changed, id, matched, left, state, account], [true, 'bcl_new', 2, 2, 'running', 'A1']);
    assert.deepEqual([giveUpAt, createdAt], [realNow + longestMs, now], 'the end is in real time');
    assert.deepEqual(
      written.map(({ sql }) => /INTO (\w+)/.exec(sql)?.[1]),
      ['bulk_cancels', 'bulk_cancel_orders', 'audit_entries'],
    );
    assert.deepEqual(
      [written[1]?.values].flat(2),
      ['ord_a', 'ord_b'].map((orderId) => ['par_a', 'bcl_new', orderId, null, null, null, new Date(realNow)]),
    );
  });

  it('a job that cancels open orders has each of its orders in one of the statements that store them', async () => {
    for (const count of [1, 5_000, 5_001]) {
      const found = Array.from({ length: count }, (_, at) => openOrder({ id: `ord_${String(at).padStart(6, '0')}` }));
      const { written } = await begin({ account: 'A1', atMost: 20_000 }, { found });
      const stored = written.slice(1, -1).map(({ values }) => [values].flat(2).map((row) => (row as unknown[])[2]));
      assert.deepEqual(
        stored.flat(),
        found.map(({ id }) => id),
        `${count}`,
      );
      assert.ok(
        stored.every(({ length }) => length > 0 && length <= 5_000),
        `${count}`,
      );
    }
  });

  it('a job that cancels open orders is stored if at most as many orders match as were allowed, and not if none does', async () => {
    const found = ['ord_a', 'ord_b', 'ord_c'].map((id) => openOrder({ id }));
    await assert.rejects(
      begin({ account: 'A1', atMost: 2 }, { found }),
      /more than 2 orders match, so nothing was stored/,
    );
    assert.equal((await begin({ account: 'A1', atMost: 3 }, { found })).changed, true);
    const none = await begin({ account: 'A1' }, { found: [openOrder({ state: 'cancelled' })] });
    assert.deepEqual([none.changed, none.bulkCancel, none.written], [false, undefined, []]);
  });

  it('a job that cancels open orders has the orders that another replica stored while its clock was ahead', async () => {
    for (const [aheadMs, isIn] of [
      [60_000, true],
      [60_001, false],
    ] as const) {
      const { changed } = await begin({ account: 'A1' }, { found: [openOrder({ createdAt: now + aheadMs })] });
      assert.equal(changed, isIn, `${aheadMs}`);
    }
  });

  it('a job that cancels open orders needs a partner, an account or a symbol, and a key of the named partner', async () => {
    for (const [request, error] of [
      [{ side: OrderSide.BUY }, /or `account` or `symbol` must be given/],
      [{ symbol: 'SIM-REST', keyId: 'key_a' }, /is required with `key_id`/],
      [{ partnerId: 'par_b' }, /no such partner/],
      [{ partnerId: 'par_a', keyId: 'key_b' }, /the partner has no such key/],
      [{ partnerId: 'par_a', side: 99 }, /must be a side/],
    ] as const) {
      await assert.rejects(begin(request), error);
    }
    for (const [request, isFound] of [
      [{ partnerId: 'par_a' }, true],
      [{ symbol: 'SIM-REST' }, true],
      [{ partnerId: 'par_a', side: OrderSide.BUY }, true],
      [{ partnerId: 'par_a', side: OrderSide.SELL }, false],
      [{ partnerId: 'par_a', keyId: 'key_a' }, false],
    ] as const) {
      assert.equal((await begin(request)).changed, isFound, JSON.stringify(request));
    }
  });

  it('a job that cancels open orders is refused while 20 run, or 10 of one operator, whose name has any case', async () => {
    const jobs = (count: number, startedBy: string) => Array.from({ length: count }, () => ({ ...job, startedBy }));
    for (const [running, error] of [
      [jobs(19, 'bola'), undefined],
      [jobs(20, 'bola'), /20 such jobs are running/],
      [jobs(9, 'Ada'), undefined],
      [jobs(10, 'Ada'), /10 jobs of yours/],
      [[...jobs(9, 'ada'), ...jobs(10, 'bola')], undefined],
    ] as const) {
      const beginning = begin({ account: 'A1' }, { jobs: running });
      if (error !== undefined) await assert.rejects(beginning, error);
      else assert.equal((await beginning).changed, true);
    }
  });

  it('a job that cancels open orders is stopped once, and one that came to its end is not', async () => {
    const stop = async (stored: Partial<BulkCancel>) => {
      const { make, written } = open({ jobs: [{ ...job, ...stored }] });
      const answer = (await make('stopBulkCancel', { id: 'bcl_a' })) as {
        changed: boolean;
        bulkCancel: Record<string, unknown>;
      };
      return { ...answer, written: written() };
    };
    const { changed, bulkCancel, written } = await stop({});
    const { state, stoppedBy, stopReason, left, waitsFor, endedAt } = bulkCancel;
    assert.deepEqual(
      [changed, state, stoppedBy, stopReason, left, waitsFor, endedAt],
      [true, 'done', 'ada', 'why', 4, null, now],
    );
    assert.deepEqual(
      written.map(({ sql }) => /(?:INTO|UPDATE) (\w+)/.exec(sql)?.[1]),
      ['bulk_cancels', 'audit_entries'],
    );
    const again = await stop({ endedAt: 5, endedBy: 'bola', endReason: 'mine' });
    assert.deepEqual([again.changed, again.bulkCancel.stoppedBy, again.written], [false, 'bola', []]);
    await assert.rejects(stop({ endedAt: 5 }), /has ended by itself/);
    await assert.rejects(open().make('stopBulkCancel', { id: 'bcl_a' }), /no such job/);
  });
});

it('open orders are counted by their states, and the first ten are shown', async () => {
  const states = ['pending', 'partially_filled', 'sending', 'uncertain', 'filled', 'pending'] as const;
  const some = states.map((state, at) => openOrder({ id: `ord_${at}`, state, cancelUntil: at < 2 ? 5 : null }));
  const { make } = open({ found: [...some, ...Array.from({ length: 8 }, (_, at) => openOrder({ id: `ord_x${at}` }))] });
  const { examples, ...counts } = (await make('countOpenOrders', { account: 'A1' })) as {
    examples: { orderId: string }[];
  };
  assert.deepEqual(counts, { matched: 13, pending: 10, partiallyFilled: 1, undecided: 2, cancelling: 2 });
  assert.deepEqual([examples.length, examples[0]?.orderId], [10, 'ord_0']);
});

it("a job's orders are listed by a result that is known, or without one", async () => {
  const { make } = open({ jobs: [job] });
  await assert.rejects(
    make('listBulkCancelOrders', { id: 'bcl_a', result: 99, limit: 0, afterOrderId: '' }),
    /must be a result/,
  );
  for (const result of [0, BulkCancelResult.CANCELLED]) {
    assert.ok(await make('listBulkCancelOrders', { id: 'bcl_a', result, limit: 0, afterOrderId: '' }));
  }
  await assert.rejects(open().make('getBulkCancel', { id: 'bcl_a' }), /no such job/);
});
