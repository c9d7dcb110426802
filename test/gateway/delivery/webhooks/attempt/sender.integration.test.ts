import assert from 'node:assert/strict';
import { createServer as createHttpsServer } from 'node:https';
import { describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { Webhook } from 'standardwebhooks';
import type { SendResult } from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import { eventually } from '../../../../support/eventually.ts';
import { patient } from '../../../../support/patience.ts';
import {
  closing,
  delivered,
  delivery,
  failed,
  identity,
  listening,
  newSender,
  ok,
  outcomeOf,
  prepareSending,
  reset,
  secret,
  startEndpoint,
} from '../../../../support/sending.ts';

prepareSending();

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

  it('is signed with the time of the world, however far operators have moved the clock of a sandbox', async () => {
    const signedAt: number[] = [];
    const { port } = await startEndpoint((socket, request) => {
      signedAt.push(Number(request.match(/webhook-timestamp: (\d+)/i)?.[1]));
      socket.end(ok);
    });
    const realNow = 1_772_443_800_999;
    for (const days of [-30, 0, 30]) {
      const clock = { now: () => realNow + days * 86_400_000, realNow: () => realNow };
      assert.deepEqual(outcomeOf(await newSender({ clock }).send(delivery(port))), delivered);
    }
    assert.deepEqual(signedAt, [1_772_443_800, 1_772_443_800, 1_772_443_800]);
  });

  describe('is judged by the status', () => {
    const cases: readonly (readonly [number, SendResult['outcome'], SendResult['errorClass']])[] = [
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
    it(`a kept connection that is ${what} under the attempt is replaced by a new one, and it counts as one attempt`, async () => {
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

  it('an attempt goes on over a new connection, though others are kept that the endpoint may have closed too', async () => {
    const kept = new Set<TLSSocket>();
    let isKeeping = true;
    const endpoint = await startEndpoint((socket) => {
      if (kept.has(socket)) return void socket.end();
      if (isKeeping) kept.add(socket);
      socket.write(ok);
    });
    const sender = newSender();
    await Promise.all([1, 2, 3].map(() => sender.send(delivery(endpoint.port))));
    assert.equal(kept.size, 3);
    isKeeping = false;
    assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), delivered);
    assert.equal(endpoint.connections(), 4);
  });

  it('a sender takes long answers over one connection, as many as there are events', async () => {
    const body = 'x'.repeat(20_000);
    const endpoint = await startEndpoint((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
    const sender = newSender();
    for (let events = 0; events < 20; events += 1) {
      assert.deepEqual(outcomeOf(await sender.send(delivery(endpoint.port))), delivered);
    }
    assert.equal(endpoint.connections(), 1);
  });

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
