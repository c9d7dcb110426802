import {
  constants,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { type Metadata, type Server, status } from '@grpc/grpc-js';
import { type ConnectionLimits, takeOver } from '../bounds.ts';
import type { GrpcStatus } from './arrival.ts';
import { Arrival, arrivalId } from './arrival.ts';
import { GrpcConnection } from './connection.ts';
import { boundMessage } from './message-bound.ts';
import { type MethodRules, PublicCalls, type PublicMethod, publicMethods } from './public.ts';
import { compressed } from './refusals.ts';

export interface ListenerRules {
  /** The methods that need a key or an operator's token. */
  readonly methods: ReadonlyMap<string, MethodRules>;
  /**
   * Authorizes a call by its head, before any byte of its message is read, also for unknown methods. Resolves with the
   * refusal, or undefined to serve the call. It never rejects.
   */
  readonly authorize: (arrival: Arrival) => Promise<GrpcStatus | undefined>;
  readonly connections: ConnectionLimits;
  readonly messageTimeoutMs?: number | undefined;
  /** Open calls per connection. The server announces it to clients. */
  readonly callsPerConnection: number;
}

export interface Listener {
  /** The arrival of a call that grpc-js hands to its handler; undefined if its client has left. */
  arrivalOf(metadata: Metadata): Arrival | undefined;
  /**
   * Tells clients to open a new connection for their next call. Calls that run are served. One that is on its way is not
   * begun, which the client knows by its number, and sends it again on the new connection.
   */
  sendAway(): void;
  /** Closes all connections. */
  close(): void;
}

const messageMs = 30_000;
/** How often connections are checked, if they are few and if they are many. */
const checkEveryMs = 50;
/** How long an answer of a public method may stay unread. */
const unreadMs = 10_000;
/** Hundreds of calls can come in one packet, and are answered before anything else is read. */
const strangersCallCost = 10;
const checkManyEveryMs = 250;
const fewConnections = 1_000;

type StreamListener = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

/**
 * Stands between the HTTP/2 servers of a grpc-js server and grpc-js. grpc-js never gets a stream that was refused or
 * has closed, because it answers one in a tick whose error is not caught. It reads and inflates messages before it
 * calls a handler, so a call is authorized by its head first, and compressed messages are refused.
 */
export function guardServer(server: Server, rules: ListenerRules): Listener {
  const connections = new Map<ServerHttp2Session, GrpcConnection>();
  const arrivals = new Map<string, Arrival>();
  const publicCalls = new PublicCalls();

  const take = (http2Server: Http2Server) => {
    const accepted = lastAccepted(http2Server);
    rules.connections.guard(http2Server);
    http2Server.on('session', (session) => {
      const onAbuse = (peer: string) => rules.connections.blame(peer);
      connections.set(session, new GrpcConnection(session, accepted(), onAbuse));
      session.once('close', () => connections.delete(session));
    });
    const serveStream = takeOver(http2Server, 'stream') as StreamListener;
    const onStream: StreamListener = (stream, headers, flags, rawHeaders) => {
      // An error without a listener would end the process. The stream's end is handled.
      stream.on('error', () => {});
      const connection = stream.session && connections.get(stream.session as ServerHttp2Session);
      if (connection === undefined || connection.isEnding || connection.openCalls >= rules.callsPerConnection) {
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
        connection?.refusedAtOnce();
        return;
      }
      connection.opened(stream);
      const arrival = new Arrival(stream, headers, rawHeaders, connection.peer);
      const serve = (method: MethodRules) => {
        arrivals.set(arrival.id, arrival);
        arrival.whenClosed(() => arrivals.delete(arrival.id));
        const give = () => serveStream(stream, headers, flags, rawHeaders);
        const endLate = boundMessage(arrival, method, connection, give);
        if (method.isOpenEnded !== true) limitTime(arrival, rules.messageTimeoutMs ?? messageMs, endLate);
      };
      const publicMethod = publicMethods.get(arrival.path);
      if (refuseUnread(arrival)) countStranger(connection);
      else if (publicMethod === undefined) void authorize(connection, arrival, serve);
      else {
        countStranger(connection);
        if (!arrival.isGone) servePublic(arrival, publicMethod, serve);
      }
    };
    http2Server.on('stream', onStream as (...args: unknown[]) => void);
  };

  /** Counts a call without a valid key. An address with too many loses the connection. */
  function countStranger(connection: GrpcConnection) {
    const { peer } = connection;
    if (!rules.connections.takeStranger(peer, strangersCallCost))
      connection.endStrangers(rules.connections.isKnown(peer));
  }

  async function authorize(connection: GrpcConnection, arrival: Arrival, serve: (method: MethodRules) => void) {
    const decided = connection.deciding();
    const refusal = await rules.authorize(arrival).finally(decided);
    const method = rules.methods.get(arrival.path);
    if (refusal !== undefined) {
      arrival.refuse(refusal);
      connection.refusedUnread();
      if (refusal.code === status.UNAUTHENTICATED) countStranger(connection);
      return;
    }
    connection.identified(arrival.stream);
    if (method === undefined) arrival.refuse(unknownMethod);
    else if (!arrival.isGone) serve(method);
  }

  function servePublic(arrival: Arrival, method: PublicMethod, serve: (method: MethodRules) => void) {
    if (isCompressed(arrival)) return arrival.refuse(compressed);
    const client = rules.connections.clientOf(arrival.peer, arrival.forwardedFor);
    const giveBack = publicCalls.take(method, client, rules.connections.isKnown(client));
    if (giveBack === undefined) return arrival.refuse(tooManyCalls);
    const { stream } = arrival;
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), method.lifetimeMs);
    let wasUnread = false;
    const reading = setInterval(() => {
      const isUnread = stream.writableLength > 0;
      if (isUnread && wasUnread) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      wasUnread = isUnread;
    }, unreadMs);
    arrival.whenClosed(() => {
      clearTimeout(timer);
      clearInterval(reading);
      giveBack();
    });
    serve(method);
  }

  for (const http2Server of http2Servers(server)) take(http2Server);
  const check = () => {
    for (const connection of connections.values()) connection.check();
    timer = setTimeout(check, connections.size < fewConnections ? checkEveryMs : checkManyEveryMs).unref();
  };
  let timer = setTimeout(check, checkEveryMs).unref();
  return {
    arrivalOf: (metadata) => arrivals.get(arrivalId(metadata)),
    sendAway: () => {
      for (const connection of connections.values()) connection.sendAway();
    },
    close: () => {
      clearTimeout(timer);
      // grpc-js would leave them open.
      for (const connection of connections.values()) connection.destroy();
    },
  };
}

/** Whether a call's messages are compressed. Those are refused: grpc-js would inflate one before its size is known. */
export function isCompressed({ headers }: Arrival): boolean {
  const encoding = headers['grpc-encoding'];
  return encoding !== undefined && encoding !== 'identity';
}

/** Answers a request that is no gRPC call, by gRPC's protocol. Returns whether it did. */
function refuseUnread(arrival: Arrival): boolean {
  const { headers } = arrival;
  const isGrpc = /^application\/grpc(?:$|[+;])/.test(headers['content-type'] ?? '');
  if (headers[':method'] === 'POST' && isGrpc) return false;
  arrival.refuseHttp(headers[':method'] === 'POST' ? 415 : 405);
  return true;
}

/** Private to grpc-js. The start fails without them: a client without a key could then end the process. */
function http2Servers(server: Server): Http2Server[] {
  const { http2Servers: known } = server as unknown as { http2Servers?: ReadonlyMap<Http2Server, unknown> };
  if (!(known instanceof Map) || known.size === 0) throw new Error('this grpc-js does not show its HTTP/2 servers');
  return [...known.keys()];
}

/** The socket whose session Node begins: it does so at once. The session itself shows one that cannot be closed. */
function lastAccepted(http2Server: Http2Server): () => Socket {
  let accepted: Socket;
  for (const event of ['connection', 'secureConnection']) {
    if (http2Server.listenerCount(event) === 0) continue;
    const serve = takeOver(http2Server, event);
    http2Server.on(event, (socket: Socket) => {
      accepted = socket;
      serve(socket);
    });
  }
  return () => accepted;
}

function limitTime(arrival: Arrival, timeoutMs: number, end: () => void): void {
  const { stream } = arrival;
  const timer = setTimeout(end, timeoutMs);
  const stop = () => clearTimeout(timer);
  stream.once('end', stop);
  arrival.whenClosed(stop);
}

const unknownMethod: GrpcStatus = { code: status.UNIMPLEMENTED, details: 'There is no such method.' };
const tooManyCalls: GrpcStatus = { code: status.RESOURCE_EXHAUSTED, details: 'Too many such calls are open.' };
