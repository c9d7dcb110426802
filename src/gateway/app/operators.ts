import { Diagnostics } from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import { Webhooks } from '../../gen/marina/admin/v1/webhooks_pb.ts';
import { addressShower } from '../../kit/addresses.ts';
import { IdentityCredentials } from '../../kit/server-identity.ts';
import { accountService } from '../admin/accounts.ts';
import { auditService } from '../admin/audit.ts';
import { type AdminService, adminService } from '../admin/call.ts';
import { exportCalls } from '../admin/diagnostics/export-breaks.ts';
import { findCalls } from '../admin/diagnostics/find.ts';
import { reconcileCalls } from '../admin/diagnostics/reconcile.ts';
import { reconciliationCalls } from '../admin/diagnostics/reconciliation.ts';
import { statusCalls } from '../admin/diagnostics/status.ts';
import { timelineCalls } from '../admin/diagnostics/timeline.ts';
import { unclaimedCalls } from '../admin/diagnostics/unclaimed.ts';
import { UnsettledPages, unsettledCalls } from '../admin/diagnostics/unsettled.ts';
import { watchCalls } from '../admin/diagnostics/watch.ts';
import { documentService } from '../admin/documents.ts';
import { environmentServices } from '../admin/environment.ts';
import { keyService } from '../admin/keys.ts';
import { partnerService } from '../admin/partners.ts';
import { proposalService } from '../admin/proposals/service.ts';
import { createAdminServer } from '../admin/server.ts';
import { settlements } from '../admin/settlements/service.ts';
import { walletService } from '../admin/wallets.ts';
import { webhookDeliveryCalls } from '../admin/webhook-deliveries.ts';
import { type WebhookAdminParts, webhookEndpointCalls } from '../admin/webhook-endpoints.ts';
import type { Health } from '../telemetry/health.ts';
import { checkEndpointUrl } from '../webhooks/addresses.ts';
import { makeSecret } from '../webhooks/signature.ts';
import type { Base } from './base.ts';
import type { Parts } from './parts.ts';

type OperatorParts = Parts & { readonly health: Health };

/** The operators' port. */
export function createOperators(base: Base, parts: OperatorParts) {
  const { config, log, metrics, links } = base;
  const server = createAdminServer({
    services: operatorServices(base, parts),
    tokens: base.operatorTokens,
    log,
    shownAddress: addressShower(config.logClientAddress),
    onCalled: (call, code) => metrics.operatorCalls.inc({ call, code }),
    credentials: links.operators && new IdentityCredentials(links.operators),
  });
  // The certificate of an open connection is not checked again.
  links.operators?.onChange(({ ca }) => {
    if (ca !== undefined) server.reconnect();
  });
  return server;
}

function operatorServices(base: Base, parts: OperatorParts): AdminService[] {
  const { upstream, submissions, notify } = parts;
  const { simulator } = upstream;
  const timeoutMs = base.config.readTimeoutMs;
  const environment = environmentServices({ ...base, changed: notify.environmentChanged, simulator, timeoutMs });
  const { recorder, allKinds: kinds } = submissions;
  const settling = settlements({ ...base, recorder, kinds });
  const mayApproveOwn = base.config.singleOperator;
  return [
    adminService(Diagnostics, diagnosticsCalls(base, parts)),
    environment.trading,
    partnerService(base, notify.partnerChanged),
    keyService(base, notify.keyEnded),
    accountService(base, notify.accountUnlinked),
    documentService(base, submissions.documents),
    auditService(base),
    walletService(base),
    settling.service,
    proposalService({ ...base, kinds, actions: [settling.action], mayApproveOwn }),
    adminService(Webhooks, webhookCalls(base, parts)),
    ...(base.database.environment === 'sandbox' ? [environment.clock] : []),
  ];
}

function diagnosticsCalls(base: Base, { events, upstream, submissions, outcomes, notify, health }: OperatorParts) {
  const { database, clock, cursors } = base;
  const { broker, clock: brokerClock } = upstream;
  const { reconciliationTime, singleOperator } = base.config;
  const { clocks, canceller, allKinds } = submissions;
  const pages = new UnsettledPages(database, cursors);
  return {
    ...statusCalls({
      ...{ ...base, stream: events.stream, broker, brokerClock, clocks, health },
      ...{ reconciliationTime, singleOperator },
    }),
    ...unsettledCalls(database, pages, clock),
    ...reconcileCalls({ ...base, pages, ...outcomes.reconcilers, cancel: canceller }),
    ...reconciliationCalls({ ...base, wake: notify.dayWanted }),
    ...exportCalls(database),
    ...unclaimedCalls(database, cursors),
    ...findCalls(database, cursors, allKinds, clock),
    ...timelineCalls(database, allKinds, clock),
    ...watchCalls(database, events.feedWatch, cursors),
  };
}

function webhookCalls(base: Base, { events, notify }: OperatorParts) {
  const { seal, tester } = events.webhooks;
  const parts: WebhookAdminParts = {
    ...base,
    checkUrl: (url) => checkEndpointUrl(url, { allowLoopback: base.config.webhookAllowLoopback }),
    makeSecret,
    seal,
    sendTest: (endpoint, note) => tester.send(endpoint, note),
    onChange: notify.endpointsChanged,
  };
  return { ...webhookEndpointCalls(parts), ...webhookDeliveryCalls(parts) };
}
