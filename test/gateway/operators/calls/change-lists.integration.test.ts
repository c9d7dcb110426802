import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IdMaker } from '../../../../src/gateway/edge/ids.ts';
import { type SqlRow, type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import { orders, type StoredOrder, shownOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { readPage } from '../../../../src/gateway/trading/submission/list.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { withDatabase } from '../../../support/database.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { examine } from '../../../support/rows-read.ts';

const minute = 60_000;
const dayMs = 86_400_000;
const start = Date.UTC(2026, 0, 5, 9);
const days = 6;
const perDay = 500;
/** Orders that stay open for days; all others end within minutes of their creation. */
const isLongLived = (at: number) => at % 40 === 0;

/** A partner's orders of some days, or the first of them, ten a minute, oldest first. */
function makeOrders(partnerId: string, count = days * perDay): StoredOrder[] {
  let madeAt = start;
  const ids = new IdMaker({ now: () => madeAt });
  return Array.from({ length: count }, (_, at) => {
    madeAt = start + Math.floor(at / perDay) * dayMs + (at % perDay) * 6_000;
    const updatedAt = madeAt + (isLongLived(at) ? (1 + (at % 7)) * dayMs : (at % 5) * minute);
    const state = at % 20 === 0 ? 'rejected' : 'filled';
    const times = { createdAt: madeAt, updatedAt, countedDay: lagosDay(madeAt), checkAt: null };
    return { ...plainOrder, partnerId, id: ids.object('ord'), state, account: `A${at % 300}`, ...times };
  });
}

describe('the list of orders that changed since an instant', () => {
  let url = '';
  const made = makeOrders('par_large');
  const newest = made.toReversed();
  withDatabase(async (database, opened) => {
    url = opened;
    const others = Array.from({ length: 199 }, (_, at) => makeOrders(`par_${at}`, 2)).flat();
    const all = [...others, ...made].map((order, at) => ({
      ...order,
      id: at < others.length ? `ord_${at}` : order.id,
    }));
    for (let from = 0; from < all.length; from += 3_000) {
      await database.write(orders.insert(...all.slice(from, from + 3_000)));
    }
    await database.readAll([statement('ANALYZE TABLE orders')]);
  });

  /** Reads all pages, and counts the rows that the server read for the one that took most. */
  async function readAll(equal: Partial<StoredOrder>, updatedSince: number, most: number) {
    let read = 0;
    const examined = async (queries: readonly Statement[]) => {
      const results = await examine(url, queries);
      for (const result of results) read += result.read;
      return results.map(({ rows }) => rows);
    };
    const database = {
      readAll: examined,
      read: async (query: Statement): Promise<SqlRow[]> => (await examined([query]))[0] ?? [],
    };
    const found: string[] = [];
    let mostRead = 0;
    for (let before: string | undefined; ; ) {
      read = 0;
      const wanted = { equal: { partnerId: 'par_large', ...equal }, updatedSince, before };
      const page = await readPage(database, { table: orders, prefix: 'ord' } as never, shownOrder, wanted, most);
      mostRead = Math.max(mostRead, read);
      found.push(...page.map(({ id }) => String(id)));
      before = found.at(-1);
      if (page.length < most) return { found, mostRead };
    }
  }

  const instants: readonly (readonly [name: string, at: number])[] = [
    ['before the first order', start - dayMs],
    ['during the third day', start + 2 * dayMs + 25 * minute],
    ['at night', start + 4 * dayMs + 600 * minute],
    ['shortly before the end', start + (days - 1) * dayMs + 45 * minute],
    ['after the last order', start + days * dayMs],
    ['after every change', start + 30 * dayMs],
    ['in the year 9999', Date.UTC(9999, 11, 30)],
  ];
  for (const [name, since] of instants) {
    it(`has each of them once, newest first, since an instant ${name}`, async () => {
      const { found, mostRead } = await readAll({}, since, 101);
      const changed = newest.filter(({ updatedAt }) => updatedAt >= since);
      assert.deepEqual(
        found,
        changed.map(({ id }) => id),
      );
      const openThen = changed.filter(({ createdAt }) => createdAt < since);
      const bound = 4 * (101 + openThen.length + days) + 20;
      assert.ok(mostRead <= bound, `${mostRead} rows were read for a page, and at most ${bound} are expected`);
    });
  }

  it('has those with other filters too', async () => {
    for (const equal of [{ state: 'rejected' }, { account: 'A7' }, { state: 'filled', account: 'A20' }] as const) {
      const since = start + 2 * dayMs + 25 * minute;
      const { found } = await readAll(equal, since, 26);
      const wanted = newest.filter(
        (order) =>
          order.updatedAt >= since &&
          Object.entries(equal).every(([field, value]) => order[field as keyof StoredOrder] === value),
      );
      assert.deepEqual(
        found,
        wanted.map(({ id }) => id),
      );
    }
  });
});
