import type { Socket } from 'node:net';

/** Types of frames, RFC 9113 section 6. */
export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flag = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** A frame as it stands on the wire, right or wrong; `length` may lie. */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
  length?: number,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length ?? payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header block in HPACK: every field a literal that is not indexed and not compressed. */
export function headerBlock(fields: Iterable<readonly [name: string, value: string]>): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of fields) parts.push(Buffer.from([0]), hpackText(name), hpackText(value));
  return Buffer.concat(parts);
}

export function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([hpackInteger(bytes.length, 7, 0), bytes]);
}

/** An integer of HPACK with a prefix of so many bits, RFC 7541 section 5.1. */
export function hpackInteger(value: number, prefixBits: number, firstByte: number): Buffer {
  const most = 2 ** prefixBits - 1;
  if (value < most) return Buffer.from([firstByte | value]);
  const bytes = [firstByte | most];
  let left = value - most;
  while (left >= 128) {
    bytes.push((left % 128) | 128);
    left = Math.floor(left / 128);
  }
  bytes.push(left);
  return Buffer.from(bytes);
}

export function settings(values: readonly (readonly [id: number, value: number])[] = [], flags = 0): Buffer {
  const payload = Buffer.alloc(values.length * 6);
  for (const [at, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, at * 6);
    payload.writeUInt32BE(value, at * 6 + 2);
  }
  return frame(frameType.settings, flags, 0, payload);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The header fields of a gRPC call. */
export function callFields(path: string, more: Record<string, string> = {}): [string, string][] {
  const fields = { ':method': 'POST', ':scheme': 'http', ':path': path, ':authority': 'localhost' };
  const usual = { te: 'trailers', 'content-type': 'application/grpc' };
  return Object.entries({ ...fields, ...usual, ...more });
}

/** A message of gRPC: a flag, a length, the bytes. */
export function grpcMessage(bytes: Uint8Array, { compressed = 0, length = bytes.length } = {}): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(compressed, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

/** A frame the other side sent. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A connection of HTTP/2 on which any frame may be written; what the other side sends is counted and shown. */
export class Http2Wire {
  /** How many frames of each type have come. */
  readonly received = new Map<number, number>();
  /** The error codes of streams that were reset, and of the connection's end. */
  readonly resets: number[] = [];
  goawayCode: number | undefined;
  onFrame: (frame: Frame) => void = () => undefined;
  #rest: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  #nextStream = 1;

  constructor(
    readonly socket: Socket,
    greeting: Buffer = settings(),
  ) {
    socket.on('data', (bytes) => this.#read(bytes));
    if (!socket.destroyed) socket.write(Buffer.concat([preface, greeting]));
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && this.socket.writable;
  }

  nextStream(): number {
    this.#nextStream += 2;
    return this.#nextStream - 2;
  }

  /** The other side no longer takes what is written. */
  get isStuck(): boolean {
    return this.socket.writableNeedDrain;
  }

  /** Writes frames; resolves when the system took them, the connection is over, or nothing is taken for a while. */
  write(...frames: readonly Buffer[]): Promise<void> {
    if (!this.isOpen) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.socket.off('close', done);
        resolve();
      };
      const timer = setTimeout(done, 500);
      this.socket.once('close', done);
      this.socket.write(Buffer.concat(frames), done);
    });
  }

  /** Opens a stream with header fields, and returns its number. */
  async open(fields: Iterable<readonly [string, string]>, flags: number = flag.endHeaders): Promise<number> {
    const stream = this.nextStream();
    await this.write(frame(frameType.headers, flags, stream, headerBlock(fields)));
    return stream;
  }

  #read(bytes: Buffer<ArrayBufferLike>): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + length) return;
      const type = this.#rest.readUInt8(3);
      const read = {
        type,
        flags: this.#rest.readUInt8(4),
        stream: this.#rest.readUInt32BE(5),
        payload: this.#rest.subarray(9, 9 + length),
      };
      this.#rest = this.#rest.subarray(9 + length);
      this.received.set(type, (this.received.get(type) ?? 0) + 1);
      if (type === frameType.rstStream) this.resets.push(read.payload.readUInt32BE(0));
      if (type === frameType.goaway) this.goawayCode = read.payload.readUInt32BE(4);
      this.onFrame(read);
    }
  }
}
