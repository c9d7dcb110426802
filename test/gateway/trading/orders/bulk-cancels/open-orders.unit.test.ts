/** The open orders that a job finds, among rows in memory that go on while they are read. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import {
  findOpenOrders,
  type OrderFilter,
} from '../../../../../src/gateway/trading/orders/bulk-cancels/open-orders.ts';
import { orders, type StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import { plainOrder } from '../../../../support/plain-order.ts';
import { storedRow } from '../../../../support/stored-row.ts';

const until = plainOrder.createdAt;
const any: OrderFilter = { partnerId: 'par_a', account: null, symbol: null, side: null, keyId: null };
const idOf = (at: number) => `ord_${String(at).padStart(6, '0')}`;

/** A database with these orders. `meanwhile` is called after each statement. */
function over(rows: readonly StoredOrder[], meanwhile: (statements: number) => void = () => undefined) {
  const table = [...rows];
  let statements = 0;
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    const given = [...values];
    const equal = [...sql.matchAll(/\b(partner_id|account|symbol|state) = \?/g)].map(([, column = '']) => {
      const field = column === 'partner_id' ? 'partnerId' : column;
      const value = given.shift();
      return (row: StoredOrder) => row[field as keyof StoredOrder] === value;
    });
    const after = String(given[0]);
    const limit = Number(/LIMIT (\d+)/.exec(sql)?.[1]);
    if (sql.includes('FROM partners')) {
      const ids = [...new Set(table.map(({ partnerId }) => partnerId))].sort();
      return ids
        .filter((id) => id > String(values[0]))
        .slice(0, limit)
        .map((id) => ({ id }));
    }
    assert.ok(equal.length > 1 && given.length === 1, sql);
    const found = table.filter((row) => row.id > after && equal.every((passes) => passes(row)));
    found.sort((one, other) => (one.id < other.id ? -1 : 1));
    return found.slice(0, limit).map((row) => storedRow(orders, row));
  };
  const transaction = async (reads: readonly Statement[], decide: (rows: SqlRow[][]) => { result: SqlRow[][] }) => {
    const answers = reads.map((read) => {
      const rows = answer(read);
      statements += 1;
      meanwhile(statements);
      return rows;
    });
    return decide(answers).result;
  };
  const find = async (filter: OrderFilter = any, most = 100_000) =>
    (await findOpenOrders({ transaction } as never, filter, until, most)).map(({ id }) => id).sort();
  return { table, find };
}

const order = (at: number, more: Partial<StoredOrder> = {}): StoredOrder => ({
  ...{ ...plainOrder, id: idOf(at), partnerId: 'par_a', state: 'pending' },
  ...more,
});

describe('the open orders that a job cancels', () => {
  it('the open orders that a job cancels are in each open state, and of the ones that were there when it began', async () => {
    const states = [
      'sending',
      'uncertain',
      'pending',
      'partially_filled',
      'filled',
      'rejected',
      'refused',
      'cancelled',
    ];
    const { find } = over([
      ...states.map((state, at) => order(at, { state: state as StoredOrder['state'] })),
      ...[order(20, { createdAt: until + 1 }), order(21, { partnerId: 'par_b' })],
    ]);
    for (const account of [null, plainOrder.account]) {
      assert.deepEqual(await find({ ...any, account }), [0, 1, 2, 3].map(idOf));
    }
  });

  it('the open orders that a job cancels match the account, the symbol, the side and the key that are named, all together', async () => {
    const fields = {
      account: ['A1', 'A2'],
      symbol: ['S1', 'S2'],
      side: ['buy', 'sell'],
      keyId: ['key_a', null],
    } as const;
    const rows: StoredOrder[] = [];
    for (let bits = 0; bits < 16; bits += 1) {
      const entries = Object.entries(fields).map(([field, values], at) => [field, values[(bits >> at) & 1]]);
      rows.push(order(bits, Object.fromEntries(entries)));
    }
    const { find } = over(rows);
    for (let named = 0; named < 16; named += 1) {
      const wanted = Object.entries(fields).flatMap(([field, [value]], at) =>
        named & (1 << at) ? [[field, value]] : [],
      );
      const filter = { ...any, ...Object.fromEntries(wanted) };
      const matching = rows.filter((row) =>
        wanted.every(([field, value]) => row[field as keyof StoredOrder] === value),
      );
      assert.deepEqual(await find(filter), matching.map(({ id }) => id).sort(), JSON.stringify(filter));
    }
  });

  it('the open orders that a job cancels are all found over pages of each state, whatever state they go on to meanwhile', async () => {
    for (const count of [999, 1_000, 1_001, 2_000, 2_001]) {
      const rows = Array.from({ length: count }, (_, at) => order(at, { state: 'sending' }));
      const { table, find } = over(rows, (statements) => {
        // After each statement a third of the orders go on by one state.
        const next = { sending: 'pending', pending: 'partially_filled' } as Record<string, StoredOrder['state']>;
        for (const [at, row] of table.entries()) {
          const state = next[row.state];
          if (at % 3 === statements % 3 && state !== undefined) table[at] = { ...row, state };
        }
      });
      assert.equal((await find()).length, count);
    }
  });

  it('the open orders that a job cancels are all found if many go on to a state of which a page was read already', async () => {
    const sending = Array.from({ length: 1_500 }, (_, at) => order(at, { state: 'sending' }));
    const pending = Array.from({ length: 1_000 }, (_, at) => order(5_000 + at));
    const { table, find } = over([...sending, ...pending], (statements) => {
      if (statements !== 4) return;
      for (const [at, row] of table.entries()) table[at] = { ...row, state: 'pending' };
    });
    assert.equal((await find()).length, 2_500);
  });

  it('the open orders that a job cancels are of every partner if none is named, also of more than are read at a time', async () => {
    const rows = Array.from({ length: 1_001 }, (_, at) => order(at, { partnerId: `par_${idOf(at)}`, symbol: 'S' }));
    assert.equal((await over(rows).find({ ...any, partnerId: null, symbol: 'S' })).length, 1_001);
  });

  it('the open orders that a job cancels are no longer read once there are more than may be', async () => {
    const rows = Array.from({ length: 6_000 }, (_, at) => order(at));
    const found = await over(rows).find(any, 1_500);
    assert.ok(found.length > 1_500 && found.length <= 3_000, `${found.length}`);
    assert.equal((await over(rows.slice(0, 1_500)).find(any, 1_500)).length, 1_500);
    const ofMany = rows.slice(0, 501).map((row, at) => ({ ...row, partnerId: `par_${idOf(at)}` }));
    assert.equal((await over(ofMany).find({ ...any, partnerId: null }, 500)).length, 501, 'one more than may be');
  });
});
