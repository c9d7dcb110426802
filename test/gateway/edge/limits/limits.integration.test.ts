import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { atMost } from '../../../../src/kit/at-most.ts';
import { lagosDay, nextLagosMidnight } from '../../../../src/kit/clock.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';

const toTimestamp = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z');

describe("a partner's limits", () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  const limitsOf = async (partner: TestPartner) => {
    const answer = await gateway.rest('GET', '/v1/limits', { key: partner.key });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const standard = {
    requestsPerSecond: undefined,
    requestsBurst: undefined,
    requestsUnderWay: undefined,
    ordersKoboPerDay: undefined,
    allocationsKoboPerDay: undefined,
  };

  it('are the defaults until others are agreed, and nothing is used at first', async () => {
    const partner = await gateway.newPartner({ limits: standard });
    const now = Date.now();
    const { text } = await gateway.rest('GET', '/v1/limits', { key: partner.key });
    const resetsAt = toTimestamp(nextLagosMidnight(now));
    assert.equal(
      text,
      JSON.stringify({
        object: 'limits',
        day: lagosDay(now),
        requests_per_second: { limit: 20, burst: 40 },
        requests_under_way: { limit: 5, used: 0, remaining: 5, resets_at: null },
        orders_kobo_per_day: { limit: 1e9, used: 0, remaining: 1e9, resets_at: resetsAt },
        allocations_kobo_per_day: { limit: 5e9, used: 0, remaining: 5e9, resets_at: resetsAt },
        per_request: { order_quantity: 1e8, allocation_kobo: 1e10, request_body_bytes: 16_384, withdrawal_kobo: 1e10 },
      }),
    );
  });

  it('are not used up by requests that waited while keys could not be read', async () => {
    const { key } = await gateway.newPartner({ limits: standard });
    const lock = await createConnection(gateway.databaseUrl);
    const read = async () => (await gateway.rest('GET', '/v1/limits', { key })).status;
    const readBurst = () => Promise.all(Array.from({ length: 40 }, read));
    try {
      await lock.query('LOCK TABLES api_keys WRITE');
      const first = readBurst();
      // Longer than a request waits for its key.
      await atMost(3_000, first);
      const second = readBurst();
      await eventually(async () => {
        assert.ok((await scrape(gateway.app.opsPort)).value('marina_requests_under_way') >= 40);
      });
      await lock.query('UNLOCK TABLES');
      assert.ok(!(await second).includes(429), 'those that wait are no more than a burst');
      assert.deepEqual(new Set(await first), new Set([503]), 'they wait at most two seconds');
    } finally {
      await lock.end();
    }
  });

  it('are what was agreed with the partner, and show what it has used', async () => {
    const limits = {
      requestsPerSecond: 100,
      requestsBurst: 300,
      requestsUnderWay: 7,
      ordersKoboPerDay: 10n ** 17n,
      allocationsKoboPerDay: 1_000n,
    };
    const partner = await gateway.newPartner({ limits });
    await gateway.fund(partner, 5_000n);
    const order = { symbol: 'SIM-REST', side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000 };
    const placed = await gateway.place(partner, { account: partner.account, ...order });
    assert.equal(placed.status, 201, placed.text);
    const allocated = await gateway.allocate(partner, { account: partner.account, amount_kobo: 400 });
    assert.equal(allocated.status, 201, allocated.text);
    const shown = await limitsOf(partner);
    assert.deepEqual(shown.requests_per_second, { limit: 100, burst: 300 });
    assert.deepEqual(shown.requests_under_way, { limit: 7, used: 0, remaining: 7, resets_at: null });
    const used = ({ limit, used, remaining }: Record<string, number>) => [limit, used, remaining];
    assert.deepEqual(used(shown.orders_kobo_per_day), [1e17, 100_000, 1e17 - 100_000]);
    assert.deepEqual(used(shown.allocations_kobo_per_day), [1_000, 400, 600]);

    const over = await gateway.allocate(partner, { account: partner.account, amount_kobo: 601 });
    assert.deepEqual([over.status, over.body.error.code], [422, 'limit_exceeded']);
    assert.match(over.body.error.message, /limit.* of 1000 kobo .* 400 kobo are used, 600 remain.* resets at \d{4}-/);
    const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
    assert.equal(cancelled.status, 200, cancelled.text);
    assert.deepEqual(used((await limitsOf(partner)).orders_kobo_per_day), [1e17, 0, 1e17]);
  });

  it('count requests in progress while they are, also one whose client has left', async () => {
    const partner = await gateway.newPartner({ limits: { requestsUnderWay: undefined } });
    const order = { account: partner.account, symbol: 'SIM-HANG', side: 'buy', quantity: 1, type: 'market' };
    const leaving = new AbortController();
    const placing = fetch(`http://127.0.0.1:${gateway.app.restPort}/v1/orders`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${partner.key}`,
        'content-type': 'application/json',
        'idempotency-key': 'left',
      },
      body: JSON.stringify(order),
      signal: leaving.signal,
    }).catch(() => undefined);
    const state = async () => {
      const { body } = await gateway.rest('GET', '/v1/orders', { key: partner.key });
      return body.data[0]?.state;
    };
    await eventually(async () => assert.equal(await state(), 'sending'));
    leaving.abort();
    await placing;
    const { requests_under_way: inProgress } = await limitsOf(partner);
    assert.equal(await state(), 'sending');
    assert.deepEqual(inProgress, { limit: 5, used: 1, remaining: 4, resets_at: null });
    await eventually(async () => assert.equal((await limitsOf(partner)).requests_under_way.used, 0));
    assert.notEqual(await state(), 'sending');
  });
});

describe('Lagos midnight', () => {
  it('begins a day of limits, and an order cancelled after it gives back to its own day', async () => {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 100_000n } });
      const shown = async () => (await gateway.rest('GET', '/v1/limits', { key: partner.key })).body;
      const order = {
        account: partner.account,
        symbol: 'SIM-REST',
        side: 'buy',
        quantity: 100,
        type: 'limit',
        price_kobo: 1_000,
        time_in_force: 'gtc',
      };
      const placed = await gateway.place(partner, order);
      assert.equal(placed.status, 201, placed.text);
      const full = await gateway.place(partner, { ...order, quantity: 1 });
      assert.equal(full.body.error.code, 'limit_exceeded');
      const today = await shown();
      assert.equal(today.orders_kobo_per_day.used, 100_000);

      const untilMidnightMs = Date.parse(today.orders_kobo_per_day.resets_at) - Date.now();
      const seconds = BigInt(Math.ceil(untilMidnightMs / 1_000));
      await admin.clock.advanceClock({ by: { seconds } }, admin.options);
      const tomorrow = await shown();
      const midnight = Date.parse(today.orders_kobo_per_day.resets_at);
      assert.equal(tomorrow.day, lagosDay(midnight));
      assert.notEqual(tomorrow.day, today.day);
      assert.equal(tomorrow.orders_kobo_per_day.resets_at, toTimestamp(nextLagosMidnight(midnight)));
      assert.deepEqual([tomorrow.orders_kobo_per_day.used, tomorrow.orders_kobo_per_day.remaining], [0, 100_000]);

      const next = await gateway.place(partner, { ...order, quantity: 60 });
      assert.equal(next.status, 201, next.text);
      const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
      assert.equal(cancelled.body.state, 'cancelled', cancelled.text);
      assert.equal((await shown()).orders_kobo_per_day.used, 60_000, 'yesterday gets it back, not today');
      const over = await gateway.place(partner, { ...order, quantity: 41 });
      assert.equal(over.body.error.code, 'limit_exceeded');
    } finally {
      admin.close();
      await gateway.stop();
    }
  });
});
