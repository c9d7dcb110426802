import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { create, type DescMethod, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { Events, ListEventsRequestSchema } from '../../../src/gen/marina/gateway/v1/events_pb.ts';
import {
  CancelOrderRequestSchema,
  CreateOrderRequestSchema,
  EstimateOrderRequestSchema,
  GetOrderHistoryRequestSchema,
  GetOrderRequestSchema,
  ListOrdersRequestSchema,
  OrderSide,
  OrderState,
  Orders,
  OrderType,
  TimeInForce,
} from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { callGrpc, goodOrder, openServers, orderId, type RestRequest, type Servers, send } from './fixture.ts';

let servers: Servers;
before(async () => {
  servers = await openServers();
});
after(() => servers.close());

type Expected = readonly [code: string, param?: string];

/** Status and code that belong together, so that the tables below need only the code. */
const httpStatus: Readonly<Record<string, number>> = {
  invalid_request: 400,
  missing_required_field: 400,
  unauthorized: 401,
  insufficient_scope: 403,
  not_found: 404,
  order_not_found: 404,
  method_not_allowed: 405,
  request_too_large: 413,
  unsupported_media_type: 415,
};
const grpcStatus: Readonly<Record<string, number>> = {
  invalid_request: 3,
  missing_required_field: 3,
  order_not_found: 5,
  insufficient_scope: 7,
  request_too_large: 8,
  unauthorized: 16,
};

/** A body of an order that is good but for what is changed; undefined leaves a field out. */
const body = (change: Readonly<Record<string, unknown>>) => JSON.stringify({ ...goodOrder, ...change });

const bodies: readonly [string, Expected][] = [
  ['', ['invalid_request']],
  [' ', ['invalid_request']],
  ['{', ['invalid_request']],
  ['{}x', ['invalid_request']],
  ['[]', ['invalid_request']],
  ['null', ['invalid_request']],
  ['"order"', ['invalid_request']],
  ['42', ['invalid_request']],
  [`{"account":${'['.repeat(100)}`, ['invalid_request']],
  ['{"account":"\u0001"}', ['invalid_request']],
  ['{"account":"\\x"}', ['invalid_request']],
  ['{"quantity":01}', ['invalid_request']],
  ['{"quantity":+1}', ['invalid_request']],
  ['{"quantity":NaN}', ['invalid_request']],
  ['{"quantity":1,}', ['invalid_request']],
  ['{}', ['missing_required_field', 'account']],
  ['{"account":null}', ['missing_required_field', 'account']],
  ['{"account":"abc"}', ['missing_required_field', 'symbol']],
  [body({ side: undefined }), ['missing_required_field', 'side']],
  [body({ side: null }), ['missing_required_field', 'side']],
  [body({ quantity: undefined }), ['missing_required_field', 'quantity']],
  [body({ type: undefined, price_kobo: undefined }), ['missing_required_field', 'type']],
  [body({ price_kobo: undefined }), ['missing_required_field', 'price_kobo']],
  [body({ price_kobo: null }), ['missing_required_field', 'price_kobo']],
  [body({ quantity: 0, price_kobo: null }), ['missing_required_field', 'price_kobo']],
  [body({ account: '' }), ['invalid_request', 'account']],
  [body({ account: 'a'.repeat(65) }), ['invalid_request', 'account']],
  [body({ account: 'a b' }), ['invalid_request', 'account']],
  [body({ account: 'ab-c' }), ['invalid_request', 'account']],
  [body({ account: 'abc\n' }), ['invalid_request', 'account']],
  [body({ account: 'ａｂｃ' }), ['invalid_request', 'account']],
  [body({ account: 'a\u0000' }), ['invalid_request', 'account']],
  [body({ account: '\ud83d' }), ['invalid_request', 'account']],
  [body({ account: 7 }), ['invalid_request', 'account']],
  [body({ account: ['abc'] }), ['invalid_request', 'account']],
  [body({ symbol: '' }), ['invalid_request', 'symbol']],
  [body({ symbol: 'x'.repeat(21) }), ['invalid_request', 'symbol']],
  [body({ symbol: 'A_B' }), ['invalid_request', 'symbol']],
  [body({ symbol: {} }), ['invalid_request', 'symbol']],
  [body({ side: 'foo' }), ['invalid_request', 'side']],
  [body({ side: 'Buy' }), ['invalid_request', 'side']],
  [body({ side: '' }), ['invalid_request', 'side']],
  [body({ side: 1 }), ['invalid_request', 'side']],
  [body({ side: 'unspecified' }), ['invalid_request', 'side']],
  [body({ quantity: 0 }), ['invalid_request', 'quantity']],
  [body({ quantity: -1 }), ['invalid_request', 'quantity']],
  [body({ quantity: 100_000_001 }), ['invalid_request', 'quantity']],
  [body({ quantity: 1.5 }), ['invalid_request', 'quantity']],
  [body({ quantity: '100' }), ['invalid_request', 'quantity']],
  [body({ quantity: true }), ['invalid_request', 'quantity']],
  [body({ quantity: 2 ** 53 }), ['invalid_request', 'quantity']],
  [body({}).replace('100', '1e2'), ['invalid_request', 'quantity']],
  [body({}).replace('100', '100.0'), ['invalid_request', 'quantity']],
  [body({}).replace('100', '-0'), ['invalid_request', 'quantity']],
  [body({}).replace('100', '9'.repeat(400)), ['invalid_request', 'quantity']],
  [body({ type: 'stop' }), ['invalid_request', 'type']],
  [body({ type: 2 }), ['invalid_request', 'type']],
  [body({ time_in_force: 'gtd' }), ['invalid_request', 'time_in_force']],
  [body({ time_in_force: 'DAY' }), ['invalid_request', 'time_in_force']],
  [body({ time_in_force: false }), ['invalid_request', 'time_in_force']],
  [body({ price_kobo: 0 }), ['invalid_request', 'price_kobo']],
  [body({ price_kobo: 1_000_000_001 }), ['invalid_request', 'price_kobo']],
  [body({ price_kobo: '25000' }), ['invalid_request', 'price_kobo']],
  [body({ type: 'market' }), ['invalid_request', 'price_kobo']],
  [body({ client_reference: '' }), ['invalid_request', 'client_reference']],
  [body({ client_reference: 'x'.repeat(65) }), ['invalid_request', 'client_reference']],
  [body({ client_reference: 'é' }), ['invalid_request', 'client_reference']],
  [body({ client_reference: 'a\u007f' }), ['invalid_request', 'client_reference']],
  [body({ client_reference: 5 }), ['invalid_request', 'client_reference']],
  [body({ colour: 'red' }), ['invalid_request', 'colour']],
  [body({ colour: null }), ['invalid_request', 'colour']],
  [body({ priceKobo: 1 }), ['invalid_request', 'priceKobo']],
  [body({ timeInForce: 'day' }), ['invalid_request', 'timeInForce']],
  [body({ object: 'order' }), ['invalid_request', 'object']],
  [body({ Account: 'abc' }), ['invalid_request', 'Account']],
  [body({ 'a"b': 1 }), ['invalid_request', 'a"b']],
  ['{"account":"a","account":"b"}', ['invalid_request', 'account']],
  ['{"side":"foo","zebra":1,"apple":2}', ['invalid_request', 'zebra']],
  ['{"quantity":"x","side":"y"}', ['invalid_request', 'side']],
];

for (const [index, [text, [code, param]]] of bodies.entries()) {
  test(`body ${index}, ${text.slice(0, 60)}: ${code} ${param ?? ''}`, () => restRefuses({ body: text }, [code, param]));
}

const isId = `/v1/orders/${orderId}`;
const list = (query: string): RestRequest => ({ method: 'GET', target: `/v1/orders?${query}` });
const headers = (change: NonNullable<RestRequest['headers']>): RestRequest => ({ body: body({}), headers: change });

const requests: readonly [RestRequest, Expected][] = [
  [list('limit=0'), ['invalid_request', 'limit']],
  [list('limit=101'), ['invalid_request', 'limit']],
  [list('limit=-1'), ['invalid_request', 'limit']],
  [list('limit='), ['invalid_request', 'limit']],
  [list('limit'), ['invalid_request', 'limit']],
  [list('limit=ten'), ['invalid_request', 'limit']],
  [list('limit=1.0'), ['invalid_request', 'limit']],
  [list('limit=1e1'), ['invalid_request', 'limit']],
  [list('limit=%31%30%20'), ['invalid_request', 'limit']],
  [list('limit=+5'), ['invalid_request', 'limit']],
  [list('limit=007'), ['invalid_request', 'limit']],
  [list('limit=99999999999999999999'), ['invalid_request', 'limit']],
  [list('limit=4294967321'), ['invalid_request', 'limit']],
  [list('limit=5&limit=5'), ['invalid_request', 'limit']],
  [list('limit=5&%6Cimit=5'), ['invalid_request', 'limit']],
  [list('limit=%zz'), ['invalid_request', 'limit']],
  [list('cursor='), ['invalid_request', 'cursor']],
  [list(`cursor=${'x'.repeat(513)}`), ['invalid_request', 'cursor']],
  [list('cursor=a%00'), ['invalid_request', 'cursor']],
  [list('cursor=%ff'), ['invalid_request', 'cursor']],
  [list('cursor=%e'), ['invalid_request', 'cursor']],
  [list('state=foo'), ['invalid_request', 'state']],
  [list('state=PENDING'), ['invalid_request', 'state']],
  [list('state='), ['invalid_request', 'state']],
  [list('state=pending,filled'), ['invalid_request', 'state']],
  [list('state=pending&state=filled'), ['invalid_request', 'state']],
  [list('account=a-b'), ['invalid_request', 'account']],
  [list('symbol=a_b'), ['invalid_request', 'symbol']],
  [list('client_reference=%09'), ['invalid_request', 'client_reference']],
  [list('updated_since=yesterday'), ['invalid_request', 'updated_since']],
  [list('updated_since=2026-02-30T00:00:00Z'), ['invalid_request', 'updated_since']],
  [list('updated_since=2026-03-02'), ['invalid_request', 'updated_since']],
  [list('foo=1'), ['invalid_request', 'foo']],
  [list('Limit=5'), ['invalid_request', 'Limit']],
  [list('updatedSince=2026-03-02T00:00:00Z'), ['invalid_request', 'updatedSince']],
  [list('=1'), ['invalid_request', '']],
  [list('limit=x&foo=1'), ['invalid_request', 'foo']],
  [list('limit=x&state=y'), ['invalid_request', 'state']],
  [{ method: 'GET', target: '/v1/events?state=pending' }, ['invalid_request', 'state']],
  [{ method: 'GET', target: '/v1/events?limit=0' }, ['invalid_request', 'limit']],
  [{ method: 'GET', target: `${isId}?id=x` }, ['invalid_request', 'id']],
  [{ method: 'GET', target: `${isId}?expand=all` }, ['invalid_request', 'expand']],
  [{ method: 'GET', target: '/v1/orders/nope?expand=all' }, ['order_not_found']],
  [{ method: 'GET', target: '/v1/orders/nope/history?limit=0' }, ['order_not_found']],
  [{ method: 'GET', target: `${isId}/history?limit=0` }, ['invalid_request', 'limit']],
  [{ method: 'DELETE', target: '/v1/orders/nope' }, ['order_not_found']],
  [{ method: 'DELETE', target: `${isId}?force=true` }, ['invalid_request', 'force']],
  [{ target: '/v1/orders?account=abc', body: body({}) }, ['invalid_request', 'account']],
  [{ target: '/v1/orders?dry_run=1', headers: { 'Idempotency-Key': null }, body: '{' }, ['invalid_request', 'dry_run']],
  [{ target: '/v1/orders/estimate', body: '{}' }, ['missing_required_field', 'account']],
  [{ target: '/v1/orders/estimate', body: body({ foo: 1 }) }, ['invalid_request', 'foo']],
  [headers({ 'Idempotency-Key': null }), ['missing_required_field', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': '' }), ['missing_required_field', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': '  ' }), ['missing_required_field', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': 'x'.repeat(256) }), ['invalid_request', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': 'clé' }), ['invalid_request', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': 'a\tb' }), ['invalid_request', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': ['a', 'b'] }), ['invalid_request', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': ['a', 'a'] }), ['invalid_request', 'Idempotency-Key']],
  [headers({ 'Idempotency-Key': null, 'Content-Type': 'text/plain' }), ['missing_required_field', 'Idempotency-Key']],
  [headers({ 'Content-Type': 'text/plain', 'Content-Length': '99999' }), ['unsupported_media_type']],
  [headers({ 'Content-Type': null }), ['unsupported_media_type']],
  [headers({ 'Content-Encoding': 'gzip' }), ['unsupported_media_type']],
  [{ body: '{'.repeat(16_385) }, ['request_too_large']],
  [headers({ Authorization: null }), ['unauthorized']],
  [headers({ Authorization: 'Bearer wrong' }), ['unauthorized']],
  [headers({ Authorization: ['Bearer full', 'Bearer full'] }), ['unauthorized']],
  [headers({ Authorization: 'Bearer revoked', 'Idempotency-Key': null }), ['unauthorized']],
  [{ ...headers({ Authorization: 'Bearer reader' }), body: '' }, ['insufficient_scope']],
  [
    { method: 'DELETE', target: '/v1/orders/nope', headers: { Authorization: 'Bearer reader' } },
    ['insufficient_scope'],
  ],
  [{ method: 'PUT', target: isId, body: body({}) }, ['method_not_allowed']],
  [{ target: '/v1/order', body: body({}) }, ['not_found']],
];

for (const [index, [request, expected]] of requests.entries()) {
  const named = JSON.stringify(request.headers ?? '').slice(0, 60);
  const name = `${request.method ?? 'POST'} ${(request.target ?? '/v1/orders').slice(0, 60)} ${named}`;
  test(`request ${index}, ${name}: ${expected.join(' ')}`, () => restRefuses(request, expected));
}

type OrderInit = MessageInitShape<typeof CreateOrderRequestSchema>;
const orderWith = (change: OrderInit): [DescMethod, Message] => [
  Orders.method.createOrder,
  create(CreateOrderRequestSchema, {
    account: 'abc',
    symbol: 'gtco',
    side: OrderSide.BUY,
    quantity: 100n,
    type: OrderType.LIMIT,
    priceKobo: 5n,
    ...change,
  } as OrderInit),
];
const listWith = (init: MessageInitShape<typeof ListOrdersRequestSchema>): [DescMethod, Message] => [
  Orders.method.listOrders,
  create(ListOrdersRequestSchema, init),
];

const messages: readonly [[DescMethod, Message], Expected][] = [
  [orderWith({ account: undefined }), ['missing_required_field', 'account']],
  [orderWith({ account: '' }), ['invalid_request', 'account']],
  [orderWith({ account: 'a\u0000' }), ['invalid_request', 'account']],
  [orderWith({ symbol: 'x'.repeat(21) }), ['invalid_request', 'symbol']],
  [orderWith({ side: undefined }), ['missing_required_field', 'side']],
  [orderWith({ side: OrderSide.UNSPECIFIED }), ['invalid_request', 'side']],
  [orderWith({ side: 3 as OrderSide }), ['invalid_request', 'side']],
  [orderWith({ side: -1 as OrderSide }), ['invalid_request', 'side']],
  [orderWith({ quantity: 0n }), ['invalid_request', 'quantity']],
  [orderWith({ quantity: -(2n ** 63n) }), ['invalid_request', 'quantity']],
  [orderWith({ quantity: 2n ** 53n }), ['invalid_request', 'quantity']],
  [orderWith({ type: 9 as OrderType }), ['invalid_request', 'type']],
  [orderWith({ timeInForce: TimeInForce.UNSPECIFIED }), ['invalid_request', 'time_in_force']],
  [orderWith({ priceKobo: undefined }), ['missing_required_field', 'price_kobo']],
  [orderWith({ type: OrderType.MARKET }), ['invalid_request', 'price_kobo']],
  [orderWith({ type: OrderType.MARKET, priceKobo: 0n }), ['invalid_request', 'price_kobo']],
  [orderWith({ clientReference: '\u001f' }), ['invalid_request', 'client_reference']],
  [orderWith({ quantity: undefined, side: 3 as OrderSide }), ['invalid_request', 'side']],
  [
    [Orders.method.estimateOrder, create(EstimateOrderRequestSchema)],
    ['missing_required_field', 'account'],
  ],
  [
    [Orders.method.getOrder, create(GetOrderRequestSchema)],
    ['missing_required_field', 'id'],
  ],
  [[Orders.method.getOrder, create(GetOrderRequestSchema, { id: '' })], ['order_not_found']],
  [[Orders.method.getOrder, create(GetOrderRequestSchema, { id: `${orderId}\n` })], ['order_not_found']],
  [[Orders.method.cancelOrder, create(CancelOrderRequestSchema, { id: 'ord_' })], ['order_not_found']],
  [[Orders.method.getOrderHistory, create(GetOrderHistoryRequestSchema, { id: 'x', limit: 0 })], ['order_not_found']],
  [
    [Orders.method.getOrderHistory, create(GetOrderHistoryRequestSchema, { id: orderId, limit: 0 })],
    ['invalid_request', 'limit'],
  ],
  [listWith({ limit: 101 }), ['invalid_request', 'limit']],
  [listWith({ limit: -1 }), ['invalid_request', 'limit']],
  [listWith({ cursor: '' }), ['invalid_request', 'cursor']],
  [listWith({ state: OrderState.UNSPECIFIED }), ['invalid_request', 'state']],
  [listWith({ state: 99 as OrderState }), ['invalid_request', 'state']],
  [listWith({ updatedSince: { nanos: -1 } }), ['invalid_request', 'updated_since']],
  [listWith({ updatedSince: { seconds: 2n ** 62n } }), ['invalid_request', 'updated_since']],
  [
    [Events.method.listEvents, create(ListEventsRequestSchema, { limit: 0 })],
    ['invalid_request', 'limit'],
  ],
];

for (const [index, [[method, message], [code, param]]] of messages.entries()) {
  test(`message ${index}, ${method.name}: ${code} ${param ?? ''}`, async () => {
    const { code: grpcCode, error } = await callGrpc(servers.grpcPort, method, message);
    assert.deepEqual([grpcCode, error?.code, error?.param], [grpcStatus[code], code, param]);
    assert.deepEqual(servers.recorded, []);
  });
}

/** The error names the fault exactly, and no handler hears of it. */
async function restRefuses(request: RestRequest, [code, param]: Expected): Promise<void> {
  const answer = await send(servers.restPort, request);
  const { error } = answer.json;
  assert.deepEqual([answer.status, error.code, error.param], [httpStatus[code], code, param]);
  assert.equal(error.doc_url, `https://api.marina.example/docs/errors#${code}`);
  assert.ok(error.message.length > 10 && error.message.endsWith('.'), error.message);
  assert.deepEqual(servers.recorded, []);
}
