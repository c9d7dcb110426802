import { createServer, type Server } from 'node:http';
import type { FixMetrics } from './metrics.ts';

/** The state that the operations port shows. */
export interface OpsView {
  /** Why it is not ready; none: it is. */
  readonly reasons: () => readonly string[];
  /** Sets the metrics that are counted at each scrape. */
  readonly refresh: () => Promise<void>;
  readonly metrics: FixMetrics;
}

/** The operations port: `/livez`, `/readyz` and `/metrics`. A process that waits for the session lives and is not ready. */
export function createOpsServer({ reasons, refresh, metrics: { registry } }: OpsView): Server {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (request, response) => {
    const send = (code: number, body: string, type = 'application/json') => {
      const headers = { 'content-type': type, 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
      response.writeHead(code, headers).end(body);
    };
    const answer = async () => {
      if (request.method !== 'GET') return send(405, '{"status":"method not allowed"}');
      if (request.url === '/livez') return send(200, '{"status":"live"}');
      if (request.url === '/metrics') {
        await refresh();
        return send(200, await registry.metrics(), registry.contentType);
      }
      if (request.url !== '/readyz') return send(404, '{"status":"not found"}');
      const found = reasons();
      const status = found.length === 0 ? 'ready' : 'not ready';
      send(found.length === 0 ? 200 : 503, JSON.stringify({ status, reasons: found }));
    };
    answer().catch(() => send(500, '{"status":"error"}'));
  });
  server.maxConnections = 100;
  return server;
}
