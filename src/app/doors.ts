import { setTimeout as delay } from 'node:timers/promises';
import { isRegistered } from '../auth/addresses.ts';
import { clientAddressBehind } from '../auth/client-address.ts';
import { Site } from '../docs/site.ts';
import { addressShower } from '../lib/network.ts';
import { IdentityCredentials } from '../lib/server-identity.ts';
import { ConnectionLimits } from '../transport/connection-limits.ts';
import { createGrpcServer } from '../transport/grpc.ts';
import type { Operation } from '../transport/operations.ts';
import { Pipeline } from '../transport/pipeline.ts';
import { RequestsUnderWay } from '../transport/requests-under-way.ts';
import { createRestServer } from '../transport/rest/server.ts';
import type { Base } from './base.ts';
import type { Callers } from './callers.ts';

export type Doors = ReturnType<typeof createDoors>;

/** The partners' doors: REST with Connect and the pages on one port, gRPC on another, one pipeline behind them. */
export function createDoors(
  { config, log, does, identities, metrics, tracer }: Base,
  { authenticator, limits }: Callers,
  operations: readonly Operation[],
) {
  const { partners: identity } = identities;
  const connectionLimits = new ConnectionLimits(
    { perAddress: config.connectionsPerAddress },
    (address) => isRegistered(address, config.trustedProxies),
    () => metrics.connectionsRefused.inc(),
  );
  const requests = new RequestsUnderWay();
  const pipeline = new Pipeline({
    requests,
    onIdentified: (clientAddress) => connectionLimits.note(clientAddress),
    identify: authenticator.identify,
    limits,
    log,
    tracer,
    shownAddress: addressShower(config.logClientAddress),
    onFinished: ({ door, operation = 'none', status, code, limit, credentialRefusal: reason, durationMs }) => {
      metrics.requests.observe({ door, operation, status }, durationMs / 1_000);
      if (code !== undefined) metrics.refusals.inc({ door, operation, code });
      if (limit !== undefined) metrics.limitRefusals.inc({ limit });
      if (reason !== undefined) metrics.credentialRefusals.inc({ reason });
    },
  });
  let { restPort } = config;
  const options = {
    identity,
    credentials: identity && new IdentityCredentials(identity),
    pipeline,
    operations,
    log,
    connectionLimits,
    clientAddress: clientAddressBehind(config.trustedProxies),
    pages: new Site({ operations, environment: config.environment, baseUrl: (): string => options.baseUrl }),
    // Read at each answer: the port may be known only when it is open.
    get baseUrl(): string {
      return config.baseUrl ?? `${identity === undefined ? 'http' : 'https'}://${config.host}:${restPort}`;
    },
  };
  const rest = createRestServer(options);
  const grpc = createGrpcServer(options);
  return {
    pipeline,
    connectionLimits,
    /** Opens the ports; they are 0 in a process that does not serve partners. */
    listen: async () => {
      if (!does('api')) return { restPort: 0, grpcPort: 0 };
      restPort = await rest.listen(config.restPort, config.host);
      return { restPort, grpcPort: await grpc.listen(config.grpcPort, config.host) };
    },
    /** Sends clients away, for as long as balancers need to see it, while it still serves. */
    drain: async () => {
      rest.drain();
      grpc.drain();
      if (does('api')) await delay(config.drainMs);
    },
    /** Takes nothing more, answers what is under way for at most `graceMs`, and closes. */
    close: (graceMs: number) => Promise.all([rest.close(graceMs), grpc.close(graceMs)]),
  };
}
