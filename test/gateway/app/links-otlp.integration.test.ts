import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { openCollectorAccess } from '../../../src/gateway/operators/telemetry/collector-access.ts';
import { otlpTracer } from '../../../src/gateway/operators/telemetry/otlp-tracer.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { CertificateFiles } from '../../support/certificate-files.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';

/** The credentials of an export: its token, and the serial number of the certificate. */
interface Export {
  readonly token: string | undefined;
  readonly serial: string;
}

describe('the link to a collector that speaks TLS', () => {
  let files: CertificateFiles;
  let server: Server;
  let url: string;
  const exports: Export[] = [];
  before(async () => {
    files = await CertificateFiles.make();
    server = createServer(options(), (request, response) => {
      const serial = (request.socket as TLSSocket).getPeerCertificate().serialNumber;
      exports.push({ token: request.headers['x-token'] as string | undefined, serial });
      request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `https://localhost:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  function options() {
    return {
      cert: readFileSync(files.server.certificate),
      key: readFileSync(files.server.key),
      ca: files.clients.cert,
      requestCert: true,
      rejectUnauthorized: true,
    };
  }

  /** Exports one span. Answers with what came of it: what arrived, or the line in the log. */
  async function exported(given: object = {}): Promise<Export | string> {
    const logged: string[] = [];
    const log = createLogger({ name: 'test', level: 'warn', destination: { write: (line) => void logged.push(line) } });
    const headers = { first: { 'x-token': 'secret' }, file: undefined, read: () => ({}) };
    const tls = {
      speaksTls: true,
      authorities: files.serverAuthority,
      ...files.client,
      serverName: undefined,
      ...given,
    };
    const tracer = otlpTracer(url, await openCollectorAccess(headers, tls, log), 1, {}, log);
    const before = exports.length;
    tracer.begin({ name: 'a span', kind: 'server', parent: null }).end({ failed: false, attributes: {} });
    await tracer.close();
    return exports[before] ?? logged.join('');
  }

  it('exports with the right authority, name and certificate, and the headers', async () => {
    const found = await exported();
    assert.ok(typeof found === 'object', String(found));
    assert.equal(found.token, 'secret');
  });

  it('exports nothing if the authority or the name is another, a certificate is missing, or the server expired', async () => {
    assert.match(String(await exported({ authorities: files.clientAuthority })), /could not be exported/);
    assert.match(String(await exported({ serverName: 'collector.example.com' })), /could not be exported/);
    assert.match(String(await exported({ certificate: undefined, key: undefined })), /could not be exported/);
    const { cert, key } = await files.expired();
    server.setSecureContext({ ...options(), cert, key });
    assert.match(String(await exported()), /could not be exported/);
    server.setSecureContext(options());
  });

  it('checks the certificate also if the environment of Node says that it need not', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      assert.match(String(await exported({ authorities: files.clientAuthority })), /could not be exported/);
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  it('uses new headers and a new certificate without a restart', async () => {
    const gateway = await startGateway({
      MARINA_OTLP_URL: url,
      MARINA_OTLP_HEADERS_FILE: files.put('headers', 'x-token=first\n'),
      ...files.settings('OTLP'),
    });
    const partner = await gateway.newPartner();
    await gateway.place(partner, { symbol: 'SIM-FILL' });
    const first = await eventually(() => lastWith('first'));
    files.put('headers', 'x-token=second\nx-more=of it\n');
    files.putIdentity(files.client, await files.clients.issueClient('renewed'));
    const second = await eventually(async () => {
      await gateway.place(partner, { symbol: 'SIM-FILL' });
      return lastWith('second');
    });
    assert.notEqual(second.serial, first.serial);
    assert.doesNotMatch(gateway.logged.join(''), /x-token/);
    await gateway.stop();
  });

  function lastWith(token: string): Export {
    const found = exports.findLast((each) => each.token === token);
    assert.ok(found !== undefined);
    return found;
  }
});
