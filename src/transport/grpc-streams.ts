import {
  constants,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Server } from '@grpc/grpc-js';

export interface StreamRules {
  /** The paths of calls, whose message has to arrive in time. */
  readonly paths: ReadonlySet<string>;
  /** Those of calls that are answered with a stream, and how long one may stand still before it is cut. */
  readonly streamPaths: ReadonlySet<string>;
  readonly stalledMs: number;
  readonly messageTimeoutMs: number;
  /** Those of calls that carry a file: of these only so many may be open at once. */
  readonly filePaths: ReadonlySet<string>;
  readonly mostFiles: number;
  /** How many bytes the others may send, head included; grpc-js has one bound for all. */
  readonly mostMessageBytes: number;
  readonly connections: number;
}

/** Metadata of which a second value must be seen: Node keeps only the first of one, and joins those of the other. */
const single = ['authorization', 'idempotency-key'];

/** Named as the last stream that is served, none is refused. */
const lastStreamThereCanBe = 2 ** 31 - 1;

/**
 * What grpc-js leaves open on its HTTP/2 servers: repeated metadata becomes visible, a message that does not arrive is
 * not waited for without end, nor a stream that nobody reads, and connections, files and bytes are bounded.
 *
 * Returns what tells the clients of all connections to make a new one for what they begin next, while what they have
 * begun, and what they begin before they hear of it, is served: grpc-js says this only as it refuses the latter.
 */
export function watchStreams(server: Server, rules: StreamRules): () => void {
  const sessions = new Set<ServerHttp2Session>();
  let files = 0;
  const limitFiles = (stream: ServerHttp2Stream) => {
    files += 1;
    stream.once('close', () => {
      files -= 1;
    });
    if (files > rules.mostFiles) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  };
  for (const http2Server of http2Servers(server)) {
    http2Server.maxConnections = rules.connections;
    http2Server.on('session', (session) => {
      sessions.add(session);
      session.once('close', () => sessions.delete(session));
    });
    // In front of grpc-js's own listener, which reads the same headers.
    http2Server.prependListener('stream', (...args: unknown[]) => {
      const [stream, headers, , rawHeaders] = args as [ServerHttp2Stream, IncomingHttpHeaders, number, string[]];
      showRepeated(headers, rawHeaders);
      const path = String(headers[':path']);
      if (rules.paths.has(path)) limitTime(stream, rules.messageTimeoutMs);
      if (rules.filePaths.has(path)) limitFiles(stream);
      else limitBytes(stream, rules.mostMessageBytes);
      // A client that takes nothing does not take the end of its stream either.
      if (rules.streamPaths.has(path)) {
        stream.setTimeout(rules.stalledMs, () => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM));
      }
    });
  }
  return () => {
    for (const session of sessions) session.goaway(constants.NGHTTP2_NO_ERROR, lastStreamThereCanBe);
  };
}

/** grpc-js keeps them to itself; without them none of this can be done, so their absence stops the start. */
function http2Servers(server: Server): Http2Server[] {
  const { http2Servers: known } = server as unknown as { http2Servers?: ReadonlyMap<Http2Server, unknown> };
  if (!(known instanceof Map) || known.size === 0) throw new Error('this grpc-js does not show its HTTP/2 servers');
  return [...known.keys()];
}

function showRepeated(headers: IncomingHttpHeaders, rawHeaders: readonly string[]): void {
  for (const name of single) {
    if (headers[name] === undefined) continue;
    const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1] === name);
    if (values.length > 1) headers[name] = values;
  }
}

function limitBytes(stream: ServerHttp2Stream, mostBytes: number): void {
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > mostBytes) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
}

function limitTime(stream: ServerHttp2Stream, timeoutMs: number): void {
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), timeoutMs);
  const stop = () => clearTimeout(timer);
  stream.once('end', stop).once('close', stop);
}
