import { setTimeout as delay } from 'node:timers/promises';
import { Site } from '../docs/site.ts';
import { addressShower } from '../lib/network.ts';
import { IdentityCredentials } from '../lib/server-identity.ts';
import { ConnectionLimits } from '../transport/bounds.ts';
import { ConnectProtocol } from '../transport/connect/protocol.ts';
import { GrpcProtocol } from '../transport/grpc/protocol.ts';
import { HttpServer } from '../transport/http/server.ts';
import type { Operation } from '../transport/operations.ts';
import { Pipeline } from '../transport/pipeline.ts';
import { PagesProtocol } from '../transport/rest/pages.ts';
import { RestProtocol } from '../transport/rest/protocol.ts';
import type { Base } from './base.ts';
import type { Callers } from './callers.ts';

export type Servers = ReturnType<typeof createServers>;

/** The partners' servers: REST, Connect and the pages on one port, gRPC on another, one pipeline behind them. */
export function createServers(
  { config, log, does, identities, metrics, tracer }: Base,
  { authenticator, limits }: Callers,
  operations: readonly Operation[],
) {
  const { partners: identity } = identities;
  const perAddress = config.connectionsPerAddress;
  const connectionLimits = new ConnectionLimits({ perAddress }, config.trustedProxies, metrics);
  const { identify } = authenticator;
  const shownAddress = addressShower(config.logClientAddress);
  const pipeline = new Pipeline({ connectionLimits, identify, limits, log, tracer, shownAddress, metrics });
  let { restPort } = config;
  const options = {
    identity,
    credentials: identity && new IdentityCredentials(identity),
    pipeline,
    operations,
    log,
    // Read at each answer: the port may be known only when it is open.
    get baseUrl(): string {
      return config.baseUrl ?? `${identity === undefined ? 'http' : 'https'}://${config.host}:${restPort}`;
    },
  };
  const site = new Site({ operations, environment: config.environment, baseUrl: (): string => options.baseUrl });
  const others = [new ConnectProtocol(options), new PagesProtocol(site, options)];
  const http = new HttpServer(options, others, new RestProtocol(options));
  const grpc = new GrpcProtocol(options);
  return {
    pipeline,
    /** Opens the ports; they are 0 in a process that does not serve partners. */
    listen: async () => {
      if (!does('api')) return { restPort: 0, grpcPort: 0 };
      restPort = await http.listen(config.restPort, config.host);
      return { restPort, grpcPort: await grpc.listen(config.grpcPort, config.host) };
    },
    /** Sends clients away, for as long as balancers need to see it, while it still serves. */
    drain: async () => {
      http.drain();
      grpc.drain();
      if (does('api')) await delay(config.drainMs);
    },
    /** Takes nothing more, answers what is under way for at most `graceMs`, and closes. */
    close: (graceMs: number) => Promise.all([http.close(graceMs), grpc.close(graceMs)]),
  };
}
