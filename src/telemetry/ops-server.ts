import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics } from '../lib/metrics.ts';
import type { Gauges } from './gauges.ts';
import type { Health, Trouble } from './health.ts';

/** The operations port: `/livez`, `/readyz` and `/metrics`. */
export function createOpsServer(health: Health, { registry }: Metrics, gauges: Gauges) {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (request, response) => {
    const send = (status: number, body: string, contentType = 'application/json') => {
      response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
    };
    const answer = async () => {
      if (request.method !== 'GET') return send(405, '{"status":"method not allowed"}');
      if (request.url === '/livez') return send(200, '{"status":"live"}');
      if (request.url === '/metrics') {
        await gauges.set();
        return send(200, await registry.metrics(), registry.contentType);
      }
      if (request.url !== '/readyz') return send(404, '{"status":"not found"}');
      const found = await health.troubles();
      const reasons = found.filter(({ stops }) => stops).map(shown);
      const degraded = found.filter(({ stops }) => !stops).map(shown);
      const status = reasons.length === 0 ? 'ready' : 'not ready';
      send(reasons.length === 0 ? 200 : 503, JSON.stringify({ status, reasons, degraded }));
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

function shown({ part, reason, sinceMs }: Trouble) {
  return { part, reason, since: new Date(sinceMs).toISOString() };
}
