import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { eventually } from './eventually.ts';
import { temporaryFolder } from './folders.ts';

/** Why tests with HAProxy are skipped; false: it is installed. */
export const withoutHaproxy = spawnSync('haproxy', ['-v']).status !== 0 && 'there is no haproxy here';

/** Where HAProxy takes what it passes on to a gateway. */
export interface HaproxyPorts {
  readonly rest: number;
  /** HTTP/2 from the client, HTTP/1.1 to the gateway. */
  readonly restOverHttp2: number;
  readonly grpc: number;
}

/** Starts HAProxy with its own defaults in front of a gateway. */
export async function startHaproxy(gateway: {
  readonly restPort: number;
  readonly grpcPort: number;
}): Promise<HaproxyPorts & { stop(): Promise<unknown> }> {
  const [rest, restOverHttp2, grpc] = await Promise.all([freePort(), freePort(), freePort()]);
  const ports = { rest, restOverHttp2, grpc };
  const folder = temporaryFolder();
  const path = join(folder, 'haproxy.cfg');
  await writeFile(path, configuration(gateway, ports));
  const kept = await sharedKeeper().start({
    ...{ name: 'HAProxy', command: 'haproxy', args: ['-db', '-f', path], logPath: join(folder, 'haproxy.log') },
  });
  await Promise.all(Object.values(ports).map((port) => eventually(() => canConnect(port))));
  return { ...ports, stop: () => kept.stop() };
}

function configuration(gateway: { restPort: number; grpcPort: number }, ports: HaproxyPorts): string {
  return `
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend rest
  bind 127.0.0.1:${ports.rest}
  bind 127.0.0.1:${ports.restOverHttp2} proto h2
  default_backend rest
backend rest
  server gateway 127.0.0.1:${gateway.restPort}
frontend grpc
  bind 127.0.0.1:${ports.grpc} proto h2
  default_backend grpc
backend grpc
  server gateway 127.0.0.1:${gateway.grpcPort} proto h2
`;
}

/** A port that nobody listens on. */
function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

function canConnect(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}
