import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type DeliveryFilter,
  findAttempts,
  findPosition,
  listDeliveries,
  lockEvent,
  lockWindow,
} from '../../../../src/gateway/delivery/webhooks/record/delivery-store.ts';
import { RowReader } from '../../../../src/gateway/store/batcher.ts';
import { type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import {
  type AccountPosition,
  accounts,
  listAccounts,
  toShownAccount,
} from '../../../../src/gateway/trading/accounts/store.ts';
import { orders } from '../../../../src/gateway/trading/orders/table.ts';
import { withDatabase } from '../../../support/database.ts';
import { insertRows } from '../../../support/insert-rows.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { examine } from '../../../support/rows-read.ts';

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

describe("operators' reads of a partner's many deliveries", () => {
  const count = 20_000;
  const second = 1_000;
  const start = Date.UTC(2026, 0, 5);
  const eventIdOf = (version: number) => `msg_${String(version).padStart(24, '0')}`;
  let url = '';
  withDatabase(async (database, opened) => {
    url = opened;
    const others = Array.from({ length: 199 }, (_, at) => `par_${at}`);
    const rows = [...others, ...Array.from({ length: count }, () => largePartner)].map((partnerId, at) => {
      const version = partnerId === largePartner ? at - others.length + 1 : 1;
      const occurredAt = new Date(start + version * second);
      const state = version <= 3 ? 'expired' : 'delivered';
      return [partnerId, version, eventIdOf(version), 'order.filled', occurredAt, occurredAt, occurredAt, state];
    });
    const columns = ['partner_id', 'version', 'event_id', 'type', 'occurred_at', 'committed_at', 'taken_at', 'state'];
    for (let from = 0; from < rows.length; from += 5_000) {
      await database.write(insertRows('webhook_deliveries', columns, rows.slice(from, from + 5_000)));
    }
    await database.readAll([statement('ANALYZE TABLE webhook_deliveries')]);
  });

  const list = (filter: DeliveryFilter) => listDeliveries(largePartner, filter, 26);
  const now = start + 2 * count * second;
  const window = { from: start + 19_000 * second, to: now };
  const after = { occurredAt: start + 19_500 * second, version: 19_500n };
  const reads: readonly (readonly [name: string, query: Statement, found: number])[] = [
    ['the newest', list({}), 26],
    ['a deep page', list({ before: 40n }), 26],
    ['the last of a rare state', list({ state: 'expired' }), 3],
    ['none left of a rare state', list({ state: 'expired', before: 1n }), 0],
    ['none of a state', list({ state: 'waiting' }), 0],
    ['a page of the usual state', list({ state: 'delivered', before: 10n }), 6],
    ['one event', list({ eventId: eventIdOf(10) }), 1],
    ['an event in another state', list({ eventId: eventIdOf(10), state: 'expired' }), 0],
    ['an event that is not there', list({ eventId: eventIdOf(30_000) }), 0],
    ['the events of an object', list({ versions: [5n, 600n, 7_000n] }), 3],
    ['the events of an object in another state', list({ versions: [5n, 600n, 7_000n], state: 'expired' }), 0],
    ['an event to send again', lockEvent(largePartner, eventIdOf(19_000), now), 1],
    ['the first of a window to send again', lockWindow(largePartner, window, now, 26), 26],
    ['further ones of a window', lockWindow(largePartner, { ...window, after }, now, 26), 26],
    ['the end of a window', lockWindow(largePartner, { from: 0, to: start, after }, now, 26), 0],
    ['the position to go on after', findPosition(largePartner, 19_500n), 1],
  ];
  for (const [name, query, found] of reads) {
    it(`${name}: ${found} found, and few rows read`, async () => {
      const [{ rows, read } = { rows: [], read: Number.NaN }] = await examine(url, [query]);
      assert.equal(rows.length, found);
      assert.ok(read <= 10 * (found + 3), `${read} rows were read`);
    });
  }
});

describe("the list of a partner's many accounts", () => {
  const count = 3_000;
  let url = '';
  /** Three accounts have the same time, and the last 500. */
  const made = Array.from({ length: count }, (_, at) => ({
    account: `A${String(at * 7 + 10_000)}`,
    createdAt: Date.UTC(2026, 0, 5) - Math.min(Math.floor(at / 3), 833) * 1_000,
  }));
  withDatabase(async (database, opened) => {
    url = opened;
    await database.write(
      accounts.insert(...made.map((each) => ({ ...each, partnerId: largePartner, applicationId: null }))),
    );
    await database.readAll([statement('ANALYZE TABLE accounts')]);
  });

  it('is read page by page, newest first and then by code, each page with its own rows only', async () => {
    const listed: string[] = [];
    for (let after: AccountPosition | undefined; ; ) {
      const [page] = await examine(url, [listAccounts(largePartner, after, 100)]);
      const rows = (page?.rows ?? []).map(toShownAccount);
      listed.push(...rows.map(({ account }) => account));
      assert.ok((page?.read ?? Number.NaN) <= 2 * rows.length + 10, `${page?.read} rows were read`);
      if (rows.length < 100) break;
      after = rows.at(-1);
    }
    assert.deepEqual(
      listed,
      made.map(({ account }) => account),
    );
  });
});
