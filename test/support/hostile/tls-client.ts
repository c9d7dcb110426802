import { connect, type Socket } from 'node:net';

/** A TLS port's answer to a client's bytes. */
export interface Seen {
  readonly bytes: Buffer;
  readonly isClosed: boolean;
  readonly tookMs: number;
}

/** Opens a connection, writes the pieces one after the other, and waits until the server closes it. */
export async function sendBytes(
  port: number,
  pieces: readonly Buffer[],
  { boundMs, betweenMs = 0 }: { readonly boundMs: number; readonly betweenMs?: number },
): Promise<Seen> {
  const startedAt = performance.now();
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const chunks: Buffer[] = [];
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (bytes) => chunks.push(bytes));
  const closed = closing(socket);
  let isClosed = false;
  void closed.then(() => {
    isClosed = true;
  });
  for (const piece of pieces) {
    if (isClosed || socket.destroyed) break;
    socket.write(piece);
    if (betweenMs > 0) await Promise.race([closed, rest(betweenMs)]);
  }
  await Promise.race([closed, rest(Math.max(0, startedAt + boundMs - performance.now()))]);
  const seen = { bytes: Buffer.concat(chunks), isClosed, tookMs: performance.now() - startedAt };
  socket.destroy();
  return seen;
}

/** Resolves when the other side has ended or broken the connection. */
export function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('end', () => resolve()).once('close', () => resolve());
  });
}

export interface Hello {
  /** Of the record and of the hello itself. */
  readonly recordVersion?: number;
  readonly version?: number;
  /** Extensions by type, in order; a type may come twice. */
  readonly extensions?: readonly (readonly [type: number, content: Buffer])[];
  readonly ciphers?: readonly number[];
  readonly sessionId?: Buffer;
}

/** A record of TLS. */
export function record(type: number, content: Buffer, version = 0x0303, length = content.length): Buffer {
  return Buffer.concat([Buffer.from([type]), u16(version), u16(length), content]);
}

/** A handshake message, in a record of its own. */
export function handshake(type: number, content: Buffer, version = 0x0301): Buffer {
  return record(22, Buffer.concat([Buffer.from([type]), u24(content.length), content]), version);
}

/** The first message of a client: for TLS 1.2 unless told otherwise. */
export function clientHello(hello: Hello = {}): Buffer {
  const { recordVersion = 0x0301, version = 0x0303, extensions = usual, ciphers = usualCiphers } = hello;
  const { sessionId = Buffer.alloc(0) } = hello;
  const content = extensions.map(([type, bytes]) => Buffer.concat([u16(type), u16(bytes.length), bytes]));
  const cipherBytes = Buffer.concat(ciphers.map(u16));
  return handshake(
    1,
    Buffer.concat([
      u16(version),
      Buffer.alloc(32, 7),
      Buffer.concat([Buffer.from([sessionId.length]), sessionId]),
      Buffer.concat([u16(cipherBytes.length), cipherBytes]),
      Buffer.from([1, 0]),
      u16(Buffer.concat(content).length),
      ...content,
    ]),
    recordVersion,
  );
}

/** The extension that names the server. */
export function serverName(...names: readonly (string | Buffer)[]): readonly [number, Buffer] {
  const list = names.map((name) => {
    const bytes = typeof name === 'string' ? Buffer.from(name) : name;
    return Buffer.concat([Buffer.from([0]), u16(bytes.length), bytes]);
  });
  const bytes = Buffer.concat(list);
  return [0, Buffer.concat([u16(bytes.length), bytes])];
}

/** The extension that offers protocols. */
export function protocols(...names: readonly string[]): readonly [number, Buffer] {
  const bytes = Buffer.concat(names.map((name) => Buffer.concat([Buffer.from([name.length]), Buffer.from(name)])));
  return [16, Buffer.concat([u16(bytes.length), bytes])];
}

/** ECDHE with AES-GCM and ChaCha, for a certificate with a key of an elliptic curve. */
const usualCiphers = [0xc02b, 0xc02c, 0xcca9, 0xc009, 0xc00a];
const groups: readonly [number, Buffer] = [10, Buffer.from([0, 2, 0, 23])];
const points: readonly [number, Buffer] = [11, Buffer.from([1, 0])];
const signatures: readonly [number, Buffer] = [13, Buffer.from([0, 4, 4, 3, 2, 3])];
export const usual = [groups, points, signatures];

export function u16(value: number): Buffer {
  return Buffer.from([(value >> 8) & 0xff, value & 0xff]);
}

function u24(value: number): Buffer {
  return Buffer.from([(value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff]);
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
