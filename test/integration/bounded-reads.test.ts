import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RowReader } from '../../src/db/gathering.ts';
import { type Statement, statement } from '../../src/db/statement.ts';
import { orders } from '../../src/orders/table.ts';
import { findAttempts } from '../../src/webhooks/delivery-store.ts';
import { withDatabase } from '../support/database.ts';
import { insertRows } from '../support/insert-rows.ts';
import { plainOrder } from '../support/plain-order.ts';
import { examine } from '../support/rows-read.ts';

const largePartner = 'par_large';
const largeCount = 20_000;
const idOf = (at: number) => `ord_${String(at).padStart(6, '0')}`;

describe('reads of a partner with many more rows than the others', () => {
  let url = '';
  withDatabase(async (database, opened) => {
    url = opened;
    const others = Array.from({ length: 199 }, (_, at) => `par_${at}`);
    const owners = [...others.flatMap((id) => [id, id, id]), ...Array.from({ length: largeCount }, () => largePartner)];
    for (let from = 0; from < owners.length; from += 5_000) {
      const batch = owners.slice(from, from + 5_000);
      await database.write(
        orders.insert(
          ...batch.map((partnerId, at) => ({ ...plainOrder, partnerId, id: idOf(from + at), checkAt: null })),
        ),
      );
      const attempts = batch.map((partnerId, at) => [partnerId, from + at, 1, new Date(), 0, 'delivered', 200, 5]);
      const columns = ['partner_id', 'version', 'number', 'at', 'is_probe', 'outcome', 'status', 'duration_ms'];
      await database.write(insertRows('webhook_attempts', columns, attempts));
    }
    await database.readAll([statement('ANALYZE TABLE orders, webhook_attempts')]);
  });

  /** Ids all over the large partner's rows. */
  const ids = (count: number) => Array.from({ length: count }, (_, at) => idOf(1_000 + at * 150));

  async function readOf(query: Statement): Promise<number> {
    const [examined] = await examine(url, [query]);
    return examined?.read ?? Number.NaN;
  }

  for (const count of [1, 2, 8, 40, 64]) {
    it(`${count} orders asked for at the same time cost the server ${count} rows`, async () => {
      const queries: Statement[] = [];
      const database = {
        read: async (query: Statement) => {
          queries.push(query);
          return (await examine(url, [query]))[0]?.rows ?? [];
        },
      };
      const reader = new RowReader(database, 'orders', orders.all.list);
      const found = await Promise.all(ids(count).map((id) => reader.read(largePartner, id)));
      assert.deepEqual(
        found.map((row) => row?.id),
        ids(count),
      );
      assert.equal(queries.length, 1);
      assert.ok((await readOf(queries[0] as Statement)) <= 2 * count);
    });

    it(`a change of ${count} orders reads ${count} rows under the partner's lock`, async () => {
      assert.ok((await readOf(orders.find({ partnerId: largePartner, id: ids(count) }))) <= count + 1);
    });

    it(`the attempts of ${count} deliveries cost their own rows`, async () => {
      const versions = Array.from({ length: count }, (_, at) => BigInt(1_000 + at * 150));
      assert.ok((await readOf(findAttempts(largePartner, versions, 1_000))) <= 2 * count + 2);
    });
  }
});
