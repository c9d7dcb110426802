import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import type { Attacker } from '../attacker.ts';

/** How a call ended: its gRPC status, or how it broke off. */
export type Ending = string;

/** A client of HTTP/2 as Node has it, on a connection that is watched. */
export async function openSession(attacker: Attacker, port: number): Promise<ClientHttp2Session> {
  const socket = await attacker.connect(port);
  const session = connect('http://localhost', { createConnection: () => socket });
  session.on('error', () => undefined);
  return session;
}

/** Makes a call with any header fields and bytes, and resolves with how it ended; never rejects. */
export function rawCall(
  session: ClientHttp2Session,
  path: string,
  fields: OutgoingHttpHeaders,
  body: Buffer = Buffer.alloc(5),
  withinMs = 10_000,
): Promise<Ending> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve('no answer'), withinMs);
    const end = (how: Ending) => {
      clearTimeout(timer);
      resolve(how);
    };
    if (session.destroyed || session.closed) return end('closed');
    try {
      const usual = { ':method': 'POST', te: 'trailers', 'content-type': 'application/grpc' };
      const stream = session.request({ ...usual, ':path': path, ...fields });
      let status: Ending = 'no status';
      const read = (headers: IncomingHttpHeaders) => {
        if (headers['grpc-status'] !== undefined) status = String(headers['grpc-status']);
        else if (headers[':status'] !== undefined && Number(headers[':status']) !== 200)
          status = `HTTP ${headers[':status']}`;
      };
      stream.on('response', read);
      stream.on('trailers', read);
      stream.on('error', () => undefined);
      stream.on('close', () => end(status === 'no status' ? `reset ${stream.rstCode}` : status));
      stream.resume();
      stream.end(body);
    } catch (error) {
      end(`not sent: ${(error as { code?: string }).code}`);
    }
  });
}

/** Counts how calls ended. */
export class Endings {
  readonly counts: Record<Ending, number> = {};

  add(ending: Ending): void {
    this.counts[ending] = (this.counts[ending] ?? 0) + 1;
  }
}
