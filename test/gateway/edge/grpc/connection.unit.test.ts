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

describe('a client that does not answer a ping', () => {
  /** A connection whose client has sent something, and has been asked at `askedAt` whether it is there. */
  async function withSilent(
    test: (
      connection: GrpcConnection,
      ends: () => [abuses: number, isClosed: boolean],
      silent: Silent,
    ) => Promise<void>,
  ) {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connectSocket((server.address() as AddressInfo).port, '127.0.0.1');
    try {
      const [[session], [socket], wire] = (await Promise.all([
        once(server, 'session'),
        once(server, 'connection'),
        once(client, 'connect').then(() => new Http2Wire(client)),
      ])) as [[ServerHttp2Session], [Socket], Http2Wire];
      const asked = new Promise<Buffer>((resolve) => {
        wire.onFrame = ({ type, payload }) => type === frameType.ping && resolve(payload);
      });
      await eventually(() => assert.ok(socket.bytesRead > 0));
      let abuses = 0;
      const connection = new GrpcConnection(session, socket, () => {
        abuses += 1;
      });
      const askedAt = Math.ceil(performance.now()) + 600;
      connection.check(askedAt);
      const payload = await asked;
      const open = async () => {
        const opened = once(server, 'stream') as Promise<[ServerHttp2Stream]>;
        client.write(frame(frameType.headers, flag.endHeaders, 1, headerBlock(callFields('/slow'))));
        const [call] = await opened;
        call.on('error', () => {});
        connection.opened(call);
        connection.identified(call);
        return call;
      };
      const answer = async () => {
        const before = socket.bytesRead;
        client.write(frame(frameType.ping, flag.ack, 0, payload));
        await eventually(() => assert.ok(socket.bytesRead > before));
      };
      await test(connection, () => [abuses, socket.destroyed], { askedAt, open, answer });
    } finally {
      client.destroy();
      server.close();
    }
  }

  interface Silent {
    readonly askedAt: number;
    /** Opens a call with a valid key. */
    readonly open: () => Promise<ServerHttp2Stream>;
    readonly answer: () => Promise<void>;
  }

  const looks = [1, 2, 3, 4, 5];

  it('loses its connection after a second and a half, and that counts as abuse', () =>
    withSilent(async (connection, ends, { askedAt }) => {
      for (const look of looks) connection.check(askedAt + 200 * look);
      connection.check(askedAt + 1_499);
      assert.deepEqual(ends(), [0, false]);
      connection.check(askedAt + 1_500);
      assert.deepEqual(ends(), [1, true]);
    }));

  it('keeps its connection while a call with a key is open, and loses it as long after that', () =>
    withSilent(async (connection, ends, { askedAt, open }) => {
      const call = await open();
      for (const look of looks) connection.check(askedAt + 1_000 * look);
      assert.deepEqual(ends(), [0, false]);
      const closed = once(call, 'close');
      call.close(constants.NGHTTP2_CANCEL);
      await closed;
      connection.check(askedAt + 6_499);
      assert.deepEqual(ends(), [0, false]);
      connection.check(askedAt + 6_500);
      assert.deepEqual(ends(), [1, true]);
    }));

  it('keeps its connection if it was the gateway that had no time to read the answer', () =>
    withSilent(async (connection, ends, { askedAt, answer }) => {
      for (const look of looks.slice(1)) connection.check(askedAt + 10_000 + look);
      assert.deepEqual(ends(), [0, false]);
      await answer();
      for (const look of looks) connection.check(askedAt + 11_000 + look);
      assert.deepEqual(ends(), [0, false]);
    }));

  it('loses its connection once the gateway had time to look for the answer', () =>
    withSilent(async (connection, ends, { askedAt }) => {
      for (const look of looks) connection.check(askedAt + 10_000 + look);
      assert.deepEqual(ends(), [1, true]);
    }));
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
