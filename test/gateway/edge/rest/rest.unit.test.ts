import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ConnectionLimits } from '../../../../src/gateway/edge/bounds.ts';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { storedMessage } from '../../../../src/gateway/edge/json/stored.ts';
import { EventSchema, ListEventsResponseSchema } from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import {
  type CreateOrderRequest,
  type ListOrdersRequest,
  ListOrdersResponseSchema,
  OrderSide,
  OrderState,
  TimeInForce,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import {
  goodOrder,
  openServers,
  order,
  orderId,
  type RestRequest,
  type Servers,
  send,
  withServers,
} from '../fixture.ts';

let servers: Servers;
before(async () => {
  servers = await openServers();
});
after(() => servers.close());

const post = (request: RestRequest = {}) => send(servers.restPort, { body: JSON.stringify(goodOrder), ...request });
const get = (target: string, request: RestRequest = {}) =>
  send(servers.restPort, { method: 'GET', target, ...request });

test('an order placed is answered 201 with its path, and its handler sees it settled', async () => {
  const answer = await post({ headers: { 'Idempotency-Key': 'my key' } });
  assert.equal(answer.status, 201);
  assert.equal(answer.headers.get('location'), `/v1/orders/${orderId}`);
  assert.equal(answer.json.object, 'order');
  assert.equal(answer.json.price_kobo, 25_000);
  assert.equal(answer.headers.get('idempotent-replayed'), undefined);
  const last = servers.recorded.at(-1);
  const request = last?.request as CreateOrderRequest;
  assert.equal(last?.name, 'createOrder');
  assert.equal(last.call.idempotencyKey, 'my key');
  assert.deepEqual(
    [request.account, request.symbol, request.side, request.quantity, request.timeInForce],
    ['ABC123', 'DANGCEM', OrderSide.BUY, 100n, TimeInForce.DAY],
  );
});

test('a replay is answered 200, marked, without a path', async () => {
  await withServers(
    {
      orders: {
        createOrder: async (_request, call) => {
          call.reply.replayed = true;
          return order;
        },
      },
    },
    async (own) => {
      const answer = await send(own.restPort, { body: JSON.stringify(goodOrder) });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('idempotent-replayed'), 'true');
      assert.equal(answer.headers.get('location'), undefined);
    },
  );
});

test('every answer can be named, is cached by nobody, and says how long it is', async () => {
  const answers = [
    await post(),
    await get(`/v1/orders/${orderId}`),
    await get('/nowhere'),
    await get('/v1/orders', { headers: { Authorization: null } }),
    await post({ body: '{' }),
  ];
  const ids = answers.map(({ headers }) => headers.get('x-request-id'));
  assert.equal(new Set(ids).size, answers.length);
  for (const { headers, body } of answers) {
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('content-type'), 'application/json');
    assert.equal(headers.get('content-length'), String(Buffer.byteLength(body)));
  }
});

test('a request id sent by the client is not taken over', async () => {
  const { headers } = await get(`/v1/orders/${orderId}`, { headers: { 'x-request-id': 'chosen-by-client' } });
  assert.notEqual(headers.get('x-request-id'), 'chosen-by-client');
});

test('reads, cancels and lists reach their handlers', async () => {
  const called = async (method: string, target: string) => {
    const answer = await send(servers.restPort, { method, target });
    assert.equal(answer.status, 200, answer.body);
    return servers.recorded.at(-1)?.name;
  };
  assert.equal(await called('GET', `/v1/orders/${orderId}`), 'getOrder');
  assert.equal(await called('DELETE', `/v1/orders/${orderId}`), 'cancelOrder');
  assert.equal(await called('GET', `/v1/orders/${orderId}/history?limit=3`), 'getOrderHistory');
  assert.equal(await called('GET', '/v1/orders'), 'listOrders');
  assert.equal(await called('GET', '/v1/events?cursor=abc'), 'listEvents');
});

test('an estimate needs no key and creates nothing', async () => {
  const answer = await post({ target: '/v1/orders/estimate', headers: { 'Idempotency-Key': null } });
  assert.equal(answer.status, 200);
  assert.equal(answer.json.object, 'order_estimate');
  assert.equal(answer.headers.get('location'), undefined);
});

test('the parameters of a list are read from its query', async () => {
  const query =
    'state=partially_filled&account=abc&client_reference=a+b%20%2Bc&updated_since=2026-03-02T09:30:00%2B01:00&limit=7';
  assert.equal((await get(`/v1/orders?${query}&`)).status, 200);
  const request = servers.recorded.at(-1)?.request as ListOrdersRequest;
  assert.equal(request.state, OrderState.PARTIALLY_FILLED);
  assert.equal(request.account, 'ABC');
  assert.equal(request.clientReference, 'a b +c');
  assert.equal(request.updatedSince?.seconds, BigInt(Date.parse('2026-03-02T08:30:00Z') / 1_000));
  assert.equal(request.limit, 7);
  assert.equal((await get('/v1/orders?updated_since=2026-03-02T09:30:00+01:00')).status, 200, 'a plus left as it is');
  assert.equal((await get('/v1/orders?')).status, 200, 'an empty query');
});

test('an id may be percent-encoded', async () => {
  assert.equal((await get(`/v1/orders/%6Frd_${orderId.slice(4)}`)).status, 200);
});

test('an error says what it is, where it is described, and when to come back', async () => {
  await withServers(
    {
      orders: {
        createOrder: async () => {
          throw new ApiError('order_rejected', { rejectReason: 'market_closed', location: `/v1/orders/${orderId}` });
        },
        getOrder: async () => {
          throw new ApiError('trading_paused');
        },
        listOrders: async () => {
          throw new Error('select secret from somewhere');
        },
      },
    },
    async (own) => {
      const rejected = await send(own.restPort, { body: JSON.stringify(goodOrder) });
      assert.equal(rejected.status, 422);
      assert.equal(rejected.headers.get('location'), `/v1/orders/${orderId}`);
      assert.deepEqual(rejected.json, {
        error: {
          type: 'order_error',
          code: 'order_rejected',
          message: 'The exchange rejected the order.',
          doc_url: 'https://api.marina.example/docs/errors#order_rejected',
          reject_reason: 'market_closed',
        },
      });
      const paused = await send(own.restPort, { method: 'GET', target: `/v1/orders/${orderId}` });
      assert.deepEqual([paused.status, paused.headers.get('retry-after')], [503, '30']);
      const broken = await send(own.restPort, { method: 'GET', target: '/v1/orders' });
      assert.deepEqual([broken.status, broken.json.error.code], [500, 'internal_error']);
      assert.ok(!broken.body.includes('secret'));
      assert.equal(own.logLines.filter((line) => line.includes('"level":"error"')).length, 1);
    },
  );
});

test('an answer that cannot be written is internal_error, not a broken connection', async () => {
  const listOrders = async () => create(ListOrdersResponseSchema, { data: [{ createdAt: { seconds: 10n ** 15n } }] });
  await withServers({ orders: { listOrders } }, async (own) => {
    const answer = await send(own.restPort, { method: 'GET', target: '/v1/orders' });
    assert.deepEqual([answer.status, answer.json.error.code], [500, 'internal_error']);
  });
});

test('a 401 says how to authenticate, and comes after 404 and 405', async () => {
  const anonymous = { headers: { Authorization: null } };
  const refused = await get('/v1/orders', anonymous);
  assert.deepEqual([refused.status, refused.json.error.type], [401, 'authentication_error']);
  assert.equal(refused.headers.get('www-authenticate'), 'Bearer realm="marina"');
  assert.equal((await get('/v1/nothing', anonymous)).status, 404);
  assert.equal((await get('/v1/orders/estimate', anonymous)).status, 405);
  assert.equal((await get('/v1/orders/malformed', anonymous)).status, 401, 'before the id is looked at');
  const repeated = await get('/v1/orders', { headers: { Authorization: ['Bearer full', 'Bearer full'] } });
  assert.equal(repeated.status, 401);
});

test('a key without the scope is refused before its body is looked at', async () => {
  const answer = await post({ headers: { Authorization: 'Bearer reader' }, body: '{' });
  assert.deepEqual([answer.status, answer.json.error.code], [403, 'insufficient_scope']);
});

const notFound = [
  '/',
  '/v1',
  '/v1/',
  '/v1/orders/',
  '//v1/orders',
  '/v1//orders',
  `/v1/orders//history`,
  `/v1/orders/${orderId}/`,
  `/v1/orders/${orderId}/history/`,
  `/v1/orders/${orderId}/other`,
  '/v1/Orders',
  '/V1/orders',
  '/v1/%6frders',
  '/v1%2Forders',
  '/v1/orders/a%2Fb',
  '/v1/orders/a%2fb',
  '/v1/orders/%zz%2f',
  '/v1/orders/.',
  '/v1/orders/..',
  '/v1/orders/%2e',
  '/v1/orders/%2E%2e',
  '/v1/orders/../orders',
  '/v1/./orders',
  `/v1/orders/./history`,
  '/v1/orders/estimate/history',
  '/v1/orders;a=b',
  '/v1/orders#fragment',
  '/marina.gateway.v1/Orders/CreateOrder',
  '*',
];

for (const target of notFound) {
  test(`GET ${target} is not found, without a redirect`, async () => {
    const answer = await get(target);
    assert.deepEqual([answer.status, answer.json.error.code], [404, 'not_found']);
    assert.equal(answer.headers.get('location'), undefined);
  });
}

for (const id of ['x', 'ORD_ABCDEFGHIJKLMNOPQRST', '%zz', '%', '%e2%28%a1', '%00', 'a%20b', '%65stimate']) {
  test(`GET /v1/orders/${id} is an order that is not there`, async () => {
    const answer = await get(`/v1/orders/${id}`);
    assert.deepEqual(
      [answer.status, answer.json.error.code, answer.json.error.param],
      [404, 'order_not_found', undefined],
    );
  });
}

const notAllowed: readonly [string, string, string][] = [
  ['GET', '/v1/orders/estimate', 'POST'],
  ['DELETE', '/v1/orders/estimate', 'POST'],
  ['HEAD', '/v1/orders', 'POST, GET'],
  ['OPTIONS', '/v1/orders', 'POST, GET'],
  ['PATCH', '/v1/orders', 'POST, GET'],
  ['POST', `/v1/orders/${orderId}`, 'GET, DELETE'],
  ['HEAD', `/v1/orders/${orderId}`, 'GET, DELETE'],
  ['TRACE', '/v1/events', 'GET'],
  ['PUT', '/v1/orders/malformed', 'GET, DELETE'],
];

for (const [method, target, allow] of notAllowed) {
  test(`${method} ${target} is not allowed; ${allow} is`, async () => {
    const answer = await send(servers.restPort, { method, target });
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('allow'), allow);
    assert.equal(method === 'HEAD' ? 'method_not_allowed' : answer.json.error.code, 'method_not_allowed');
  });
}

test('an event stored once leaves as the same bytes', async () => {
  const bytes = '{"object":"event", "id":"msg_1","data":{"x":"\\u00e9é"}}';
  const listEvents = async () =>
    create(ListEventsResponseSchema, { data: [storedMessage(EventSchema, Buffer.from(bytes))], nextCursor: 'c' });
  await withServers({ events: { listEvents } }, async (own) => {
    const answer = await send(own.restPort, { method: 'GET', target: '/v1/events' });
    assert.equal(answer.body, `{"object":"list","has_more":false,"next_cursor":"c","data":[${bytes}]}`);
  });
});

test('a caller is known by the address a trusted proxy names', async () => {
  const connectionLimits = new ConnectionLimits({}, ['127.0.0.1', '10.0.0.1', '198.51.100.2']);
  await withServers({ pipeline: { connectionLimits } }, async (own) => {
    const headers = { 'X-Forwarded-For': ['198.51.100.1', '198.51.100.2, 10.0.0.1'] };
    await send(own.restPort, { method: 'GET', target: '/v1/orders', headers });
    await send(own.restPort, { method: 'GET', target: '/v1/orders' });
    assert.deepEqual(
      own.finished.map(({ clientAddress }) => clientAddress),
      ['198.51.100.1', '127.0.0.1'],
    );
  });
});
