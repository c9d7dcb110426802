import assert from 'node:assert/strict';
import { createServer as createTcpServer } from 'node:net';
import { describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { eventually } from '../../../../support/eventually.ts';
import { patient } from '../../../../support/patience.ts';
import {
  closing,
  delivered,
  delivery,
  failed,
  flood,
  kib,
  listening,
  newSender,
  ok,
  outcomeOf,
  prepareSending,
  reset,
  startEndpoint,
  writeInPieces,
} from '../../../../support/sending.ts';

prepareSending();

describe('an endpoint that is slow or endless', () => {
  const timeoutMs = 600;
  const cases: Record<string, { does: (socket: TLSSocket) => void; outcome: ReturnType<typeof outcomeOf> }> = {
    'says nothing': { does: () => undefined, outcome: failed('timeout') },
    'sends its head letter by letter': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nx: ');
        flood(socket, 'a', 20);
      },
      outcome: failed('timeout'),
    },
    'sends a status line that does not end': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 ');
        flood(socket, 'a'.repeat(kib));
      },
      outcome: failed('invalid_response'),
    },
    'sends headers that do not end': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        flood(socket, `x: ${'a'.repeat(100)}\r\n`);
      },
      outcome: failed('invalid_response'),
    },
    'sends one header that does not end': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nx: ');
        flood(socket, 'a'.repeat(kib));
      },
      outcome: failed('invalid_response'),
    },
    'floods with informational answers': {
      does: (socket) => {
        flood(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(50));
      },
      outcome: failed('invalid_response'),
    },
    'sends informational answers one by one': {
      does: (socket) => {
        flood(socket, 'HTTP/1.1 102 Processing\r\n\r\n', 20);
      },
      outcome: failed('timeout'),
    },
    'sends a body that does not end': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        flood(socket, Buffer.alloc(16 * kib));
      },
      outcome: delivered,
    },
    'sends a body byte by byte': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n');
        flood(socket, 'a', 20);
      },
      outcome: delivered,
    },
    'sends an endless body in chunks of one byte': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
        flood(socket, '1\r\na\r\n'.repeat(1_000));
      },
      outcome: delivered,
    },
    'sends a chunk extension that does not end': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;');
        flood(socket, 'a'.repeat(kib));
      },
      outcome: delivered,
    },
    'sends trailers that do not end': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n');
        flood(socket, `x: ${'a'.repeat(100)}\r\n`);
      },
      outcome: delivered,
    },
    'fails with a body that does not end': {
      does: (socket) => {
        socket.write('HTTP/1.1 500 No\r\n\r\n');
        flood(socket, Buffer.alloc(16 * kib));
      },
      outcome: failed('status', 500),
    },
  };
  for (const [what, { does, outcome }] of Object.entries(cases)) {
    it(`${what}: is left in time, its connection closed`, async () => {
      const sent: (() => number)[] = [];
      const endpoint = await startEndpoint((socket) => {
        const before = socket.bytesWritten;
        sent.push(() => socket.bytesWritten - before);
        does(socket);
      });
      // A machine that is busy may take long to connect, and longer to read an answer that is refused for its size.
      const withinMs = patient(outcome.errorClass === 'invalid_response' ? 10_000 : timeoutMs);
      const startedAt = performance.now();
      assert.deepEqual(outcomeOf(await newSender({ timeoutMs: withinMs }).send(delivery(endpoint.port))), outcome);
      assert.ok(performance.now() - startedAt < withinMs + patient(2_000), 'within the time');
      await eventually(() => assert.equal(endpoint.open(), 0));
      assert.equal(endpoint.requests(), 1, 'and asked once');
    });
  }

  it('is not waited for in a connection that is not accepted', async () => {
    // A listener whose queue is full of connections nobody accepts.
    const server = createTcpServer({ pauseOnConnect: true });
    const port = await listening(server);
    closing.push(() => server.close());
    const startedAt = performance.now();
    assert.deepEqual(outcomeOf(await newSender({ timeoutMs }).send(delivery(port))), failed('timeout'));
    assert.ok(performance.now() - startedAt < patient(timeoutMs + 2_000));
  });

  it('costs no memory worth mentioning when its answer is a bomb', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1_024 * kib));
    assert.ok(bomb.length > 60_000 && bomb.length < 70_000);
    const endpoint = await startEndpoint((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
      socket.write(bomb);
    });
    const sender = newSender();
    await sender.send(delivery(endpoint.port));
    const before = process.memoryUsage();
    for (let index = 0; index < 10; index += 1) {
      assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), delivered);
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    assert.ok(heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers < 32 * 1_024 * kib);
  });

  it('takes nothing from another, though a hundred hang', async () => {
    const hanging = await startEndpoint(() => undefined);
    const healthy = await startEndpoint((socket) => socket.write(ok));
    const sender = newSender({ timeoutMs: 5_000 });
    const hung = Array.from({ length: 100 }, (_, index) =>
      sender.send(delivery(hanging.port, { endpointId: `hanging ${index}` })),
    );
    await eventually(() => assert.equal(hanging.requests(), 100));
    for (let index = 0; index < 20; index += 1) {
      assert.deepEqual(outcomeOf(await sender.send(delivery(healthy.port))), delivered);
    }
    assert.equal(hanging.open(), 100, 'they still hang');
    for (const attempt of await Promise.all(hung)) assert.deepEqual(outcomeOf(attempt), failed('timeout'));
  });
});

describe('an endpoint whose answer is odd', () => {
  const cases: Record<string, { does: (socket: TLSSocket) => void; outcome: ReturnType<typeof outcomeOf> }> = {
    'is HTTP/1.0 without a length': {
      does: (socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nthanks'),
      outcome: delivered,
    },
    'is HTTP/1.1 without a length': {
      does: (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nthanks'),
      outcome: delivered,
    },
    'is a status and the end of the connection': {
      does: (socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'),
      outcome: { ...delivered, status: 204 },
    },
    'is shorter than it said': {
      does: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok'),
      outcome: delivered,
    },
    'is reset in the body': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok', () => reset(socket));
      },
      outcome: delivered,
    },
    'is reset in the head': {
      does: (socket) => {
        socket.write('HTTP/1.1 200', () => reset(socket));
      },
      outcome: failed('unreachable'),
    },
    'is the end of the connection': { does: (socket) => socket.end(), outcome: failed('unreachable') },
    'is a reset': { does: reset, outcome: failed('unreachable') },
    'is half a head': { does: (socket) => socket.end('HTTP/1.1 200 OK\r\nx:'), outcome: failed('unreachable') },
    'is no HTTP': { does: (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'), outcome: failed('invalid_response') },
    ...Object.fromEntries(
      [
        ...[
          'content-length: x',
          'content-length:',
          'content-length: -1',
          'content-length: 2 2',
          'content-length: 2, x',
        ],
        ...['content-length: 1000000000000000', `content-length: ${'9'.repeat(40)}`, 'content-length: 2\xe9'],
        ...['transfer-encoding:', 'transfer-encoding: gzip', 'transfer-encoding: identity\r\ncontent-length: 2'],
        ...['transfer-encoding: chunk\xe9d', 'transfer-encoding: chunked, gzip'],
        ...['connection: clos\xe9\r\ncontent-length: 2', 'keep-alive: \x01\r\ncontent-length: 2'],
      ].map((headers) => [
        `has headers that do not say where it ends (${JSON.stringify(headers)}), and leaves its connection open`,
        {
          does: (socket: TLSSocket) => socket.write(Buffer.from(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\nok`, 'latin1')),
          outcome: delivered,
        },
      ]),
    ),
    'says 500 and has a Content-Length that is no number': {
      does: (socket) => socket.write('HTTP/1.1 500 No\r\ncontent-length: x\r\n\r\n'),
      outcome: failed('status', 500),
    },
    'has lines that end with LF': {
      does: (socket) => socket.write('HTTP/1.1 200 OK\ncontent-length: 2\nx: y\n\nok'),
      outcome: delivered,
    },
    'has lines that end with LF, a few bytes at a time': {
      does: (socket) => void writeInPieces(socket, 'HTTP/1.1 204 No Content\nserver: x\r\n\n'),
      outcome: { ...delivered, status: 204 },
    },
    'is an informational answer with LF before one with CRLF': {
      does: (socket) => socket.write(`HTTP/1.1 103 Early Hints\nlink: </a>\n\n${ok}`),
      outcome: delivered,
    },
    'has its Content-Length twice with the same value': {
      does: (socket) =>
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nserver: x\r\ncontent-length: 2\r\n\r\nok'),
      outcome: delivered,
    },
    'has its Content-Length as a list of the same value': {
      does: (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2, 02\r\n\r\nok'),
      outcome: delivered,
    },
    'has a Content-Length twice with different values': {
      does: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok'),
      outcome: failed('invalid_response'),
    },
    'has chunks and a Content-Length': {
      does: (socket) =>
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'),
      outcome: delivered,
    },
    'has chunks whose lines end with LF': {
      does: (socket) => socket.end('HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n2\nok\n0\n\n'),
      outcome: delivered,
    },
    'has headers of odd forms': {
      does: (socket) =>
        socket.write(
          'HTTP/1.1 200 \r\nno colon\r\nna me: x\r\nx: a\u0001\r\n folded\r\n: y\r\ncontent-length : 2\r\n\r\nok',
        ),
      outcome: delivered,
    },
    'has a status line without a reason': {
      does: (socket) => socket.write('HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n'),
      outcome: delivered,
    },
    'has a head of 60 KiB': {
      does: (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(60 * kib)}\r\ncontent-length: 2\r\n\r\nok`),
      outcome: delivered,
    },
    'has many headers, of 60 KiB together, and a body of 4,000 bytes': {
      does: (socket) => {
        const cookies = `set-cookie: ${'c'.repeat(1_010)}\r\n`.repeat(60);
        socket.write(`HTTP/1.1 202 Accepted\r\n${cookies}content-length: 4000\r\n\r\n${'b'.repeat(4_000)}`);
      },
      outcome: { ...delivered, status: 202 },
    },
    'has a body of 65,000 bytes': {
      does: (socket) => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 65000\r\n\r\n${'b'.repeat(65_000)}`),
      outcome: delivered,
    },
    'has a head above 64 KiB': {
      does: (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(64 * kib)}\r\n\r\n`),
      outcome: failed('invalid_response'),
    },
    'says 500 in lines that end with LF': {
      does: (socket) => socket.write('HTTP/1.1 500 No\ncontent-length: 0\n\n'),
      outcome: failed('status', 500),
    },
    'begins with 100 Continue': {
      does: (socket) => socket.write(`HTTP/1.1 100 Continue\r\n\r\n${ok}`),
      outcome: delivered,
    },
    'begins with several informational ones in pieces': {
      does: (socket) => {
        const text = `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 102 X\r\n\r\n${ok}`;
        void writeInPieces(socket, text);
      },
      outcome: delivered,
    },
    'begins with one that announces another protocol': {
      does: (socket) => socket.write(`HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n${ok}`),
      outcome: delivered,
    },
    'is in pieces': { does: (socket) => void writeInPieces(socket, ok), outcome: delivered },
    'has a body that looks like an informational answer': {
      does: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n');
        setTimeout(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 20);
      },
      outcome: delivered,
    },
  };
  for (const [what, { does, outcome }] of Object.entries(cases)) {
    it(`${what}: it is judged as HTTP would, and the next attempt is not touched by it`, async () => {
      let answers = 0;
      const { port } = await startEndpoint((socket) => {
        answers += 1;
        if (answers === 1) does(socket);
        else socket.write(ok);
      });
      const sender = newSender({ timeoutMs: 5_000 });
      const startedAt = performance.now();
      assert.deepEqual(outcomeOf(await sender.send(delivery(port))), outcome);
      assert.ok(performance.now() - startedAt < patient(4_000), 'at once');
      assert.deepEqual(outcomeOf(await sender.send(delivery(port))), delivered);
    });
  }

  it('says more than it was asked: what it added is no answer to the next event', async () => {
    const { port } = await startEndpoint((socket) => socket.write(`${ok}HTTP/1.1 200 OK\r\n\r\n`));
    const sender = newSender();
    for (let index = 0; index < 3; index += 1) {
      const { outcome } = await sender.send(delivery(port));
      assert.ok(['delivered', 'endpoint-failed'].includes(outcome));
    }
  });
});
