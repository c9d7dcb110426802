import { randomUUID } from 'node:crypto';
import { Controls } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../kit/grpc-client.ts';
import { Seal } from '../../kit/key-ring.ts';
import { channelTls } from '../../kit/link.ts';
import type { Worker } from '../../kit/worker.ts';
import { FeedWatch } from '../delivery/events/feed.ts';
import { Relay } from '../delivery/events/relay.ts';
import { feedRetention } from '../delivery/events/retention.ts';
import { EventStream } from '../delivery/events/stream.ts';
import { webhookConsumer } from '../delivery/webhooks/consumer.ts';
import { webhookRetention } from '../delivery/webhooks/delivery-store.ts';
import { Dispatcher } from '../delivery/webhooks/dispatcher.ts';
import { WebhookSender } from '../delivery/webhooks/sender.ts';
import { signingKeys } from '../delivery/webhooks/signature.ts';
import { WebhookTester } from '../delivery/webhooks/tester.ts';
import { Authenticator, KeyUses } from '../edge/auth/authenticate.ts';
import { CallerLimits } from '../edge/limits/caller-limits.ts';
import { CounterStore } from '../edge/limits/counter-store.ts';
import { SharedBuckets } from '../edge/limits/shared-buckets.ts';
import { SharedSlots } from '../edge/limits/shared-slots.ts';
import { Sharing } from '../edge/limits/sharing.ts';
import { maxPartnersNamed } from '../edge/metrics.ts';
import { ledgerCheck } from '../operators/calls/ledger-check.ts';
import { proposalExpiry } from '../operators/calls/proposals/expiry.ts';
import { ReconciliationWorker } from '../operators/reconciliation/worker.ts';
import { neededUsesLackedBy } from '../operators/secret-keys/table.ts';
import { removalTime } from '../operators/telemetry/database-clock.ts';
import { AllocationKind } from '../trading/allocations/kind.ts';
import { DocumentSender } from '../trading/applications/documents/sender.ts';
import { ImageChecker } from '../trading/applications/image-checker.ts';
import { ApplicationKind } from '../trading/applications/kind.ts';
import { AllocationBroker, ApplicationBroker, SubmissionsBroker } from '../trading/broker/back-office.ts';
import { BrokerClock } from '../trading/broker/clock.ts';
import { Broker } from '../trading/broker/orders.ts';
import { ReadQueue } from '../trading/broker/read-queue.ts';
import { RecordsBroker } from '../trading/broker/records.ts';
import { StatementsBroker } from '../trading/broker/statements.ts';
import { Canceller } from '../trading/orders/cancel.ts';
import { OrderKind, TradingContexts } from '../trading/orders/kind.ts';
import { ClockWatch } from '../trading/submission/clock-watch.ts';
import { keyRetention } from '../trading/submission/key-retention.ts';
import { Kinds } from '../trading/submission/kind.ts';
import { Notes } from '../trading/submission/notes.ts';
import { Reconciler } from '../trading/submission/reconcile.ts';
import { Recorder } from '../trading/submission/record.ts';
import { Recovery } from '../trading/submission/recovery.ts';
import { ReportConsumer } from '../trading/submission/reports.ts';
import { StartGate } from '../trading/submission/start-gate.ts';
import { StuckPartners } from '../trading/submission/stuck-partners.ts';
import { Submitter } from '../trading/submission/submit.ts';
import { unclaimedRetention } from '../trading/submission/unclaimed-retention.ts';
import type { Base } from './base.ts';
import type { Config } from './config.ts';
import type { Links } from './links.ts';

export type Parts = ReturnType<typeof createParts>;
type Callers = ReturnType<typeof createCallers>;
type Events = ReturnType<typeof createEvents>;
type Upstream = ReturnType<typeof createUpstream>;
type Submissions = ReturnType<typeof createSubmissions>;

/** Makes the parts behind the ports and connects them. It opens and starts nothing. */
export function createParts(base: Base) {
  const callers = createCallers(base);
  const events = createEvents(base);
  const upstream = createUpstream(base);
  const submissions = createSubmissions(base, upstream, events);
  const outcomes = createOutcomes(base, upstream, submissions);
  const reconciliation = createReconciliation(base, upstream);
  const notify = createNotifications(base, callers, events, submissions, reconciliation);
  return {
    reconciliation,
    callers,
    events,
    upstream,
    submissions,
    outcomes,
    notify,
    maintenance: maintenanceWorkers(base, submissions),
  };
}

function createCallers(base: Base) {
  const { config, log, database, clock, nats, peers, peerMac, distrust } = base;
  const { keyMacKeys: macKeys, keySeals: seals } = base;
  const { environment, natsPrefix: prefix, natsReplicas } = config;
  const keyUses = new KeyUses(database, clock);
  const authenticator = new Authenticator({ database, environment, macKeys, seals, log, uses: keyUses });
  const replica = randomUUID();
  const store = new CounterStore(nats, prefix, replica, { mac: peerMac, distrust, copies: natsReplicas });
  const sharing = new Sharing({ nats: peers, store, distrust, prefix, replica, log });
  const slots = new SharedSlots(sharing);
  const limits = new CallerLimits(slots, new SharedBuckets(sharing));
  const reads = new ReadQueue(slots, config.recordsTimeoutMs);
  return { keyUses, authenticator, sharing, slots, limits, reads };
}

/** The path of events: the feed, which is written with each change, and from the outbox through NATS to the webhooks. */
function createEvents(base: Base) {
  const { config, database, nats, peerMac: mac, distrust } = base;
  const { natsPrefix: prefix, natsReplicas: replicas } = config;
  const stream = new EventStream({ nats, mac, distrust, prefix, replicas });
  const feedWatch = new FeedWatch(database);
  const webhooks = createWebhooks(base);
  const relay = new Relay({ ...base, stream, feedWatch, consumer: webhooks.consumer });
  return { stream, feedWatch, webhooks, relay };
}

/** Webhooks: the consumer that fills the endpoint queues, the sender, and the signing secrets. */
function createWebhooks(base: Base) {
  const { config, database, clock, notifications } = base;
  const { webhookAllowLoopback: allowLoopback, webhookAuthorities: extraAuthorities } = config;
  const seal = new Seal(base.keys('webhook secrets'));
  const keysOf = signingKeys(seal);
  const sender = new WebhookSender({ clock, allowLoopback, extraAuthorities });
  const tester = new WebhookTester({ ...base, sender, keysOf });
  const dispatcher = new Dispatcher({ ...base, sender, keysOf });
  const consumer = webhookConsumer(database, clock, base.log, (partnerIds) => {
    const others = dispatcher.wake(partnerIds);
    if (others.length > 0) notifications.publish('webhooks', others.join(','));
  });
  return { seal, sender, tester, dispatcher, consumer };
}

/** The broker, and the simulator's controls if it is one. Each connects at its first use. */
function createUpstream({ config, links, log, tracer, metrics }: Base) {
  const { brokerAddress: address, backOfficeAddress = address, submitTimeoutMs, readTimeoutMs } = config;
  const clock = new BrokerClock(config.clockSkewMs);
  const options = { address, access: links.broker, submitTimeoutMs, readTimeoutMs, clock, log, tracer, metrics };
  const backOffice = { ...options, address: backOfficeAddress };
  const clients = {
    broker: new Broker(options),
    applications: new ApplicationBroker(backOffice),
    allocations: new AllocationBroker(backOffice),
    submissions: new SubmissionsBroker(options),
    records: new RecordsBroker(backOffice),
    statements: new StatementsBroker(backOffice),
    simulator: simulatorControls(config, links),
  };
  return {
    ...clients,
    clock,
    close: () => {
      for (const client of Object.values(clients)) client?.close();
    },
  };
}

/** The simulator's controls, in a sandbox. They speak TLS as the broker does if both are one. */
function simulatorControls({ environment, simulatorAddress, brokerAddress }: Config, { broker }: Links) {
  if (environment !== 'sandbox' || simulatorAddress === undefined) return undefined;
  const { options, credentials } = channelTls(simulatorAddress === brokerAddress ? broker.current.tls : undefined);
  return createGrpcClient(Controls, simulatorAddress, options, credentials);
}

/** Submissions and cancels: stored, sent once, recorded. */
function createSubmissions(base: Base, upstream: Upstream, { relay }: Events) {
  const { config, log, metrics } = base;
  const { submitTimeoutMs, clockSkewMs } = config;
  const { broker } = upstream;
  const gate = new StartGate();
  const clocks = new ClockWatch({ ...base, brokerClock: upstream.clock, askBroker: () => broker.honoursNotAfter() });
  const recorder = new Recorder({ ...base, gate, relay, clocks });
  const notes = new Notes(new Seal(base.keys('submission notes')));
  const contexts = new TradingContexts(broker);
  const sending = { ...base, recorder, clocks, notes, gate, submitTimeoutMs, clockSkewMs };
  const kinds = {
    order: new OrderKind({ ...sending, broker, contexts }),
    application: new ApplicationKind({ ...sending, broker: upstream.applications }),
    allocation: new AllocationKind({ ...sending, broker: upstream.allocations }),
  };
  const submitter = new Submitter(sending);
  const canceller = new Canceller({ ...sending, kind: kinds.order, broker });
  const documents = new DocumentSender({
    ...sending,
    kind: kinds.application,
    broker: upstream.applications,
    orders: broker,
    digestKeys: base.keys('document digests'),
    onSent: (outcome) => metrics.documents.inc({ outcome }),
  });
  const images = new ImageChecker({ log, walls: config.decoderWalls });
  const allKinds = new Kinds(Object.values(kinds));
  return { gate, clocks, recorder, notes, contexts, kinds, allKinds, submitter, canceller, documents, images };
}

/** Outcomes: reported by the broker, reconciled if unknown, restored if lost. */
function createOutcomes(
  base: Base,
  { broker, submissions }: Upstream,
  { kinds, allKinds, recorder, notes, gate, clocks }: Submissions,
) {
  const { config, metrics } = base;
  const lackedKeys = async () => (await neededUsesLackedBy(base.database, base.ring.current)).map(({ id }) => id);
  const recovery = new Recovery({
    ...base,
    broker: submissions,
    kinds: allKinds,
    notes,
    gate,
    lackedKeys,
    isShared: config.brokerShared,
  });
  const stuck = new StuckPartners(base.log);
  const reporting = {
    ...base,
    stuck,
    recorder,
    findLost: () => recovery.findLost(),
    onApplied: (kind: string, seconds: number) => metrics.reportDelays.observe({ kind }, seconds),
    onWentBack: (kind: string) => metrics.databaseWentBack.inc({ kind }),
    onUnclaimed: (kind: string) => metrics.unclaimedReports.inc({ kind }),
  };
  const { clockSkewMs } = config;
  const settling = { ...base, stuck, recorder, clockSkewMs, clocks, honoursNotAfter: () => broker.honoursNotAfter() };
  const reports = {
    order: new ReportConsumer({ ...reporting, kind: kinds.order }),
    application: new ReportConsumer({ ...reporting, kind: kinds.application }),
  };
  const reconcilers = {
    order: new Reconciler({ ...settling, kind: kinds.order }),
    application: new Reconciler({ ...settling, kind: kinds.application }),
    allocation: new Reconciler({ ...settling, kind: kinds.allocation }),
  };
  const working = [...Object.values(reports), ...Object.values(reconcilers)];
  return {
    recovery,
    reports,
    reconcilers,
    stuck,
    /** Workers that change objects wait until no object is missing. */
    workers: working.map(({ worker }) => gate.behind(worker)),
  };
}

/** Compares days with the broker's statements. */
function createReconciliation(base: Base, { statements }: Upstream) {
  const { config, metrics } = base;
  return new ReconciliationWorker({
    ...base,
    broker: statements,
    isShared: config.brokerShared,
    minute: config.reconciliationTime,
    mostRecords: config.reconciliationMaxRecords,
    ended: (state, seconds) => metrics.reconciliationSeconds.observe({ state }, seconds),
  });
}

/** Subscribes to other processes' notifications, and makes the functions that notify them of a change made here. */
function createNotifications(
  { environment, notifications }: Base,
  { authenticator }: Callers,
  { relay, feedWatch, webhooks: { dispatcher } }: Events,
  { contexts }: Submissions,
  reconciliation: ReconciliationWorker,
) {
  notifications.subscribe('relay', () => relay.wake());
  notifications.subscribe('feed', () => feedWatch.wake());
  notifications.subscribe('webhooks', (partnerIds) => dispatcher.wake(partnerIds.split(',')));
  notifications.subscribe('environment-changed', () => environment.wakeup.wake());
  /** A change that is applied here at once, and in other processes when they are notified. */
  const everywhere = (name: string, change: (text: string) => void) => {
    notifications.subscribe(name, change);
    return (text = '') => {
      change(text);
      notifications.publish(name, text);
    };
  };
  const forgetContext = everywhere('account-unlinked', (text) => {
    const [partnerId = '', account = ''] = text.split(' ');
    contexts.forget(partnerId, account);
  });
  return {
    environmentChanged: () => notifications.publish('environment-changed'),
    endpointsChanged: everywhere('webhooks-changed', () => dispatcher.changed()),
    keyEnded: everywhere('key-revoked', (keyId) => authenticator.forget(keyId)),
    partnerChanged: everywhere('partner-changed', (partnerId) => authenticator.forgetPartner(partnerId)),
    dayWanted: everywhere('reconciliation', () => reconciliation.wake()),
    accountUnlinked: (partnerId: string, account: string) => forgetContext(`${partnerId} ${account}`),
  };
}

/** The maintenance jobs: they verify ledgers, remove old rows and expire proposals. */
function maintenanceWorkers(base: Base, { allKinds, clocks, gate }: Submissions): Worker[] {
  const { log, database, clock, holder, metrics, walletSeals: seals } = base;
  const timeOf = removalTime({ database, clock, log, gate, brokerClocks: clocks });
  const checked = (faulty: readonly string[]) => {
    metrics.faultyLedgers.reset();
    for (const partner of faulty.slice(0, maxPartnersNamed)) metrics.faultyLedgers.set({ partner }, 1);
  };
  return [
    ledgerCheck({ database, seals, log, holder, checked }),
    feedRetention(database, timeOf, holder),
    webhookRetention(database, timeOf, holder, (partnerId, count) => {
      metrics.webhookExpired.inc({ partner: metrics.partner(partnerId) }, count);
    }),
    ...allKinds.all.map((keys) => keyRetention(database, timeOf, holder, keys)),
    unclaimedRetention(database, timeOf, holder, clock),
    proposalExpiry(database, timeOf, holder),
  ];
}
