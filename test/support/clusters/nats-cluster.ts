import { join } from 'node:path';
import { startNats } from '../../../src/sandbox/nats.ts';
import { freePort } from '../../../src/sandbox/ports.ts';
import type { Server } from '../../../src/sandbox/private-server.ts';
import { FaultProxy } from '../fault-proxy.ts';

/** A NATS of three servers, on 127.0.0.1. Each is reached through proxies of its own, so that it can be cut off. */
export interface NatsCluster {
  /** The addresses of all, and of each. */
  readonly url: string;
  readonly urls: readonly string[];
  readonly servers: Server[];
  /** Starts a server that was killed, on what it had, or on nothing. */
  restart(index: number, wiped?: boolean): Promise<void>;
  /** Messages to or from the server arrive when it joins again: for the other servers, or for clients too. */
  cut(index: number, from: 'peers' | 'all'): void;
  join(index: number): void;
  stop(): Promise<void>;
}

const indexes = [0, 1, 2] as const;

/** Starts the cluster; `folder` is for everything it writes. */
export async function startNatsCluster(folder: string): Promise<NatsCluster> {
  const ports = await Promise.all(indexes.map(async () => ({ clients: await freePort(), peers: await freePort() })));
  const portsOf = (index: number) => ports[index] as (typeof ports)[number];
  const clients = await Promise.all(ports.map((port) => FaultProxy.start(`nats://127.0.0.1:${port.clients}`)));
  /** From each server to each other one. */
  const routes = await Promise.all(
    indexes.flatMap((from) =>
      indexes
        .filter((to) => to !== from)
        .map(async (to) => ({ from, to, proxy: await FaultProxy.start(`nats://127.0.0.1:${portsOf(to).peers}`) })),
    ),
  );
  const generations = [0, 0, 0];
  const start = (index: number) => {
    const own = routes.filter(({ from }) => from === index).map(({ proxy }) => `nats://${proxy.address}`);
    return startNats({
      dataDir: join(folder, `nats-${index}-${generations[index]}`),
      port: portsOf(index).clients,
      disposable: true,
      further: [
        `server_name: node-${index}`,
        `client_advertise: "${clients[index]?.address}"`,
        // Servers and clients learn no way around the proxies.
        `cluster { name: marina, listen: "127.0.0.1:${portsOf(index).peers}", no_advertise: true, routes: [${own.join(', ')}] }`,
      ],
    });
  };
  const around = (index: number) =>
    routes.filter(({ from, to }) => from === index || to === index).map(({ proxy }) => proxy);
  const closeProxies = () =>
    Promise.all([...clients, ...routes.map(({ proxy }) => proxy)].map((proxy) => proxy.close()));
  const started = await Promise.allSettled(indexes.map(start));
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const failure = started.find((one) => one.status === 'rejected');
  if (failure !== undefined) {
    // Another test can take a free port first. Servers and proxies that ran on would keep this process alive.
    await Promise.all([...servers.map((server) => server.kill()), closeProxies()]);
    throw failure.reason;
  }
  const urls = clients.map(({ address }) => `nats://${address}`);
  return {
    url: urls.join(','),
    urls,
    servers,
    async restart(index, wiped = false) {
      if (wiped) generations[index] = (generations[index] ?? 0) + 1;
      servers[index] = await start(index);
    },
    cut(index, from) {
      const proxies = [...around(index), ...(from === 'all' ? clients.slice(index, index + 1) : [])];
      for (const proxy of proxies) proxy.set('both', { hold: true });
    },
    join(index) {
      for (const proxy of [...around(index), ...clients.slice(index, index + 1)]) proxy.heal();
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
      await closeProxies();
    },
  };
}
