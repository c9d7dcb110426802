import { setTimeout as delay } from 'node:timers/promises';
import { Accounts } from '../../gen/marina/gateway/v1/accounts_pb.ts';
import { Allocations } from '../../gen/marina/gateway/v1/allocations_pb.ts';
import { Applications } from '../../gen/marina/gateway/v1/applications_pb.ts';
import { Events as EventsService } from '../../gen/marina/gateway/v1/events_pb.ts';
import { Keys } from '../../gen/marina/gateway/v1/keys_pb.ts';
import { Limits } from '../../gen/marina/gateway/v1/limits_pb.ts';
import { Orders } from '../../gen/marina/gateway/v1/orders_pb.ts';
import { Reference } from '../../gen/marina/gateway/v1/reference_pb.ts';
import { Sandbox } from '../../gen/marina/gateway/v1/sandbox_pb.ts';
import { Wallet } from '../../gen/marina/gateway/v1/wallet_pb.ts';
import { Withdrawals } from '../../gen/marina/gateway/v1/withdrawals_pb.ts';
import { addressShower } from '../../kit/addresses.ts';
import { IdentityCredentials } from '../../kit/server-identity.ts';
import { Site } from '../../site/site.ts';
import { eventHandlers } from '../delivery/events/handlers.ts';
import { ConnectionLimits } from '../edge/bounds.ts';
import { ConnectProtocol } from '../edge/connect/protocol.ts';
import { GrpcProtocol } from '../edge/grpc/protocol.ts';
import { HttpServer } from '../edge/http/server.ts';
import { KeptRequests } from '../edge/kept-requests/kept-requests.ts';
import { type ApiOperation, defineOperations, maxBodyBytes } from '../edge/operations.ts';
import { Pipeline } from '../edge/pipeline.ts';
import { RestProtocol } from '../edge/rest/protocol.ts';
import { keyHandlers } from '../partners/keys/handlers.ts';
import { limitHandlers } from '../partners/limits/handlers.ts';
import { referenceHandlers } from '../partners/reference/handlers.ts';
import { Instruments } from '../partners/reference/instruments.ts';
import { feedToolHandlers } from '../partners/sandbox/feed.ts';
import { steeringHandlers } from '../partners/sandbox/handlers.ts';
import { requestToolHandlers } from '../partners/sandbox/requests.ts';
import { webhookToolHandlers } from '../partners/sandbox/webhooks.ts';
import { accountHandlers } from '../trading/accounts/handlers.ts';
import { allocationHandlers } from '../trading/allocations/handlers.ts';
import { applicationHandlers } from '../trading/applications/handlers.ts';
import { kindTables } from '../trading/kinds.ts';
import { orderHandlers } from '../trading/orders/handlers.ts';
import { walletHandlers } from '../trading/wallet/handlers.ts';
import { withdrawalHandlers } from '../trading/withdrawals/handlers.ts';
import type { Base } from './base.ts';
import type { Parts } from './parts.ts';

function createOperations(base: Base, parts: Parts, requests: KeptRequests | undefined): ApiOperation[] {
  const { config, database, clock, ids, cursors, environment, keyMacKeys: macKeys, keySeals, walletSeals } = base;
  const { readTimeoutMs } = config;
  const { keyUses, limits } = parts.callers;
  const { orders, records } = parts.work.broker;
  const { kinds, allKinds, submitter, canceller, contexts, documents, reads } = parts.work;
  const { images, simulator } = parts;
  const submitted = { database, submitter, cursors, digestKeys: base.keys('request digests') };
  const instruments = new Instruments(records, reads);
  return [
    ...defineOperations(
      Orders,
      orderHandlers({ ...submitted, kind: kinds.order, broker: orders, canceller, contexts, instruments }),
    ),
    ...defineOperations(Allocations, allocationHandlers({ ...submitted, kind: kinds.allocation })),
    ...defineOperations(Withdrawals, withdrawalHandlers({ ...submitted, kind: kinds.withdrawal })),
    ...defineOperations(Wallet, walletHandlers(database, cursors, walletSeals)),
    ...defineOperations(
      Applications,
      applicationHandlers({ ...submitted, kind: kinds.application, clock, images, sender: documents }),
    ),
    ...defineOperations(Accounts, accountHandlers({ database, records, orders, reads, cursors, clock })),
    ...defineOperations(
      Reference,
      referenceHandlers({ records, reads, cursors, clock, readTimeoutMs, environment, instruments }),
    ),
    ...defineOperations(EventsService, eventHandlers(database, cursors, parts.events.feedWatch, kindTables)),
    ...defineOperations(Limits, limitHandlers(database, clock, limits, maxBodyBytes)),
    ...defineOperations(
      Keys,
      keyHandlers({ database, clock, ids, macKeys, keySeals, cursors, uses: keyUses, ended: parts.notify.keyEnded }),
    ),
    ...(simulator === undefined || requests === undefined
      ? []
      : defineOperations(Sandbox, {
          ...steeringHandlers(database, allKinds, simulator, readTimeoutMs),
          ...webhookToolHandlers(database, cursors, (endpoint) => parts.events.webhooks.tester.send(endpoint)),
          ...requestToolHandlers(cursors, requests),
          ...feedToolHandlers(database, cursors, clock),
        })),
  ];
}

export type Servers = ReturnType<typeof createServers>;

/** The partners' servers: REST, Connect and the pages on one port, gRPC on another, with one pipeline for all. */
export function createServers(base: Base, parts: Parts) {
  const { config, log, does, links, metrics, tracer } = base;
  const { authenticator, limits } = parts.callers;
  // Only a sandbox keeps requests, and only for those who can ask for them.
  const kept = parts.simulator && new KeptRequests({ clock: base.clock, baseUrl: (): string => options.baseUrl });
  const operations = createOperations(base, parts, kept);
  const { partners: identity } = links;
  const perAddress = config.connectionsPerAddress;
  const connectionLimits = new ConnectionLimits({ perAddress }, config.trustedProxies, metrics);
  const { identify } = authenticator;
  const shownAddress = addressShower(config.logClientAddress);
  const pipeline = new Pipeline({ connectionLimits, identify, limits, log, tracer, shownAddress, metrics, kept });
  let { restPort, grpcPort } = config;
  const options = {
    identity,
    credentials: identity && new IdentityCredentials(identity),
    pipeline,
    operations,
    log,
    // A getter, because the port may be known only once it is open.
    get baseUrl(): string {
      return config.baseUrl ?? `${identity === undefined ? 'http' : 'https'}://${config.host}:${restPort}`;
    },
  };
  const site = new Site({
    operations,
    environment: config.environment,
    baseUrl: (): string => options.baseUrl,
    grpcAddress: () => config.publicGrpcAddress ?? `${new URL(options.baseUrl).hostname}:${grpcPort}`,
    support: config.support,
  });
  const http = new HttpServer(options, [new ConnectProtocol(options), site], new RestProtocol(options));
  const grpc = new GrpcProtocol(options);
  return {
    pipeline,
    /** Returns ports 0 in a process that does not serve partners. */
    listen: async () => {
      if (!does('api')) return { restPort: 0, grpcPort: 0 };
      restPort = await http.listen(config.restPort, config.host);
      grpcPort = await grpc.listen(config.grpcPort, config.host);
      return { restPort, grpcPort };
    },
    /** Sends clients away while it still serves, for long enough that load balancers notice. */
    drain: async () => {
      http.drain();
      grpc.drain();
      if (does('api')) await delay(config.drainMs);
    },
    /** Accepts nothing more, answers running requests for at most `graceMs`, and closes. */
    close: (graceMs: number) => Promise.all([http.close(graceMs), grpc.close(graceMs)]),
  };
}
