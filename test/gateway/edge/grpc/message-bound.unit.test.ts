import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2, { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { Arrival } from '../../../../src/gateway/edge/grpc/arrival.ts';
import { boundMessage } from '../../../../src/gateway/edge/grpc/message-bound.ts';
import type { MethodRules } from '../../../../src/gateway/edge/grpc/public.ts';
import type { RefuseMessage } from '../../../../src/gateway/edge/grpc/refusals.ts';
import { eventually } from '../../../support/eventually.ts';

const maxBytes = 100;
const tooLarge = { code: status.RESOURCE_EXHAUSTED, details: 'too large' };

/** The server's view of a call. */
interface Seen {
  /** The sizes of the chunks in which the message came. */
  readonly chunks: number[];
  readonly refused: { readonly isCompressed: boolean; readonly start: Buffer }[];
  /** The messages that the handler behind the bound got. */
  readonly handled: Buffer[];
  /** Ends the call because its time is over. */
  endLate: () => void;
}

interface Options {
  readonly rules?: Partial<MethodRules>;
  /** The handler answers the first bytes that it gets. */
  readonly answersAtOnce?: boolean;
}

/** Opens a call to a server that bounds messages at 100 bytes. */
async function open(t: TestContext, { rules = {}, answersAtOnce = false }: Options = {}) {
  const seen: Seen = { chunks: [], refused: [], handled: [], endLate: () => assert.fail('no call came') };
  const refuse: RefuseMessage = async (_arrival, message) => {
    seen.refused.push(message);
    return tooLarge;
  };
  const server = http2.createServer();
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) => {
      stream.on('error', () => {});
      const received = (bytes: number) => void seen.chunks.push(bytes);
      const arrival = new Arrival(stream, headers, rawHeaders, '127.0.0.1');
      seen.endLate = boundMessage(arrival, { maxBytes, refuse, ...rules }, { received }, () => {
        stream.on('data', (chunk: Buffer) => {
          seen.handled.push(chunk);
          if (answersAtOnce && !stream.headersSent) stream.respond({ ':status': 200 });
        });
        stream.on('end', () => stream.headersSent || stream.respond({ ':status': 200 }, { endStream: true }));
      });
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.after(() => {
    session.destroy();
    server.close();
  });
  const stream = session.request({ ':method': 'POST' });
  stream.on('error', () => {});
  const answered = once(stream, 'response').then(([headers]) => headers['grpc-status'] as string | undefined);
  answered.catch(() => undefined);
  return { stream: stream.resume(), seen, answered };
}

/** Sends bytes in pieces, each in a frame of its own that has left before the next one. */
async function send(stream: ClientHttp2Stream, bytes: Buffer, cuts: readonly number[] = []): Promise<void> {
  const ends = [...cuts, bytes.length];
  for (const [at, end] of ends.entries()) {
    const piece = bytes.subarray(ends[at - 1] ?? 0, end);
    await new Promise<void>((resolve) => stream.write(piece, () => resolve()));
  }
}

/** Unlike `once`, also resolves when the stream is reset. */
function hasClosed(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) => stream.once('close', resolve));
}

/** A message of a size, whose bytes count up from 0, with its prefix. */
function message(size: number, { isCompressed = false } = {}): Buffer {
  const bytes = Buffer.from(Array.from({ length: 5 + size }, (_, at) => (at - 5) & 0xff));
  bytes[0] = isCompressed ? 1 : 0;
  bytes.writeUInt32BE(size, 1);
  return bytes;
}

test('a message that is too large, and has not come whole when its time is over, is refused as too large', async (t) => {
  const { stream, seen, answered } = await open(t);
  await send(stream, message(1_000).subarray(0, 300));
  await eventually(() =>
    assert.equal(
      seen.chunks.reduce((sum, each) => sum + each, 0),
      300,
    ),
  );
  assert.deepEqual(seen.refused, [], 'it is read to its end, if it comes in time');
  seen.endLate();
  assert.equal(await answered, String(status.RESOURCE_EXHAUSTED));
});

test('a message within the bound, that has not come whole when its time is over, ends in CANCEL', async (t) => {
  const { stream, seen } = await open(t, { answersAtOnce: true });
  const closed = hasClosed(stream);
  await send(stream, message(90).subarray(0, 30));
  await eventually(() => assert.ok(seen.chunks.length > 0, 'it comes'));
  seen.endLate();
  await closed;
  assert.equal(stream.rstCode, constants.NGHTTP2_CANCEL);
  assert.deepEqual(seen.refused, []);
});

const cutPrefixes: readonly (readonly number[])[] = [[], [1], [2], [3], [4], [5], [1, 2, 3, 4, 5, 6], [3, 7]];

for (const cuts of cutPrefixes) {
  const name = cuts.length === 0 ? 'in one piece' : `cut after ${cuts.join(', ')} bytes`;

  test(`a message ${name} that is too large is refused once, with how it starts`, async (t) => {
    const { stream, seen, answered } = await open(t);
    await send(stream, message(300), cuts);
    assert.deepEqual(seen.refused, [], 'it is refused before its end');
    stream.end();
    assert.equal(await answered, String(status.RESOURCE_EXHAUSTED));
    assert.equal(seen.chunks.length, cuts.length + 1);
    assert.deepEqual(seen.refused, [{ isCompressed: false, start: message(300).subarray(5) }]);
  });

  test(`a compressed message ${name} is refused as compressed, and none of it is kept`, async (t) => {
    const { stream, seen, answered } = await open(t);
    await send(stream, message(50, { isCompressed: true }), cuts);
    stream.end();
    await answered;
    assert.deepEqual(seen.refused, [{ isCompressed: true, start: Buffer.alloc(0) }]);
    assert.ok(Buffer.concat(seen.handled).length < 5, 'the handler got the compressed message');
  });

  test(`a message ${name} that is just small enough reaches its handler whole`, async (t) => {
    const { stream, seen, answered } = await open(t);
    await send(stream, message(maxBytes - 5), cuts);
    stream.end();
    assert.equal(await answered, undefined);
    assert.deepEqual(seen.refused, []);
    assert.deepEqual(Buffer.concat(seen.handled), message(maxBytes - 5));
  });
}

test('a large message is given to refuse with its first 16,384 bytes', async (t) => {
  const { stream, seen, answered } = await open(t);
  stream.end(message(300_000));
  await answered;
  assert.deepEqual(
    seen.refused.map(({ start }) => start),
    [message(300_000).subarray(5, 5 + 16_384)],
  );
});

test('several messages that are too large together are refused, though each is small', async (t) => {
  const { stream, seen, answered } = await open(t);
  await send(stream, Buffer.concat([message(40), message(40), message(40)]), [45, 90]);
  stream.end();
  await answered;
  assert.deepEqual(seen.refused, [{ isCompressed: false, start: Buffer.alloc(0) }]);
});

test('a message that says that it is larger than what is read is refused before it comes', async (t) => {
  const { stream, seen, answered } = await open(t, { rules: { maxReadBytes: 1_000 } });
  stream.write(message(1_001).subarray(0, 5));
  assert.equal(await answered, String(status.RESOURCE_EXHAUSTED));
  assert.deepEqual(seen.chunks, [5]);
});

test('more bytes than are read are refused before the client has sent all', async (t) => {
  const { stream, answered } = await open(t, { rules: { maxReadBytes: 1_000 } });
  await send(stream, Buffer.concat([message(10), Buffer.alloc(1_000)]));
  assert.equal(await answered, String(status.RESOURCE_EXHAUSTED));
});

test('the client of an open-ended call gets the refusal of a whole message before it ends its side', async (t) => {
  const { stream, seen, answered } = await open(t, { rules: { isOpenEnded: true } });
  await send(stream, message(300), [100]);
  assert.equal(await answered, String(status.RESOURCE_EXHAUSTED));
  assert.equal(seen.refused.length, 1);
});

test('a call that has part of its answer is reset when it sends too much', async (t) => {
  const { stream, answered } = await open(t, { rules: { isOpenEnded: true }, answersAtOnce: true });
  const closed = hasClosed(stream);
  await send(stream, message(40));
  assert.equal(await answered, undefined);
  await send(stream, message(300));
  await closed;
  assert.equal(stream.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

const failures: readonly (readonly [string, RefuseMessage])[] = [
  ['rejects', async () => Promise.reject(new Error('no such row'))],
  [
    'throws',
    () => {
      throw new Error('no such row');
    },
  ],
];

for (const [fails, refuse] of failures) {
  test(`a call whose refusal ${fails} ends as an internal error, and the server goes on`, async (t) => {
    const { stream } = await open(t, { rules: { refuse } });
    const closed = hasClosed(stream);
    stream.end(message(300));
    await closed;
    assert.equal(stream.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
  });
}

const plain: readonly (readonly [string, Buffer, status])[] = [
  ['too large', message(300), status.RESOURCE_EXHAUSTED],
  ['compressed', message(50, { isCompressed: true }), status.UNIMPLEMENTED],
];

for (const [name, bytes, code] of plain) {
  test(`a message that is ${name} gets a status where a method names no refusal`, async (t) => {
    const { stream, answered } = await open(t, { rules: { refuse: undefined } });
    stream.end(bytes);
    assert.equal(await answered, String(code));
  });
}
