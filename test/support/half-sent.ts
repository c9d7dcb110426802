import { request } from 'node:http';
import { connect } from 'node:http2';

/** A request whose head and some of whose body was sent. */
export interface HalfSent {
  /** Sends the rest. Answers the HTTP status, of gRPC the one its status stands for. */
  finish(): Promise<number>;
}

export interface ToSendInHalves {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** Sends half of a request of HTTP/1.1, which REST and Connect are. */
export async function halfOverHttp(port: number, { method, path, headers, body }: ToSendInHalves): Promise<HalfSent> {
  const sending = request({
    ...{ host: '127.0.0.1', port, method, path },
    headers: { ...headers, 'content-length': String(body.length) },
  });
  const status = new Promise<number>((resolve, reject) => {
    sending.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sending.on('error', reject);
  });
  status.catch(() => undefined);
  const half = Math.floor(body.length / 2);
  await new Promise<void>((resolve) => sending.write(body.subarray(0, half), () => resolve()));
  return {
    finish: () => {
      sending.end(body.subarray(half));
      return status;
    },
  };
}

const statuses: Record<string, number> = { 0: 200, 7: 403, 8: 429, 14: 503, 16: 401 };

/** Sends half of a call of gRPC. The server has read it, or answered it already, when this resolves. */
export async function halfOverGrpc(port: number, { path, headers, body }: ToSendInHalves): Promise<HalfSent> {
  const session = connect(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const status = new Promise<number>((resolve, reject) => {
    const read = (given: Record<string, unknown>) => {
      const code = given['grpc-status'];
      if (code !== undefined) resolve(statuses[String(code)] ?? 500);
    };
    stream.on('response', read).on('trailers', read).on('error', reject);
    stream.on('end', () => session.close());
    stream.on('close', () => reject(new Error('the call was closed without a status')));
    stream.resume();
  });
  status.catch(() => undefined);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  const message = Buffer.concat([head, body]);
  const half = Math.floor(message.length / 2);
  await new Promise<void>((resolve) => stream.write(message.subarray(0, half), () => resolve()));
  const read = new Promise<void>((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve())));
  await Promise.any([read, status]);
  return {
    finish: () => {
      stream.end(message.subarray(half));
      return status;
    },
  };
}
