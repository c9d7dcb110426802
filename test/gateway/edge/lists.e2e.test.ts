import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Call } from '../../support/e2e/calls.ts';
import { type Answered, type Protocol, protocols } from '../../support/e2e/protocols.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPartner } from '../../support/gateway.ts';

const orderCount = 30;

/** A page as both protocols give it. */
interface Page {
  readonly ids: readonly string[];
  readonly hasMore: boolean;
  readonly cursor: string | null;
}

function toPage({ body }: Answered): Page {
  const ids = body.data.map((item: { id?: string; sequence?: unknown }) => item.id ?? String(item.sequence));
  return { ids, hasMore: body.has_more, cursor: body.next_cursor ?? null };
}

describe('lists', () => {
  const suite = useGateway(undefined, { accounts: 2 });
  let other: TestPartner;
  let empty: TestPartner;
  /** The partner's orders, newest first. */
  let ids: readonly string[];

  const page = async (protocol: Protocol, call: Omit<Call, 'key'>, partner = suite.partner) =>
    toPage(await suite.protocols.answers(protocol, { ...call, key: partner.key }));

  async function placeAll(partner: TestPartner): Promise<void> {
    for (let at = 0; at < orderCount; at += 1) {
      const placed = await suite.gateway.place(partner, {
        account: partner.accounts[at % partner.accounts.length],
        symbol: at < 2 ? 'SIM-HALF' : 'SIM-REST',
        client_reference: at < 4 ? 'four of them' : `ref ${at}`,
      });
      assert.equal(placed.status, 201, placed.text);
    }
  }

  before(async () => {
    [other, empty] = await Promise.all([suite.gateway.newPartner(), suite.gateway.newPartner()]);
    await Promise.all([placeAll(suite.partner), placeAll(other)]);
    ids = (await page('REST', { operation: 'listOrders', query: { limit: '100' } })).ids;
    await eventually(async () => {
      const half = await page('REST', { operation: 'listOrders', query: { state: 'partially_filled' } });
      assert.equal(half.ids.length, 2);
      for (const partner of [suite.partner, other]) {
        const events = await page('REST', { operation: 'listEvents', query: { limit: '100' } }, partner);
        assert.equal(events.ids.length, orderCount + 2);
      }
    });
  });

  for (const protocol of protocols) {
    it(`${protocol}: a page has 25 orders unless it is asked for more, newest first`, async () => {
      assert.equal(ids.length, orderCount);
      assert.deepEqual([...ids].sort().reverse(), ids);
      const first = await page(protocol, { operation: 'listOrders' });
      assert.deepEqual([first.ids, first.hasMore], [ids.slice(0, 25), true]);
      const second = await page(protocol, { operation: 'listOrders', query: { cursor: first.cursor ?? '' } });
      assert.deepEqual(second, { ids: ids.slice(25), hasMore: false, cursor: null });
    });

    for (const limit of [1, 29, 30, 31, 100]) {
      it(`${protocol}: limit ${limit} of ${orderCount} orders`, async () => {
        const first = await page(protocol, { operation: 'listOrders', query: { limit: String(limit) } });
        assert.deepEqual(first.ids, ids.slice(0, limit));
        assert.equal(first.hasMore, limit < orderCount);
        assert.equal(first.cursor !== null, limit < orderCount);
      });
    }

    it(`${protocol}: pages of any size join to the whole, through either protocol`, async () => {
      const seen: string[] = [];
      let cursor: string | null = null;
      for (const limit of [1, 7, 13, 100]) {
        const query: Record<string, string> = { limit: String(limit), ...(cursor === null ? {} : { cursor }) };
        const next: Page = await page(limit === 7 ? 'REST' : protocol, { operation: 'listOrders', query });
        seen.push(...next.ids);
        cursor = next.cursor;
      }
      assert.deepEqual(seen, ids);
    });

    const byFilter: readonly (readonly [string, (partner: TestPartner) => Record<string, string>, number])[] = [
      ['a state', () => ({ state: 'partially_filled' }), 2],
      ['a state no order is in', () => ({ state: 'uncertain' }), 0],
      ['an account', ({ accounts }) => ({ account: accounts[1] ?? '' }), 15],
      ['an account in lower case', ({ accounts }) => ({ account: accounts[1]?.toLowerCase() ?? '' }), 15],
      ["another partner's account", () => ({ account: other.account }), 0],
      ['a symbol', () => ({ symbol: 'SIM-HALF' }), 2],
      ['a symbol in lower case', () => ({ symbol: 'sim-half' }), 2],
      ['part of a symbol', () => ({ symbol: 'SIM' }), 0],
      ['a client_reference', () => ({ client_reference: 'four of them' }), 4],
      ['a client_reference in another case', () => ({ client_reference: 'Four of them' }), 0],
      ['a client_reference with a space more', () => ({ client_reference: 'four of them ' }), 0],
      ['a time long past', () => ({ updated_since: '2020-01-01T00:00:00Z' }), orderCount],
      ['a time to come', () => ({ updated_since: '2999-01-01T00:00:00Z' }), 0],
      ['two filters', ({ accounts }) => ({ client_reference: 'four of them', account: accounts[0] ?? '' }), 2],
      ['two filters nothing passes', () => ({ symbol: 'SIM-HALF', client_reference: 'ref 9' }), 0],
    ];
    for (const [name, query, count] of byFilter) {
      it(`${protocol}: the filter by ${name} shows ${count}`, async () => {
        const call = { operation: 'listOrders', query: { limit: '100', ...query(suite.partner) } } as const;
        const { ids: found, cursor } = await page(protocol, call);
        assert.equal(found.length, count);
        assert.equal(cursor, null);
        assert.deepEqual(
          found,
          ids.filter((id) => found.includes(id)),
        );
      });
    }

    it(`${protocol}: updated_since shows what changed in that very second`, async () => {
      const newest = await suite.gateway.rest('GET', `/v1/orders/${ids[0]}`, { key: suite.partner.key });
      const query = { updated_since: newest.body.updated_at };
      const { ids: found } = await page(protocol, { operation: 'listOrders', query });
      assert.ok(found.includes(ids[0] ?? ''));
    });

    it(`${protocol}: events come oldest first, and what is empty returns the cursor it was asked with`, async () => {
      const first = await page(protocol, { operation: 'listEvents' });
      assert.deepEqual([first.ids.length, first.hasMore], [25, true]);
      const second = await page(protocol, { operation: 'listEvents', query: { cursor: first.cursor ?? '' } });
      assert.deepEqual([second.ids.length, second.hasMore], [orderCount + 2 - 25, false]);
      const third = await page(protocol, { operation: 'listEvents', query: { cursor: second.cursor ?? '' } });
      assert.deepEqual(third, { ids: [], hasMore: false, cursor: second.cursor });
      assert.equal(new Set([...first.ids, ...second.ids]).size, orderCount + 2);
    });

    it(`${protocol}: a feed without events has a cursor too`, async () => {
      const first = await page(protocol, { operation: 'listEvents' }, empty);
      assert.equal(typeof first.cursor, 'string');
      const again = await page(protocol, { operation: 'listEvents', query: { cursor: first.cursor ?? '' } }, empty);
      assert.deepEqual(again, { ids: [], hasMore: false, cursor: first.cursor });
    });

    it(`${protocol}: an order's history comes in pages, oldest first`, async () => {
      const id = ids[0];
      const whole = await page(protocol, { operation: 'getOrderHistory', id });
      assert.ok(whole.ids.length >= 2);
      assert.deepEqual([whole.hasMore, whole.cursor], [false, null]);
      assert.deepEqual(
        whole.ids,
        whole.ids.map((_, at) => String(at + 1)),
      );
      const first = await page(protocol, { operation: 'getOrderHistory', id, query: { limit: '1' } });
      assert.deepEqual([first.ids, first.hasMore], [['1'], true]);
      const rest = await page(protocol, { operation: 'getOrderHistory', id, query: { cursor: first.cursor ?? '' } });
      assert.deepEqual(rest.ids, whole.ids.slice(1));
    });

    it(`${protocol}: an order's events come in pages, oldest first, as they are in the feed`, async () => {
      const filled = ids.at(-1);
      const feed = await suite.protocols.answers('REST', {
        operation: 'listEvents',
        key: suite.partner.key,
        query: { limit: '100' },
      });
      const about = feed.body.data.filter(({ data }: { data: { id: string } }) => data.id === filled);
      const wanted = about.map(({ id }: { id: string }) => id);
      assert.ok(wanted.length >= 2);
      const whole = await page(protocol, { operation: 'listOrderEvents', id: filled });
      assert.deepEqual(whole, { ids: wanted, hasMore: false, cursor: null });
      const first = await page(protocol, { operation: 'listOrderEvents', id: filled, query: { limit: '1' } });
      assert.deepEqual([first.ids, first.hasMore], [wanted.slice(0, 1), true]);
      const query = { cursor: first.cursor ?? '' };
      assert.deepEqual(
        (await page(protocol, { operation: 'listOrderEvents', id: filled, query })).ids,
        wanted.slice(1),
      );
    });
  }

  /** Cursors, where they were issued, and where they are used. */
  const issuers: Readonly<Record<string, () => Promise<string>>> = {
    'all orders': () => cursorOf({ operation: 'listOrders' }),
    'pending orders': () => cursorOf({ operation: 'listOrders', query: { state: 'pending' } }),
    'orders of a symbol': () => cursorOf({ operation: 'listOrders', query: { symbol: 'SIM-REST' } }),
    'orders of a reference': () => cursorOf({ operation: 'listOrders', query: { client_reference: 'four of them' } }),
    'orders of an account': () => cursorOf({ operation: 'listOrders', query: { account: suite.partner.account } }),
    'orders since a time': () =>
      cursorOf({ operation: 'listOrders', query: { updated_since: '2020-01-01T00:00:00Z' } }),
    "another partner's orders": () => cursorOf({ operation: 'listOrders' }, other),
    events: () => cursorOf({ operation: 'listEvents' }),
    "another partner's events": () => cursorOf({ operation: 'listEvents' }, other),
    "an order's history": () => cursorOf({ operation: 'getOrderHistory', id: ids[0] }),
    "an order's events": () => cursorOf({ operation: 'listOrderEvents', id: ids.at(-1) }),
  };
  const users: Readonly<Record<string, () => Call>> = {
    'all orders': () => ({ operation: 'listOrders' }),
    'pending orders': () => ({ operation: 'listOrders', query: { state: 'pending' } }),
    'filled orders': () => ({ operation: 'listOrders', query: { state: 'filled' } }),
    'pending orders of a symbol': () => ({ operation: 'listOrders', query: { state: 'pending', symbol: 'SIM-REST' } }),
    events: () => ({ operation: 'listEvents' }),
    "another order's history": () => ({ operation: 'getOrderHistory', id: ids[1] }),
    "another order's events": () => ({ operation: 'listOrderEvents', id: ids[1] }),
  };

  async function cursorOf(call: Call, partner = suite.partner): Promise<string> {
    const { cursor } = await page('REST', { ...call, query: { ...call.query, limit: '1' } }, partner);
    assert.ok(cursor);
    return cursor;
  }

  const refused = { code: 'invalid_request', param: 'cursor' } as const;
  const withCursor = (call: Call, cursor: string): Call => ({
    ...call,
    key: suite.partner.key,
    query: { ...call.query, cursor },
  });

  for (const [from, issue] of Object.entries(issuers)) {
    for (const [to, use] of Object.entries(users)) {
      if (from === to) continue;
      it(`a cursor of ${from} is answered invalid_request in ${to}`, async () => {
        const cursor = await issue();
        for (const protocol of protocols) await suite.protocols.refuses(protocol, withCursor(use(), cursor), refused);
      });
    }
  }

  it('a cursor of a filter in lower case works in upper case', async () => {
    const cursor = await cursorOf({ operation: 'listOrders', query: { symbol: 'sim-rest' } });
    const next = await page('REST', { operation: 'listOrders', query: { symbol: 'SIM-REST', cursor } });
    assert.equal(next.ids.length, 25);
  });

  const tampered: readonly (readonly [string, (cursor: string) => string])[] = [
    ['another first character', (cursor) => (cursor.startsWith('A') ? 'B' : 'A') + cursor.slice(1)],
    ['another character inside', (cursor) => cursor.slice(0, 30) + (cursor[30] === 'A' ? 'B' : 'A') + cursor.slice(31)],
    ['its last character missing', (cursor) => cursor.slice(0, -1)],
    ['a character more', (cursor) => `${cursor}A`],
    ['padding', (cursor) => `${cursor}=`],
    ['a space after it', (cursor) => `${cursor} `],
    ['a line end after it', (cursor) => `${cursor}\n`],
    ['its case turned', (cursor) => cursor.toLowerCase()],
    ['itself twice', (cursor) => cursor + cursor],
    ['its first half alone', (cursor) => cursor.slice(0, cursor.length / 2)],
  ];
  for (const operation of ['listOrders', 'listEvents'] as const) {
    for (const [name, tamper] of tampered) {
      it(`a cursor of ${operation} with ${name} is answered invalid_request`, async () => {
        const cursor = await cursorOf({ operation });
        for (const protocol of protocols)
          await suite.protocols.refuses(protocol, withCursor({ operation }, tamper(cursor)), refused);
      });
    }
  }
});
