import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { OrderSide, Orders, OrderType } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply, goodApplication } from '../../../support/applications.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { createKey } from '../../../support/keys.ts';
import { verify, WebhookReceiver } from '../../../support/webhook-receiver.ts';

const resting = { symbol: 'SIM-REST', quantity: 300, price_kobo: 1_000 };

describe('what a sandbox shows its partners', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  let receiver: WebhookReceiver;
  let admin: ReturnType<typeof adminClient>;

  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway(receiver.variables);
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin?.close();
    await gateway?.stop();
    await receiver?.close();
  });

  async function withEndpoint(path: string): Promise<{ partner: TestPartner; secret: string }> {
    const partner = await gateway.newPartner();
    const wanted = { partnerId: partner.id, url: receiver.url(path) };
    const { secret } = await admin.webhooks.registerEndpoint(wanted, admin.options);
    return { partner, secret };
  }

  async function get({ key }: { readonly key: string }, path: string, headers: Record<string, string> = {}) {
    const answer = await gateway.rest('GET', path, { key, headers });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  const test = ({ key }: TestPartner) => gateway.rest('POST', '/v1/sandbox/webhook/test', { key, body: {} });

  describe('of webhooks', () => {
    it('a test event arrives signed, and its answer is what the endpoint said', async () => {
      const { partner, secret } = await withEndpoint('/test');
      receiver.reply('/test', () => 410);
      const { status, body } = await test(partner);
      assert.deepEqual([status, body.outcome, body.status, body.error], [200, 'event_failed', 410, 'status']);
      const [received] = receiver.at('/test');
      assert.ok(received !== undefined);
      verify(received, secret);
      const event = JSON.parse(received.body);
      assert.deepEqual([event.object, event.type, event.id], ['webhook_test', 'webhook.test', body.id]);
      assert.deepEqual((await get(partner, '/v1/events')).data, []);
      assert.deepEqual((await get(partner, '/v1/sandbox/webhook/deliveries')).data, []);
    });

    it('there is nothing to test or to list without an endpoint, and the error says who registers one', async () => {
      const partner = await gateway.newPartner();
      const lists = await gateway.rest('GET', '/v1/sandbox/webhook/deliveries', { key: partner.key });
      for (const { status, body } of [await test(partner), await test(partner), lists]) {
        assert.deepEqual([status, body.error.code], [404, 'not_found']);
        assert.match(body.error.message, /operator registers/);
      }
    });

    it('a second test at once is refused and not sent, a test of another partner is', async () => {
      const [{ partner }, { partner: other }] = [await withEndpoint('/slow'), await withEndpoint('/other')];
      receiver.slow('/slow', 500);
      const [first, second, others] = await Promise.all([test(partner), test(partner), test(other)]);
      assert.deepEqual([first.status, second.status].sort(), [200, 429]);
      const refused = first.status === 429 ? first : second;
      assert.deepEqual([refused.body.error.code, refused.headers.get('retry-after')], ['rate_limited', '1']);
      assert.equal(others.status, 200);
      assert.equal(receiver.at('/slow').length, 1);
      await eventually(async () => assert.equal((await test(partner)).status, 200));
    });

    it('deliveries are listed newest first in pages, each with its attempts and answers, and to their partner only', async () => {
      const [{ partner }, { partner: other }] = [await withEndpoint('/listed'), await withEndpoint('/nothing')];
      receiver.reply('/listed', ({ version }) => (version === 1 ? 400 : 200));
      const orders: string[] = [];
      for (let count = 0; count < 3; count += 1) orders.push((await gateway.place(partner, resting)).body.id);
      const all = await eventually(async () => {
        const { data } = await get(partner, '/v1/sandbox/webhook/deliveries');
        assert.deepEqual(
          data.map(({ about, state, version, attempts }: Record<string, unknown>) => [
            ...[about, state, version, (attempts as unknown[]).length > 0],
          ]),
          [
            [orders[2], 'delivered', 3, true],
            [orders[1], 'delivered', 2, true],
            [orders[0], 'waiting', 1, true],
          ],
        );
        return data;
      });
      const [{ outcome, status, error, number }] = all[2].attempts;
      assert.deepEqual([outcome, status, error, number], ['event_failed', 400, 'status', 1]);
      assert.ok(all[2].next_attempt_at > all[2].created_at);
      const first = await get(partner, '/v1/sandbox/webhook/deliveries?limit=2');
      assert.deepEqual([first.data.length, first.has_more], [2, true]);
      const next = await get(partner, `/v1/sandbox/webhook/deliveries?limit=2&cursor=${first.next_cursor}`);
      assert.deepEqual([...first.data, ...next.data], all);
      assert.deepEqual([next.has_more, next.next_cursor], [false, null]);
      assert.deepEqual((await get(other, '/v1/sandbox/webhook/deliveries')).data, []);
      const foreign = `/v1/sandbox/webhook/deliveries?cursor=${first.next_cursor}`;
      const refused = await gateway.rest('GET', foreign, { key: other.key });
      assert.deepEqual([refused.status, refused.body.error.param], [400, 'cursor']);
    });
  });

  describe('of requests', () => {
    interface Listed {
      readonly id: string;
      readonly request_body: string | null;
      readonly answer_body: string | null;
      readonly [member: string]: unknown;
    }
    const listed = async (partner: { readonly key: string }): Promise<Listed[]> =>
      (await get(partner, '/v1/sandbox/requests?limit=100', { 'marina-unlogged': 'true' })).data;

    it('each is there with its answer, newest first, over every protocol, and for its own partner only', async () => {
      const [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
      const placed = await gateway.place(partner, resting);
      await gateway.place(partner, { ...resting, quantity: 0 });
      await gateway.rest('GET', '/v1/nowhere?bvn=22222222222', { key: partner.key });
      await get(other, '/v1/wallet');
      const orders = createGrpcClient(Orders, `127.0.0.1:${gateway.app.grpcPort}`);
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${partner.key}`);
      metadata.set('idempotency-key', randomUUID());
      const order = { account: partner.account, symbol: 'SIM-REST', quantity: 5n, priceKobo: 1_000n };
      const made = await orders.createOrder(
        { ...order, side: OrderSide.BUY, type: OrderType.LIMIT },
        { ...callTimeout, metadata },
      );
      orders.close();
      const [grpc, nowhere, refused, first, ...more] = await listed(partner);
      assert.deepEqual(more, []);
      assert.ok(grpc && nowhere && refused && first);
      assert.deepEqual(
        [first.id, first.protocol, first.method, first.path, first.operation, first.status, first.code, first.about],
        [
          placed.headers.get('x-request-id'),
          ...['rest', 'POST', '/v1/orders', 'Orders.CreateOrder', 201, null, placed.body.id],
        ],
      );
      assert.equal(first.key, partner.keyId);
      assert.equal(JSON.parse(first.request_body ?? '').quantity, 300);
      assert.deepEqual(JSON.parse(first.answer_body ?? ''), placed.body);
      assert.deepEqual([refused.status, refused.code], [400, 'invalid_request']);
      assert.equal(JSON.parse(refused.answer_body ?? '').error.param, 'quantity');
      assert.deepEqual([nowhere.status, nowhere.path, nowhere.operation], [404, '/v1/nowhere?bvn=…', null]);
      assert.deepEqual([grpc.protocol, grpc.status, grpc.about], ['grpc', 201, made.id]);
      assert.equal(JSON.parse(grpc.answer_body ?? '').id, made.id);
      assert.deepEqual(
        (await listed(other)).map(({ path }) => path),
        ['/v1/wallet'],
      );
    });

    it('nothing that is secret or about a customer is in it, wherever it was sent', async () => {
      const partner = await gateway.newPartner();
      const { key } = partner;
      await apply(gateway, partner);
      await gateway.rest('POST', '/v1/orders', { key, idempotencyKey: 'a', body: goodApplication });
      await gateway.rest('POST', '/v1/orders', { key, idempotencyKey: 'b', body: `{"bvn": "${goodApplication.bvn}"` });
      await gateway.place(partner, { ...resting, client_reference: key.slice(0, 60) });
      const { body: created } = await gateway.rest('POST', '/v1/keys', { key, body: { scopes: ['read'] } });
      await get(partner, '/v1/keys');
      const data = await listed(partner);
      const text = JSON.stringify(data);
      const personal = Object.values(goodApplication).filter((value) => value.length > 4);
      for (const value of [...personal, key, key.slice(12, 60), created.secret]) {
        assert.ok(!text.includes(value), `${value} is not shown`);
      }
      const bodies = data.map(({ operation, request_body: body }) => [operation, body === null]);
      assert.deepEqual(bodies.at(-1), ['Applications.CreateApplication', true]);
      assert.match(data.at(-2)?.request_body ?? '', /"first_name":"…"/);
      assert.equal(data.at(-3)?.request_body, null, 'what is no JSON is not kept');
      assert.match(data.at(-4)?.request_body ?? '', /"client_reference":"marina_test_…"/);
      const ofKeys = data.filter(({ operation }) => String(operation).startsWith('Keys.'));
      assert.equal(ofKeys.length, 2);
      for (const each of ofKeys) assert.deepEqual([each.request_body, each.answer_body], [null, null]);
    });

    it('a BVN is neither listed nor logged, wherever it was sent', async () => {
      const partner = await gateway.newPartner();
      const { key, account } = partner;
      const bvn = '22212345678';
      const fault = { call: 'cancel_order', fault: 'hang' };
      for (const [method, path, body] of [
        ['POST', '/v1/sandbox/faults', { ...fault, id: bvn }],
        ['POST', '/v1/sandbox/faults', { ...fault, account: bvn }],
        ['POST', '/v1/sandbox/faults', { ...fault, account: { bvn }, [bvn]: [{ [bvn]: bvn }] }],
        ['POST', '/v1/sandbox/funds', { account, cash_kobo: Number(bvn) }],
        ['POST', '/v1/allocations', { account, amount_kobo: 1_000, client_reference: bvn }],
        ['GET', `/v1/orders/${bvn}`],
        ['GET', `/v1/accounts/${bvn}/balance`],
        ['GET', `/v1/instruments?symbol_prefix=${bvn}&${bvn}=${bvn}`],
        ['GET', `/v1/bvn/${bvn}?bvn=${bvn}`],
        ['DELETE', `/v1/keys/${bvn}`],
        ['GET', '/v1/allocations'],
      ] as const) {
        await gateway.rest(method, path, { key, idempotencyKey: bvn, body, headers: { 'x-request-id': bvn } });
        for (const text of [JSON.stringify((await listed(partner))[0]), gateway.logged.join('')]) {
          assert.ok(!text.includes(bvn), `${method} ${path}: ${text.slice(0, 2_000)}`);
        }
      }
    });

    it('a request without a good key is nobody’s, and one that asks not to be listed is not', async () => {
      const partner = await gateway.newPartner({ scopes: [Scope.READ] });
      const { id, key } = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.KEYS] });
      await gateway.rest('DELETE', `/v1/keys/${id}`, { key });
      assert.equal((await gateway.rest('GET', '/v1/wallet', { key })).status, 401);
      await get(partner, '/v1/wallet', { 'marina-unlogged': 'true' });
      await gateway.place(partner, resting);
      const data = await listed(partner);
      assert.deepEqual(
        data.map(({ path, status }) => [path, status]),
        [
          ['/v1/orders', 403],
          [`/v1/keys/${id}`, 200],
        ],
      );
    });

    it('a partner’s last 200 are kept, a long body is cut, and pages follow each other', async () => {
      const partner = await gateway.newPartner();
      await gateway.place(partner, resting);
      for (let count = 0; count < 12; count += 1) await gateway.place(partner, resting);
      await get(partner, '/v1/orders');
      const [{ answer_body: long }] = (await listed(partner)) as [Listed];
      assert.equal(Buffer.byteLength(long ?? ''), 4_096 + Buffer.byteLength('…'));
      for (let count = 0; count < 200; count += 1) await get(partner, '/v1/market');
      const first = await get(partner, '/v1/sandbox/requests?limit=100', { 'marina-unlogged': 'true' });
      const path = `/v1/sandbox/requests?limit=100&cursor=${first.next_cursor}`;
      const second = await get(partner, path, { 'marina-unlogged': 'true' });
      assert.deepEqual([first.data.length, second.data.length, second.has_more], [100, 100, false]);
      const ids = new Set([...first.data, ...second.data].map(({ id: each }: Listed) => each));
      assert.equal(ids.size, 200);
    });
  });

  it('the last events come newest first, and the feed goes on after them', async () => {
    const [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
    const empty = await get(partner, '/v1/sandbox/events');
    assert.deepEqual(empty, { object: 'list', has_more: false, next_cursor: null, data: [], feed_cursor: null });
    for (let count = 0; count < 3; count += 1) await gateway.place(partner, resting);
    const { data: feed } = await get(partner, '/v1/events');
    const latest = await get(partner, '/v1/sandbox/events?limit=2');
    assert.deepEqual([latest.object, latest.data], ['list', [feed[2], feed[1]]]);
    const earlier = await get(partner, `/v1/sandbox/events?limit=2&cursor=${latest.next_cursor}`);
    assert.deepEqual([latest.has_more, earlier.data, earlier.has_more], [true, [feed[0]], false]);
    const cursor = `?cursor=${latest.next_cursor}`;
    const foreign = await gateway.rest('GET', `/v1/sandbox/events${cursor}`, { key: other.key });
    assert.deepEqual([foreign.status, foreign.body.error.param], [400, 'cursor']);
    const nothing = await get(partner, `/v1/events?cursor=${latest.feed_cursor}`);
    assert.deepEqual(nothing.data, []);
    const { body: placed } = await gateway.place(partner, resting);
    const next = await get(partner, `/v1/events?cursor=${latest.feed_cursor}`);
    assert.deepEqual([next.data.length, next.data[0].data.id], [1, placed.id]);
    assert.deepEqual((await get(other, '/v1/sandbox/events')).data, []);
  });
});

describe('the clock of a sandbox', () => {
  it('shows the time, and how far an operator has moved it', async () => {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const { key } = await gateway.newPartner();
      const clock = async () => (await gateway.rest('GET', '/v1/sandbox/clock', { key })).body;
      assert.equal((await clock()).ahead_seconds, 0);
      await admin.clock.advanceClock({ by: { seconds: 86_400n } }, admin.options);
      const { ahead_seconds: ahead, now, day } = await clock();
      assert.equal(ahead, 86_400);
      assert.ok(Date.parse(now) > Date.now() + 86_000_000);
      assert.match(day, /^\d{4}-\d\d-\d\d$/);
    } finally {
      admin.close();
      await gateway.stop();
    }
  });
});

describe('a live gateway', () => {
  it('has nothing of this: every path is unknown', async () => {
    const gateway = await startGateway({ MARINA_ENVIRONMENT: 'live', MARINA_SIMULATOR_ADDRESS: '' });
    try {
      for (const [method, path] of [
        ['POST', '/v1/sandbox/webhook/test'],
        ['GET', '/v1/sandbox/webhook/deliveries'],
        ['GET', '/v1/sandbox/requests'],
        ['GET', '/v1/sandbox/events'],
        ['GET', '/v1/sandbox/clock'],
        ['GET', '/docs/workbench'],
        ['GET', '/docs/workbench.js'],
      ] as const) {
        const { status, body } = await gateway.rest(method, path);
        assert.deepEqual([status, body.error.code], [404, 'not_found'], path);
      }
    } finally {
      await gateway.stop();
    }
  });
});
