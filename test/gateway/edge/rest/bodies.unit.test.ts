import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { reset } from '../../../support/reset.ts';
import {
  gate,
  goodOrder,
  noLimits,
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

function ofSize(bytes: number): string {
  return good.replace('{', `{${' '.repeat(bytes - good.length)}`);
}

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const chunked = { 'Transfer-Encoding': 'chunked' };

test('a body of 16,384 bytes is taken, whether it says its length or not', async () => {
  assert.equal((await send(servers.restPort, { body: ofSize(16_384) })).status, 201);
  await onWire(async (connection) => {
    connection.send(requestText({ headers: chunked }));
    connection.send(`${chunk(ofSize(16_384).slice(0, 9_000))}${chunk(ofSize(16_384).slice(9_000))}0\r\n\r\n`);
    assert.equal((await connection.answer()).status, 201);
  });
});

test('a body of one byte more is refused before any of it was sent, and the connection ends', async () => {
  await onWire(async (connection) => {
    connection.send(requestText({ headers: { 'Content-Length': '16385' } }));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.json.error.code], [413, 'request_too_large']);
    assert.equal(answer.headers.get('connection'), 'close');
    await connection.ended;
  });
});

test('a body without a length is refused as soon as it is too large', async () => {
  await onWire(async (connection) => {
    connection.send(requestText({ headers: chunked })).send(chunk('x'.repeat(16_385)));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.json.error.code], [413, 'request_too_large']);
    assert.equal(answer.headers.get('connection'), 'close');
    await connection.ended;
  });
});

test('a client that goes on sending a refused body still gets its answer', async () => {
  await onWire(async (connection) => {
    connection.send(requestText({ headers: { 'Content-Length': '3000000' } })).send(Buffer.alloc(3_000_000, 0x20));
    assert.equal((await connection.answer()).status, 413);
    await connection.ended;
  });
});

test('a client that asks before it sends is told to go on, or refused without', async () => {
  const expecting = (headers: Record<string, string | null> = {}) =>
    requestText({ headers: { Expect: '100-continue', 'Content-Length': String(good.length), ...headers } });
  await onWire(async (connection) => {
    assert.equal((await connection.send(expecting()).answer()).status, 100);
    assert.equal((await connection.send(good).answer()).status, 201);
    assert.equal((await connection.send(requestText(getOrder)).answer()).status, 200, 'the connection goes on');
  });
  const refused: [Record<string, string | null>, number][] = [
    [{ Authorization: null }, 401],
    [{ 'Content-Length': '16385' }, 413],
    [{ 'Content-Type': 'text/plain' }, 415],
    [{ 'Idempotency-Key': null }, 400],
  ];
  for (const [headers, status] of refused) {
    await onWire(async (connection) => {
      const answer = await connection.send(expecting(headers)).answer();
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get('connection'), 'close');
      await connection.ended;
    });
  }
});

const mediaTypes: readonly [string | readonly string[] | null, number][] = [
  ['application/json', 201],
  ['APPLICATION/JSON', 201],
  ['application/json;charset=utf-8', 201],
  ['application/json; charset=UTF-8', 201],
  ['application/json ;\tCharset="utf-8"', 201],
  ['application/json; charset=utf8', 201],
  ['application/json;charset="UTF8"', 201],
  ['application/json; charset=utf-88', 415],
  ['application/connect+json; charset=utf8', 415],
  [null, 415],
  ['', 415],
  ['text/json', 415],
  ['application/jsonp', 415],
  ['application/problem+json', 415],
  ['application/json, application/json', 415],
  [['application/json', 'application/json'], 415],
  ['application/json; charset=latin1', 415],
  ['application/json; charset=utf-16', 415],
  ['application/json; charset="utf-8', 415],
  ['application/json; version=1', 201],
  ['application/json; version="1"; charset=utf-8', 201],
  ['application/json; version=1; charset=latin1', 415],
  ['application/json; version', 415],
  ['application/json;', 201],
  ['application/json ; ; charset=utf-8; ', 201],
  [`application/json${`;${' '.repeat(500)}`.repeat(7)}x`, 415],
  ['application/x-www-form-urlencoded', 415],
];

for (const [type, status] of mediaTypes) {
  test(`a body of type ${JSON.stringify(type)} is answered ${status}`, async () => {
    const answer = await send(servers.restPort, { body: good, headers: { 'Content-Type': type } });
    assert.equal(answer.status, status);
    if (status === 415) assert.equal(answer.json.error.code, 'unsupported_media_type');
  });
}

for (const [encoding, status] of [
  ['identity', 415],
  ['gzip', 415],
  ['br', 415],
  ['identity, gzip', 415],
  ['', 415],
] as const) {
  test(`a body of Content-Encoding ${encoding} is answered ${status}`, async () => {
    assert.equal(
      (await send(servers.restPort, { body: good, headers: { 'Content-Encoding': encoding } })).status,
      status,
    );
  });
}

test('a body that does not arrive whole in time is refused', async () => {
  await withServers({ limits: { bodyTimeoutMs: 50 } }, async (own) => {
    await onWire(async (connection) => {
      const answer = await connection
        .send(requestText({ headers: { 'Content-Length': '100' } }))
        .send('{')
        .answer();
      assert.deepEqual([answer.status, answer.json.error.code], [400, 'invalid_request']);
      assert.equal(answer.headers.get('connection'), 'close');
      await connection.ended;
    }, own.restPort);
    assert.deepEqual(own.recorded, []);
  });
});

test('a head that does not arrive whole in time is refused', async () => {
  await withServers({ limits: { headersTimeoutMs: 50, checkIntervalMs: 20 } }, async (own) => {
    await onWire(async (connection) => {
      const answer = await connection.send('POST /v1/orders HTTP/1.1\r\nHost: x\r\n').answer();
      assert.deepEqual([answer.status, answer.json.error.code], [400, 'invalid_request']);
      assert.ok(answer.headers.has('x-request-id'));
      await connection.ended;
    }, own.restPort);
  });
});

test('a connection on which nothing is asked ends without a word', async () => {
  await withServers({ limits: { headersTimeoutMs: 50, keepAliveMs: 50, checkIntervalMs: 20 } }, async (own) => {
    const nothing = (connection: RawConnection) => assert.rejects(connection.answer(), /received: ""/);
    await onWire(nothing, own.restPort);
    await onWire(async (connection) => {
      assert.equal((await connection.send(requestText(getOrder)).answer()).status, 200);
      await nothing(connection);
    }, own.restPort);
  });
});

for (const [how, expected] of [
  ['without a word', 'client_gone'],
  ['properly', 'invalid_request'],
] as const) {
  test(`a client that leaves ${how} while it sends has placed nothing and holds no place`, async () => {
    let held = 0;
    const codes: unknown[] = [];
    const taken = gate();
    const over = gate();
    const acquireSlot = async () => {
      held += 1;
      taken.open();
      return () => {
        held -= 1;
      };
    };
    const onFinished = ({ code }: { code?: unknown }) => {
      codes.push(code);
      over.open();
    };
    await withServers({ pipeline: { limits: { ...noLimits, acquireSlot } }, onFinished }, async (own) => {
      const connection = new RawConnection(own.restPort);
      connection.send(requestText({ headers: { 'Content-Length': '100' } })).send('{');
      await taken.opened;
      if (how === 'properly') connection.close();
      else reset(connection.socket);
      await over.opened;
      assert.deepEqual([own.recorded, held, codes], [[], 0, [expected]]);
    });
  });
}

test('a client that leaves while its order is placed does not stop it', async () => {
  const { createOrder, entered, release, ended } = slowOrder();
  const counted = gate();
  await withServers({ orders: { createOrder }, onFinished: counted.open }, async (own) => {
    const connection = new RawConnection(own.restPort);
    connection.send(requestText({ body: good }));
    await entered;
    connection.close();
    await connection.ended;
    release();
    await ended;
    await counted.opened;
    assert.equal((await send(own.restPort, getOrder)).status, 200, 'the server goes on');
  });
});

test('a body where none belongs is passed over, and the connection goes on', async () => {
  for (const method of ['GET', 'DELETE']) {
    await onWire(async (connection) => {
      connection.send(requestText({ method, target: getOrder.target, body: 'anything' }));
      assert.equal((await connection.answer()).status, 200);
      connection
        .send(requestText({ method, target: getOrder.target, headers: chunked }))
        .send(`${chunk('abc')}0\r\n\r\n`);
      assert.equal((await connection.answer()).status, 200);
      connection.send(requestText(getOrder));
      assert.equal((await connection.answer()).status, 200);
    });
  }
});

test('a large body where none belongs ends the connection after the answer', async () => {
  await onWire(async (connection) => {
    connection.send(requestText({ ...getOrder, headers: { 'Content-Length': '16385' } }));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close']);
    await connection.ended;
  });
});
