import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Arrival } from './arrival.ts';
import type { GrpcConnection } from './connection.ts';
import type { MethodRules } from './public.ts';

/** The largest message that is read. One that says that it is larger is refused unread. */
const maxReadBytes = 4 * 1_024 * 1_024;
/** How much of a refused message is kept: the fields that come before its large one. */
const maxStartBytes = 16_384;
/** The prefix of a message on the wire: whether it is compressed, and its size. */
export const messageHeadBytes = 5;

/**
 * Bounds a call's message before grpc-js has it whole. A message that is too large or compressed is read to its end and
 * dropped before its call is refused, because proxies turn a reset stream into UNAVAILABLE. To be called before grpc-js
 * gets the stream.
 */
export function boundMessage(arrival: Arrival, { maxBytes, refuse }: MethodRules, connection: GrpcConnection): void {
  const { stream } = arrival;
  let bytes = 0;
  let start: Buffer = Buffer.alloc(0);
  let isDropping = false;
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    connection.received(chunk.length);
    if (start.length < maxStartBytes) {
      const room = chunk.subarray(0, maxStartBytes - start.length);
      start = start.length === 0 ? room : Buffer.concat([start, room]);
    }
    if (isDropping) {
      if (bytes > maxReadBytes + messageHeadBytes) end();
      return;
    }
    const isReadable = start.length >= messageHeadBytes;
    const size = isReadable ? start.readUInt32BE(1) : 0;
    const isCompressed = isReadable && start[0] !== 0;
    if (!isCompressed && size + messageHeadBytes <= maxBytes && bytes <= maxBytes) return;
    isDropping = true;
    if (refuse === undefined) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else if (size > maxReadBytes) end();
    else {
      stream.once('end', end);
      keepFromHandler(stream, own);
    }
  };
  let hasEnded = false;
  const end = () => {
    if (hasEnded || refuse === undefined) return;
    hasEnded = true;
    keepFromHandler(stream, own);
    const message = { isCompressed: start[0] !== 0, start: start.subarray(messageHeadBytes) };
    void refuse(arrival, message).then((status) => {
      if (status === undefined) return;
      arrival.refuse(status);
      // grpc-js would throw if the call's deadline passed before the stream has closed.
      Object.assign(stream, { respond: () => undefined });
    });
  };
  stream.on('data', onData);
  const own = new Set<unknown>([...stream.listeners('data'), ...stream.listeners('end'), end]);
}

/** Takes a stream's data and end from grpc-js, which stops reading when it has a message. */
function keepFromHandler(stream: ServerHttp2Stream, own: ReadonlySet<unknown>): void {
  for (const event of ['data', 'end']) {
    for (const listener of stream.listeners(event)) {
      if (!own.has(listener)) stream.off(event, listener as () => void);
    }
  }
  // After grpc-js has got the bytes of this event, which it may pause for.
  setImmediate(() => stream.resume());
}
