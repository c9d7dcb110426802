import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { patient } from '../../../support/patience.ts';
import { RawConnection, withServers } from '../fixture.ts';

const path = `/v1/applications/app_${'a'.repeat(20)}/documents/photo`;
const pieces = 30;
const pieceBytes = 30_000;
const bodyBytes = pieces * pieceBytes;
/** The connection is checked every 1,000 ms, so an upload of 30 pieces lasts three checks. */
const pieceMs = 100;
const uploads = { limits: { lingerMs: 1_000 } };

const lengthHead = `Content-Length: ${bodyBytes}\r\n`;
const chunkedHead = 'Transfer-Encoding: chunked\r\n';
const head = (framing: string, key = '') =>
  `PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n${key}${framing}\r\n`;

/** The pieces of a body of 900,000 bytes as they are sent. */
function* bodyPieces(framing: string): Generator<Buffer> {
  const piece = Buffer.alloc(pieceBytes, 1);
  const chunk = Buffer.concat([Buffer.from(`${pieceBytes.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
  for (let sent = 1; sent <= pieces; sent += 1) {
    const isLastChunk = framing === chunkedHead && sent === pieces;
    const bytes = framing === chunkedHead ? chunk : piece;
    yield isLastChunk ? Buffer.concat([bytes, Buffer.from('0\r\n\r\n')]) : bytes;
  }
}

for (const [name, framing] of [
  ['with a Content-Length', lengthHead],
  ['in chunks', chunkedHead],
] as const) {
  describe(`an upload of 900 KB ${name} on a slow line`, { concurrency: true }, () => {
    test('gets its 401 although the client reads only after it has sent everything', () =>
      withServers(uploads, async ({ restPort }) => {
        const socket = connect({ port: restPort, host: '127.0.0.1' });
        const failed = once(socket, 'error').then(([error]) => String(error));
        failed.catch(() => undefined);
        await once(socket, 'connect');
        socket.pause();
        socket.write(head(framing));
        for (const bytes of bodyPieces(framing)) {
          if (socket.destroyed) break;
          socket.write(bytes);
          await pause(pieceMs);
        }
        const read = once(socket, 'data').then(([data]) => String(data));
        read.catch(() => undefined);
        socket.resume();
        assert.match(await Promise.race([failed, read]), /^HTTP\/1\.1 401 /);
        socket.destroy();
      }));

    for (const [status, key] of [
      [401, ''],
      [404, 'Authorization: Bearer full\r\n'],
    ] as const) {
      test(`sees the connection end only after its last byte, with its ${status} long before`, () =>
        withServers(uploads, async ({ restPort }) => {
          const connection = new RawConnection(restPort);
          let hasEnded = false;
          void connection.ended.then(() => {
            hasEnded = true;
          });
          connection.send(head(framing, key));
          let sent = 0;
          for (const bytes of bodyPieces(framing)) {
            assert.equal(hasEnded, false, `the connection ended after ${sent} of ${pieces} pieces`);
            connection.send(bytes);
            sent += 1;
            await pause(pieceMs);
          }
          const answer = await connection.answer();
          assert.equal(answer.headers.get('connection'), 'close');
          if (status === 401) assert.equal(answer.status, status);
          await connection.ended;
          connection.close();
        }));
    }
  });
}

describe('an unauthenticated upload whose answer was given', { concurrency: true }, () => {
  /** How long the connection lives, in milliseconds, while the client sends a piece every 100 ms. */
  async function lifeMs(restPort: number, bytes: Buffer): Promise<number> {
    const socket = connect({ port: restPort, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined).resume();
    const closed = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the connection is still open')), patient(20_000));
      socket.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    const startedMs = performance.now();
    socket.write(head('Content-Length: 900000000\r\n'));
    const timer = setInterval(() => socket.write(bytes), pieceMs);
    await closed.finally(() => clearInterval(timer));
    return performance.now() - startedMs;
  }

  test('is cut when it sends less than an upload does', () =>
    withServers({ limits: { strangersLingerMs: 3_600_000 } }, async ({ restPort }) => {
      await lifeMs(restPort, Buffer.alloc(10));
    }));

  test('is cut after its time', () =>
    withServers({ limits: { strangersLingerMs: 1_000 } }, async ({ restPort }) => {
      assert.ok((await lifeMs(restPort, Buffer.alloc(pieceBytes))) >= 1_000);
    }));

  test('is cut after its bytes', () =>
    withServers({ limits: { strangersLingerMs: 3_600_000, strangersLingerBytes: 300_000 } }, async ({ restPort }) => {
      await lifeMs(restPort, Buffer.alloc(pieceBytes));
    }));
});
