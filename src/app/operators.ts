import { accountAdminHandlers } from '../admin/accounts.ts';
import { auditHandlers } from '../admin/audit.ts';
import type { AdminService } from '../admin/call.ts';
import { reconcileHandlers } from '../admin/diagnostics/reconcile.ts';
import { statusHandlers } from '../admin/diagnostics/status.ts';
import { timelineHandlers } from '../admin/diagnostics/timeline.ts';
import { UnsettledPages, unsettledHandlers } from '../admin/diagnostics/unsettled.ts';
import { watchHandlers } from '../admin/diagnostics/watch.ts';
import { documentAdminHandlers } from '../admin/documents.ts';
import { adminHandlers } from '../admin/handlers.ts';
import { keyAdminHandlers } from '../admin/keys.ts';
import { partnerAdminHandlers } from '../admin/partners.ts';
import { createAdminServer } from '../admin/server.ts';
import { walletAdminHandlers } from '../admin/wallets.ts';
import { webhookDeliveryHandlers } from '../admin/webhook-deliveries.ts';
import { webhookEndpointHandlers } from '../admin/webhook-endpoints.ts';
import type { WebhookAdminParts } from '../admin/webhook-parts.ts';
import { Accounts } from '../gen/marina/admin/v1/accounts_pb.ts';
import { Audit } from '../gen/marina/admin/v1/audit_pb.ts';
import { Clock } from '../gen/marina/admin/v1/clock_pb.ts';
import { Diagnostics } from '../gen/marina/admin/v1/diagnostics_pb.ts';
import { Documents } from '../gen/marina/admin/v1/documents_pb.ts';
import { Keys } from '../gen/marina/admin/v1/keys_pb.ts';
import { Partners } from '../gen/marina/admin/v1/partners_pb.ts';
import { Trading } from '../gen/marina/admin/v1/trading_pb.ts';
import { Wallets } from '../gen/marina/admin/v1/wallets_pb.ts';
import { Webhooks } from '../gen/marina/admin/v1/webhooks_pb.ts';
import { addressShower } from '../lib/network.ts';
import { IdentityCredentials } from '../lib/server-identity.ts';
import { version } from '../lib/version.ts';
import type { Health } from '../telemetry/health.ts';
import { makeSecret } from '../webhooks/signature.ts';
import { checkEndpointUrl } from '../webhooks/url.ts';
import type { Base } from './base.ts';
import type { Parts } from './parts.ts';

/** What the operators' calls reach into. */
type OperatorParts = Parts & { readonly health: Health };

/** The operators' port. */
export function createOperators(base: Base, parts: OperatorParts) {
  const { config, log, metrics, identities } = base;
  return createAdminServer({
    services: operatorServices(base, parts),
    operators: config.operators,
    log,
    shownAddress: addressShower(config.logClientAddress),
    onCalled: (call, code) => metrics.operatorCalls.inc({ call, code }),
    credentials: identities.operators && new IdentityCredentials(identities.operators),
  });
}

/** Everything operators can call, service by service. */
function operatorServices(base: Base, parts: OperatorParts): AdminService[] {
  const { database, clock, ids, environment, notifications, keyMacSecret: macSecret } = base;
  const { upstream, submissions, notify } = parts;
  const moveSimulator = simulatorMover(base, upstream);
  const handlers = adminHandlers({ database, clock, environment, notifications, moveSimulator });
  return [
    { service: Diagnostics, handlers: diagnosticsHandlers(base, parts) },
    { service: Trading, handlers: handlers.trading },
    { service: Partners, handlers: partnerAdminHandlers({ database, clock, ids, changed: notify.partnerChanged }) },
    { service: Keys, handlers: keyAdminHandlers({ database, clock, ids, macSecret, ended: notify.keyEnded }) },
    {
      service: Accounts,
      handlers: accountAdminHandlers({
        database,
        clock,
        unlinked: notify.accountUnlinked,
      }),
    },
    { service: Documents, handlers: documentAdminHandlers({ database, clock, releasing: submissions.release }) },
    { service: Audit, handlers: auditHandlers(database) },
    { service: Wallets, handlers: walletAdminHandlers({ database, clock, ids }) },
    { service: Webhooks, handlers: webhookHandlers(base, parts) },
    ...(database.environment === 'sandbox' ? [{ service: Clock, handlers: handlers.clock }] : []),
  ];
}

function diagnosticsHandlers(base: Base, { events, upstream, submissions, outcomes, health }: OperatorParts) {
  const { log, database, clock, cursors, holder, startedAt, nats } = base;
  const { stream, feedWatch } = events;
  const { broker, clock: brokerClock } = upstream;
  const { clocks } = submissions;
  const pages = new UnsettledPages(database, cursors);
  const troubles = () => health.troubles();
  return {
    ...statusHandlers({
      ...{ database, clock, nats, stream, broker, brokerClock, clocks, troubles },
      ...{ holder, version, startedAt },
    }),
    ...unsettledHandlers(pages, clock),
    ...reconcileHandlers({ database, clock, log, pages, ...outcomes.reconcilers, cancel: submissions.canceller }),
    ...timelineHandlers(database, submissions.allKinds),
    ...watchHandlers(database, feedWatch, cursors),
  };
}

function webhookHandlers({ config, database, clock, ids }: Base, { events, notify }: OperatorParts) {
  const { seal, keysOf, sender } = events.webhooks;
  const parts: WebhookAdminParts = {
    database,
    clock,
    ids,
    checkUrl: (url) => checkEndpointUrl(url, { allowLoopback: config.webhookAllowLoopback }),
    makeSecret,
    seal: (partnerId, secret) => seal.seal(partnerId, secret),
    sendTest: (endpoint, id, body) =>
      sender.send({
        endpointId: `${endpoint.partnerId} test`,
        url: endpoint.url,
        id,
        body,
        keys: keysOf(endpoint, clock.now()),
      }),
    onChange: notify.endpointsChanged,
  };
  return { ...webhookEndpointHandlers(parts), ...webhookDeliveryHandlers(parts) };
}

/** Moves the simulator's clock with ours; undefined where there is no simulator. */
function simulatorMover({ config }: Base, { simulator }: Parts['upstream']) {
  if (simulator === undefined) return undefined;
  return async (offsetMs: number) => {
    await simulator.setClock({ offsetMs: BigInt(offsetMs) }, { timeoutMs: config.readTimeoutMs });
  };
}
