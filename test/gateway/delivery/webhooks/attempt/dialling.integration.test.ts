import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createTcpServer } from 'node:net';
import { describe, it } from 'node:test';
import { WebhookSender } from '../../../../../src/gateway/delivery/webhooks/attempt/sender.ts';
import { SystemClock } from '../../../../../src/kit/clock.ts';
import { type Identity, makeAuthority } from '../../../../../src/sandbox/certificates.ts';
import { startNameServer } from '../../../../support/name-server.ts';
import { patient } from '../../../../support/patience.ts';
import {
  authority,
  closing,
  delivered,
  delivery,
  failed,
  listening,
  newSender,
  ok,
  outcomeOf,
  prepareSending,
  startEndpoint,
} from '../../../../support/sending.ts';

prepareSending();

describe('an endpoint that leads elsewhere', () => {
  it('a redirect is not followed', async () => {
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
    it(`an address that is not public is not dialled: ${url}`, async () => {
      const startedAt = performance.now();
      const attempt = await newSender({ allowLoopback: false }).send(delivery(443, { url: new URL(url).href }));
      assert.deepEqual(outcomeOf(attempt), failed('blocked_address'));
      assert.ok(performance.now() - startedAt < patient(2_000));
    });
  }

  for (const url of ['not a URL', 'http://127.0.0.1:1/hooks', 'amqps://queue.partner.test/events', '']) {
    it(`a URL that another version stored and this one cannot use fails, and the process goes on: '${url}'`, async () => {
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
    'a private address together with a public one': ['8.8.8.8', '10.0.0.1'],
    'a mapped private address': ['::ffff:10.0.0.1'],
    'loopback of the other family': ['8.8.8.8', '::1'],
  })) {
    it(`a name of ${what} is not dialled`, async () => {
      const names = await startNameServer(() => addresses);
      closing.push(() => names.close());
      const sender = newSender({ allowLoopback: false, nameServers: [names.address] });
      const attempt = await sender.send(delivery(443, { host: 'hooks.partner.test' }));
      assert.deepEqual(outcomeOf(attempt), failed('blocked_address'));
    });
  }

  it('a name that means another address each time is dialled where it was checked', async () => {
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
    const sender = new WebhookSender({ clock: new SystemClock(), allowLoopback: true });
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
