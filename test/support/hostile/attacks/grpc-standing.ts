import type { Attacker } from '../attacker.ts';
import { callFields, flag, frame, frameType, grpcMessage, Http2Wire, headerBlock, settings } from '../http2-wire.ts';
import { many, type Port, pause } from './crowd.ts';
import { reflectionCall } from './http2-streams.ts';

export interface StandingOptions extends Port {
  /** How long the gateway may let a stream stand still. */
  readonly endedWithinMs: number;
}

/** How a kind of streams is opened. */
interface Kind {
  readonly name: string;
  readonly greeting?: Buffer;
  readonly open: (stream: number) => Buffer;
  /** Makes the bytes that are sent now and then. */
  readonly drip?: (stream: number) => Buffer;
}

const streamsEach = 190;
const noWindow = settings([[4, 0]]);

/**
 * Streams of each kind that nobody reads, or that are never finished, each kind on a connection of its own. Returns how
 * many of each the gateway had not ended in time; a connection that is closed has none.
 */
export async function standingStreams(attacker: Attacker, { port, endedWithinMs }: StandingOptions) {
  const open = async ({ name, greeting, open: begin, drip }: Kind) => {
    const wire = new Http2Wire(await attacker.connect(attacker.target[port]), greeting);
    const streams = new Set<number>();
    wire.onFrame = ({ type, flags, stream }) => {
      const isEnd = (type === frameType.data || type === frameType.headers) && (flags & flag.endStream) !== 0;
      if (isEnd || type === frameType.rstStream) streams.delete(stream);
    };
    for (let at = 0; at < streamsEach && wire.isOpen; at += 1) {
      const stream = wire.nextStream();
      streams.add(stream);
      await wire.write(begin(stream));
      // Not all at once: what a burst costs is another attack.
      await pause(5);
    }
    const endAt = performance.now() + endedWithinMs;
    while (wire.isOpen && streams.size > 0 && performance.now() < endAt) {
      if (drip !== undefined) await wire.write(...[...streams].map(drip));
      await pause(500);
    }
    const left = wire.isOpen ? streams.size : 0;
    wire.socket.destroy();
    return [name, left] as const;
  };
  return Object.fromEntries(await Promise.all(kinds(attacker).map(open)));
}

function kinds({ target }: Attacker): Kind[] {
  const withKey = { authorization: `Bearer ${target.key}` };
  const whole = (path: string, fields = {}, message = Buffer.alloc(0)) => {
    const block = headerBlock(callFields(path, fields));
    return (stream: number) =>
      Buffer.concat([
        frame(frameType.headers, flag.endHeaders, stream, block),
        frame(frameType.data, flag.endStream, stream, grpcMessage(message)),
      ]);
  };
  const half = (path: string, fields = {}) => {
    const block = headerBlock(callFields(path, fields));
    return (stream: number) => frame(frameType.headers, flag.endHeaders, stream, block);
  };
  const slow = (path: string) => (stream: number) =>
    Buffer.concat([
      half(path)(stream),
      frame(frameType.data, 0, stream, grpcMessage(Buffer.alloc(0), { length: 2_000 })),
    ]);
  const oneByte = (stream: number) => frame(frameType.data, 0, stream, Buffer.from([0]));
  return [
    {
      name: 'unread answers of ListEvents',
      greeting: noWindow,
      open: whole('/marina.gateway.v1.Events/ListEvents', withKey),
    },
    { name: 'unread WatchEvents', greeting: noWindow, open: whole('/marina.gateway.v1.Events/WatchEvents', withKey) },
    { name: 'unread answers of reflection', greeting: noWindow, open: (stream) => reflectionCall(stream, 20) },
    { name: 'half-open reflection', open: (stream) => reflectionCall(stream, 0) },
    { name: 'half-open health', open: half('/grpc.health.v1.Health/Check') },
    { name: 'unread health watch', greeting: noWindow, open: whole('/grpc.health.v1.Health/Watch') },
    { name: 'half-sent calls', open: half('/marina.gateway.v1.Orders/GetOrder', withKey) },
    { name: 'half-sent uploads without a key', open: half('/marina.gateway.v1.Applications/SendDocument') },
    { name: 'calls byte by byte', open: slow('/marina.gateway.v1.Orders/GetOrder'), drip: oneByte },
  ];
}

/** Keeps as many uploads open as one client can. */
export async function heldUploads(attacker: Attacker, { port }: Port): Promise<void> {
  const block = headerBlock(callFields('/marina.gateway.v1.Applications/SendDocument'));
  for (let at = 0; at < 5; at += 1) {
    const wire = new Http2Wire(await attacker.connect(attacker.target[port]));
    await wire.write(...many(190, () => frame(frameType.headers, flag.endHeaders, wire.nextStream(), block)));
  }
  await pause(attacker.leftMs);
}
