import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, fromBinary, fromJson, toBinary, toJsonString } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { ApiError, catalogue, type ErrorCode } from '../../../../src/gateway/edge/errors.ts';
import { compileEncoder } from '../../../../src/gateway/edge/json/encoder.ts';
import { storedMessage } from '../../../../src/gateway/edge/json/stored.ts';
import { RetryInfoSchema } from '../../../../src/gen/google/rpc/error_details_pb.ts';
import { ErrorSchema } from '../../../../src/gen/marina/gateway/v1/errors_pb.ts';
import {
  EventSchema,
  type ListEventsResponse,
  ListEventsResponseSchema,
} from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import {
  CreateOrderRequestSchema,
  GetOrderRequestSchema,
  type Order,
  OrderSchema,
  OrderSide,
  Orders,
  OrderType,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { eventually } from '../../../support/eventually.ts';
import { reset } from '../../../support/reset.ts';
import {
  baseUrl,
  callGrpc,
  goodOrder,
  openServers,
  order,
  orderId,
  RawConnection,
  type RestRequest,
  requestText,
  type Servers,
  send,
  slowOrder,
  withServers,
} from '../fixture.ts';

let servers: Servers;
before(async () => {
  servers = await openServers();
});
after(() => servers.close());

const path = (method: string, service = 'Orders') => `/marina.gateway.v1.${service}/${method}`;
const goodMessage = create(CreateOrderRequestSchema, {
  account: 'abc123',
  symbol: 'dangcem',
  side: OrderSide.BUY,
  quantity: 100n,
  type: OrderType.LIMIT,
  priceKobo: 25_000n,
});
const goodJson = toJsonString(CreateOrderRequestSchema, goodMessage);
const goodBytes = Buffer.from(toBinary(CreateOrderRequestSchema, goodMessage));

/** Sends CreateOrder by Connect, as JSON unless said otherwise. */
function post(own: Servers, request: RestRequest = {}) {
  return send(own.restPort, { target: path('CreateOrder'), body: goodJson, ...request });
}

/** The typed detail of an error's JSON. */
function detailOf(body: string) {
  const { code, message, details } = JSON.parse(body);
  const unpacked = details.map((each: { type: string; value: string }) => [
    each.type,
    Buffer.from(each.value, 'base64'),
  ]);
  const [type, bytes] = unpacked[0];
  assert.equal(type, ErrorSchema.typeName);
  return { code, message, error: fromBinary(ErrorSchema, bytes), others: unpacked.slice(1) };
}

async function codeOf(own: Servers, request: RestRequest): Promise<string> {
  return detailOf((await post(own, request)).body).error.code;
}

for (const useBinaryFormat of [false, true]) {
  describe(`Connect's own client, ${useBinaryFormat ? 'binary' : 'JSON'}`, () => {
    const headers = { authorization: 'Bearer full', 'idempotency-key': 'key-1' };
    const client = (own: Servers) =>
      createClient(
        Orders,
        createConnectTransport({ baseUrl: `http://127.0.0.1:${own.restPort}`, httpVersion: '1.1', useBinaryFormat }),
      );

    test('is answered with the order, its path and a request id', async () => {
      let received = new Headers();
      const onHeader = (each: Headers) => {
        received = each;
      };
      const answer = await client(servers).createOrder(goodMessage, { headers, onHeader });
      assert.deepEqual(answer, order);
      assert.equal(received.get('location'), `/v1/orders/${orderId}`);
      assert.equal(received.get('cache-control'), 'no-store');
      assert.equal(received.get('idempotent-replayed'), null);
      assert.match(received.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
    });

    test('hands the handler the same order as gRPC', async () => {
      await client(servers).createOrder(goodMessage, { headers });
      const overConnect = servers.recorded.at(-1)?.request;
      await callGrpc(servers.grpcPort, Orders.method.createOrder, goodMessage);
      assert.deepEqual(overConnect, servers.recorded.at(-1)?.request);
    });

    test('is told of a replay', async () => {
      const replay = async (_: unknown, call: { reply: { replayed: boolean } }): Promise<Order> => {
        call.reply.replayed = true;
        return order;
      };
      await withServers({ orders: { createOrder: replay } }, async (own) => {
        let received = new Headers();
        const onHeader = (each: Headers) => {
          received = each;
        };
        await client(own).createOrder(goodMessage, { headers, onHeader });
        assert.deepEqual([received.get('idempotent-replayed'), received.get('location')], ['true', null]);
      });
    });

    test('finds the whole error as a typed detail', async () => {
      const failing = async () => {
        throw new ApiError('trading_paused', { param: 'a.b[0].c' });
      };
      await withServers({ orders: { createOrder: failing } }, async (own) => {
        const error = await client(own)
          .createOrder(goodMessage, { headers })
          .then(
            () => assert.fail('was answered'),
            (each: unknown) => each,
          );
        assert.ok(error instanceof ConnectError);
        assert.equal(error.code, Code.Unavailable);
        assert.equal(error.metadata.get('retry-after'), '30');
        const [detail] = error.findDetails(ErrorSchema);
        assert.deepEqual([detail?.code, detail?.param], ['trading_paused', 'a.b[0].c']);
        assert.equal(error.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds, 30n);
      });
    });
  });
}

test('every error of the catalogue says the same over Connect as over REST and gRPC', async () => {
  let thrown: ErrorCode = 'not_found';
  const failing = async () => {
    throw new ApiError(thrown, { param: 'a.b[0].c', rejectReason: 'market_closed', location: '/v1/orders/x' });
  };
  await withServers({ orders: { getOrder: failing } }, async (own) => {
    for (const code of Object.keys(catalogue) as ErrorCode[]) {
      thrown = code;
      const rest = await send(own.restPort, { method: 'GET', target: `/v1/orders/${orderId}` });
      const grpc = await callGrpc(own.grpcPort, Orders.method.getOrder, create(GetOrderRequestSchema, { id: orderId }));
      const answer = await post(own, { target: path('GetOrder'), body: JSON.stringify({ id: orderId }) });
      const { error, message, code: word, others } = detailOf(answer.body);
      assert.deepEqual(error, grpc.error, code);
      assert.equal(message, rest.json.error.message);
      assert.equal(word.replaceAll('_', ''), Code[grpc.code]?.toLowerCase());
      for (const name of ['retry-after', 'location', 'www-authenticate', 'cache-control']) {
        assert.equal(answer.headers.get(name), rest.headers.get(name), `${code}: ${name}`);
      }
      assert.equal(answer.headers.get('content-type'), 'application/json');
      const expected = ['google.rpc.RetryInfo', 'google.rpc.ErrorInfo'];
      const types = others.map(([type]: [string]) => type);
      assert.deepEqual(types, error.retryAfterSeconds === undefined ? expected.slice(1) : expected);
    }
  });
});

test('the links of errors lead to the documentation', async () => {
  const answer = await post(servers, { headers: { Authorization: null } });
  assert.equal(answer.status, 401);
  assert.equal(detailOf(answer.body).error.docUrl, `${baseUrl}/docs/errors#unauthorized`);
});

const refused: readonly (readonly [string, RestRequest, number, string, string?])[] = [
  ['a method nobody serves', { target: path('DropOrder') }, 404, 'not_found'],
  ['a service nobody serves', { target: path('List', 'Nothing') }, 404, 'not_found'],
  ['a slash too many', { target: `${path('CreateOrder')}/` }, 404, 'not_found'],
  ['GET', { method: 'GET', target: `${path('ListOrders')}?encoding=json&message={}` }, 405, 'method_not_allowed'],
  [
    'a method nobody serves without a credential',
    { target: path('DropOrder'), headers: { Authorization: null } },
    404,
    'not_found',
  ],
  ['a repeated credential', { headers: { Authorization: ['Bearer full', 'Bearer full'] } }, 401, 'unauthorized'],
  ['a key without the scope', { headers: { Authorization: 'Bearer reader' } }, 403, 'insufficient_scope'],
  ['gRPC', { headers: { 'Content-Type': 'application/grpc' } }, 415, 'unsupported_media_type'],
  ['gRPC-web', { headers: { 'Content-Type': 'application/grpc-web+proto' } }, 415, 'unsupported_media_type'],
  [
    'a stream where one message belongs',
    { headers: { 'Content-Type': 'application/connect+json' } },
    415,
    'unsupported_media_type',
  ],
  ['no media type', { headers: { 'Content-Type': null } }, 415, 'unsupported_media_type'],
  ['a compressed body', { headers: { 'Content-Encoding': 'gzip' } }, 415, 'unsupported_media_type'],
  ['a body that says it is too large', { headers: { 'Content-Length': '16385' } }, 429, 'request_too_large'],
  [
    'a body that is too large and no Idempotency-Key',
    { headers: { 'Idempotency-Key': null }, body: goodJson.padEnd(20_000) },
    400,
    'missing_required_field',
    'Idempotency-Key',
  ],
  ['a body that is too large', { body: goodJson.padEnd(20_000) }, 429, 'request_too_large'],
  [
    'a malformed id in a body that is too large',
    { target: path('GetOrder'), body: '{"id":"x"'.padEnd(20_000).concat('}') },
    404,
    'order_not_found',
  ],
  [
    'a malformed id before a member that is too large',
    { target: path('GetOrder'), body: `{"id":"x","more":"${'A'.repeat(20_000)}"}` },
    404,
    'order_not_found',
  ],
  [
    'a good id in a body that is too large',
    { target: path('GetOrder'), body: `{"id":"${orderId}"}`.padEnd(20_000) },
    429,
    'request_too_large',
  ],
  [
    'a body that is too large and no JSON',
    { target: path('GetOrder'), body: 'A'.repeat(20_000) },
    429,
    'request_too_large',
  ],
  [
    'a message that is too large behind a malformed id',
    {
      target: path('GetOrder'),
      headers: { 'Content-Type': 'application/proto' },
      body: Buffer.concat([Buffer.from([0x0a, 1, 0x78, 0xc2, 0x3e, 0xa0, 0x9c, 0x01]), Buffer.alloc(20_000)]),
    },
    404,
    'order_not_found',
  ],
  [
    'no Idempotency-Key',
    { headers: { 'Idempotency-Key': null }, body: '{' },
    400,
    'missing_required_field',
    'Idempotency-Key',
  ],
  [
    'a repeated Idempotency-Key',
    { headers: { 'Idempotency-Key': ['a', 'a'] } },
    400,
    'invalid_request',
    'Idempotency-Key',
  ],
  [
    'no Idempotency-Key and no media type',
    { headers: { 'Idempotency-Key': null, 'Content-Type': null } },
    400,
    'missing_required_field',
    'Idempotency-Key',
  ],
  ['no JSON', { body: '{' }, 400, 'invalid_request'],
  ['no body', { body: '' }, 400, 'invalid_request'],
  ['no object', { body: '[]' }, 400, 'invalid_request'],
  ['no UTF-8', { body: Buffer.from([0x22, 0xff, 0x22]) }, 400, 'invalid_request'],
  ['an unknown field', { body: goodJson.replace('"priceKobo"', '"pricekobo"') }, 400, 'invalid_request', 'pricekobo'],
  [
    'a field that stands under both its names',
    { body: goodJson.replace('{', '{"price_kobo":1,') },
    400,
    'invalid_request',
    'price_kobo',
  ],
  ['an unknown word', { body: goodJson.replace('ORDER_SIDE_BUY', 'buy') }, 400, 'invalid_request', 'side'],
  [
    'an unknown number of an enumeration',
    { body: goodJson.replace('"ORDER_SIDE_BUY"', '99') },
    400,
    'invalid_request',
    'side',
  ],
  [
    'the word for none',
    { body: goodJson.replace('ORDER_SIDE_BUY', 'ORDER_SIDE_UNSPECIFIED') },
    400,
    'invalid_request',
    'side',
  ],
  ['an inexact number', { body: goodJson.replace('"100"', '1.5') }, 400, 'invalid_request', 'quantity'],
  ['a missing field', { body: '{}' }, 400, 'missing_required_field', 'account'],
  ['a malformed id', { target: path('GetOrder'), body: '{"id":"x"}' }, 404, 'order_not_found'],
  ['no id', { target: path('GetOrder'), body: '{}' }, 400, 'missing_required_field', 'id'],
  [
    'bytes that are no message',
    { headers: { 'Content-Type': 'application/proto' }, body: '\x0f' },
    400,
    'invalid_request',
  ],
];

for (const [name, request, status, code, param] of refused) {
  test(`${name} is answered ${code}`, async () => {
    const count = servers.recorded.length;
    const answer = await post(servers, request);
    assert.equal(answer.status, status, answer.body);
    const { error } = detailOf(answer.body);
    assert.deepEqual([error.code, error.param], [code, param]);
    assert.equal(answer.headers.get('allow'), status === 405 ? 'POST' : undefined);
    assert.match(answer.headers.get('x-request-id') ?? '', /./);
    assert.equal(servers.recorded.length, count);
  });
}

test('JSON may have numbers for integers and enumerations, and the names of the proto', async () => {
  const body = JSON.stringify({ ...goodOrder, side: 1, type: 'ORDER_TYPE_LIMIT', clientReference: null });
  assert.equal((await post(servers, { body })).status, 200);
  const overJson = servers.recorded.at(-1)?.request;
  await post(servers, { headers: { 'Content-Type': 'application/proto' }, body: goodBytes });
  assert.deepEqual(overJson, servers.recorded.at(-1)?.request);
});

for (const charset of ['utf-8', 'UTF8', '"utf8"', '"UTF-8"']) {
  test(`a body of JSON with the charset ${charset} is read, and another charset is refused`, async () => {
    const type = (value: string) => ({ headers: { 'Content-Type': `application/json; Charset=${value}` } });
    assert.equal((await post(servers, type(charset))).status, 200);
    assert.equal((await post(servers, type('latin1'))).status, 415);
  });
}

test('the answer as JSON has every field that is always there', async () => {
  const { body, headers } = await post(servers, { headers: { 'Content-Type': 'application/json; charset=utf-8' } });
  assert.equal(headers.get('content-type'), 'application/json');
  assert.equal(JSON.parse(body).filledQuantity, '0');
  assert.deepEqual(fromJson(OrderSchema, JSON.parse(body)), order);
});

test('stored events are written in the form asked for', async () => {
  const event = create(EventSchema, {
    id: 'msg_1',
    type: 'order.pending',
    version: 7n,
    data: { case: 'order', value: order },
  });
  const stored = () => storedMessage(EventSchema, Buffer.from(compileEncoder(EventSchema)(event)));
  const listEvents = async (): Promise<ListEventsResponse> => create(ListEventsResponseSchema, { data: [stored()] });
  await withServers({ events: { listEvents } }, async (own) => {
    const target = path('ListEvents', 'Events');
    const json = await post(own, { target, body: '{}' });
    assert.deepEqual(fromJson(ListEventsResponseSchema, JSON.parse(json.body)).data, [event]);
  });
});

test('a body that does not arrive is not waited for without end', async () => {
  await withServers({ limits: { bodyTimeoutMs: 100 } }, async (own) => {
    assert.equal(await codeOf(own, { headers: { 'Content-Length': '100' }, body: '{' }), 'invalid_request');
  });
});

test('a client that leaves before its body has come did nothing', async () => {
  await withServers({}, async (own) => {
    const connection = new RawConnection(own.restPort);
    connection.send(requestText({ target: path('CreateOrder'), headers: { 'Content-Length': '100' }, body: '{' }));
    await eventually(() => assert.equal(own.pipeline.underWay, 1));
    reset(connection.socket);
    await eventually(() => assert.equal(own.finished.length, 1));
    const [finished] = own.finished;
    assert.deepEqual([finished?.protocol, finished?.code, own.recorded.length], ['connect', 'client_gone', 0]);
  });
});

test('a client that leaves while its order is placed does not stop it', async () => {
  const { createOrder, entered, release, ended } = slowOrder();
  await withServers({ orders: { createOrder } }, async (own) => {
    const connection = new RawConnection(own.restPort);
    connection.send(requestText({ target: path('CreateOrder'), body: goodJson }));
    await entered;
    connection.close();
    await connection.ended;
    release();
    await ended;
    await eventually(() => assert.equal(own.finished[0]?.status, 200));
  });
});

test('requests of both protocols share a connection', async () => {
  const connection = new RawConnection(servers.restPort);
  connection.send(requestText({ target: path('CreateOrder'), body: goodJson }));
  connection.send(requestText({ method: 'GET', target: `/v1/orders/${orderId}` }));
  const [first, second] = [await connection.answer(), await connection.answer()];
  connection.close();
  assert.equal(JSON.parse(first.body).priceKobo, '25000');
  assert.equal(second.json.price_kobo, 25_000);
});
