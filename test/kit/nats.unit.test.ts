import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { createLogger } from '../../src/kit/log.ts';
import { Nats } from '../../src/kit/nats.ts';
import { eventually } from '../support/eventually.ts';

/** As much of a NATS server as it takes to connect to it, and to be refused by it. */
async function startServer() {
  const sockets = new Set<Socket>();
  const subjects: string[] = [];
  let refuses = false;
  const refusedAt: number[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.write('INFO {"server_id":"test","version":"2.9.0","max_payload":1048576,"headers":true}\r\n');
    socket.on('data', (data) => {
      for (const line of data.toString().split('\r\n')) {
        if (line.startsWith('SUB ')) subjects.push(line.split(' ')[1] ?? '');
        if (line === 'PING' && !refuses) socket.write('PONG\r\n');
        if (line === 'PING' && refuses) {
          refusedAt.push(performance.now());
          socket.end("-ERR 'Authorization Violation'\r\n");
        }
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    subjects,
    /** From now on it refuses clients, or takes them again. */
    refuse: (isRefusing: boolean) => {
      refuses = isRefusing;
      if (isRefusing) for (const socket of sockets) socket.destroy();
    },
    timesRefused: () => refusedAt.length,
    refusedAt,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

describe('the connection to NATS', () => {
  it('is not used any more from the moment it is being closed', async () => {
    const server = await startServer();
    const nats = new Nats({ url: server.url, log: createLogger({ name: 'test', level: 'silent' }) });
    await nats.start();
    const closing = nats.close();
    try {
      nats.publish('news');
      assert.equal(nats.connection, undefined);
    } finally {
      await closing;
      server.close();
    }
  });

  it('is made again, with its subscriptions, also after the server had refused it for a while', async () => {
    const server = await startServer();
    const nats = new Nats({ url: server.url, log: createLogger({ name: 'test', level: 'silent' }) });
    try {
      const changes: boolean[] = [];
      nats.subscribe('news', () => {});
      nats.onChange((isConnected) => changes.push(isConnected));
      await nats.start();
      assert.deepEqual([changes, server.subjects], [[true], ['news']]);
      server.refuse(true);
      await eventually(() => assert.ok(server.timesRefused() >= 4));
      assert.equal(nats.connection, undefined);
      assert.throws(() => nats.requireConnection(), /cannot be reached/);
      server.refuse(false);
      await eventually(() => assert.notEqual(nats.connection, undefined));
      assert.equal(changes.at(-1), true);
      assert.equal(server.subjects.at(-1), 'news');
    } finally {
      await nats.close();
      server.close();
    }
    assert.equal(nats.connection, undefined);
  });

  it('is tried less and less often while the server refuses the login, and at most 2 s apart', async () => {
    const server = await startServer();
    server.refuse(true);
    const nats = new Nats({ url: server.url, log: createLogger({ name: 'test', level: 'silent' }) });
    try {
      await nats.start();
      await eventually(() => assert.ok(server.timesRefused() >= 8), 20_000);
    } finally {
      await nats.close();
      server.close();
    }
    const gaps = server.refusedAt.slice(1).map((at, index) => at - (server.refusedAt[index] ?? at));
    for (const gap of gaps.slice(5)) assert.ok(gap >= 1_900, `${gaps}`);
  });

  it('is tried in the background, and what needs it fails at once, while nobody is there', async () => {
    const nats = new Nats({ url: 'nats://127.0.0.1:9', log: createLogger({ name: 'test', level: 'silent' }) });
    const changes: boolean[] = [];
    nats.onChange((isConnected) => changes.push(isConnected));
    await nats.start();
    assert.deepEqual(changes, [false]);
    nats.publish('news', 'text');
    await nats.ask('question', 'text', 60_000);
    await nats.close();
  });
});
