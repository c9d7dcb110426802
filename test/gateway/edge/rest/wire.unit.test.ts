import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { defaultRequestBounds, RequestsUnderWay } from '../../../../src/gateway/edge/bounds.ts';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import {
  goodOrder,
  openServers,
  orderId,
  RawConnection,
  requestText,
  type Servers,
  send,
  slowOrder,
  withConnection,
  withServers,
} from '../fixture.ts';

let servers: Servers;
before(async () => {
  servers = await openServers();
});
after(() => servers.close());

const good = JSON.stringify(goodOrder);
const getOrder = { method: 'GET', target: `/v1/orders/${orderId}` };

function onWire(use: (connection: RawConnection) => Promise<void>, port = servers.restPort): Promise<void> {
  return withConnection(port, use);
}

const chunked = { 'Transfer-Encoding': 'chunked' };

for (const [method, path, status, allow] of [
  ['BREW', '/v1/orders', 405, 'POST, GET'],
  ['get', '/v1/orders?limit=1', 405, 'POST, GET'],
  ['BREW', '/v1/orders/estimate', 405, 'POST'],
  ['BREW', '/v1/nothing', 404, undefined],
] as const) {
  test(`a method HTTP does not know, ${method}, is answered ${status} on ${path}`, async () => {
    await onWire(async (connection) => {
      const answer = await connection.send(`${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).answer();
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get('allow') ?? undefined, allow);
      await connection.ended;
    });
  });
}

const unreadable: readonly [string, string, number][] = [
  ['no HTTP at all', 'hello\r\n\r\n', 400],
  ['a method that is none', 'B(REW /v1/orders HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['another protocol', 'GET /v1/orders HTTX/1.1\r\nHost: x\r\n\r\n', 400],
  ['HTTP/2 spoken at once', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['a header without a colon', 'GET /v1/orders HTTP/1.1\r\nHost x\r\n\r\n', 400],
  ['a space before the colon', 'GET /v1/orders HTTP/1.1\r\nHost : x\r\n\r\n', 400],
  ['two lengths', 'POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}', 400],
  ['one length twice', 'POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}', 400],
  ['a negative length', 'POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 400],
  ['a length in hex', 'POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 0x2\r\n\r\n{}', 400],
  ['an endless length', `POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: ${'9'.repeat(30)}\r\n\r\n`, 400],
  [
    'a length and chunks',
    'POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
  ['chunks that are not last', 'POST /v1/orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n', 400],
  [
    'chunks in another coding',
    'POST /v1/orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
  ['no Host', 'GET /v1/orders HTTP/1.1\r\n\r\n', 400],
  ['two Hosts', 'GET /v1/orders HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
  ['a header that is too large', `GET /v1/orders HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, 413],
  ['a path that is too long', `GET /v1/${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 413],
  ['too many headers', `GET /v1/orders HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(100)}\r\n`, 413],
  ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n', 404],
];

for (const [name, text, status] of unreadable) {
  test(`${name} is answered ${status} in our own form, and the connection ends`, async () => {
    await onWire(async (connection) => {
      const answer = await connection.send(text).answer();
      assert.equal(answer.status, status);
      const code = { 400: 'invalid_request', 404: 'not_found', 413: 'request_too_large' }[status];
      assert.equal(answer.json.error.code, code);
      assert.equal(answer.json.error.doc_url, `https://api.marina.example/docs/errors#${code}`);
      assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
      await connection.ended;
    });
  });
}

test('chunks that break off in nonsense are refused, and nothing is placed', async () => {
  const before = servers.recorded.length;
  await onWire(async (connection) => {
    connection.send(requestText({ headers: chunked })).send('zz\r\n');
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.json.error.code], [400, 'invalid_request']);
    assert.equal(answer.headers.get('connection'), 'close');
    await connection.ended;
  });
  assert.equal(servers.recorded.length, before);
});

test('a whole address as the target is taken as its path', async () => {
  const status = async (target: string) => (await send(servers.restPort, { method: 'GET', target })).status;
  assert.equal(await status(`http://elsewhere.example${getOrder.target}`), 200);
  assert.equal(await status(`HTTPS://elsewhere.example:1${getOrder.target}?`), 200);
  assert.equal(await status('http://elsewhere.example'), 404);
  assert.equal(await status('ftp://elsewhere.example/v1/orders'), 404);
});

test('OPTIONS * is not found', async () => {
  assert.equal((await send(servers.restPort, { method: 'OPTIONS', target: '*' })).status, 404);
});

test('a wish to speak another protocol is passed over', async () => {
  const headers = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': '' };
  assert.equal((await send(servers.restPort, { ...getOrder, headers })).status, 200);
});

test('HTTP/1.0 is answered, and its connection ends', async () => {
  await onWire(async (connection) => {
    const answer = await connection
      .send(`GET ${getOrder.target} HTTP/1.0\r\nAuthorization: Bearer full\r\n\r\n`)
      .answer();
    assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close']);
    await connection.ended;
  });
});

test('a client that asks for the connection to end gets that', async () => {
  await onWire(async (connection) => {
    connection.send(requestText({ ...getOrder, headers: { Connection: 'close' } }));
    assert.equal((await connection.answer()).headers.get('connection'), 'close');
    await connection.ended;
  });
});

test('requests sent ahead are served one after the other, in order', async () => {
  const { createOrder, entered, release } = slowOrder();
  await withServers({ orders: { createOrder } }, async (own) => {
    await onWire(async (connection) => {
      connection.send(
        Buffer.concat([requestText({ body: good }), requestText(getOrder), requestText({ ...getOrder, target: '/x' })]),
      );
      await entered;
      assert.deepEqual(own.recorded, [], 'the read waits for the order');
      release();
      assert.equal((await connection.answer()).status, 201);
      assert.equal((await connection.answer()).status, 200);
      assert.equal((await connection.answer()).status, 404);
      assert.equal(own.recorded.length, 1);
    }, own.restPort);
  });
});

test('requests behind a refused body are never begun', async () => {
  const before = servers.recorded.length;
  await onWire(async (connection) => {
    const refused = requestText({ headers: { 'Content-Length': '20000' } });
    connection.send(Buffer.concat([refused, Buffer.alloc(20_000, 0x20), requestText({ body: good })]));
    assert.equal((await connection.answer()).status, 413);
    await connection.ended;
    await assert.rejects(connection.answer());
  });
  assert.equal(servers.recorded.length, before);
});

test('nonsense behind a request is not taken for its answer', async () => {
  const { createOrder, entered, release } = slowOrder();
  await withServers({ orders: { createOrder } }, async (own) => {
    await onWire(async (connection) => {
      connection.send(Buffer.concat([requestText({ body: good }), Buffer.from('nonsense\r\n\r\n')]));
      await entered;
      release();
      const answer = await connection.answer();
      assert.deepEqual([answer.status, answer.headers.get('connection')], [201, 'close']);
      await connection.ended;
    }, own.restPort);
  });
});

test('more requests ahead than anybody needs end the connection after the first answer', async () => {
  const { createOrder, entered, release } = slowOrder();
  await withServers({ orders: { createOrder } }, async (own) => {
    await onWire(async (connection) => {
      connection.send(
        Buffer.concat([requestText({ body: good }), ...Array.from({ length: 40 }, () => requestText(getOrder))]),
      );
      await entered;
      release();
      const answer = await connection.answer();
      assert.deepEqual([answer.status, answer.headers.get('connection')], [201, 'close']);
      await connection.ended;
      assert.deepEqual(own.recorded, []);
    }, own.restPort);
  });
});

const onlyOne = new RequestsUnderWay({ ...defaultRequestBounds, total: 1, reserve: 0 });

test('one request too many is answered 503 and can be sent again', async () => {
  const { createOrder, entered, release } = slowOrder();
  await withServers({ orders: { createOrder }, pipeline: { requests: onlyOne } }, async (own) => {
    const first = send(own.restPort, { body: good });
    await entered;
    const second = await send(own.restPort, getOrder);
    assert.deepEqual(
      [second.status, second.json.error.code, second.headers.get('retry-after')],
      [503, 'service_unavailable', '5'],
    );
    release();
    assert.equal((await first).status, 201);
    assert.equal((await send(own.restPort, getOrder)).status, 200);
  });
});

test('a server that closes answers what is under way and takes nothing new', async () => {
  const { createOrder, entered, release } = slowOrder();
  const own = await openServers({ orders: { createOrder } });
  const idle = new RawConnection(own.restPort);
  const busy = new RawConnection(own.restPort);
  busy.send(requestText({ body: good }));
  await entered;
  const closed = own.http.close(10_000);
  await idle.ended;
  await assert.rejects(send(own.restPort, getOrder), 'nobody listens any more');
  release();
  const answer = await busy.answer();
  assert.deepEqual([answer.status, answer.headers.get('connection')], [201, 'close']);
  busy.close();
  await closed;
  await own.grpc.close(0);
});

test('a server that is about to close serves on, and each answer is the last of its connection', async () => {
  const own = await openServers({});
  const kept = new RawConnection(own.restPort);
  kept.send(requestText({ body: good }));
  assert.equal((await kept.answer()).headers.get('connection'), 'keep-alive');
  own.http.drain();
  kept.send(requestText({ body: good }));
  const last = await kept.answer();
  assert.deepEqual([last.status, last.headers.get('connection')], [201, 'close']);
  await kept.ended;
  const next = await send(own.restPort, getOrder);
  assert.equal(next.status, 200, 'new connections are taken');
  await own.close();
});

test('a server that closes waits no longer than it was told', async () => {
  const { createOrder, entered, release } = slowOrder();
  const own = await openServers({ orders: { createOrder } });
  const connection = new RawConnection(own.restPort);
  connection.send(requestText({ body: good }));
  await entered;
  await own.close();
  await connection.ended;
  release();
});

test('a refusal of a body nobody read ends the connection, one of a body that was read does not', async () => {
  await onWire(async (connection) => {
    connection.send(requestText({ body: good, headers: { Authorization: 'Bearer wrong' } }));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.headers.get('connection')], [401, 'close']);
    await connection.ended;
  });
  await onWire(async (connection) => {
    assert.equal((await connection.send(requestText({ body: '{' })).answer()).status, 400);
    assert.equal((await connection.send(requestText(getOrder)).answer()).status, 200);
  });
});

test('identification that cannot be done is 503, whatever the path', async () => {
  const identify = async () => {
    throw new ApiError('service_unavailable');
  };
  await withServers({ pipeline: { identify } }, async (own) => {
    assert.equal((await send(own.restPort, { method: 'GET', target: '/nowhere' })).status, 503);
  });
});
