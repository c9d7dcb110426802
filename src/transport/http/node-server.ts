import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { handshakeTimeoutMs, type ServerIdentity } from '../../lib/server-identity.ts';
import { maxBodyBytes } from '../operations.ts';

/** The bounds of the HTTP server. Tests make the times short. */
export const defaultHttpLimits = {
  /** Of the request line and all headers together. */
  headerBytes: 16_384,
  headersTimeoutMs: 10_000,
  /** From the request's head to the last byte of its body. */
  bodyTimeoutMs: 30_000,
  /** How long a connection may rest between two requests. */
  keepAliveMs: 65_000,
  /** The same for a connection on which no good key was seen. */
  strangersKeepAliveMs: 5_000,
  /** How long a client may take to read a whole answer. */
  answerTimeoutMs: 30_000,
  /** How long a connection may pass no byte at all, in either direction; longer than any handler takes. */
  idleMs: 120_000,
  /** How long what a refused client still sends is taken off the wire. */
  lingerMs: 3_000,
  /**
   * The same for a client with a good key whose body is refused unread. Many clients read no answer before they have sent
   * the whole body, and on a slow line that takes longer than `lingerMs`.
   */
  refusedBodyLingerMs: 120_000,
  /** How often Node looks at the times of heads and requests. */
  checkIntervalMs: 1_000,
  /** The body of an operation that takes none: how much of it is passed over to keep the connection. */
  passedOverBytes: maxBodyBytes,
};

export type HttpLimits = Readonly<typeof defaultHttpLimits>;

/** Makes Node's own HTTP server, within the limits that are its to keep. */
export function createNodeServer(limits: HttpLimits, identity: ServerIdentity | undefined): Server {
  const settings = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    // Our own timer is the one that answers; this one is behind it, for bodies nobody reads.
    requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs + limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    // Refused by ourselves, in our own form.
    requireHostHeader: false,
  };
  const secured = { ...settings, ...identity?.first, handshakeTimeout: handshakeTimeoutMs };
  const secure = identity && createSecureServer(secured);
  identity?.onChange((changed) => secure?.setSecureContext(changed));
  const server = secure ?? createServer(settings);
  // Node would drop what is above its own count in silence; the bytes are bounded, and we count ourselves.
  server.maxHeadersCount = 0;
  server.timeout = limits.idleMs;
  // A client that ends its side of the connection behind its last request still reads the answer. Node's types lack it.
  Object.assign(server, { httpAllowHalfOpen: true });
  return server;
}
