import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { apply } from '../../support/documents.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { patient } from '../../support/patience.ts';

describe('clients on bad lines, and those that close early', { concurrency: true }, () => {
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    gateway = await startGateway();
    partner = await gateway.newPartner();
  });
  after(() => gateway.stop());

  /** Sends a file as a client does that reads nothing before all of it is sent. */
  async function sendSlowly(port: number, path: string, { bytes, forMs }: { bytes: number; forMs: number }) {
    const socket = connect({ port, host: '127.0.0.1' });
    const failure = new Promise<string>((resolve) => {
      socket.once('error', ({ message }) => resolve(message));
    });
    await once(socket, 'connect');
    socket.pause();
    socket.write(
      `PUT ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${partner.key}\r\nContent-Type: image/jpeg\r\n` +
        `Content-Length: ${bytes}\r\n\r\n`,
    );
    const pieces = 50;
    for (let piece = 0; piece < pieces && !socket.destroyed; piece += 1) {
      socket.write(Buffer.alloc(bytes / pieces));
      await delay(forMs / pieces);
    }
    socket.resume();
    const answer = await Promise.race([failure, once(socket, 'data').then(([data]) => String(data))]);
    socket.destroy();
    return answer;
  }

  it('a client that takes 6 s to send a file learns that it is too large', async () => {
    const application = await apply(gateway.rest, partner.key);
    const path = `/v1/applications/${application}/documents/photo`;
    const answer = await sendSlowly(gateway.app.restPort, path, { bytes: 1_200_000, forMs: 6_000 });
    assert.match(answer, /^HTTP\/1\.1 413 /);
  });

  it('a client that takes 6 s to send a file learns that there is no such application', async () => {
    const path = `/v1/applications/app_${'a'.repeat(20)}/documents/photo`;
    const answer = await sendSlowly(gateway.app.restPort, path, { bytes: 200_000, forMs: 6_000 });
    assert.match(answer, /^HTTP\/1\.1 404 /);
  });

  /**
   * Sends heads with a body of more than the system's buffers take, closes, and only then reads. Resolves with the answer when
   * the gateway has read all and closed too.
   */
  async function sendAtOnce(heads: string, withinMs: number) {
    const inTime = { signal: AbortSignal.timeout(patient(withinMs)) };
    const socket = connect({ port: gateway.app.restPort, host: '127.0.0.1' });
    await once(socket, 'connect', inTime);
    socket.pause();
    socket.end(Buffer.concat([Buffer.from(heads), Buffer.alloc(bodyBytes)]));
    await once(socket, 'finish', inTime);
    const closed = once(socket, 'close', inTime);
    socket.resume();
    const [answer] = await once(socket, 'data', inTime);
    await closed;
    return String(answer);
  }
  const bodyBytes = 20_000_000;

  it('a client that sends a whole file at once, and closes, is read to its end, and its connection is closed', async () => {
    const path = `/v1/applications/app_${'a'.repeat(20)}/documents/photo`;
    const head = `PUT ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${partner.key}\r\nContent-Type: image/jpeg\r\n`;
    assert.match(await sendAtOnce(`${head}Content-Length: ${bodyBytes}\r\n\r\n`, 10_000), /^HTTP\/1\.1 404 /);
  });

  it('bytes behind a request that ends its connection are read, so that the client gets the answer', async () => {
    const refused = 'GET /v1/orders HTTP/1.1\r\nHost: not a host\r\n\r\n';
    const next = `POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodyBytes}\r\n\r\n`;
    assert.match(await sendAtOnce(`${refused}${next}`, 2_500), /^HTTP\/1\.1 400 /);
  });

  it('a client that ends its side of the connection behind its requests reads every answer', async () => {
    const socket = connect({ port: gateway.app.restPort, host: '127.0.0.1' });
    const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${partner.key}\r\n`;
    socket.end(`GET /v1/accounts ${head}\r\nGET /v1/orders/none ${head}\r\n`);
    let text = '';
    for await (const bytes of socket) text += bytes;
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 404']);
  });

  it('a client without a key learns how long its connection may rest', async () => {
    const { headers } = await gateway.rest('GET', '/v1/limits');
    assert.equal(headers.get('keep-alive'), 'timeout=5');
  });
});
