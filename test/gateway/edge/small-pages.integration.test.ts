import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { statement } from '../../../src/gateway/store/statement.ts';
import { apply } from '../../support/applications.ts';
import { described } from '../../support/described.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { eventually } from '../../support/eventually.ts';

const rows = 5;

/** These are tested elsewhere: what the broker lists, requests (each page is one more), and what has one row or none here. */
const others = new Set([
  ...['positions', 'contract-notes', 'transactions'].map((name) => `/v1/accounts/{account}/${name}`),
  ...['/v1/market/calendar', '/v1/instruments', '/v1/sandbox/requests', '/v1/sandbox/webhook/deliveries'],
  ...['applications', 'allocations'].map((kind) => `/v1/${kind}/{id}/events`),
]);

/** The paths whose GET has a parameter. */
function pathsWith(parameter: string): string[] {
  const has = (operations: object) => {
    const { get } = operations as { get?: { parameters?: readonly { name?: string }[] } };
    return get?.parameters?.some(({ name }) => name === parameter) ?? false;
  };
  return Object.entries<object>(described.paths)
    .filter(([path, operations]) => has(operations) && !others.has(path))
    .map(([path]) => path);
}

describe('lists whose rows are all of one instant', () => {
  const suite = useGateway(undefined, { accounts: rows });
  let first: Record<string, string> = {};

  before(async () => {
    const { gateway, partner } = suite;
    await gateway.fund(partner, 1_000_000n);
    await gateway.fund(partner, 1_000_000n);
    for (let at = 0; at < rows; at += 1) {
      await gateway.place(partner, { symbol: 'SIM-FILL', quantity: 10 + at });
      await gateway.allocate(partner, { amount_kobo: 1_000 + at });
      await gateway.withdraw(partner, { destination: 'bank_account', amount_kobo: 1_000 + at });
      await apply(gateway, partner, { last_name: `Okafor ${'ABCDE'[at]}` });
      await gateway.rest('POST', '/v1/keys', { key: partner.key, body: { scopes: ['read'] } });
    }
    const newest = async (kind: string) => {
      const { body } = await gateway.rest('GET', `/v1/${kind}`, { key: partner.key });
      assert.equal(body.data.length, rows, JSON.stringify(body));
      return body.data[0];
    };
    const kinds = ['orders', 'allocations', 'withdrawals', 'applications'];
    const [order, allocation, withdrawal, application] = await eventually(async () => {
      const found = await Promise.all(kinds.map(newest));
      assert.deepEqual([found[0].state, found[1].state, found[2].state], ['filled', 'booked', 'completed']);
      const events = await gateway.rest('GET', '/v1/sandbox/events?limit=100', { key: partner.key });
      assert.ok(events.body.data.length >= 4 * rows);
      return found;
    });
    first = { orders: order.id, allocations: allocation.id, withdrawals: withdrawal.id, applications: application.id };
    const instant = new Date('2026-03-02T09:00:00Z');
    for (const table of ['accounts', ...kinds]) {
      await gateway.database.write(
        statement(`UPDATE ${table} SET created_at = ? WHERE partner_id = ?`, instant, partner.id),
      );
    }
  });

  async function checkPages(path: string, filter = ''): Promise<void> {
    const { gateway, partner } = suite;
    const kind = path.split('/')[2] ?? '';
    const url = path.replace('{id}', first[kind] ?? '').replace('{account}', partner.account);
    const read = async (query: string) => {
      const answer = await gateway.rest('GET', `${url}?${query}${filter}`, { key: partner.key });
      assert.equal(answer.status, 200, answer.text);
      // Each request is one more use of the key.
      return JSON.parse(answer.text, (name, value) => (name === 'last_used_at' ? null : value));
    };
    const { data: whole, has_more: isMore } = await read('limit=100');
    assert.equal(isMore, false);
    assert.ok(whole.length > 1, `there are ${whole.length} rows`);
    const seen: unknown[] = [];
    for (let cursor = ''; ; ) {
      const page = await read(`limit=1${cursor}`);
      seen.push(...page.data);
      assert.ok(seen.length <= whole.length, 'the pages end');
      if (!page.has_more) break;
      cursor = `&cursor=${page.next_cursor}`;
    }
    assert.deepEqual(seen, whole);
  }

  for (const path of pathsWith('cursor')) {
    it(`${path} shows each row once in pages of one row, and in the same order`, () => checkPages(path));
  }

  for (const path of pathsWith('updated_since')) {
    for (const [name, changedAt] of [
      ['after it', "'2027-03-02 09:00:00'"],
      ['after it and at it', "IF(RIGHT(id, 1) < 'm', '2027-03-02 09:00:00', '2027-01-01 00:00:00')"],
    ] as const) {
      it(`${path} shows each row once in pages of one row when all were made before updated_since, and changed ${name}`, async () => {
        const table = path.split('/')[2];
        const { gateway, partner } = suite;
        await gateway.database.write(
          statement(`UPDATE ${table} SET updated_at = ${changedAt} WHERE partner_id = ?`, partner.id),
        );
        await checkPages(path, '&updated_since=2027-01-01T00:00:00Z');
      });
    }
  }
});
