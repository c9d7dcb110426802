import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { handshakeTimeoutMs, type ServerIdentity } from '../../lib/server-identity.ts';
import { ConnectDoor } from '../connect/door.ts';
import { RestDoor, type RestDoorOptions } from './door.ts';
import { defaultRestLimits, type RestLimits } from './limits.ts';
import { type Pages, PagesDoor } from './pages.ts';
import { HttpPort, type HttpPortOptions } from './port.ts';

export interface RestServerOptions extends RestDoorOptions, HttpPortOptions {
  readonly limits?: Partial<RestLimits>;
  /** Without it the port speaks plain text, behind a proxy that ends TLS. */
  readonly identity?: ServerIdentity | undefined;
  /** What is shown to everyone beside the operations. */
  readonly pages?: Pages;
}

/** The HTTP port: REST, Connect's protocol beside it, and the pages partners read. */
export interface RestServer {
  /** Starts to serve, and returns the port. */
  listen(port: number, host: string): Promise<number>;
  /** Goes on serving, ends streams, and tells each client to connect anew for its next request. */
  drain(): void;
  /** Takes no more connections, answers what is under way for at most `graceMs`, and closes. */
  close(graceMs: number): Promise<void>;
}

/** Makes the HTTP port over Node's own HTTP server. */
export function createRestServer(options: RestServerOptions): RestServer {
  const limits = { ...defaultRestLimits, ...options.limits };
  const rest = new RestDoor(options);
  const connect = new ConnectDoor(options);
  const pages = options.pages && new PagesDoor(options.pages, options);
  const port = new HttpPort(options, limits, (path) => {
    if (connect.owns(path)) return connect;
    return pages?.owns(path) ? pages : rest;
  });
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
  const server = options.identity === undefined ? createServer(settings) : secureServer(settings, options.identity);
  // Node would drop what is above its own count in silence; the bytes are bounded, and we count ourselves.
  server.maxHeadersCount = 0;
  server.maxConnections = limits.connections;
  server.timeout = limits.idleMs;
  // A client that ends its side of the connection behind its last request still reads the answer.
  (server as HalfOpenServer).httpAllowHalfOpen = true;
  port.attach(server);
  return {
    listen: (number, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(number, host, () => resolve((server.address() as AddressInfo).port));
      }),
    drain: () => port.drain(),
    close: (graceMs) => port.close(server, graceMs),
  };
}

/** Node's own setting, which its types lack. */
type HalfOpenServer = Server & { httpAllowHalfOpen: boolean };

function secureServer(settings: ServerOptions, identity: ServerIdentity): Server {
  const server = createSecureServer({ ...settings, ...identity.first, handshakeTimeout: handshakeTimeoutMs });
  identity.onChange((changed) => server.setSecureContext(changed));
  return server;
}
