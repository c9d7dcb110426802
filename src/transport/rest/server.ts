import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { RestDoor, type RestDoorOptions } from './door.ts';
import { defaultRestLimits, type RestLimits } from './limits.ts';

export interface RestServerOptions extends RestDoorOptions {
  readonly limits?: Partial<RestLimits>;
}

/** The REST door. */
export interface RestServer {
  /** Starts to serve, and returns the port. */
  listen(port: number, host: string): Promise<number>;
  /** Takes no more connections, answers what is under way for at most `graceMs`, and closes. */
  close(graceMs: number): Promise<void>;
}

/** Makes the REST door over Node's own HTTP server. */
export function createRestServer(options: RestServerOptions): RestServer {
  const limits = { ...defaultRestLimits, ...options.limits };
  const door = new RestDoor(options, limits);
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    // Our own timer is the one that answers; this one is behind it, for bodies nobody reads.
    requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs + limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    // Refused by ourselves, in our own form.
    requireHostHeader: false,
  });
  // Node would drop what is above its own count in silence; the bytes are bounded, and we count ourselves.
  server.maxHeadersCount = 0;
  server.maxConnections = limits.connections;
  server.timeout = limits.idleMs;
  door.attach(server);
  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
      }),
    close: (graceMs) => door.close(server, graceMs),
  };
}
