import type { Socket } from 'node:net';
import type { Attacker } from '../attacker.ts';
import { many, pause } from './crowd.ts';

export interface PortOption {
  readonly port: 'restPort' | 'grpcPort' | 'adminPort' | 'opsPort';
  /** How many connections are opened in all, and from how many addresses. */
  readonly connections: number;
  readonly addresses?: number;
}

/** Opens connections on which nothing is ever said. */
export async function idleSockets(attacker: Attacker, { port, connections, addresses = 1 }: PortOption): Promise<void> {
  await openMany(attacker, port, connections, addresses);
  await pause(attacker.leftMs);
}

/** Sends the heads of requests byte by byte. */
export async function slowHeads(attacker: Attacker, { port, connections }: PortOption): Promise<void> {
  const sockets = await openMany(attacker, port, connections, 1);
  for (const socket of sockets) socket.write('GET /v1/limits HTTP/1.1\r\nhost: localhost\r\nx-slow: ');
  await drip(sockets, 'a', attacker, 12_000);
}

/** Sends requests of a partner whose bodies come byte by byte. */
export async function slowBodies(attacker: Attacker, { port, connections }: PortOption): Promise<void> {
  const { key } = attacker.target;
  const fields = `host: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n`;
  const paths = ['/marina.gateway.v1.Orders/GetOrder', '/marina.gateway.v1.Orders/CreateOrder', '/v1/orders'];
  const sockets: Socket[] = [];
  // No more in a second than the partner may send: more is a flood, which is another attack.
  while (sockets.length < connections) {
    const begunAt = performance.now();
    const some = await openMany(attacker, port, Math.min(20, connections - sockets.length), 1);
    for (const socket of some) {
      const extra = `idempotency-key: slow-${sockets.length}\r\n`;
      socket.write(`POST ${paths[sockets.length % paths.length]} HTTP/1.1\r\n${fields}${extra}\r\n{`);
      sockets.push(socket);
    }
    await pause(Math.max(0, begunAt + 20 - performance.now()));
  }
  await drip(sockets, ' ', attacker, 32_000);
}

/** Sends many requests ahead on each connection, and takes no answer. */
export async function unreadAnswers(attacker: Attacker, { port, connections }: PortOption): Promise<void> {
  const request = `GET /docs HTTP/1.1\r\nhost: localhost\r\n\r\n`;
  const sockets = await openMany(attacker, port, connections, 1);
  for (const socket of sockets) {
    socket.pause();
    socket.write(request.repeat(1_000));
  }
  await pause(attacker.leftMs);
}

/** Sends requests ahead without end, each of which is refused. */
export async function pipelines(attacker: Attacker, { port, connections }: PortOption): Promise<void> {
  const requests = 'GET /v1/limits HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(30);
  const one = async () => {
    const socket = await attacker.connect(attacker.target[port]);
    socket.resume();
    while (attacker.isOn && !socket.destroyed) {
      if (!socket.writableNeedDrain) socket.write(requests);
      await pause(2);
    }
  };
  await Promise.all(many(connections, one));
}

/** Opens connections and closes them, as fast as it can. */
export async function churn(attacker: Attacker, { port, connections }: PortOption): Promise<void> {
  const one = async () => {
    while (attacker.isOn) {
      const socket = await attacker.connect(attacker.target[port]);
      socket.resetAndDestroy();
      await pause();
    }
  };
  await Promise.all(many(connections, one));
}

async function openMany(
  attacker: Attacker,
  port: PortOption['port'],
  connections: number,
  addresses: number,
): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let opened = 0; opened < connections; opened += 50) {
    const some = many(Math.min(50, connections - opened), (at) =>
      attacker.connect(attacker.target[port], addressAt((opened + at) % addresses)),
    );
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}

/** An address of this machine, one of many. */
function addressAt(at: number): string {
  return `127.0.${66 + Math.floor(at / 200)}.${(at % 200) + 1}`;
}

async function drip(sockets: readonly Socket[], piece: string, attacker: Attacker, mostMs: number): Promise<void> {
  const end = performance.now() + Math.max(attacker.leftMs, mostMs);
  while (performance.now() < end && sockets.some((socket) => !socket.destroyed)) {
    for (const socket of sockets) if (socket.writable) socket.write(piece);
    await pause(1_000);
  }
}
