import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { openConnection } from '../../../src/fix-adapter/session/link.ts';

const never = new AbortController().signal;
/** TLS, to a server that never says anything. */
const tls = { ca: undefined, cert: undefined, key: undefined, serverName: 'exchange' } as never;

describe('a connection to the exchange', () => {
  let server: Server;
  let port = 0;
  const accepted: Socket[] = [];

  before(async () => {
    server = createServer((socket) => {
      socket.on('error', () => {});
      socket.resume();
      accepted.push(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  after(() => server.close());

  /** The connection that the server gets next, which this opens. */
  async function opening(signal: AbortSignal) {
    const arrives = once(server, 'connection');
    const opened = openConnection(`127.0.0.1:${port}`, tls, signal);
    // It must not count as unhandled before the test looks at it.
    opened.catch(() => {});
    const [socket] = (await arrives) as [Socket];
    return { opened, closes: once(socket, 'close') };
  }

  it('a connection to the exchange is open when it is given, and is the caller’s from then on', async () => {
    const stop = new AbortController();
    for (const host of ['127.0.0.1', '[127.0.0.1]']) {
      const socket = await openConnection(`${host}:${port}`, undefined, stop.signal);
      assert.equal(socket.readyState, 'open');
      assert.deepEqual([getEventListeners(stop.signal, 'abort').length, socket.listenerCount('error')], [0, 0]);
      socket.on('error', () => {}).destroy();
    }
  });

  it('a connection that is refused has the reason, and leaves nothing behind', async () => {
    const stop = new AbortController();
    await assert.rejects(openConnection('127.0.0.1:1', undefined, stop.signal), { code: 'ECONNREFUSED' });
    assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
  });

  it('a connection is given up at once when the process stops, before it began and while it is made', async () => {
    await assert.rejects(openConnection(`127.0.0.1:${port}`, undefined, AbortSignal.abort()), /stopping/);
    const stop = new AbortController();
    const { opened, closes } = await opening(stop.signal);
    stop.abort();
    await assert.rejects(opened, /stopping/);
    await closes;
    assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
  });

  it('a connection on which the other side does not prove who it is within five seconds is given up', async ({
    mock,
  }) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { opened, closes } = await opening(never);
    let isOver = false;
    opened.catch(() => {
      isOver = true;
    });
    mock.timers.tick(4_999);
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    mock.timers.tick(1);
    await assert.rejects(opened, /no connection in time/);
    await closes;
  });
});
