import { randomUUID } from 'node:crypto';
import { createServer, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import type { Attacker } from '../attacker.ts';
import { many, pause } from './crowd.ts';
import { HttpClient } from './http-client.ts';

/** A partner whose endpoint is hostile, and where it listens. */
export interface HostileEndpoint {
  readonly key: string;
  readonly account: string;
  readonly port: number;
}

export interface EndpointOptions {
  readonly prepared: {
    /** A few of each behaviour, because one that failed is paused. */
    readonly endpoints: Readonly<Record<string, readonly HostileEndpoint[]>>;
    readonly cert: string;
    readonly key: string;
  };
  readonly behaviour: Behaviour;
  readonly turn: number;
}

export type Behaviour = keyof typeof behaviours;

const ok = 'HTTP/1.1 200 OK\r\n';
const kib = 1_024;

/** The behaviours of an endpoint towards a delivery. */
const behaviours = {
  'endless answers': (socket: TLSSocket) => {
    socket.write(`${ok}\r\n`);
    flood(socket, Buffer.alloc(64 * kib, 'x'));
  },
  'answers byte by byte': (socket: TLSSocket) => drip(socket, `${ok}x-slow: `),
  'endless headers': (socket: TLSSocket) => {
    socket.write(ok);
    flood(socket, `x-${'a'.repeat(100)}: ${'b'.repeat(8_000)}\r\n`);
  },
  'interim answers without end': (socket: TLSSocket) => flood(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
  'redirects in a circle': (socket: TLSSocket, port: number) =>
    socket.write(
      `HTTP/1.1 307 Temporary Redirect\r\nlocation: https://127.0.0.1:${port}/hooks\r\ncontent-length: 0\r\n\r\n`,
    ),
  'compressed answers': (socket: TLSSocket) => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    socket.write(`${ok}content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
    socket.write(bomb);
  },
  'connections broken off': (socket: TLSSocket) => {
    socket.write(`${ok}content-length: 1000\r\n\r\nhalf`);
    setTimeout(() => socket.destroy(), 20);
  },
  'no answer at all': () => undefined,
} as const;

export const behaviourNames = Object.keys(behaviours) as Behaviour[];

/** Is the endpoint of a partner that orders as much as it can. Returns how many deliveries it was sent. */
export async function hostileEndpoint(attacker: Attacker, { prepared, behaviour, turn }: EndpointOptions) {
  const endpoint = prepared.endpoints[behaviour]?.[turn];
  if (endpoint === undefined) throw new Error(`there is no endpoint for ${behaviour}`);
  let deliveries = 0;
  const latestAt = performance.now() + attacker.leftMs + 6_000;
  const server = createServer({ cert: prepared.cert, key: prepared.key }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      if (!bytes.includes('POST ')) return;
      deliveries += 1;
      behaviours[behaviour](socket, endpoint.port);
    });
  });
  server.on('connection', (socket) => attacker.watch(socket));
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(endpoint.port, '127.0.0.1', resolve));
  const client = new HttpClient(attacker, 4);
  const order = async () => {
    while (attacker.isOn) {
      await client.send({
        method: 'POST',
        path: '/v1/orders',
        headers: {
          authorization: `Bearer ${endpoint.key}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify({
          account: endpoint.account,
          symbol: 'SIM-REST',
          side: 'buy',
          quantity: 1 + Math.floor(Math.random() * 1_000_000),
          type: 'limit',
          price_kobo: 1_000,
        }),
      });
      await pause(50);
    }
  };
  await Promise.all(many(4, order));
  client.close();
  // A delivery may come as late as the contract lets it.
  while (deliveries === 0 && performance.now() < latestAt) await pause(50);
  server.close();
  return deliveries;
}

function flood(socket: TLSSocket, piece: string | Buffer): void {
  const go = () => {
    if (socket.destroyed) return;
    if (socket.write(piece)) setImmediate(go);
    else socket.once('drain', go);
  };
  go();
}

function drip(socket: TLSSocket, start: string): void {
  socket.write(start);
  const timer = setInterval(() => socket.write('a'), 200);
  socket.once('close', () => clearInterval(timer));
}
