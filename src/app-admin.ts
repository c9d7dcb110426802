import { accountAdminHandlers } from './admin/accounts.ts';
import { auditHandlers } from './admin/audit.ts';
import type { AdminService } from './admin/call.ts';
import type { Reconciling } from './admin/diagnostics/reconcile.ts';
import { reconcileHandlers } from './admin/diagnostics/reconcile.ts';
import { statusHandlers } from './admin/diagnostics/status.ts';
import { timelineHandlers } from './admin/diagnostics/timeline.ts';
import { UnsettledPages, unsettledHandlers } from './admin/diagnostics/unsettled.ts';
import { watchHandlers } from './admin/diagnostics/watch.ts';
import type { EnvironmentState } from './admin/environment.ts';
import { adminHandlers, words } from './admin/handlers.ts';
import { keyAdminHandlers } from './admin/keys.ts';
import { partnerAdminHandlers } from './admin/partners.ts';
import { walletAdminHandlers } from './admin/wallets.ts';
import { webhookAdminHandlers } from './admin/webhooks.ts';
import type { Authenticator } from './auth/authenticate.ts';
import type { GrpcBroker } from './broker/grpc-broker.ts';
import type { Config } from './config.ts';
import type { Database } from './db/database.ts';
import type { Carrier } from './events/carrier.ts';
import type { FeedWatch } from './events/feed-watch.ts';
import { Accounts as AccountsAdminService } from './gen/marina/admin/v1/accounts_pb.ts';
import { Audit as AuditService } from './gen/marina/admin/v1/audit_pb.ts';
import { Clock as ClockService } from './gen/marina/admin/v1/clock_pb.ts';
import { Diagnostics as DiagnosticsService } from './gen/marina/admin/v1/diagnostics_pb.ts';
import { Keys as KeysService } from './gen/marina/admin/v1/keys_pb.ts';
import { Partners as PartnersService } from './gen/marina/admin/v1/partners_pb.ts';
import { Trading as TradingService } from './gen/marina/admin/v1/trading_pb.ts';
import { Wallets as WalletsService } from './gen/marina/admin/v1/wallets_pb.ts';
import { Webhooks as WebhooksService } from './gen/marina/admin/v1/webhooks_pb.ts';
import type { SystemClock } from './lib/clock.ts';
import type { IdMaker } from './lib/ids.ts';
import type { Logger } from './lib/log.ts';
import type { Cursors } from './lib/paging.ts';
import type { Seal } from './lib/seal.ts';
import { version } from './lib/version.ts';
import type { Canceller } from './orders/cancel.ts';
import type { TradingContexts } from './orders/trading-context.ts';
import type { Trouble } from './telemetry/health.ts';
import type { Dispatcher } from './webhooks/dispatcher.ts';
import type { Sender } from './webhooks/sender.ts';
import { makeSecret } from './webhooks/signature.ts';
import type { signingKeys } from './webhooks/signing-keys.ts';
import { checkEndpointUrl } from './webhooks/url.ts';

/** What the operators' calls reach into. */
export interface OperatorParts {
  readonly config: Config;
  readonly log: Logger;
  readonly database: Database;
  readonly clock: SystemClock;
  readonly ids: IdMaker;
  readonly cursors: Cursors;
  readonly environment: EnvironmentState;
  readonly carrier: Carrier;
  /** Moves the simulator's clock to an offset; undefined where there is no simulator. */
  readonly moveSimulator: ((offsetMs: number) => Promise<void>) | undefined;
  readonly authenticator: Authenticator;
  readonly contexts: TradingContexts;
  readonly broker: GrpcBroker;
  readonly reconcilers: {
    readonly order: Reconciling;
    readonly application: Reconciling;
    readonly allocation: Reconciling;
  };
  readonly canceller: Canceller;
  readonly feedWatch: FeedWatch;
  readonly dispatcher: Dispatcher;
  readonly sender: Sender;
  readonly seal: Seal;
  readonly keysOf: ReturnType<typeof signingKeys>;
  /** Tells this replica and the others that a key has ended. */
  readonly keyEnded: (keyId: string) => void;
  readonly troubles: () => Promise<readonly Trouble[]>;
  /** This process's name among the holders of leases. */
  readonly holder: string;
  /** Real time. */
  readonly startedAt: number;
}

/** Puts the services of the operators' port together, as `app` does the rest. */
export function operatorServices(parts: OperatorParts): AdminService[] {
  const { config, log, database, clock, ids, cursors, carrier } = parts;
  const handlers = adminHandlers({
    database,
    clock,
    environment: parts.environment,
    carrier,
    moveSimulator: parts.moveSimulator,
  });
  const partnerChanged = (partnerId: string) => {
    parts.authenticator.forgetPartner(partnerId);
    carrier.say(words.partnerChanged, partnerId);
  };
  const unlinked = (partnerId: string, account: string) => {
    parts.contexts.forget(partnerId, account);
    carrier.say(words.accountUnlinked, `${partnerId} ${account}`);
  };
  const unsettled = new UnsettledPages(database, clock, cursors);
  return [
    {
      service: DiagnosticsService,
      handlers: {
        ...statusHandlers({
          database,
          clock,
          carrier,
          broker: parts.broker,
          troubles: parts.troubles,
          holder: parts.holder,
          version,
          startedAt: parts.startedAt,
        }),
        ...unsettledHandlers(unsettled, clock),
        ...reconcileHandlers({
          database,
          clock,
          log,
          pages: unsettled,
          ...parts.reconcilers,
          cancel: parts.canceller,
        }),
        ...timelineHandlers(database),
        ...watchHandlers({ database, feedWatch: parts.feedWatch, cursors }),
      },
    },
    { service: TradingService, handlers: handlers.trading },
    { service: PartnersService, handlers: partnerAdminHandlers({ database, clock, ids, changed: partnerChanged }) },
    { service: KeysService, handlers: keyAdminHandlers({ database, clock, ids, ended: parts.keyEnded }) },
    { service: AccountsAdminService, handlers: accountAdminHandlers({ database, clock, unlinked }) },
    { service: AuditService, handlers: auditHandlers(database) },
    { service: WalletsService, handlers: walletAdminHandlers({ database, clock, ids }) },
    {
      service: WebhooksService,
      handlers: webhookAdminHandlers({
        database,
        clock,
        ids,
        checkUrl: (url) => checkEndpointUrl(url, { allowLoopback: config.webhookAllowLoopback }),
        makeSecret,
        seal: (partnerId, secret) => parts.seal.seal(partnerId, secret),
        sendTest: (endpoint, id, body) =>
          parts.sender.send({
            endpointId: `${endpoint.partnerId} test`,
            url: endpoint.url,
            id,
            body,
            keys: parts.keysOf(endpoint, clock.now()),
          }),
        onChange: () => {
          parts.dispatcher.changed();
          carrier.say('webhooks-changed');
        },
      }),
    },
    ...(database.environment === 'sandbox' ? [{ service: ClockService, handlers: handlers.clock }] : []),
  ];
}
