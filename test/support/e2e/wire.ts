import { connect } from 'node:net';
import { patient } from '../patience.ts';

/** One HTTP request, written to the connection exactly as it stands here. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values; a value's characters are its bytes. `Host`, `Connection` and the body's framing are added. */
  readonly headers?: readonly (readonly [string, string])[];
  readonly body?: string | Buffer;
  /** Sends the body in chunks, so that nothing says beforehand how long it is. */
  readonly chunked?: boolean;
}

/** One HTTP answer, as it came. */
export interface WireAnswer {
  readonly status: number;
  /** All values of each header, by its lower-case name. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly text: string;
  readonly bytes: Buffer;
}

/** Longer than the gateway waits for the broker, which tests scale with the load of the machine in the same way. */
const answerBoundMs = () => patient(20_000);

/**
 * Sends one request on a connection of its own and reads the whole answer. HTTP libraries repair or refuse much of what
 * these tests are about, so the bytes are written by hand. `from` is the address the request comes from.
 */
export function sendRaw(port: number, request: WireRequest, from?: string): Promise<WireAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', localAddress: from });
    socket.setTimeout(answerBoundMs(), () => socket.destroy(new Error('no answer')));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A server that refuses a body before it is sent may reset the connection after its answer.
    socket.on('error', (error) => settle(error));
    socket.on('end', () => settle());
    socket.write(toBytes(request));
    const settle = (error?: Error) => {
      socket.destroy();
      try {
        resolve(parseAnswer(Buffer.concat(chunks), request.method));
      } catch (problem) {
        reject(error ?? problem);
      }
    };
  });
}

function toBytes({ method, path, headers = [], body, chunked = false }: WireRequest): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: gateway.test', 'Connection: close'];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  if (bytes !== undefined) lines.push(chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  if (bytes === undefined) return head;
  return Buffer.concat(chunked ? [head, ...toChunks(bytes)] : [head, bytes]);
}

function toChunks(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 4096) {
    const part = bytes.subarray(at, at + 4096);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return [...parts, Buffer.from('0\r\n\r\n')];
}

function parseAnswer(bytes: Buffer, method: string): WireAnswer {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) throw new Error(`no whole answer: ${JSON.stringify(bytes.toString('latin1'))}`);
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1];
  if (status === undefined) throw new Error(`no status line: ${first}`);
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  const body = bytes.subarray(end + 4);
  const length = method === 'HEAD' ? 0 : Number(headers.get('content-length')?.[0]);
  if (body.length !== length) throw new Error(`the answer has ${body.length} bytes and should have ${length}`);
  return { status: Number(status), headers, text: body.toString(), bytes: body };
}
