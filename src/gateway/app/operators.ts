import { Diagnostics } from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import { Webhooks } from '../../gen/marina/admin/v1/webhooks_pb.ts';
import { addressShower } from '../../kit/addresses.ts';
import { IdentityCredentials } from '../../kit/server-identity.ts';
import { checkEndpointUrl } from '../delivery/webhooks/attempt/addresses.ts';
import { makeSecret } from '../delivery/webhooks/attempt/signature.ts';
import { AccountsAtBroker } from '../operators/calls/account-at-broker.ts';
import { accountService } from '../operators/calls/accounts.ts';
import { auditService, readAuditor } from '../operators/calls/audit.ts';
import { type AdminService, adminService } from '../operators/calls/call.ts';
import { customerAccountService } from '../operators/calls/customer-accounts.ts';
import { acknowledgementCalls } from '../operators/calls/diagnostics/acknowledgements.ts';
import { contradictionCalls } from '../operators/calls/diagnostics/contradictions.ts';
import { findCalls } from '../operators/calls/diagnostics/find.ts';
import { reconcileCalls } from '../operators/calls/diagnostics/reconcile.ts';
import { exportCalls, reconciliationCalls } from '../operators/calls/diagnostics/reconciliation.ts';
import { statusCalls } from '../operators/calls/diagnostics/status.ts';
import { timelineCalls } from '../operators/calls/diagnostics/timeline.ts';
import { unclaimedCalls } from '../operators/calls/diagnostics/unclaimed.ts';
import { UnsettledPages, unsettledCalls } from '../operators/calls/diagnostics/unsettled.ts';
import { watchCalls } from '../operators/calls/diagnostics/watch.ts';
import { whoAmICalls } from '../operators/calls/diagnostics/who-am-i.ts';
import { documentService } from '../operators/calls/documents.ts';
import { environmentServices } from '../operators/calls/environment.ts';
import { keyService } from '../operators/calls/keys.ts';
import { partnerService } from '../operators/calls/partners.ts';
import { isAbove } from '../operators/calls/proposals/rules.ts';
import { proposalService } from '../operators/calls/proposals/service.ts';
import { releases } from '../operators/calls/releases/service.ts';
import { ReportsUnderWay } from '../operators/calls/reports/parts.ts';
import { reportService } from '../operators/calls/reports/service.ts';
import { createAdminServer } from '../operators/calls/server.ts';
import { settlements } from '../operators/calls/settlements/service.ts';
import { symbolsAtBroker } from '../operators/calls/symbol-at-broker.ts';
import { type RecordedAmounts, walletService } from '../operators/calls/wallets.ts';
import { webhookDeliveryCalls } from '../operators/calls/webhook-deliveries.ts';
import { type WebhookAdminParts, webhookEndpointCalls } from '../operators/calls/webhook-endpoints.ts';
import type { Health } from '../operators/telemetry/health.ts';
import type { Base } from './base.ts';
import { fourEyesKobo, largeCreditKobo } from './config.ts';
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
    needsReason: config.environment === 'live',
    auditRead: readAuditor(base),
    metrics,
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
  const { work, simulator, notify } = parts;
  const timeoutMs = base.config.readTimeoutMs;
  const isListed = symbolsAtBroker({ records: work.broker.records, reads: work.reads });
  const changed = notify.environmentChanged;
  const environment = environmentServices({ ...base, changed, simulator, timeoutMs, isListed });
  const { recorder, allKinds: kinds, submitter } = work;
  const { submitTimeoutMs, clockSkewMs } = base.config;
  const settling = settlements({ ...base, recorder, kinds, clockSkewMs });
  const fourEyes = { ...base, fourEyesAboveKobo: fourEyesKobo(base.config) };
  const releasing = releases({
    ...{ ...fourEyes, recorder, submitter, submitTimeoutMs, clockSkewMs },
    kind: work.kinds.withdrawal,
  });
  const wallets = walletService(fourEyes, base.walletSeals, countLargeAmounts(base));
  const partners = partnerService(fourEyes, notify.partnerChanged);
  const keys = keyService(fourEyes, base.keyMacKeys, base.keySeals, notify.keyEnded);
  const accounts = accountService(
    fourEyes,
    new AccountsAtBroker({ ...work, ...work.broker, timeoutMs }),
    notify.accountUnlinked,
  );
  const moneys = [...releasing.actions, ...wallets.actions];
  const reports = new ReportsUnderWay();
  const actions = [settling.action, ...moneys, ...partners.actions, keys.action, accounts.action];
  const services: AdminService[] = [
    adminService(Diagnostics, {
      ...diagnosticsCalls(base, parts),
      ...whoAmICalls(base.database.environment, () => services),
    }),
    environment.trading,
    partners.service,
    keys.service,
    accounts.service,
    documentService(base, work.documents),
    auditService(base, base.auditSeals, reports),
    wallets.service,
    reportService(base, reports),
    customerAccountService({ ...base, records: work.broker.records, orders: work.broker.orders, reads: work.reads }),
    settling.service,
    releasing.service,
    proposalService(base, base.cursors, kinds, actions, base.config.singleOperator),
    adminService(Webhooks, webhookCalls(base, parts)),
    ...(base.database.environment === 'sandbox' ? [environment.clock] : []),
  ];
  return services;
}

/** Counts large credits and corrections, also where no second operator approves them. */
function countLargeAmounts({ config, metrics }: Base): RecordedAmounts {
  const aboveKobo = largeCreditKobo(config);
  return {
    credited: (amountKobo) => isAbove(amountKobo, aboveKobo) && metrics.largeCredits.inc(),
    corrected: (amountKobo) => isAbove(amountKobo, aboveKobo) && metrics.largeCorrections.inc(),
  };
}

function diagnosticsCalls(base: Base, { events, work, notify, health }: OperatorParts) {
  const { database, clock, cursors } = base;
  const { reconciliationTime, singleOperator } = base.config;
  const { broker, clocks, canceller, allKinds, reconcilers } = work;
  const pages = new UnsettledPages(database, cursors);
  return {
    ...statusCalls({
      ...{ ...base, stream: events.stream, broker, clocks, health },
      ...{ reconciliationTime, singleOperator, fourEyesAboveKobo: fourEyesKobo(base.config) },
    }),
    ...unsettledCalls(database, pages, clock),
    ...acknowledgementCalls(base, allKinds),
    ...contradictionCalls(base, cursors, allKinds),
    ...reconcileCalls({ ...base, pages, ...reconcilers, cancel: canceller }),
    ...reconciliationCalls(database, clock, cursors, notify.dayWanted),
    ...exportCalls(database),
    ...unclaimedCalls(database, cursors),
    ...findCalls(database, cursors, clock),
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
