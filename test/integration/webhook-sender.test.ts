import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { Webhook } from 'standardwebhooks';
import { type Authority, type Identity, makeAuthority } from '../../src/dev/certificates.ts';
import { SystemClock } from '../../src/lib/clock.ts';
import type { Attempt } from '../../src/webhooks/failures.ts';
import { Sender, type SenderOptions } from '../../src/webhooks/sender.ts';
import { makeSecret, parseSecret } from '../../src/webhooks/signature.ts';
import { eventually } from '../support/eventually.ts';
import { startNameServer } from '../support/name-server.ts';
import { patient } from '../support/patience.ts';

const secret = makeSecret();
const key = parseSecret(secret) ?? Buffer.alloc(0);
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const kib = 1_024;

let authority: Authority;
let identity: Identity;
const closing: (() => unknown)[] = [];

before(async () => {
  authority = await makeAuthority('Test');
  identity = await authority.issue(['127.0.0.1', 'localhost', 'hooks.partner.test', 'moving.partner.test']);
});

after(async () => {
  for (const close of closing.reverse()) await close();
});

function newSender(options: Partial<SenderOptions> = {}): Sender {
  const clock = new SystemClock();
  const sender = new Sender({ clock, allowLoopback: true, extraAuthorities: authority.cert, ...options });
  closing.push(() => sender.close());
  return sender;
}

function delivery(port: number, changes: { host?: string; url?: string; endpointId?: string; body?: string } = {}) {
  return {
    endpointId: changes.endpointId ?? `to-${port}`,
    url: changes.url ?? `https://${changes.host ?? '127.0.0.1'}:${port}/hooks`,
    id: `msg_${randomBytes(12).toString('hex')}`,
    body: Buffer.from(changes.body ?? '{"object":"event"}'),
    keys: [key],
  };
}

/** The TCP connections below TLS, by the port they come from. */
const carriers = new Map<number, Socket>();

function reset(socket: TLSSocket): void {
  carriers.get(socket.remotePort ?? 0)?.resetAndDestroy();
}

/** An endpoint that does as it likes with a connection once it has been sent something. */
async function startEndpoint(
  onRequest: (socket: TLSSocket, request: string) => void,
  own: Identity = identity,
): Promise<{ port: number; connections: () => number; open: () => number; requests: () => number }> {
  let connections = 0;
  let requests = 0;
  const open = new Set<TLSSocket>();
  const server = createServer(own, (socket) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    socket.on('data', (bytes) => {
      requests += 1;
      onRequest(socket, bytes.toString());
    });
  });
  server.on('tlsClientError', () => undefined);
  server.on('connection', (socket) => carriers.set(socket.remotePort ?? 0, socket));
  const port = await listening(server);
  closing.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { port, connections: () => connections, open: () => open.size, requests: () => requests };
}

async function listening(server: { listen(port: number, host: string): unknown; address(): unknown }): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server as HttpsServer, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Writes again and again until the other side is gone; answers with how many bytes it took. */
function flood(socket: TLSSocket, piece: string | Buffer, everyMs = 0): () => number {
  const startedAt = socket.bytesWritten;
  const go = () => {
    if (socket.destroyed) return;
    const isTaken = socket.write(piece);
    if (everyMs > 0) setTimeout(go, everyMs).unref();
    else if (isTaken) setImmediate(go);
    else socket.once('drain', go);
  };
  go();
  return () => socket.bytesWritten - startedAt;
}

function outcomeOf({ outcome, status, errorClass }: Attempt) {
  return { outcome, status, errorClass };
}

const delivered = { outcome: 'delivered', status: 200, errorClass: null } as const;
const failed = (errorClass: Attempt['errorClass'], status: number | null = null) =>
  ({ outcome: 'endpoint-failed', status, errorClass }) as const;

describe('an attempt to deliver an event', () => {
  it('is a POST of the exact bytes that its receiver can verify', async () => {
    const bodies: Buffer[] = [];
    let seen: Record<string, unknown> = {};
    const server = createHttpsServer(identity, async (request, response) => {
      bodies.push(Buffer.concat(await request.toArray()));
      seen = { method: request.method, url: request.url, ...request.headers };
      response.end();
    });
    const port = await listening(server);
    closing.push(() => server.close());
    const event = { ...delivery(port), body: Buffer.from('{"name":"Adébáyọ̀ \\u0000"}') };
    assert.deepEqual(outcomeOf(await newSender().send(event)), delivered);
    assert.deepEqual(bodies, [event.body]);
    const { 'webhook-timestamp': timestamp, 'webhook-signature': signature, ...others } = seen;
    assert.deepEqual(others, {
      method: 'POST',
      url: '/hooks',
      host: `127.0.0.1:${port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'user-agent': 'Marina-Webhooks/1.0',
      'webhook-id': event.id,
      'content-length': String(event.body.length),
    });
    const headers = {
      'webhook-id': event.id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': String(signature),
    };
    assert.deepEqual(new Webhook(secret).verify(bodies[0] ?? '', headers), JSON.parse(event.body.toString()));
  });

  describe('is judged by the status', () => {
    const cases: readonly (readonly [number, Attempt['outcome'], Attempt['errorClass']])[] = [
      ...[200, 201, 202, 204, 299].map((status) => [status, 'delivered', null] as const),
      ...[300, 301, 302, 303, 304, 307, 308].map((status) => [status, 'endpoint-failed', 'redirect'] as const),
      ...[400, 401, 403, 404, 409, 410, 422, 499].map((status) => [status, 'event-failed', 'status'] as const),
      ...[408, 429, 500, 502, 503, 504, 599].map((status) => [status, 'endpoint-failed', 'status'] as const),
    ];
    it('2xx delivers, 408, 429, 5xx and redirects count against the endpoint, other 4xx against the event', async () => {
      const { port } = await startEndpoint((socket, request) => {
        const status = request.match(/^POST \/(\d+) /)?.[1];
        socket.end(`HTTP/1.1 ${status} X\r\nlocation: https://example.com/\r\ncontent-length: 0\r\n\r\n`);
      });
      const sender = newSender();
      for (const [status, outcome, errorClass] of cases) {
        const attempt = await sender.send(delivery(port, { url: `https://127.0.0.1:${port}/${status}` }));
        assert.deepEqual(outcomeOf(attempt), { outcome, status, errorClass });
      }
    });
  });

  it('uses a connection again, and a new one when the endpoint closed it', async () => {
    const endpoint = await startEndpoint((socket, request) => {
      if (request.includes('last')) socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      else socket.write(ok);
    });
    const sender = newSender();
    for (const body of ['1', '2', '3', 'last', '5']) {
      assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port, { body }))), delivered);
    }
    assert.equal(endpoint.connections(), 2);
  });

  const breakings: Record<string, (socket: TLSSocket) => unknown> = {
    closed: (socket) => socket.end(),
    reset,
    'closed after a while': (socket) => setTimeout(() => socket.end(), 300),
  };
  for (const [what, breaks] of Object.entries(breakings)) {
    it(`by a connection that was kept and is ${what} under it goes on by a new one, and is one attempt`, async () => {
      const answered = new Set<TLSSocket>();
      const endpoint = await startEndpoint((socket) => {
        if (answered.has(socket)) breaks(socket);
        else socket.write(ok);
        answered.add(socket);
      });
      const sender = newSender();
      for (const requests of [1, 3]) {
        assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), delivered);
        assert.equal(endpoint.requests(), requests);
      }
      assert.equal(endpoint.connections(), 2);
    });
  }

  it('goes on once: an endpoint that breaks the new connection too has failed', async () => {
    let isWell = true;
    const endpoint = await startEndpoint((socket) => {
      if (isWell) socket.write(ok);
      else socket.end();
    });
    const sender = newSender();
    await sender.send(delivery(endpoint.port));
    isWell = false;
    assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), failed('unreachable'));
    assert.deepEqual([endpoint.requests(), endpoint.connections()], [3, 2]);
  });

  it('does not go on where a part of an answer came: the endpoint has failed', async () => {
    let requests = 0;
    const { port } = await startEndpoint((socket) => {
      requests += 1;
      if (requests === 1) socket.write(ok);
      else socket.end('HTTP/1.1 100 Continue\r\n\r\n');
    });
    const sender = newSender();
    await sender.send(delivery(port));
    assert.deepEqual(outcomeOf(await sender.send(delivery(port))), failed('unreachable'));
    assert.equal(requests, 2);
  });

  it('takes its ten seconds in all, whichever connection they go by', async () => {
    const timeoutMs = 1_000;
    let requests = 0;
    const { port } = await startEndpoint((socket) => {
      requests += 1;
      if (requests === 1) socket.write(ok);
      if (requests === 2) setTimeout(() => socket.end(), 600);
    });
    const sender = newSender({ timeoutMs });
    await sender.send(delivery(port));
    const startedAt = performance.now();
    assert.deepEqual(outcomeOf(await sender.send(delivery(port))), failed('timeout'));
    assert.ok(performance.now() - startedAt < patient(timeoutMs + 500));
    assert.equal(requests, 3);
  });

  it('shares no connection with another endpoint at the same host', async () => {
    const endpoint = await startEndpoint((socket) => socket.write(ok));
    const sender = newSender();
    for (const endpointId of ['a', 'b', 'a', 'b']) await sender.send(delivery(endpoint.port, { endpointId }));
    assert.equal(endpoint.connections(), 2);
  });

  it('goes to the new URL when an endpoint moves, while what is under way at the old one ends', async () => {
    let answerOld: () => void = () => undefined;
    const old = await startEndpoint((socket) => {
      answerOld = () => socket.write(ok);
    });
    const next = await startEndpoint((socket) => socket.write(ok));
    const sender = newSender();
    const first = sender.send(delivery(old.port, { endpointId: 'moving' }));
    await eventually(() => assert.equal(old.requests(), 1));
    assert.deepEqual(outcomeOf(await sender.send(delivery(next.port, { endpointId: 'moving' }))), delivered);
    answerOld();
    assert.deepEqual(outcomeOf(await first), delivered);
    await eventually(() => assert.equal(old.open(), 0));
  });

  it('keeps connections of a bounded number of endpoints', async () => {
    const endpoint = await startEndpoint((socket) => socket.write(ok));
    const sender = newSender({ mostEndpoints: 3 });
    for (let index = 0; index < 10; index += 1) {
      await sender.send(delivery(endpoint.port, { endpointId: `endpoint ${index}` }));
      assert.ok(sender.endpoints <= 3);
    }
    await eventually(() => assert.ok(endpoint.open() <= 3));
  });
});

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
      const startedAt = performance.now();
      assert.deepEqual(outcomeOf(await newSender({ timeoutMs }).send(delivery(endpoint.port))), outcome);
      assert.ok(performance.now() - startedAt < patient(timeoutMs + 2_000), 'within the time');
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
    'has a length that is no number': {
      does: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n'),
      outcome: failed('invalid_response'),
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

describe('an endpoint that leads elsewhere', () => {
  it('by a redirect is not followed', async () => {
    const target = await startEndpoint((socket) => socket.write(ok));
    for (const location of ['https://169.254.169.254/latest/meta-data/', `https://127.0.0.1:${target.port}/`]) {
      const { port } = await startEndpoint((socket) => {
        socket.write(`HTTP/1.1 307 Over there\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`);
      });
      assert.deepEqual(outcomeOf(await newSender().send(delivery(port))), failed('redirect', 307));
    }
    assert.equal(target.connections(), 0);
  });

  for (const url of [
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/',
    'https://[fd00::1]/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://[64:ff9b::a9fe:a9fe]/',
    'https://0x7f.1/',
    'https://localhost/',
  ]) {
    it(`by an address that is not public is not dialled: ${url}`, async () => {
      const startedAt = performance.now();
      const attempt = await newSender({ allowLoopback: false }).send(delivery(443, { url: new URL(url).href }));
      assert.deepEqual(outcomeOf(attempt), failed('blocked_address'));
      assert.ok(performance.now() - startedAt < patient(2_000));
    });
  }

  for (const url of ['not a URL', 'http://127.0.0.1:1/hooks', 'amqps://queue.partner.test/events', '']) {
    it(`by a URL that another version stored and this one cannot use fails, and the process goes on: '${url}'`, async () => {
      const endpoint = await startEndpoint((socket) => socket.write(ok));
      const sender = newSender();
      assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), delivered);
      assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port, { url }))), failed('invalid_url'));
      assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), delivered);
    });
  }

  for (const [what, addresses] of Object.entries({
    'a private address': ['192.168.1.1'],
    'the metadata service': ['169.254.169.254'],
    'a private address beside a public one': ['8.8.8.8', '10.0.0.1'],
    'a mapped private address': ['::ffff:10.0.0.1'],
    'loopback of the other family': ['8.8.8.8', '::1'],
  })) {
    it(`by a name of ${what} is not dialled`, async () => {
      const names = await startNameServer(() => addresses);
      closing.push(() => names.close());
      const sender = newSender({ allowLoopback: false, nameServers: [names.address] });
      const attempt = await sender.send(delivery(443, { host: 'hooks.partner.test' }));
      assert.deepEqual(outcomeOf(attempt), failed('blocked_address'));
    });
  }

  it('by a name that means another address each time is dialled where it was checked', async () => {
    const endpoint = await startEndpoint((socket) => socket.end(ok));
    let times = 0;
    const names = await startNameServer(() => {
      times += 1;
      return times <= 2 ? ['127.0.0.1'] : ['10.0.0.1'];
    });
    closing.push(() => names.close());
    const sender = newSender({ nameServers: [names.address] });
    const event = delivery(endpoint.port, { host: 'moving.partner.test' });
    assert.deepEqual(outcomeOf(await sender.send(event)), delivered);
    assert.equal(endpoint.connections(), 1);
    assert.equal(names.asked.length, 2, 'one question for each family, and none after the check');
    assert.deepEqual(outcomeOf(await sender.send(event)), failed('blocked_address'), 'each connection is checked');
    assert.equal(endpoint.connections(), 1);
  });
});

describe('an endpoint that cannot be reached', () => {
  it('because nobody listens there is unreachable', async () => {
    const server = createTcpServer();
    const port = await listening(server);
    server.close();
    await once(server, 'close');
    assert.deepEqual(outcomeOf(await newSender().send(delivery(port))), failed('unreachable'));
  });

  it('because its name leads nowhere fails by DNS', async () => {
    const names = await startNameServer(() => []);
    closing.push(() => names.close());
    const sender = newSender({ nameServers: [names.address] });
    const attempt = await sender.send(delivery(443, { host: 'gone.partner.test' }));
    assert.deepEqual(outcomeOf(attempt), failed('dns'));
  });

  it('because name servers are silent takes its own time only, however many there are', async () => {
    const endpoint = await startEndpoint((socket) => socket.end(ok));
    const names = await startNameServer((name) => (name.startsWith('silent') ? 'silence' : ['127.0.0.1']));
    closing.push(() => names.close());
    const sender = newSender({ nameServers: [names.address], timeoutMs: 1_500 });
    const silent = Array.from({ length: 50 }, (_, index) =>
      sender.send(delivery(443, { host: `silent${index}.partner.test`, endpointId: `silent ${index}` })),
    );
    const startedAt = performance.now();
    assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port, { host: 'hooks.partner.test' }))), delivered);
    assert.ok(performance.now() - startedAt < patient(1_000));
    for (const attempt of await Promise.all(silent)) {
      assert.ok(['timeout', 'dns'].includes(attempt.errorClass ?? ''));
      assert.ok(attempt.durationMs < 3_000);
    }
  });

  it('one family of whose addresses is never told is reached by the other', async () => {
    const endpoint = await startEndpoint((socket) => socket.end(ok));
    const names = await startNameServer(() => ['127.0.0.1']);
    closing.push(() => names.close());
    const sender = newSender({ nameServers: [names.address] });
    assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port, { host: 'hooks.partner.test' }))), delivered);
  });
});

describe('an endpoint whose certificate', () => {
  const dayMs = 86_400_000;
  const cases: Record<string, () => Promise<Identity>> = {
    'has expired': () =>
      authority.issue(['127.0.0.1'], {
        notBefore: new Date(Date.now() - 2 * dayMs),
        notAfter: new Date(Date.now() - dayMs),
      }),
    'is not valid yet': () => authority.issue(['127.0.0.1'], { notBefore: new Date(Date.now() + dayMs) }),
    'is for another name': () => authority.issue(['other.partner.test']),
    'is for another address': () => authority.issue(['127.0.0.2']),
    'is by an authority nobody knows': async () => (await makeAuthority('Nobody')).issue(['127.0.0.1']),
  };
  for (const [what, make] of Object.entries(cases)) {
    it(`${what}: is sent nothing`, async () => {
      const endpoint = await startEndpoint((socket) => socket.write(ok), await make());
      assert.deepEqual(outcomeOf(await newSender().send(delivery(endpoint.port))), failed('tls'));
      assert.equal(endpoint.requests(), 0);
    });
  }

  it('is good by a known authority is refused by who does not know it', async () => {
    const endpoint = await startEndpoint((socket) => socket.write(ok));
    const sender = new Sender({ clock: new SystemClock(), allowLoopback: true });
    closing.push(() => sender.close());
    assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), failed('tls'));
    assert.equal(endpoint.requests(), 0);
  });

  it('is never shown, because it speaks no TLS: is sent nothing', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.end('HTTP/1.1 200 OK\r\n\r\n');
    });
    const port = await listening(server);
    closing.push(() => server.close());
    assert.deepEqual(outcomeOf(await newSender().send(delivery(port))), failed('tls'));
  });
});

describe('a sender that is closed', () => {
  it('ends what is under way and leaves no connection', async () => {
    const endpoint = await startEndpoint(() => undefined);
    const sender = newSender();
    const attempt = sender.send(delivery(endpoint.port));
    await eventually(() => assert.equal(endpoint.requests(), 1));
    await sender.close();
    assert.deepEqual(outcomeOf(await attempt), failed('unreachable'));
    await eventually(() => assert.equal(endpoint.open(), 0));
  });
});

async function writeInPieces(socket: TLSSocket, text: string): Promise<void> {
  for (const letter of text) {
    if (socket.destroyed) return;
    await new Promise<void>((resolve) => socket.write(letter, () => setImmediate(resolve)));
  }
}
