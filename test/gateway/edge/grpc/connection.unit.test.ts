import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect as connectSocket, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { GrpcConnection } from '../../../../src/gateway/edge/grpc/connection.ts';
import { eventually } from '../../../support/eventually.ts';
import { callFields, flag, frame, frameType, Http2Wire, headerBlock } from '../../../support/hostile/http2-wire.ts';

it('a connection that is asked again and again whether its client is there gathers nothing', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const [[session], [socket]] = (await Promise.all([
      once(server, 'session'),
      once(server, 'connection'),
      once(client, 'connect'),
    ])) as [[ServerHttp2Session], [Socket], unknown];
    const connection = new GrpcConnection(session, socket);
    let asked = 0;
    client.on('ping', () => {
      asked += 1;
    });
    let now = performance.now();
    const ask = async () => {
      const before = asked;
      await new Promise<void>((resolve, reject) =>
        client.ping((error) => (error === null ? resolve() : reject(error))),
      );
      // Asked only when the client has sent something since it last answered.
      now += 600;
      await eventually(() => {
        connection.check(now);
        assert.ok(asked > before, 'the client was not asked');
      });
    };
    await ask();
    const listeners = session.listenerCount('close');
    for (let time = 0; time < 15; time += 1) await ask();
    assert.equal(session.listenerCount('close'), listeners);
  } finally {
    client.destroy();
    server.close();
  }
});

interface Connected {
  readonly connection: GrpcConnection;
  readonly wire: Http2Wire;
  readonly socket: Socket;
  /** Begins a call, and returns its stream; with a valid key if it is known. */
  open(options?: { readonly isKnown?: boolean }): Promise<ServerHttp2Stream>;
  /** How often the client was blamed, and whether its connection is closed. */
  ends(): [abuses: number, isClosed: boolean];
  /** The client is told that no further call is begun. */
  isSentAway(): Promise<boolean>;
}

/** A connection on which the client has sent what HTTP/2 begins with. */
async function withConnection(test: (connected: Connected) => Promise<void>): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connectSocket((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  try {
    const [[session], [socket], wire] = (await Promise.all([
      once(server, 'session'),
      once(server, 'connection'),
      once(client, 'connect').then(() => new Http2Wire(client)),
    ])) as [[ServerHttp2Session], [Socket], Http2Wire];
    await eventually(() => assert.ok(socket.bytesRead > 0));
    let abuses = 0;
    const connection = new GrpcConnection(session, socket, () => {
      abuses += 1;
    });
    const pinged = async () => {
      // The answer to a ping comes behind everything that was sent before.
      const payload = Buffer.alloc(8, wire.received.get(frameType.ping) ?? 0);
      const before = wire.received.get(frameType.ping) ?? 0;
      void wire.write(frame(frameType.ping, 0, 0, payload));
      await eventually(() => assert.ok(client.destroyed || (wire.received.get(frameType.ping) ?? 0) > before));
    };
    await test({
      ...{ connection, wire, socket },
      open: async ({ isKnown = false } = {}) => {
        const opened = once(server, 'stream') as Promise<[ServerHttp2Stream]>;
        void wire.open(callFields('/slow'));
        const [stream] = await opened;
        stream.on('error', () => {});
        connection.opened(stream);
        if (isKnown) connection.identified(stream);
        return stream;
      },
      ends: () => [abuses, socket.destroyed],
      isSentAway: async () => {
        if (!socket.destroyed) await pinged();
        return wire.goawayCode === constants.NGHTTP2_NO_ERROR;
      },
    });
  } finally {
    client.destroy();
    server.close();
  }
}

async function close(stream: ServerHttp2Stream, code: number = constants.NGHTTP2_NO_ERROR): Promise<void> {
  const closed = once(stream, 'close');
  stream.close(code);
  await closed;
}

describe('an unanswered ping', () => {
  const looks = [1, 2, 3, 4, 5];

  /** A connection whose client was asked at `askedAt` whether it is there. */
  const withSilent = (test: (connected: Connected, askedAt: number, answer: () => Promise<void>) => Promise<void>) =>
    withConnection(async (connected) => {
      const { connection, wire, socket } = connected;
      const asked = new Promise<Buffer>((resolve) => {
        wire.onFrame = ({ type, payload }) => type === frameType.ping && resolve(payload);
      });
      const askedAt = Math.ceil(performance.now()) + 600;
      connection.check(askedAt);
      const payload = await asked;
      await test(connected, askedAt, async () => {
        const before = socket.bytesRead;
        await wire.write(frame(frameType.ping, flag.ack, 0, payload));
        await eventually(() => assert.ok(socket.bytesRead > before));
      });
    });

  it('a client that does not answer a ping loses its connection after a second and a half, and that counts as abuse', () =>
    withSilent(async ({ connection, ends }, askedAt) => {
      for (const look of looks) connection.check(askedAt + 200 * look);
      connection.check(askedAt + 1_499);
      assert.deepEqual(ends(), [0, false]);
      connection.check(askedAt + 1_500);
      assert.deepEqual(ends(), [1, true]);
    }));

  it('a client that does not answer a ping keeps its connection while a call with a key is open, and loses it as long after that', () =>
    withSilent(async ({ connection, ends, open }, askedAt) => {
      const call = await open({ isKnown: true });
      for (const look of looks) connection.check(askedAt + 1_000 * look);
      assert.deepEqual(ends(), [0, false]);
      await close(call, constants.NGHTTP2_CANCEL);
      connection.check(askedAt + 6_499);
      assert.deepEqual(ends(), [0, false]);
      connection.check(askedAt + 6_500);
      assert.deepEqual(ends(), [1, true]);
    }));

  it('a call whose client left while its key was looked up keeps no connection open', () =>
    withSilent(async ({ connection, ends, open }, askedAt) => {
      const call = await open();
      await close(call, constants.NGHTTP2_CANCEL);
      connection.identified(call);
      for (const look of looks) connection.check(askedAt + 1_500 + look);
      assert.deepEqual(ends(), [1, true]);
    }));

  it('a client keeps its connection if it was the gateway that had no time to read the answer to a ping', () =>
    withSilent(async ({ connection, ends }, askedAt, answer) => {
      for (const look of looks.slice(1)) connection.check(askedAt + 10_000 + look);
      assert.deepEqual(ends(), [0, false]);
      await answer();
      for (const look of looks) connection.check(askedAt + 11_000 + look);
      assert.deepEqual(ends(), [0, false]);
    }));

  it('a client that does not answer a ping loses its connection once a gateway that had no time has looked for the answer', () =>
    withSilent(async ({ connection, ends }, askedAt) => {
      for (const look of looks) connection.check(askedAt + 10_000 + look);
      assert.deepEqual(ends(), [1, true]);
    }));
});

describe('a connection without calls', () => {
  for (const [who, isKnown, idleMs] of [
    ['a client without a key', false, 20_000],
    ['a client that once came with a key', true, 300_000],
  ] as const) {
    it(`a connection is kept for ${idleMs / 1_000} seconds after the last call of ${who}, and then sent away without blame`, () =>
      withConnection(async ({ connection, open, ends, isSentAway }) => {
        const call = await open({ isKnown });
        connection.check(performance.now() + 2 * idleMs);
        assert.equal(connection.isEnding, false, 'it was sent away with an open call');
        const from = performance.now();
        await close(call);
        const to = performance.now();
        connection.check(from + idleMs);
        assert.equal(connection.isEnding, false);
        connection.check(to + idleMs + 0.01);
        assert.equal(connection.isEnding, true);
        assert.equal(await isSentAway(), true);
        assert.equal(ends()[0], 0);
      }));
  }
});

describe('a connection that is retired', () => {
  it('a retired connection lets the calls of a client without a key end before it is sent away, and the client is not told before that', () =>
    withConnection(async ({ connection, open, isSentAway }) => {
      const calls = [await open(), await open()];
      connection.retire();
      assert.equal(connection.isEnding, true);
      for (const call of calls) {
        assert.equal(await isSentAway(), false);
        await close(call);
      }
      await eventually(async () => assert.equal(await isSentAway(), true));
    }));

  it('a client with a key is told at once that its connection is retired, also if the key was on its way', () =>
    withConnection(async ({ connection, open, isSentAway }) => {
      const call = await open();
      connection.retire();
      assert.equal(await isSentAway(), false);
      connection.identified(call);
      assert.equal(await isSentAway(), true);
    }));

  for (const [who, isKnown, withinMs] of [
    ['a client without a key', false, 5_000],
    ['a client with a key', true, 60_000],
  ] as const) {
    it(`a retired connection is closed with the open calls of ${who} after ${withinMs / 1_000} seconds, however often it is retired`, (context) =>
      withConnection(async ({ connection, open, ends }) => {
        await open({ isKnown });
        context.mock.timers.enable({ apis: ['setTimeout'] });
        connection.retire();
        context.mock.timers.tick(withinMs - 1);
        connection.retire();
        assert.deepEqual(ends(), [0, false]);
        context.mock.timers.tick(1);
        assert.deepEqual(ends(), [0, true]);
      }));
  }

  it('a call on a retired connection has the time of those with a key from when it has shown one', (context) =>
    withConnection(async ({ connection, open, ends }) => {
      const call = await open();
      context.mock.timers.enable({ apis: ['setTimeout'] });
      connection.retire();
      context.mock.timers.tick(4_000);
      connection.identified(call);
      context.mock.timers.tick(59_999);
      assert.deepEqual(ends(), [0, false]);
      context.mock.timers.tick(1);
      assert.deepEqual(ends(), [0, true]);
    }));
});

describe('calls without a valid key', () => {
  for (const [what, count, isKnown, expected] of [
    ['ten calls without a key retire the connection', 10, false, [0, false]],
    ['eleven calls without a key close the connection for abuse', 11, false, [1, true]],
    ['eleven calls of which one has a key retire the connection', 11, true, [0, false]],
  ] as const) {
    it(`${what} when their address has made too many`, () =>
      withConnection(async ({ connection, open, ends }) => {
        for (let call = 1; call < count; call += 1) await open();
        await open({ isKnown });
        connection.endStrangers(false);
        assert.deepEqual(ends(), expected);
        assert.equal(connection.isEnding, true);
      }));
  }
});

describe('calls that the client resets before they are answered', () => {
  /** Makes calls that are reset until the connection ends, and returns how many it took. */
  const resetsUntilEnd = (most: number, prepare: (connected: Connected, call: ServerHttp2Stream) => void) =>
    new Promise<number>((resolve, reject) => {
      withConnection(async (connected) => {
        let resets = 0;
        for (; resets < most && !connected.ends()[1]; resets += 1) {
          const call = await connected.open();
          prepare(connected, call);
          await close(call, constants.NGHTTP2_CANCEL);
        }
        resolve(resets);
      }).catch(reject);
    });

  it('a client without a key may reset two hundred calls and twenty a second before its connection ends', async () => {
    const begunAt = performance.now();
    const resets = await resetsUntilEnd(1_000, () => {});
    const most = 201 + (20 * (performance.now() - begunAt)) / 1_000;
    assert.ok(resets > 200 && resets <= most, `${resets} of at most ${most}`);
  });

  it('resets do not count of calls with a key, or whose answer had begun', async () => {
    for (const prepare of [
      ({ connection }: Connected, call: ServerHttp2Stream) => connection.identified(call),
      (_: Connected, call: ServerHttp2Stream) => call.respond({ ':status': 200 }),
    ]) {
      assert.equal(await resetsUntilEnd(300, prepare), 300);
    }
  });
});

it('a client that says goodbye and never closes loses its connection', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connectSocket({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    allowHalfOpen: true,
  });
  try {
    client.resume();
    const wire = new Http2Wire(client);
    const [[session], [socket]] = (await Promise.all([
      once(server, 'session'),
      once(server, 'connection'),
      wire.write(frame(frameType.goaway, 0, 0, Buffer.alloc(8))),
    ])) as [[ServerHttp2Session], [Socket], unknown];
    const connection = new GrpcConnection(session, socket);
    await eventually(() => assert.ok(session.destroyed, 'the session goes on'));
    const now = performance.now();
    connection.check(now);
    connection.check(now + 29_000);
    assert.ok(!socket.destroyed);
    connection.check(now + 31_000);
    assert.ok(socket.destroyed);
  } finally {
    client.destroy();
    server.close();
  }
});

describe('a client that goes on with calls after its connection was sent away', () => {
  const call = headerBlock(callFields('/grpc.health.v1.Health/Check'));
  const fields = headerBlock(Array.from({ length: 500 }, () => ['', ''] as const));
  const head = Buffer.concat([call, fields]);
  const heads = 1_000;

  /** Opens a call, sends the connection away, then opens calls that are refused. Returns what the server read of them. */
  async function flood(prepare: (connection: GrpcConnection, stream: ServerHttp2Stream) => void) {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = connectSocket(port, '127.0.0.1');
    try {
      const [[session], [socket], [first]] = (await Promise.all([
        once(server, 'session'),
        once(server, 'connection'),
        once(server, 'stream'),
        once(client, 'connect').then(() => new Http2Wire(client).open(callFields('/first'))),
      ])) as [[ServerHttp2Session], [Socket], [ServerHttp2Stream], unknown];
      let abuses = 0;
      const connection = new GrpcConnection(session, socket, () => {
        abuses += 1;
      });
      first.on('error', () => {});
      connection.opened(first);
      prepare(connection, first);
      connection.retire();
      server.on('stream', (stream) => {
        stream.on('error', () => {});
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
        connection.refusedAtOnce();
      });
      const before = socket.bytesRead;
      const closed = once(socket, 'close');
      client.on('error', () => {});
      const frames = Array.from({ length: heads }, (_, at) =>
        frame(frameType.headers, flag.endHeaders, 3 + 2 * at, head),
      );
      client.write(Buffer.concat(frames));
      const checking = setInterval(() => connection.check(), 20);
      await closed;
      clearInterval(checking);
      assert.equal(abuses, 1);
      return socket.bytesRead - before;
    } finally {
      client.destroy();
      server.close();
    }
  }

  it('loses it with the first calls, without a key', async () => {
    assert.ok((await flood(() => {})) < (heads * head.length) / 4);
  });

  it('loses it for the bytes, with a key', async () => {
    await flood((connection, stream) => connection.identified(stream));
  });
});
