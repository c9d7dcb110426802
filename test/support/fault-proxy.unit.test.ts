import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from './eventually.ts';
import { FaultProxy } from './fault-proxy.ts';
import { patient } from './patience.ts';

/** One end of a connection, with all that came to it. */
interface End {
  readonly socket: Socket;
  readonly text: () => string;
  readonly ended: () => boolean;
  readonly failed: () => string | undefined;
}

function watch(socket: Socket): End {
  let text = '';
  let ended = false;
  let failed: string | undefined;
  socket.on('data', (bytes) => {
    text += bytes.toString();
  });
  socket.on('end', () => {
    ended = true;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failed = error.code;
  });
  return { socket, text: () => text, ended: () => ended, failed: () => failed };
}

describe('the fault proxy', () => {
  let server: Server;
  let proxy: FaultProxy;
  let accepted: End[] = [];
  const opened: Socket[] = [];
  before(async () => {
    server = createServer({ allowHalfOpen: true }, (socket) => accepted.push(watch(socket)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    proxy = await FaultProxy.start(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    proxy.heal();
    await proxy.accept();
    for (const { socket } of accepted) socket.destroy();
    for (const socket of opened.splice(0)) socket.destroy();
    await eventually(() => assert.equal(proxy.links.length, 0));
    accepted = [];
  });
  after(async () => {
    await proxy.close();
    await new Promise((resolve) => server.close(resolve));
  });

  async function open(): Promise<{ client: End; far: End }> {
    const count = accepted.length;
    const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
    opened.push(socket);
    const client = watch(socket);
    await once(socket, 'connect');
    const far = await eventually(() => accepted[count] ?? assert.fail('not accepted'));
    return { client, far };
  }

  it('passes bytes and ends both ways, each on its own', async () => {
    const { client, far } = await open();
    client.socket.write('ping');
    await eventually(() => assert.equal(far.text(), 'ping'));
    client.socket.end();
    await eventually(() => assert.equal(far.ended(), true));
    far.socket.end('pong');
    await eventually(() => assert.equal(client.text(), 'pong'));
    await eventually(() => assert.equal(client.ended(), true));
  });

  it('passes much more than it holds, to a slow reader', async () => {
    const { client, far } = await open();
    far.socket.pause();
    const size = 8 * 1024 * 1024;
    client.socket.end(Buffer.alloc(size, 'x'));
    await delay(50);
    far.socket.resume();
    await eventually(() => assert.equal(far.text().length, size));
  });

  it('delays one way and keeps the order', async () => {
    const { client, far } = await open();
    const delayMs = patient(80);
    proxy.set('toServer', { delayMs });
    const sentAt = performance.now();
    client.socket.write('a');
    await delay(10);
    client.socket.write('b');
    far.socket.write('back');
    await eventually(() => assert.equal(client.text(), 'back'));
    assert.ok(performance.now() - sentAt < delayMs - 5, 'the other way is not delayed');
    await eventually(() => assert.equal(far.text(), 'ab'));
    assert.ok(performance.now() - sentAt > delayMs - 5);
  });

  it('holds, and lets go what it held', async () => {
    const { client, far } = await open();
    proxy.set('both', { hold: true });
    client.socket.write('a');
    far.socket.write('b');
    await delay(30);
    assert.deepEqual([client.text(), far.text()], ['', '']);
    proxy.heal();
    await eventually(() => assert.deepEqual([client.text(), far.text()], ['b', 'a']));
  });

  it('swallows for good, the end and the reset too, and the other way goes on', async () => {
    const { client, far } = await open();
    proxy.set('toServer', { blackhole: true }, 'present');
    client.socket.write('lost');
    far.socket.write('still');
    await eventually(() => assert.equal(client.text(), 'still'));
    proxy.heal();
    client.socket.write('lost too');
    client.socket.resetAndDestroy();
    await delay(30);
    assert.deepEqual([far.text(), far.ended(), far.failed()], ['', false, undefined]);
  });

  it('half-closes: one side is told of the end, and can still be heard', async () => {
    const { client, far } = await open();
    proxy.set('toClient', { halfClose: true });
    await eventually(() => assert.equal(client.ended(), true));
    far.socket.write('lost');
    client.socket.write('heard');
    await eventually(() => assert.equal(far.text(), 'heard'));
    assert.equal(client.text(), '');
  });

  it('resets both sides', async () => {
    const { client, far } = await open();
    proxy.reset();
    await eventually(() => assert.deepEqual([client.failed(), far.failed()], ['ECONNRESET', 'ECONNRESET']));
  });

  it('cuts after the byte it is told', async () => {
    const { client, far } = await open();
    proxy.set('toClient', { cutAfter: 3 });
    far.socket.write('12');
    await eventually(() => assert.equal(client.text(), '12'));
    far.socket.write('345');
    await eventually(() => assert.equal(client.failed(), 'ECONNRESET'));
    assert.equal(client.text(), '123');
  });

  it('cuts before the first byte, once the sender has sent it', async () => {
    const { client, far } = await open();
    proxy.set('toClient', { cutAfter: 0 });
    client.socket.write('asked');
    await eventually(() => assert.equal(far.text(), 'asked'));
    assert.equal(client.failed(), undefined);
    far.socket.write('answer');
    await eventually(() => assert.equal(client.failed(), 'ECONNRESET'));
    assert.equal(client.text(), '');
  });

  it('refuses new connections, keeps present ones, and takes new ones again', async () => {
    const { client, far } = await open();
    await proxy.refuse();
    const refused = connect({ port: proxy.port, host: '127.0.0.1' });
    const [error] = (await once(refused, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
    client.socket.write('still');
    await eventually(() => assert.equal(far.text(), 'still'));
    await proxy.accept();
    await open();
  });

  it('meets only new connections when told so', async () => {
    const old = await open();
    proxy.set('toServer', { blackhole: true }, 'new');
    const fresh = await open();
    old.client.socket.write('through');
    fresh.client.socket.write('lost');
    await eventually(() => assert.equal(old.far.text(), 'through'));
    await delay(20);
    assert.equal(fresh.far.text(), '');
  });

  it('shows bytes before a fault meets them, so that a fault can turn on what they say', async () => {
    const { client, far } = await open();
    proxy.onBytes = (link, direction, bytes) => {
      if (direction === 'toServer' && bytes.includes('COMMIT')) link.set('toClient', { cutAfter: 0 });
    };
    client.socket.write('COMMIT');
    await eventually(() => assert.equal(far.text(), 'COMMIT'));
    far.socket.write('done');
    await eventually(() => assert.equal(client.failed(), 'ECONNRESET'));
    assert.equal(client.text(), '');
  });

  it('leads a URL through itself', () => {
    assert.equal(proxy.through('mysql://u:p@db:3306/name'), `mysql://u:p@127.0.0.1:${proxy.port}/name`);
  });
});
