import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { handshakeTimeoutMs, type ServerIdentity } from '../../../kit/server-identity.ts';
import { takeOver } from '../bounds.ts';
import { maxBodyBytes } from '../operations.ts';
import type { LingerRules } from './linger.ts';

/** The limits of the HTTP server. Tests shorten the times. */
export const defaultHttpLimits = {
  /** The request line and all headers together. */
  headerBytes: 16_384,
  /** How long a new connection has for its first byte, and each request for its head. */
  headersTimeoutMs: 10_000,
  /** From the request's head to the last byte of its body. */
  bodyTimeoutMs: 30_000,
  /** How long a connection may be idle between two requests. */
  keepAliveMs: 65_000,
  /** The same for a connection without a valid key. */
  strangersKeepAliveMs: 5_000,
  /** How long a client may take to read a whole answer. */
  answerTimeoutMs: 30_000,
  /** How long a connection may pass no byte in either direction. Longer than any handler takes. */
  idleMs: 120_000,
  /** How long data is read and dropped after a connection's last answer, and again each time that the client uploads. */
  lingerMs: 3_000,
  /**
   * How long in all, if the client uploads without a valid key, and how many bytes. Many clients read no answer before
   * they have sent the whole body: 1 MB takes 30 s at 33 KB/s.
   */
  strangersLingerMs: 30_000,
  strangersLingerBytes: 16 * 1_024 * 1_024,
  /** How long a client with a valid key has for the rest of a refused body. */
  refusedBodyLingerMs: 120_000,
  checkIntervalMs: 1_000,
  /** How much of an unwanted body is read to keep the connection. */
  passedOverBytes: maxBodyBytes,
};

export type HttpLimits = Readonly<typeof defaultHttpLimits>;

/** How long a connection is read on after its last answer. `isRefusedBody`: of a client with a valid key. */
export function lingerRules(limits: HttpLimits, isRefusedBody: boolean): LingerRules {
  const { lingerMs: stepMs, strangersLingerMs: mostMs, strangersLingerBytes: maxBytes } = limits;
  if (!isRefusedBody) return { leastMs: 0, mostMs, maxBytes, stepMs };
  const { refusedBodyLingerMs } = limits;
  return { leastMs: refusedBodyLingerMs, mostMs: refusedBodyLingerMs, maxBytes: Number.POSITIVE_INFINITY, stepMs };
}

/** Makes Node's HTTP server with the limits that Node enforces. */
export function createNodeServer(limits: HttpLimits, identity: ServerIdentity | undefined): Server {
  const settings = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    // Our own timer answers first. This one is for bodies that nobody reads.
    requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs + limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    // We refuse it ourselves, in our own form.
    requireHostHeader: false,
  };
  const secured = { ...settings, ...identity?.current, handshakeTimeout: handshakeTimeoutMs };
  const secure = identity && createSecureServer(secured);
  identity?.onChange((changed) => secure?.setSecureContext(changed));
  const server = secure ?? createServer(settings);
  awaitFirstBytes(server, secure ? 'secureConnection' : 'connection', limits.headersTimeoutMs);
  // Node would silently drop headers above its count. We limit their bytes and number.
  server.maxHeadersCount = 0;
  server.timeout = limits.idleMs;
  // A client that half-closes after its last request still reads the answer. Node's types lack this option.
  Object.assign(server, { httpAllowHalfOpen: true });
  return server;
}

/**
 * Gives a connection to Node's server when its first bytes have come, and closes it if none come in time. Node makes a
 * parser for each connection that it is given, several KB that the C library does not give back when thousands close.
 */
function awaitFirstBytes(server: Server, event: 'connection' | 'secureConnection', withinMs: number): void {
  const serve = takeOver(server, event);
  server.on(event, (socket: Socket) => {
    const end = () => socket.destroy();
    const timer = setTimeout(end, withinMs);
    socket.once('close', () => clearTimeout(timer));
    // TLS leaves it open at an error such as one handshake after the other.
    socket.on('error', end);
    // Also when the client ends its side without a byte.
    socket.once('readable', () => {
      clearTimeout(timer);
      if (socket.destroyed) return;
      socket.off('error', end);
      serve(socket);
    });
  });
}
