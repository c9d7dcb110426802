import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { addressOf, answersAsNats, requirePorts } from '../../src/sandbox/addresses.ts';
import type { Advice } from '../../src/sandbox/advice.ts';
import { readSettings } from '../../src/sandbox/settings.ts';

async function listening(t: TestContext, greet: (socket: Socket) => void = () => {}): Promise<number> {
  const server = createServer(greet).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const free = {
  MARINA_REST_PORT: '0',
  MARINA_GRPC_PORT: '0',
  MARINA_ADMIN_PORT: '0',
  MARINA_OPS_PORT: '0',
  MARINA_SIMULATOR_PORT: '0',
};

describe('the addresses of a sandbox', () => {
  it('a port that is open on all addresses is reached on this machine, and every other port where it is open', () => {
    for (const [host, reached] of [
      ['0.0.0.0', '127.0.0.1:8080'],
      ['::', '127.0.0.1:8080'],
      ['127.0.0.1', '127.0.0.1:8080'],
      ['192.0.2.7', '192.0.2.7:8080'],
    ] as const)
      assert.equal(addressOf(readSettings({ MARINA_HOST: host }), 'rest', 8080), reached);
    const settings = readSettings({ MARINA_HOST: '192.0.2.7', MARINA_ADMIN_HOST: '192.0.2.8' });
    assert.equal(addressOf(settings, 'grpc', 1), '192.0.2.7:1');
    assert.equal(addressOf(settings, 'admin', 2), '192.0.2.8:2');
    assert.equal(addressOf(settings, 'ops', 3), '127.0.0.1:3');
  });

  it('a sandbox starts while its ports are free, or are any free ones', async () => {
    await requirePorts(readSettings(free));
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    await requirePorts(readSettings({ ...free, MARINA_REST_PORT: String(port) }));
  });

  it('a port that is taken ends the start, whichever it is, and the next one is proposed', async (t) => {
    const port = await listening(t);
    for (const variable of Object.keys(free)) {
      await assert.rejects(requirePorts(readSettings({ ...free, [variable]: String(port) })), (error: Advice) => {
        assert.equal(error.message, `Port ${port} of 127.0.0.1 is taken.`);
        assert.ok(error.advice.includes(`${variable}=${port + 1} make run`), error.advice);
        return true;
      });
    }
  });
});

describe('a NATS of yours', () => {
  it('NATS answers if one of its servers greets as NATS does', async (t) => {
    const nats = await listening(t, (socket) => socket.end('INFO {"server_id":"x"}\r\n'));
    const other = await listening(t, (socket) => socket.end('220 mail.example\r\n'));
    const silent = await listening(t, (socket) => socket.end());
    for (const [urls, answers] of [
      [`nats://127.0.0.1:${nats}`, true],
      [`nats://user:password@127.0.0.1:${nats}`, true],
      [`127.0.0.1:${nats}`, true],
      [`tls://127.0.0.1:${nats}`, true],
      [`nats://127.0.0.1:${silent},nats://127.0.0.1:${other},nats://127.0.0.1:${nats}`, true],
      [`http://[,nats://127.0.0.1:${nats}`, true],
      [`nats://127.0.0.1:${other}`, false],
      [`nats://127.0.0.1:${silent}`, false],
      ['nats://127.0.0.1:1', false],
      ['http://[', false],
    ] as const)
      assert.equal(await answersAsNats(urls), answers, urls);
  });
});
