import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Arrival } from './arrival.ts';
import type { GrpcConnection } from './connection.ts';
import type { MethodRules } from './public.ts';
import { refusePlainly } from './refusals.ts';

/** The largest message that is read by default. One that says that it is larger is refused unread. */
const usualMaxReadBytes = 4 * 1_024 * 1_024;
/** How much of a refused message is kept: the fields that come before its large one. */
const maxStartBytes = 16_384;
/** The prefix of a message on the wire: whether it is compressed, and its size. */
export const messageHeadBytes = 5;

/**
 * Bounds a call's message before grpc-js has it whole. A message that is too large or compressed is read to its end and
 * dropped before its call is refused, because proxies turn a reset stream into UNAVAILABLE.
 * @param serve gives the stream to grpc-js, which then gets only what is within the bound
 * @returns what ends a call whose message does not come in time: with its refusal if it is refused anyway
 */
export function boundMessage(
  arrival: Arrival,
  rules: MethodRules,
  connection: Pick<GrpcConnection, 'received'>,
  serve: () => void,
): () => void {
  const { stream } = arrival;
  const { maxBytes, refuse = refusePlainly, maxReadBytes = usualMaxReadBytes, isOpenEnded = false } = rules;
  const head = new Head();
  let bytes = 0;
  let isDropping = false;
  let isRefused = false;
  /** Undefined unless the message is too large: nothing of a good message is kept here for the life of its stream. */
  let start: Start | undefined;

  const answer = async () => {
    const message = { isCompressed: head.isCompressed, start: start?.bytes ?? Buffer.alloc(0) };
    const status = await refuse(arrival, message);
    if (status === undefined) return;
    // A call that has part of its answer can only be reset. gRPC takes this code for RESOURCE_EXHAUSTED.
    if (stream.headersSent) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    arrival.refuse(status);
    // grpc-js would throw if the call's deadline passed before the stream has closed.
    Object.assign(stream, { respond: () => undefined });
  };
  const refuseOnce = () => {
    if (isRefused) return;
    isRefused = true;
    // Nobody else ends a call that grpc-js does not read any more.
    void answer().catch(() => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  };
  const drop = (chunk: Buffer) => {
    start?.take(chunk);
    // The client of an open-ended call waits for an answer before it ends its side.
    const isWhole = isOpenEnded && bytes >= head.size + messageHeadBytes;
    if (isWhole || head.size > maxReadBytes || bytes > maxReadBytes + messageHeadBytes) refuseOnce();
  };

  const handler = { data: listenersOf(stream, 'data'), end: listenersOf(stream, 'end') };
  serve();
  const [give, endHandler] = [handler.data.takeNew(), handler.end.takeNew()];
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    connection.received(chunk.length);
    const rest = head.take(chunk);
    if (isDropping) return drop(rest);
    const isLarge = head.size + messageHeadBytes > maxBytes;
    if (!head.isCompressed && !isLarge && bytes <= maxBytes) return give(chunk);
    isDropping = true;
    if (isLarge && !head.isCompressed) start = new Start(Math.min(head.size, maxStartBytes));
    drop(rest);
  });
  stream.on('end', () => (isDropping ? refuseOnce() : endHandler()));
  return () => (isDropping ? refuseOnce() : stream.close(constants.NGHTTP2_CANCEL));
}

/** The listeners of an event of a stream, to tell which are added later. */
function listenersOf(stream: ServerHttp2Stream, event: 'data' | 'end') {
  const before = new Set(stream.rawListeners(event));
  return {
    /** Removes the listeners that were added since, and returns what calls them. */
    takeNew(): (...args: unknown[]) => void {
      const added = stream.rawListeners(event).filter((each) => !before.has(each)) as ((...args: unknown[]) => void)[];
      for (const each of added) stream.off(event, each);
      return (...args) => {
        for (const each of added) each.apply(stream, args);
      };
    },
  };
}

/** The prefix of the first message, from chunks of any sizes. */
class Head {
  readonly #bytes = Buffer.alloc(messageHeadBytes);
  #length = 0;

  /** Reads what the prefix lacks. Returns what is behind it. */
  take(chunk: Buffer): Buffer {
    const taken = chunk.copy(this.#bytes, this.#length);
    this.#length += taken;
    return chunk.subarray(taken);
  }

  /** False until the prefix is whole. */
  get isCompressed(): boolean {
    return this.#length === messageHeadBytes && this.#bytes[0] !== 0;
  }

  /** The size of the message; 0 until the prefix is whole. */
  get size(): number {
    return this.#length === messageHeadBytes ? this.#bytes.readUInt32BE(1) : 0;
  }
}

/** How a message starts. The bytes are copied once: a slice would keep all that its connection read together with it. */
class Start {
  readonly #bytes: Buffer;
  #length = 0;

  constructor(maxBytes: number) {
    this.#bytes = Buffer.allocUnsafe(maxBytes);
  }

  take(chunk: Buffer): void {
    this.#length += chunk.copy(this.#bytes, this.#length);
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}
