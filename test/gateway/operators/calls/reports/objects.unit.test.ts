/** The reports of all partners' objects, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstIdAt } from '../../../../../src/gateway/edge/ids.ts';
import { daysOf } from '../../../../../src/gateway/operators/calls/reports/days.ts';
import { objectReports } from '../../../../../src/gateway/operators/calls/reports/objects.ts';
import type { ReportForm } from '../../../../../src/gateway/operators/calls/reports/parts.ts';
import type { SqlRow } from '../../../../../src/gateway/store/statement.ts';
import { allocations } from '../../../../../src/gateway/trading/allocations/table.ts';
import { orders } from '../../../../../src/gateway/trading/orders/table.ts';
import { withdrawals } from '../../../../../src/gateway/trading/withdrawals/table.ts';
import { OrderState } from '../../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { RowsDatabase } from '../../../../support/rows-database.ts';
import { anyRow } from '../../../../support/stored-row.ts';

const { from, until } = daysOf('2026-03-03');
const rowOf = (table: unknown, values: object): SqlRow => anyRow(table as never, values as never);
const order = (partnerId: string, createdAt: number, more: object = {}) =>
  rowOf(orders, { partnerId, id: firstIdAt('ord', createdAt), createdAt, keyId: 'key_a', symbol: 'SIM', ...more });

type Name = 'exportOrders' | 'exportAllocations' | 'exportWithdrawals';
type Pages = (signal: AbortSignal) => AsyncIterable<unknown[]>;

/** A report's lines as CSV and as messages. */
async function report(
  tables: Readonly<Record<string, readonly SqlRow[]>>,
  request: object = {},
  name: Name = 'exportOrders',
) {
  const partners = ['par_a', 'par_b'].map((id) => ({ id }));
  const database = new RowsDatabase({ partners, orders: [], allocations: [], withdrawals: [], ...tables });
  let columns: readonly string[] = [];
  const rows: (readonly string[])[] = [];
  const messages: unknown[] = [];
  const underWay = {
    messages: async (_: unknown, __: unknown, form: ReportForm<unknown, object>, signal: AbortSignal, pages: Pages) => {
      columns = form.columns as readonly string[];
      for await (const page of pages(signal)) {
        rows.push(...(page.flatMap(form.toLines) as string[][]));
        messages.push(...Object.values(form.toMessage(page)).flat());
      }
    },
  };
  const calls = objectReports(database as never, underWay as never);
  const asked = { fromDay: '2026-03-03', toDay: '', partnerId: '', state: 0, symbol: '', format: 0, ...request };
  await (calls[name](asked as never, {} as never, new AbortController().signal) as unknown as Promise<void>);
  const column = (wanted: string) => rows.map((row) => row[columns.indexOf(wanted)]);
  return { columns, column, messages: messages as Readonly<Record<string, unknown>>[], database };
}

describe("the report of partners' objects", () => {
  it('the objects that were created on the days are reported, partner by partner and oldest first', async () => {
    const rows = ['par_b', 'par_a'].flatMap((id) => [until, until - 1, from, from - 1].map((at) => order(id, at)));
    const { column } = await report({ orders: rows });
    const ids = [from, until - 1].map((at) => firstIdAt('ord', at));
    assert.deepEqual(column('partner_id'), ['par_a', 'par_a', 'par_b', 'par_b']);
    assert.deepEqual(column('id'), [...ids, ...ids]);
    const clocks = [
      order('par_a', from, { id: firstIdAt('ord', from - 60_000) }),
      order('par_a', until - 1, { id: firstIdAt('ord', until + 59_999) }),
    ];
    assert.equal(
      (await report({ orders: clocks })).column('id').length,
      2,
      'an id can be made a moment before or after',
    );
  });

  it('all objects are reported, however many pages there are', async () => {
    for (const count of [199, 200, 201, 400, 401]) {
      const rows = Array.from({ length: count }, (_, at) => order('par_a', from + at * 1_000));
      const { column } = await report({ orders: rows });
      assert.deepEqual(
        column('id'),
        rows.map(({ id }) => id),
        `${count}`,
      );
    }
  });

  it('a report is of one partner, state or symbol if it is asked so', async () => {
    const rows = [
      order('par_a', from),
      order('par_a', from + 1, { state: 'filled' }),
      order('par_b', from + 2, { symbol: 'TIM' }),
      order('par_b', from + 3, { symbol: 'TIM', state: 'filled' }),
    ];
    for (const [request, found] of [
      [{}, [0, 1, 2, 3]],
      [{ partnerId: 'par_b' }, [2, 3]],
      [{ state: OrderState.FILLED }, [1, 3]],
      [{ symbol: 'tim' }, [2, 3]],
      [{ symbol: 'TIM', state: OrderState.FILLED, partnerId: 'par_a' }, []],
      [{ fromDay: '2026-03-02', toDay: '2026-03-02' }, []],
    ] as const) {
      const ids = found.map((at) => rows[at]?.id);
      assert.deepEqual((await report({ orders: rows }, request)).column('id'), ids, JSON.stringify(request));
    }
    await assert.rejects(report({}, { state: 999 }), { param: 'state' });
    await assert.rejects(report({}, { partnerId: 'par_x' }), /there is no such partner/);
    await assert.rejects(report({}, { fromDay: 'x' }), { param: 'from_day' });
  });

  it('each kind is reported with its owner, in CSV and in messages', async () => {
    const own = { partnerId: 'par_a', keyId: 'key_a', createdAt: from, account: 'A1' };
    const tables = {
      orders: [order('par_a', from, { keyId: null, quantity: 7n, account: 'A1' })],
      allocations: [rowOf(allocations, { ...own, id: firstIdAt('alc', from), amountKobo: 5n })],
      withdrawals: [rowOf(withdrawals, { ...own, id: firstIdAt('wdr', from), amountKobo: 6n })],
    };
    for (const [name, member, field, value, keyId] of [
      ['exportOrders', 'order', 'quantity', '7', ''],
      ['exportAllocations', 'allocation', 'amount_kobo', '5', 'key_a'],
      ['exportWithdrawals', 'withdrawal', 'amount_kobo', '6', 'key_a'],
    ] as const) {
      const { columns, column, messages } = await report(tables, {}, name);
      assert.deepEqual(columns.slice(0, 3), ['partner_id', 'key_id', 'id']);
      assert.deepEqual([column('key_id'), column(field), column('account')], [[keyId], [value], ['A1']], name);
      const [message] = messages;
      assert.deepEqual(
        [message?.partnerId, (message?.[member] as { account: string } | undefined)?.account],
        ['par_a', 'A1'],
      );
    }
  });

  it("an order's reason of rejection is the one that its partner sees", async () => {
    const rejected = order('par_a', from, { state: 'rejected', rejectReason: 'market_closed' });
    assert.deepEqual((await report({ orders: [rejected] })).column('reject_reason'), ['market_closed']);
    const pending = order('par_a', from, { state: 'pending' });
    assert.deepEqual((await report({ orders: [pending] })).column('reject_reason').length, 1);
  });
});
