import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { create, type DescMessage, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { ConnectionLimits } from '../../../../src/gateway/edge/bounds.ts';
import { ApiError, catalogue, type ErrorCode } from '../../../../src/gateway/edge/errors.ts';
import { storedMessage } from '../../../../src/gateway/edge/json/stored.ts';
import {
  EventSchema,
  Events,
  type ListEventsResponse,
  ListEventsResponseSchema,
} from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import {
  type CreateOrderRequest,
  CreateOrderRequestSchema,
  GetOrderRequestSchema,
  ListOrdersRequestSchema,
  type Order,
  OrderSide,
  Orders,
  OrderType,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { callGrpc, goodOrder, openServers, order, orderId, type Servers, send, withServers } from '../fixture.ts';

let servers: Servers;
before(async () => {
  servers = await openServers();
});
after(() => servers.close());

const goodMessage = create(CreateOrderRequestSchema, {
  account: 'abc123',
  symbol: 'dangcem',
  side: OrderSide.BUY,
  quantity: 100n,
  type: OrderType.LIMIT,
  priceKobo: 25_000n,
});
const goodBytes = Buffer.from(toBinary(CreateOrderRequestSchema, goodMessage));
const { createOrder, getOrder, listOrders } = Orders.method;
const thisOrder = create(GetOrderRequestSchema, { id: orderId });

test('an order placed is answered with the order, its path and a request id', async () => {
  const { code, message, metadata } = await callGrpc(servers.grpcPort, createOrder, goodMessage);
  assert.equal(code, status.OK);
  assert.deepEqual(message, order);
  assert.deepEqual(metadata.get('location'), [`/v1/orders/${orderId}`]);
  assert.match(String(metadata.get('x-request-id')), /^[0-9a-f-]{36}$/);
  assert.deepEqual(metadata.get('idempotent-replayed'), []);
});

test('a replay is marked', async () => {
  const replay = async (_request: unknown, call: { reply: { replayed: boolean } }): Promise<Order> => {
    call.reply.replayed = true;
    return order;
  };
  await withServers({ orders: { createOrder: replay } }, async (own) => {
    const { metadata } = await callGrpc(own.grpcPort, createOrder, goodMessage);
    assert.deepEqual(metadata.get('idempotent-replayed'), ['true']);
    assert.deepEqual(metadata.get('location'), []);
  });
});

test('the same order over either protocol is the same to its handler', async () => {
  await callGrpc(servers.grpcPort, createOrder, goodMessage);
  const overGrpc = servers.recorded.at(-1)?.request as CreateOrderRequest;
  await send(servers.restPort, { body: JSON.stringify(goodOrder) });
  const overRest = servers.recorded.at(-1)?.request as CreateOrderRequest;
  assert.deepEqual(overGrpc, overRest);
  assert.deepEqual(toBinary(CreateOrderRequestSchema, overGrpc), toBinary(CreateOrderRequestSchema, overRest));
});

const expectedStatus: Readonly<Record<number, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  405: status.UNIMPLEMENTED,
  409: status.ABORTED,
  413: status.RESOURCE_EXHAUSTED,
  415: status.INVALID_ARGUMENT,
  422: status.FAILED_PRECONDITION,
  429: status.RESOURCE_EXHAUSTED,
  500: status.INTERNAL,
  502: status.UNAVAILABLE,
  503: status.UNAVAILABLE,
};

/** Codes whose gRPC status is not that of their HTTP status. */
const ownStatus: Partial<Readonly<Record<ErrorCode, status>>> = {
  duplicate_order: status.ALREADY_EXISTS,
  duplicate_application: status.ALREADY_EXISTS,
  duplicate_allocation: status.ALREADY_EXISTS,
  duplicate_withdrawal: status.ALREADY_EXISTS,
  order_not_cancelable: status.FAILED_PRECONDITION,
  order_not_sent: status.FAILED_PRECONDITION,
  application_not_sent: status.FAILED_PRECONDITION,
  allocation_not_sent: status.FAILED_PRECONDITION,
  withdrawal_not_sent: status.FAILED_PRECONDITION,
};

test('every error of the catalogue says the same over both protocols', async () => {
  let thrown: ErrorCode = 'not_found';
  const failing = async () => {
    const details = { param: 'a.b[0].c', rejectReason: 'market_closed', location: '/v1/orders/x' };
    throw new ApiError(thrown, details);
  };
  await withServers({ orders: { getOrder: failing } }, async (own) => {
    for (const code of Object.keys(catalogue) as ErrorCode[]) {
      thrown = code;
      const rest = await send(own.restPort, { method: 'GET', target: `/v1/orders/${orderId}` });
      const grpc = await callGrpc(own.grpcPort, getOrder, thisOrder);
      const entry: { status: number; retryAfterSeconds?: number } = catalogue[code];
      assert.equal(rest.status, entry.status, code);
      assert.equal(grpc.code, ownStatus[code] ?? expectedStatus[entry.status], code);
      const { type, message, doc_url, param, reject_reason } = rest.json.error;
      const { error } = grpc;
      assert.deepEqual(
        [error?.type, error?.code, error?.message, error?.docUrl, error?.param, error?.rejectReason],
        [type, code, message, doc_url, param, reject_reason],
      );
      assert.equal(grpc.details, message);
      assert.deepEqual(grpc.metadata.get('location'), [rest.headers.get('location')]);
      assert.equal(grpc.metadata.get('x-request-id').length, 1);
      const retryAfter = rest.headers.get('retry-after');
      assert.equal(retryAfter, entry.retryAfterSeconds?.toString());
      assert.equal(grpc.retry?.retryDelay?.seconds.toString(), retryAfter);
      assert.equal(error?.retryAfterSeconds, entry.retryAfterSeconds);
    }
  });
});

/** A message with a field its type does not have, padded to a size. */
function padded(bytes: Buffer, size: number): Buffer {
  const head = new BinaryWriter().tag(100, WireType.LengthDelimited).finish().length;
  const space = size - bytes.length - head;
  const lengthBytes = space - 1 < 128 ? 1 : space - 2 < 16_384 ? 2 : 3;
  const writer = new BinaryWriter()
    .raw(bytes)
    .tag(100, WireType.LengthDelimited)
    .bytes(Buffer.alloc(space - lengthBytes));
  const result = Buffer.from(writer.finish());
  assert.equal(result.length, size);
  return result;
}

test('a message of 16,384 bytes is taken, unknown fields and all; one byte more is not', async () => {
  assert.equal((await callGrpc(servers.grpcPort, createOrder, padded(goodBytes, 16_384))).code, status.OK);
  const { code, error } = await callGrpc(servers.grpcPort, createOrder, padded(goodBytes, 16_385));
  assert.deepEqual([code, error?.code], [status.RESOURCE_EXHAUSTED, 'request_too_large']);
});

for (const size of [60_000, 70_000, 200_000, 1_900_000]) {
  test(`a message of ${size} bytes gets its typed error, after what comes before it in the order of checks`, async () => {
    const { code, error } = await callGrpc(servers.grpcPort, createOrder, padded(goodBytes, size));
    assert.deepEqual([code, error?.code], [status.RESOURCE_EXHAUSTED, 'request_too_large']);
    const headers = { authorization: 'Bearer full' };
    const keyless = await callGrpc(servers.grpcPort, createOrder, padded(goodBytes, size), headers);
    assert.deepEqual([keyless.error?.code, keyless.error?.param], ['missing_required_field', 'Idempotency-Key']);
    const malformed = Buffer.from(new BinaryWriter().tag(1, WireType.LengthDelimited).string('nonsense').finish());
    const misplaced = await callGrpc(servers.grpcPort, getOrder, padded(malformed, size));
    assert.equal(misplaced.error?.code, 'order_not_found');
  });
}

test('a message whose prefix says that it is compressed is answered like one whose head says so', async () => {
  const session = connectHttp2(`http://127.0.0.1:${servers.grpcPort}`);
  const answers: unknown[] = [];
  try {
    for (const encoding of ['gzip', undefined]) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/marina.gateway.v1.Orders/CreateOrder',
        'content-type': 'application/grpc',
        authorization: 'Bearer full',
        'idempotency-key': 'compressed',
        ...(encoding && { 'grpc-encoding': encoding }),
      });
      const head = Buffer.alloc(5);
      head[0] = 1;
      head.writeUInt32BE(goodBytes.length, 1);
      stream.end(Buffer.concat([head, goodBytes]));
      const [headers] = await once(stream.resume(), 'response');
      answers.push([headers['grpc-status'], headers['grpc-accept-encoding'], headers['grpc-message']]);
    }
  } finally {
    session.destroy();
  }
  const expected = [String(status.UNIMPLEMENTED), 'identity', encodeURI('Compressed messages are not taken.')];
  assert.deepEqual(answers, [expected, expected]);
});

const field = (number: number, type: WireType) => new BinaryWriter().tag(number, type);
const undecodable: readonly [string, Buffer][] = [
  ['a truncated message', goodBytes.subarray(0, goodBytes.length - 1)],
  ['a text where a number belongs', Buffer.from(field(4, WireType.LengthDelimited).string('100').finish())],
  ['a number of another width', Buffer.from(field(4, WireType.Bit64).fixed64(100n).finish())],
  ['a number where a text belongs', Buffer.from(field(1, WireType.Varint).uint32(0).finish())],
  [
    'text that is not UTF-8',
    Buffer.from(
      field(1, WireType.LengthDelimited)
        .bytes(Buffer.from([0xff]))
        .finish(),
    ),
  ],
  ['a length past the end', Buffer.from(field(1, WireType.LengthDelimited).uint32(100).finish())],
  ['field number 0', Buffer.from([0x00, 0x01])],
  ['an endless number', Buffer.from([0x20, ...Array.from({ length: 11 }, () => 0xff)])],
  ['random bytes', Buffer.from('deadbeefdeadbeef', 'hex')],
];

for (const [name, bytes] of undecodable) {
  test(`${name} is invalid_request`, async () => {
    const before = servers.recorded.length;
    const { code, error } = await callGrpc(servers.grpcPort, createOrder, bytes);
    assert.deepEqual([code, error?.code, error?.param], [status.INVALID_ARGUMENT, 'invalid_request', undefined]);
    assert.equal(servers.recorded.length, before);
  });
}

test('a time that runs past its message is invalid_request', async () => {
  const time = field(5, WireType.LengthDelimited).uint32(1).finish();
  const bytes = Buffer.concat([time, Buffer.from([0x08, 0x05])]);
  assert.equal((await callGrpc(servers.grpcPort, listOrders, bytes)).error?.code, 'invalid_request');
  const proper = create(ListOrdersRequestSchema, { updatedSince: { seconds: 5n, nanos: 1 }, limit: 3 });
  assert.equal((await callGrpc(servers.grpcPort, listOrders, proper)).code, status.OK);
});

test('the checks come in their order: who, which key, which bytes', async () => {
  const { grpcPort } = servers;
  const nonsense = Buffer.from([0xff]);
  const anonymous = await callGrpc(grpcPort, createOrder, nonsense, {});
  assert.deepEqual([anonymous.code, anonymous.error?.code], [status.UNAUTHENTICATED, 'unauthorized']);
  const reader = await callGrpc(grpcPort, createOrder, nonsense, { authorization: 'Bearer reader' });
  assert.equal(reader.error?.code, 'insufficient_scope');
  const noKey = await callGrpc(grpcPort, createOrder, nonsense, { authorization: 'Bearer full' });
  assert.deepEqual([noKey.error?.code, noKey.error?.param], ['missing_required_field', 'Idempotency-Key']);
  const malformedId = create(GetOrderRequestSchema, { id: 'nope' });
  assert.equal((await callGrpc(grpcPort, getOrder, malformedId)).error?.code, 'order_not_found');
});

test('a repeated idempotency-key is refused, as in REST', async () => {
  const session = connectHttp2(`http://127.0.0.1:${servers.grpcPort}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/marina.gateway.v1.Orders/CreateOrder',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: 'Bearer full',
    'idempotency-key': ['a', 'b'],
  });
  stream.end(framed(goodBytes));
  const headers = await new Promise<Record<string, unknown>>((resolve) => stream.once('response', resolve));
  session.destroy();
  assert.equal(headers['grpc-status'], String(status.INVALID_ARGUMENT));
  assert.equal(servers.finished.at(-1)?.code, 'invalid_request');
});

test('a repeated authorization is unauthenticated, even when both are good', async () => {
  let refused: (code: unknown) => void = () => {};
  const code = new Promise((resolve) => {
    refused = resolve;
  });
  await withServers({ onFinished: (finished) => refused(finished.code) }, async (own) => {
    // No client of ours would send this: the frames are made by hand.
    const headers: [string, string][] = [
      [':method', 'POST'],
      [':scheme', 'http'],
      [':path', '/marina.gateway.v1.Orders/CreateOrder'],
      [':authority', 'localhost'],
      ['content-type', 'application/grpc'],
      ['te', 'trailers'],
      ['authorization', 'Bearer full'],
      ['authorization', 'Bearer full'],
      ['idempotency-key', 'a'],
    ];
    const literals = headers.map(([name, value]) =>
      Buffer.concat([
        Buffer.from([0, name.length]),
        Buffer.from(name),
        Buffer.from([value.length]),
        Buffer.from(value),
      ]),
    );
    const socket = connect(own.grpcPort, '127.0.0.1');
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    socket.write(frame(4, 0, 0, Buffer.alloc(0)));
    socket.write(frame(1, 4, 1, Buffer.concat(literals)));
    socket.write(frame(0, 1, 1, framed(goodBytes)));
    assert.equal(await code, 'unauthorized');
    socket.destroy();
    assert.deepEqual(own.recorded, []);
  });
});

/** A gRPC message on its stream. */
function framed(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** An HTTP/2 frame. */
function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

test('a call whose message does not come is given up', async () => {
  await withServers({ messageTimeoutMs: 50 }, async (own) => {
    const session = connectHttp2(`http://127.0.0.1:${own.grpcPort}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/marina.gateway.v1.Orders/CreateOrder',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => {});
    await new Promise((resolve) => stream.once('close', resolve));
    session.destroy();
    assert.deepEqual(own.recorded, []);
  });
});

test('stored events arrive as messages', async () => {
  const bytes = Buffer.from(
    '{"object":"event","id":"msg_1","type":"order.filled","timestamp":"2026-11-20T17:12:33Z","version":7,' +
      '"data":{"object":"order","id":"ord_1","state":"filled","quantity":5}}',
  );
  const page = () => create(ListEventsResponseSchema, { data: [storedMessage(EventSchema, bytes)], nextCursor: 'c' });
  await withServers({ events: { listEvents: async () => page() } }, async (own) => {
    const { message } = await callGrpc(own.grpcPort, Events.method.listEvents, Buffer.alloc(0));
    const [event] = (message as ListEventsResponse).data;
    assert.deepEqual([event?.id, event?.version], ['msg_1', 7n]);
    assert.ok(event?.data.case === 'order');
    assert.equal(event.data.value.quantity, 5n);
  });
});

test('an error nobody foresaw tells nothing of itself', async () => {
  const broken = async () => {
    throw new Error('select secret from somewhere');
  };
  await withServers({ orders: { getOrder: broken } }, async (own) => {
    const { code, details, error } = await callGrpc(own.grpcPort, getOrder, thisOrder);
    assert.deepEqual([code, error?.code], [status.INTERNAL, 'internal_error']);
    assert.ok(!details.includes('secret'));
  });
});

test('a client that gives up does not stop its order', async () => {
  let entered = () => {};
  let release = () => {};
  const isEntered = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  let finish: (status: number) => void = () => {};
  const finished = new Promise<number>((resolve) => {
    finish = resolve;
  });
  const slow = async () => {
    entered();
    await isReleased;
    return order;
  };
  const settings = {
    orders: { createOrder: slow },
    onFinished: (end: { status: number }) => finish(end.status),
  };
  await withServers(settings, async (own) => {
    const client = new Client(`127.0.0.1:${own.grpcPort}`, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set('authorization', 'Bearer full');
    metadata.set('idempotency-key', 'k');
    const given = new Promise<number | undefined>((resolve) => {
      const call = client.makeUnaryRequest(
        '/marina.gateway.v1.Orders/CreateOrder',
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        goodBytes,
        metadata,
        (error) => resolve(error?.code),
      );
      void isEntered.then(() => call.cancel());
    });
    assert.equal(await given, status.CANCELLED);
    release();
    assert.equal(await finished, 201);
    client.close();
  });
});

test('a method we do not have is unimplemented', async () => {
  const method = { ...getOrder, name: 'Unknown', output: getOrder.output as DescMessage };
  const { code } = await callGrpc(servers.grpcPort, method, thisOrder);
  assert.equal(code, status.UNIMPLEMENTED);
});

test('a caller is known by the address a trusted proxy names', async () => {
  const connectionLimits = new ConnectionLimits({}, ['127.0.0.1']);
  await withServers({ pipeline: { connectionLimits } }, async (own) => {
    await callGrpc(own.grpcPort, getOrder, thisOrder, {
      authorization: 'Bearer full',
      'x-forwarded-for': '198.51.100.1',
    });
    await callGrpc(own.grpcPort, getOrder, thisOrder);
    assert.deepEqual(
      own.finished.map(({ clientAddress }) => clientAddress),
      ['198.51.100.1', '127.0.0.1'],
    );
  });
});

test('a server that closes answers what is under way', async () => {
  let entered = () => {};
  let release = () => {};
  const isEntered = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow = async () => {
    entered();
    await isReleased;
    return order;
  };
  const own = await openServers({ orders: { getOrder: slow } });
  const answer = callGrpc(own.grpcPort, getOrder, thisOrder);
  await isEntered;
  const closed = own.grpc.close(10_000);
  release();
  assert.equal((await answer).code, status.OK);
  await closed;
  await own.http.close(0);
});
