import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { openLinks } from '../../../src/gateway/app/links.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { makeAuthority } from '../../../src/sandbox/certificates.ts';
import { CertificateFiles } from '../../support/certificate-files.ts';
import { startWorker } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

/** A host of a broker: it takes connections of clients whose certificates its authorities have signed. */
async function startHost(files: CertificateFiles) {
  const identity = await files.servers.issue(['localhost']);
  const server = createSecureServer({ ...identity, ca: files.clients.cert, requestCert: true });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  server.on('sessionError', () => {});
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    address: `localhost:${(server.address() as AddressInfo).port}`,
    trust: (ca: string) => server.setSecureContext({ ...identity, ca }),
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

describe('a broker of two hosts', () => {
  it('a new certificate is used once both hosts of the broker take it, the exchange and the back office', async () => {
    const files = await CertificateFiles.make();
    const next = await makeAuthority('the next clients');
    const latter = await next.issueClient('gateway');
    const hosts = await Promise.all([startHost(files), startHost(files)]);
    const [exchange, backOffice] = hosts;
    const lines: string[] = [];
    const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
    const config = readConfig({
      MARINA_DATABASE_URL: 'mysql://marina@localhost/marina',
      MARINA_NATS_URL: 'nats://localhost:4222',
      MARINA_SECRET_KEY: '42'.repeat(32),
      MARINA_BROKER_ADDRESS: exchange?.address,
      MARINA_BACK_OFFICE_ADDRESS: backOffice?.address,
      MARINA_BROKER_TLS: 'required',
      ...files.settings('BROKER'),
    });
    const { broker } = await openLinks(config, log);
    const stop = startWorker(broker.worker);
    const shown = () => broker.current.tls?.cert?.toString();
    const former = shown();
    try {
      const both = `${files.clients.cert}\n${next.cert}`;
      exchange?.trust(both);
      files.putIdentity(files.client, latter);
      await eventually(() => assert.ok(lines.some((line) => line.includes('is refused'))), 20_000);
      assert.equal(shown(), former, 'the back office does not take it');
      backOffice?.trust(both);
      await eventually(() => assert.equal(shown(), latter.cert), 20_000);
    } finally {
      await stop();
      for (const host of hosts) host.close();
    }
  });
});
