import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { handshakeTimeoutMs, type ServerIdentity } from '../../../kit/server-identity.ts';
import type { Live } from '../../../kit/watched-files.ts';
import type { Metrics } from '../../edge/metrics.ts';
import type { Gauges } from './gauges.ts';
import type { Health, Trouble } from './health.ts';

interface OpsServerOptions {
  readonly health: Health;
  readonly metrics: Metrics;
  readonly gauges: Gauges;
  /** Undefined: the port speaks plain text. */
  readonly identity: ServerIdentity | undefined;
  /** The token of those who see metrics and reasons; undefined: no token is needed. */
  readonly token: Live<{ readonly token: string | undefined }>;
}

const timeouts = { requestTimeout: 5_000, headersTimeout: 5_000 };

/**
 * The operations port: `/livez`, `/readyz` and `/metrics`. Probes have neither token nor certificate, so they see whether
 * the gateway lives and is ready; metrics and reasons are shown to those who have what is asked for.
 */
export function createOpsServer({ health, metrics: { registry }, gauges, identity, token }: OpsServerOptions) {
  const secured = { ...timeouts, ...identity?.current, handshakeTimeout: handshakeTimeoutMs };
  // Who has no certificate is not sent away, because a probe has none.
  const asking = { requestCert: identity?.current.ca !== undefined, rejectUnauthorized: false };
  const secure = identity && createSecureServer({ ...secured, ...asking });
  identity?.onChange((changed) => {
    secure?.setSecureContext(changed);
    // The certificate of an open connection is not checked again.
    secure?.closeAllConnections();
  });
  const mayKnow = (request: IncomingMessage) =>
    hasToken(request, token.current.token) && (!asking.requestCert || (request.socket as TLSSocket).authorized);
  const server = secure ?? createServer(timeouts);
  server.on('request', (request, response) => {
    const send = (status: number, body: string, contentType = 'application/json') => {
      const headers = { 'content-type': contentType, 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
      response.writeHead(status, headers).end(body);
    };
    const answer = async () => {
      if (request.method !== 'GET') return send(405, '{"status":"method not allowed"}');
      if (request.url === '/livez') return send(200, '{"status":"live"}');
      const isKnown = mayKnow(request);
      if (request.url === '/metrics') {
        if (!isKnown) return send(401, '{"status":"a token or a certificate is missing or wrong"}');
        await gauges.set();
        return send(200, await registry.metrics(), registry.contentType);
      }
      if (request.url !== '/readyz') return send(404, '{"status":"not found"}');
      const found = await health.troubles();
      const reasons = found.filter(({ stops }) => stops).map(shown);
      const degraded = found.filter(({ stops }) => !stops).map(shown);
      const status = reasons.length === 0 ? 'ready' : 'not ready';
      const shownTo = isKnown ? { status, reasons, degraded } : { status };
      send(reasons.length === 0 ? 200 : 503, JSON.stringify(shownTo));
    };
    answer().catch(() => send(500, '{"status":"error"}'));
  });
  server.maxConnections = 100;
  return {
    listen: (port: number, host: string) =>
      new Promise<number>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
      }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function hasToken({ headers }: IncomingMessage, token: string | undefined): boolean {
  if (token === undefined) return true;
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${token}`));
}

function shown({ part, reason, sinceMs }: Trouble) {
  return { part, reason, since: new Date(sinceMs).toISOString() };
}
