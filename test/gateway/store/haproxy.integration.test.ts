import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { apply, overGrpc } from '../../support/documents.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startHaproxy, withoutHaproxy } from '../../support/haproxy.ts';
import { noiseJpeg } from '../../support/images.ts';
import { patient } from '../../support/patience.ts';

/** A client's line: 20,000 bytes each 100 ms are 200 KB/s. */
const pieceBytes = 20_000;
const pieceMs = 100;

const framings = ['Content-Length', 'chunked'] as const;
const readings = ['while it sends', 'only when it has sent everything'] as const;

describe('uploads at 200 KB/s through HAProxy', { skip: withoutHaproxy, concurrency: true }, () => {
  let gateway: TestGateway;
  let ports: Awaited<ReturnType<typeof startHaproxy>>;
  before(async () => {
    gateway = await startGateway();
    ports = await startHaproxy(gateway.app);
  });
  after(async () => {
    await ports.stop();
    await gateway.stop();
  });

  /** An application of a partner of its own, so that no upload waits for another. */
  const newApplication = async () => {
    const { key } = await gateway.newPartner();
    return { key, id: await apply(gateway.rest, key) };
  };
  const pathOf = (id: string) => `/v1/applications/${id}/documents/photo`;

  for (const framing of framings) {
    for (const reading of readings) {
      const how = `(${framing}) from a client that reads ${reading}`;

      it(`get a 401 over REST ${how}`, async () => {
        const { id } = await newApplication();
        const answer = await upload({ port: ports.rest, path: pathOf(id), bytes: 900_000, framing, reading });
        assert.match(answer, /^HTTP\/1\.1 401 [\s\S]*"code":"unauthorized"/);
      });

      it(`get a 413 over REST ${how}`, async () => {
        const { id, key } = await newApplication();
        const answer = await upload({ port: ports.rest, path: pathOf(id), key, bytes: 1_200_000, framing, reading });
        assert.match(answer, /^HTTP\/1\.1 413 [\s\S]*"code":"document_too_large"/);
      });
    }
  }

  for (const [status, code, bytes] of [
    [401, 'unauthorized', 900_000],
    [413, 'document_too_large', 1_200_000],
  ] as const) {
    it(`get a ${status} over REST from a client that speaks HTTP/2`, async () => {
      const { id, key } = await newApplication();
      const answer = await uploadOverHttp2(ports.restOverHttp2, pathOf(id), status === 401 ? undefined : key, bytes);
      assert.deepEqual([answer.status, answer.code], [status, code]);
    });
  }

  for (const [name, bytes] of [
    ['1.2 MB', 1_200_000],
    ['3 MB', 3_000_000],
    ['5 MB, which is more than is read', 5_000_000],
  ] as const) {
    it(`get document_too_large with its typed detail over gRPC at ${name}`, async () => {
      const { id, key } = await newApplication();
      const port = await slowLine(ports.grpc);
      const file = Buffer.alloc(bytes, 1);
      const { outcome } = await overGrpc(port)({ key, id, type: 'photo', file, contentType: 'image/jpeg' });
      assert.equal(outcome, 'document_too_large');
    });
  }

  it('get unauthorized with its typed detail over gRPC', async () => {
    const { id } = await newApplication();
    const port = await slowLine(ports.grpc);
    const wanted = { key: 'mk_test_none', id, type: 'photo', file: Buffer.alloc(900_000), contentType: 'image/jpeg' };
    assert.equal((await overGrpc(port)(wanted)).outcome, 'unauthorized');
  });

  it('are delivered over gRPC if the document is good', async () => {
    const { id, key } = await newApplication();
    const port = await slowLine(ports.grpc);
    const { outcome } = await overGrpc(port)({ key, id, type: 'photo', file: await noiseJpeg() });
    assert.equal(outcome, 'delivered');
  });

  /** A line to a port that carries 200 KB/s from the client. Its ends are those of the two connections. */
  async function slowLine(to: number): Promise<number> {
    const line = createServer((client) => {
      const server = connect(to, '127.0.0.1');
      join(client, server);
      server.pipe(client);
    });
    line.listen(0, '127.0.0.1');
    await once(line, 'listening');
    after(() => line.close());
    const address = line.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }
});

/** Passes the bytes of a client on at 200 KB/s, and the reset of one side to the other. */
function join(client: Socket, server: Socket): void {
  const reset = () => {
    clearInterval(timer);
    client.resetAndDestroy();
    server.destroy();
  };
  let held = Buffer.alloc(0);
  client.on('data', (bytes: Buffer) => {
    held = Buffer.concat([held, bytes]);
  });
  const timer = setInterval(() => {
    if (held.length > 0) server.write(held.subarray(0, pieceBytes));
    held = held.subarray(pieceBytes);
  }, pieceMs);
  client.on('error', reset).on('close', reset);
  server.on('error', reset).on('end', () => clearInterval(timer));
}

interface Upload {
  readonly port: number;
  readonly path: string;
  readonly key?: string;
  readonly bytes: number;
  readonly framing: (typeof framings)[number];
  readonly reading: (typeof readings)[number];
}

/** Uploads over HTTP/1.1, and returns the answer. Fails if the connection ends before everything was sent. */
async function upload({ port, path, key, bytes, framing, reading }: Upload): Promise<string> {
  const isChunked = framing === 'chunked';
  const socket = connect({ port, host: '127.0.0.1' });
  const failed = once(socket, 'error').then(([error]) => Promise.reject(error));
  failed.catch(() => undefined);
  await once(socket, 'connect');
  const answered = answerOf(socket);
  answered.catch(() => undefined);
  if (reading === 'only when it has sent everything') socket.pause();
  const authorization = key === undefined ? '' : `Authorization: Bearer ${key}\r\n`;
  const length = isChunked ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${bytes}\r\n`;
  socket.write(`PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n${authorization}${length}\r\n`);
  const piece = Buffer.alloc(pieceBytes, 1);
  const chunk = Buffer.concat([Buffer.from(`${pieceBytes.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
  for (let sent = 0; sent < bytes; sent += pieceBytes) {
    assert.equal(socket.writable, true, `the connection ended after ${sent} bytes`);
    socket.write(isChunked ? chunk : piece);
    await pause(pieceMs);
  }
  if (isChunked) socket.write('0\r\n\r\n');
  socket.resume();
  const answer = await Promise.race([failed, answered]);
  socket.destroy();
  return answer;
}

/** The bytes of an answer whose body is JSON. */
function answerOf(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`no answer: ${text}`)), patient(30_000));
    socket.on('data', (bytes) => {
      text += bytes.toString();
      if (!/\r\n\r\n\{[\s\S]*\}$/.test(text)) return;
      clearTimeout(timer);
      resolve(text);
    });
  });
}

/** Uploads over HTTP/2 as long as the server takes it, and returns the answer. */
async function uploadOverHttp2(port: number, path: string, key: string | undefined, bytes: number) {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ':method': 'PUT',
    ':path': path,
    'content-type': 'image/jpeg',
    'content-length': bytes,
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  });
  let text = '';
  stream.on('data', (data) => {
    text += data;
  });
  const answered = once(stream, 'response');
  answered.catch(() => undefined);
  for (let sent = 0; sent < bytes && !stream.closed; sent += pieceBytes) {
    stream.write(Buffer.alloc(pieceBytes, 1));
    await pause(pieceMs);
  }
  if (!stream.closed) stream.end();
  const [headers] = await answered;
  if (!stream.closed) await once(stream, 'close');
  session.destroy();
  return { status: headers[':status'], code: JSON.parse(text).error.code as string };
}
