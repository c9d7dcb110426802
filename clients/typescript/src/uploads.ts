import { type IncomingMessage, Agent as PlainAgent, request as sendPlain } from 'node:http';
import { Agent as SecureAgent, request as sendSecure } from 'node:https';
import type { Duplex } from 'node:stream';
import { type Answer, type PreparedRequest, readText } from './request.ts';

/** An answer from before the connection broke has arrived by then, so it is only to be read. */
const brokenPipeMs = 1_000;

/**
 * Sends a file. The gateway may answer before it has read the file, such as with 401, and a proxy may then close the connection: the
 * rest of the file cannot be sent, but the answer has come and is read.
 */
export async function upload({ url, init }: PreparedRequest, signal: AbortSignal): Promise<Answer> {
  const isSecure = url.startsWith('https:');
  // A connection for this file alone: one that was kept could be closed at the moment it is used.
  const agent = isSecure ? new SecureAgent({ keepAlive: false }) : new PlainAgent({ keepAlive: false });
  const connect = agent.createConnection;
  agent.createConnection = (...args) => {
    const socket = connect.apply(agent, args);
    if (socket) readOnWhenBroken(socket);
    return socket;
  };
  const { method, headers, body = '' } = init;
  const request = (isSecure ? sendSecure : sendPlain)(url, {
    ...{ agent, method, signal },
    headers: { ...headers, 'content-length': Buffer.byteLength(body) },
  });
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      // Also after the answer, when nobody waits for it any more.
      request.on('error', reject);
      request.end(body);
    });
    const text = await readText(response);
    const header = (name: string) => {
      const value = response.headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    };
    return { status: response.statusCode ?? 0, header, text };
  } finally {
    request.destroy();
  }
}

/**
 * Lets a connection that cannot be written to any more be read to its end before the failure is told: Node would close it at once,
 * and what has arrived would be lost.
 */
function readOnWhenBroken(socket: Duplex): void {
  type Done = (error?: Error | null) => void;
  const patient =
    (done: Done): Done =>
    (error) => {
      if (!error) return done(error);
      const timer = setTimeout(() => done(error), brokenPipeMs);
      socket.once('close', () => clearTimeout(timer));
    };
  const { _write: write, _writev: writeAll } = socket;
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, patient(done));
  if (writeAll !== undefined) socket._writev = (chunks, done) => writeAll.call(socket, chunks, patient(done));
}
