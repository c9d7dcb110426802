import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { GrpcConnection } from '../../src/transport/grpc/connection.ts';
import { eventually } from '../support/eventually.ts';

it('a connection that is asked again and again whether its client is there gathers nothing', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const [[session]] = (await Promise.all([once(server, 'session'), once(client, 'connect')])) as [
      [ServerHttp2Session],
      unknown,
    ];
    const { socket } = session;
    const connection = new GrpcConnection(session, '127.0.0.1', () => socket.bytesRead);
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
