import { join } from 'node:path';
import { startNats } from '../../../src/dev/nats.ts';
import { freePort } from '../../../src/dev/ports.ts';
import type { Server } from '../../../src/dev/private-server.ts';

/** A NATS of three servers, on 127.0.0.1. */
export interface NatsCluster {
  /** The addresses of all. */
  readonly url: string;
  readonly servers: Server[];
  /** Starts a server that was killed, on what it had, or on nothing. */
  restart(index: number, wiped?: boolean): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the cluster; `folder` is for everything it writes. */
export async function startNatsCluster(folder: string): Promise<NatsCluster> {
  const ports = await Promise.all(Array.from({ length: 6 }, freePort));
  const routes = ports.slice(3).map((port) => `nats://127.0.0.1:${port}`);
  const generations = [0, 0, 0];
  const start = (index: number) =>
    startNats({
      dataDir: join(folder, `nats-${index}-${generations[index]}`),
      port: Number(ports[index]),
      disposable: true,
      further: [
        `server_name: node-${index}`,
        `cluster { name: marina, listen: "127.0.0.1:${ports[3 + index]}", routes: [${routes.join(', ')}] }`,
      ],
    });
  const servers = await Promise.all([0, 1, 2].map(start));
  return {
    url: ports
      .slice(0, 3)
      .map((port) => `nats://127.0.0.1:${port}`)
      .join(','),
    servers,
    async restart(index, wiped = false) {
      if (wiped) generations[index] = (generations[index] ?? 0) + 1;
      servers[index] = await start(index);
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
