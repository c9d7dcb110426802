import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import {
  endStream,
  HttpConnection,
  type HttpExchange,
  writeStream,
} from '../../../../src/gateway/edge/http/connection.ts';
import { ClientGone } from '../../../../src/gateway/edge/pipeline.ts';
import { eventually } from '../../../support/eventually.ts';

interface Connected {
  readonly connection: HttpConnection;
  readonly client: Socket;
  /** The paths of the requests that are served, in their order. */
  readonly served: string[];
  readonly floods: () => number;
  /** Answers the request that is served. */
  answer(isLast?: boolean): void;
  /** All that the client has got. */
  readonly got: () => string;
}

const soon = { leastMs: 0, mostMs: 1_000, maxBytes: 1_000, stepMs: 5 };
/** Nothing ends by its time. */
const long = { leastMs: 600_000, mostMs: 600_000, maxBytes: 1_000_000, stepMs: 60_000 };

/** One connection, whose requests are answered when the test says so. */
async function withConnection(test: (connected: Connected) => Promise<void>, lingers = soon): Promise<void> {
  const server = createServer({ keepAlive: false });
  const served: string[] = [];
  let connection: HttpConnection | undefined;
  let floods = 0;
  const opened = new Promise<HttpConnection>((resolve) => {
    server.on('connection', (socket: Socket) => {
      const serve = (_: HttpConnection, { request }: HttpExchange) => void served.push(request.url ?? '');
      connection = new HttpConnection(socket, serve, lingers, () => {
        floods += 1;
      });
      resolve(connection);
    });
  });
  server.on('request', (request, response) => {
    connection?.take({ request, response, awaitsContinue: false, hasUnreadBody: false, isMalformed: false });
  });
  server.on('checkContinue', (request, response) => {
    connection?.take({ request, response, awaitsContinue: true, hasUnreadBody: true, isMalformed: false });
  });
  server.on('clientError', () => {});
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    allowHalfOpen: lingers === long,
  });
  client.on('error', () => {});
  let got = '';
  client.on('data', (bytes) => {
    got += bytes.toString('latin1');
  });
  try {
    const one = await opened;
    await test({
      ...{ connection: one, client, served, floods: () => floods, got: () => got },
      answer: (isLast = false) => {
        assert.ok(one.current !== undefined, 'no request is served');
        one.current.response.writeHead(200, { 'Content-Length': 0, ...(isLast && { Connection: 'close' }) }).end();
        one.answered(isLast);
      },
    });
  } finally {
    client.destroy();
    server.closeAllConnections();
    server.close();
  }
}

const get = (path: string, ...more: string[]) => [`GET ${path} HTTP/1.1`, 'Host: here', ...more, '', ''].join('\r\n');

/** As many requests in one packet, named by their number. */
const numbered = (count: number) => Array.from({ length: count }, (_, number) => get(`/${number}`)).join('');

describe('pipelined requests', () => {
  it('pipelined requests are served one after the other, each when the one before is answered', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      client.write(numbered(3));
      for (const last of [0, 1, 2]) {
        await eventually(() => assert.equal(served.at(-1), `/${last}`));
        assert.equal(connection.hasWaiting, last < 2);
        answer();
      }
      assert.deepEqual(served, ['/0', '/1', '/2']);
    }));

  it('thirty-two requests may wait behind the one that is served', () =>
    withConnection(async ({ client, served, answer, connection, floods }) => {
      client.write(numbered(33));
      for (let number = 0; number < 33; number += 1) {
        await eventually(() => assert.equal(served.length, number + 1));
        answer();
      }
      assert.deepEqual([floods(), connection.isEnding], [0, false]);
    }));

  it('one more request than may wait is a flood: what is served is answered, and nothing else is begun', () =>
    withConnection(async ({ client, served, answer, connection, floods }) => {
      client.write(numbered(34));
      await eventually(() => assert.equal(floods(), 1));
      assert.equal(connection.isEnding, true);
      answer(true);
      client.write(get('/later'));
      await once(client, 'close');
      assert.deepEqual([served, floods()], [['/0'], 1]);
    }));

  it('requests that wait behind a last answer are not begun', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      client.write(numbered(3));
      await eventually(() => assert.ok(connection.hasWaiting));
      answer(true);
      assert.deepEqual([connection.isOver, connection.hasWaiting, connection.current], [true, false, undefined]);
      await once(client, 'close');
      assert.deepEqual(served, ['/0']);
    }));

  it('requests that wait when their client leaves are not begun', () =>
    withConnection(async ({ client, served, connection }) => {
      client.write(numbered(3));
      await eventually(() => assert.ok(connection.hasWaiting));
      client.destroy();
      await eventually(() => assert.ok(connection.isOver));
      connection.answered(false);
      assert.deepEqual(served, ['/0']);
    }));

  it('a request for another protocol is served as the last one: where the next begins is not known', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      client.write(get('/first') + get('/upgrade', 'Connection: Upgrade', 'Upgrade: h2c') + get('/dropped'));
      await eventually(() => assert.ok(connection.hasWaiting));
      client.write(get('/further'));
      answer();
      await eventually(() => assert.deepEqual(served, ['/first', '/upgrade']));
      assert.equal(connection.isEnding, true);
      answer(true);
      await once(client, 'close');
      assert.deepEqual(served, ['/first', '/upgrade']);
    }));
});

describe('whether a client waits for an answer', () => {
  it('a client waits for an answer from the first byte of a request to its answer', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      assert.equal(connection.owesAnswer, false);
      for (const path of ['/one', '/two']) {
        const text = get(path);
        client.write(text.slice(0, 1));
        await eventually(() => assert.equal(connection.owesAnswer, true));
        client.write(text.slice(1));
        await eventually(() => assert.equal(served.at(-1), path));
        answer();
        assert.equal(connection.owesAnswer, false);
      }
    }));

  it('the rest of the body of an answered request is no further request', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      client.write(get('/', 'Content-Length: 10'));
      await eventually(() => assert.equal(served.length, 1));
      answer();
      const before = connection.socket.bytesRead;
      client.write('12345');
      await eventually(() => assert.equal(connection.socket.bytesRead, before + 5));
      assert.equal(connection.owesAnswer, false);
    }));
});

describe('a connection when its port closes', () => {
  it('a connection whose last request is answered is closed at once when its port closes', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      client.write(get('/'));
      await eventually(() => assert.equal(served.length, 1));
      answer();
      connection.closeIfIdle();
      assert.equal(connection.socket.destroyed, true);
    }));

  it('a connection on which a request is served, or has begun, stays open when its port closes', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      client.write(get('/'));
      await eventually(() => assert.equal(served.length, 1));
      connection.closeIfIdle();
      assert.equal(connection.socket.destroyed, false);
      answer();
      client.write('G');
      await eventually(() => assert.equal(connection.owesAnswer, true));
      connection.closeIfIdle();
      assert.equal(connection.socket.destroyed, false);
    }));

  it('a new connection has half a second for its first request when its port closes', (context) =>
    withConnection(async ({ connection }) => {
      context.mock.timers.enable({ apis: ['setTimeout'] });
      connection.closeIfIdle();
      context.mock.timers.tick(499);
      assert.equal(connection.socket.destroyed, false);
      context.mock.timers.tick(1);
      assert.equal(connection.socket.destroyed, true);
    }));

  it('a new connection whose first request has come in that time is served', (context) =>
    withConnection(async ({ client, connection, served, answer, got }) => {
      context.mock.timers.enable({ apis: ['setTimeout'] });
      connection.closeIfIdle();
      client.write(get('/'));
      while (served.length === 0) await new Promise(setImmediate);
      context.mock.timers.tick(500);
      assert.equal(connection.socket.destroyed, false);
      answer();
      context.mock.timers.reset();
      await eventually(() => assert.match(got(), /^HTTP\/1\.1 200 OK/));
    }));
});

describe('the last answer to a request whose body is on its way', () => {
  const half = 'y'.repeat(5);

  for (const [form, head, first, last] of [
    ['with a length', ['Content-Length: 10'], half, half],
    ['in chunks', ['Transfer-Encoding: chunked'], `5\r\n${half}\r\n`, `5\r\n${half}\r\n0\r\n\r\n`],
  ] as const) {
    it(`a connection stays open after its last answer until the body ${form} has come`, () =>
      withConnection(async ({ client, served, answer, got, connection }) => {
        let isEnded = false;
        client.on('end', () => {
          isEnded = true;
        });
        client.write(get('/', ...head) + first);
        await eventually(() => assert.equal(served.length, 1));
        connection.current?.request.resume();
        answer(true);
        await eventually(() => assert.match(got(), /^HTTP\/1\.1 200 OK/));
        assert.deepEqual([connection.isLingering, isEnded], [true, false]);
        const ended = once(client, 'end');
        client.write(last);
        await ended;
        assert.equal(connection.socket.destroyed, false, 'it is read on');
      }, long));
  }

  it('a client that waits for 100 Continue is not waited for after the last answer', () =>
    withConnection(async ({ client, served, answer, got }) => {
      const ended = once(client, 'end');
      client.write(get('/', 'Content-Length: 10', 'Expect: 100-continue'));
      await eventually(() => assert.equal(served.length, 1));
      answer(true);
      await ended;
      assert.match(got(), /^HTTP\/1\.1 200 OK/);
    }, long));

  it('what a client sends after the last answer is read and dropped, whatever it is', () =>
    withConnection(async ({ client, served, answer, connection }) => {
      const ended = once(client, 'end');
      client.write(get('/'));
      await eventually(() => assert.equal(served.length, 1));
      answer(true);
      await ended;
      const before = connection.socket.bytesRead;
      const more = get('/later') + 'no HTTP at all\r\n\r\n'.repeat(1_000);
      client.write(more);
      await eventually(() => assert.equal(connection.socket.bytesRead - before, more.length));
      assert.deepEqual([served, connection.socket.destroyed, connection.owesAnswer], [['/'], false, false]);
    }, long));
});

describe('a stream of messages', () => {
  /** A stream of one message, which ends when it is told to. */
  async function withStream(
    test: (
      connected: Connected,
      streamed: { readonly ending: AbortController; readonly end: () => void },
    ) => Promise<void>,
  ): Promise<void> {
    await withConnection(async (connected) => {
      const { client, served, connection } = connected;
      client.write(get('/stream'));
      await eventually(() => assert.equal(served.length, 1));
      const { response } = connection.current as HttpExchange;
      const ending = new AbortController();
      const over = new AbortController();
      const answer = {
        status: 200,
        async *messages() {
          yield Buffer.from('one');
          await once(AbortSignal.any([over.signal, ending.signal]), 'abort');
        },
      };
      const writing = writeStream(response, answer, ['Content-Length', '3'], ending, undefined);
      try {
        await test(connected, { ending, end: () => over.abort() });
      } finally {
        over.abort();
        await writing;
      }
    });
  }

  it("a stream's head and first message are sent at once, and its end leaves the connection to the next request", () =>
    withStream(async ({ client, connection, got, served }, { end }) => {
      await eventually(() => assert.match(got(), /^HTTP\/1\.1 200 OK\r\n.*one$/s));
      const { response } = connection.current as HttpExchange;
      const before = connection.socket.listenerCount('end') - 1;
      end();
      endStream(response, Buffer.alloc(0), false);
      await once(response, 'close');
      connection.answered(false);
      client.write(get('/next'));
      await eventually(() => assert.deepEqual(served, ['/stream', '/next']));
      assert.equal(connection.socket.listenerCount('end'), before, 'nothing waits for the end of the stream');
    }));

  it('a stream ends with its client: one that closes, and one that closes its side only', async () => {
    for (const leave of [({ client }: Connected) => client.destroy(), ({ client }: Connected) => client.end()]) {
      await withStream(async (connected, { ending }) => {
        await eventually(() => assert.match(connected.got(), /one$/));
        leave(connected);
        await eventually(() => assert.ok(ending.signal.reason instanceof ClientGone));
        assert.equal(connected.connection.socket.destroyed, true);
      });
    }
  });

  it('the last answer of a connection closes it when the client has it', () =>
    withStream(async ({ client, connection, got }, { end }) => {
      await eventually(() => assert.match(got(), /one$/));
      const { response } = connection.current as HttpExchange;
      end();
      endStream(response, Buffer.alloc(0), true);
      connection.answered(true);
      await once(client, 'close');
    }));
});

it('an answer to what Node could not read is the last thing a client gets', () =>
  withConnection(async ({ client, connection, got }) => {
    connection.endWith('HTTP/1.1 400 Bad Request\r\n\r\n' as never);
    assert.equal(connection.isOver, true);
    await once(client, 'close');
    assert.equal(got(), 'HTTP/1.1 400 Bad Request\r\n\r\n');
  }));
