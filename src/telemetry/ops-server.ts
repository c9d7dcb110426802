import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A part that does not work as it should. */
export interface PartTrouble {
  readonly part: string;
  readonly reason: string;
  /** Whether this process should get no requests because of it. */
  readonly stops: boolean;
  /** Since when, in real time, in milliseconds. */
  readonly sinceMs: number;
}

/** What the operations port answers with. */
export interface OpsParts {
  /** What is wrong now. */
  readonly troubles: () => Promise<readonly PartTrouble[]>;
  readonly metrics: () => Promise<{ body: string; contentType: string }>;
}

/** The operations port: `/livez`, `/readyz` and `/metrics`. */
export function createOpsServer({ troubles, metrics }: OpsParts) {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (request, response) => {
    const send = (status: number, body: string, contentType = 'application/json') => {
      response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
    };
    const answer = async () => {
      if (request.method !== 'GET') return send(405, '{"status":"method not allowed"}');
      if (request.url === '/livez') return send(200, '{"status":"live"}');
      if (request.url === '/metrics') {
        const { body, contentType } = await metrics();
        return send(200, body, contentType);
      }
      if (request.url !== '/readyz') return send(404, '{"status":"not found"}');
      const found = await troubles();
      const reasons = found.filter(({ stops }) => stops).map(told);
      const degraded = found.filter(({ stops }) => !stops).map(told);
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

function told({ part, reason, sinceMs }: PartTrouble) {
  return { part, reason, since: new Date(sinceMs).toISOString() };
}
