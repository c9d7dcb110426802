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
import { subscriberConsumers } from '../delivery/events/subscriber-consumers.ts';
import { WebhookSender } from '../delivery/webhooks/attempt/sender.ts';
import { signingKeys } from '../delivery/webhooks/attempt/signature.ts';
import { WebhookTester } from '../delivery/webhooks/attempt/tester.ts';
import { webhookConsumer } from '../delivery/webhooks/consumer.ts';
import { Dispatcher } from '../delivery/webhooks/dispatcher.ts';
import { webhookRetention } from '../delivery/webhooks/record/delivery-store.ts';
import { Authenticator, KeyUses } from '../edge/auth/authenticate.ts';
import { CallerLimits } from '../edge/limits/caller-limits.ts';
import { CounterStore } from '../edge/limits/counter-store.ts';
import { SharedBuckets } from '../edge/limits/shared-buckets.ts';
import { SharedSlots } from '../edge/limits/shared-slots.ts';
import { Sharing } from '../edge/limits/sharing.ts';
import { maxPartnersNamed } from '../edge/metrics.ts';
import { auditSealer } from '../operators/audit/sealer.ts';
import { ledgerCheck } from '../operators/calls/ledger-check.ts';
import { proposalExpiry } from '../operators/calls/proposals/expiry.ts';
import { releaseExpiry } from '../operators/calls/releases/expiry.ts';
import { removalTime } from '../operators/telemetry/database-clock.ts';
import { ImageChecker } from '../trading/applications/image-checker.ts';
import { bulkCancelRetention } from '../trading/orders/bulk-cancels/retention.ts';
import { keyRetention } from '../trading/submission/key-retention.ts';
import { unclaimedRetention } from '../trading/submission/unclaimed-retention.ts';
import type { Base } from './base.ts';
import { type BrokerWork, createBrokers } from './broker-work.ts';
import type { Config } from './config.ts';
import type { Links } from './links.ts';

export type Parts = ReturnType<typeof createParts>;
type Callers = ReturnType<typeof createCallers>;
type Events = ReturnType<typeof createEvents>;

/** Makes the parts behind the ports and connects them. It opens and starts nothing. */
export function createParts(base: Base) {
  const callers = createCallers(base);
  const events = createEvents(base);
  const brokers = createBrokers(base, events.relay, callers.slots);
  const [work] = brokers;
  return {
    callers,
    events,
    brokers,
    work,
    images: new ImageChecker({ log: base.log, walls: base.config.decoderWalls }),
    simulator: simulatorControls(base.config, base.links),
    notify: createNotifications(base, callers, events, work),
    maintenance: maintenanceWorkers(base, work),
  };
}

function createCallers(base: Base) {
  const { config, log, database, clock, nats, peers, peerMac, distrust } = base;
  const { keyMacKeys: macKeys, keySeals: seals } = base;
  const { environment, natsPrefix: prefix, natsReplicas } = config;
  const keyUses = new KeyUses(database, clock);
  const authenticator = new Authenticator({ database, environment, macKeys, seals, log, uses: keyUses });
  const replica = randomUUID();
  const store = new CounterStore(nats, prefix, replica, { mac: peerMac, distrust }, natsReplicas);
  const sharing = new Sharing({ nats: peers, store, distrust, prefix, replica, log });
  const slots = new SharedSlots(sharing);
  const limits = new CallerLimits(slots, new SharedBuckets(sharing));
  return { keyUses, authenticator, sharing, slots, limits };
}

/** The path of events: the feed, which is written with each change, and from the outbox through NATS to the webhooks. */
function createEvents(base: Base) {
  const { config, database, nats, peerMac: mac, distrust } = base;
  const { natsPrefix: prefix, natsReplicas: replicas, natsConsumers: names } = config;
  const stream = new EventStream({ nats, mac, distrust, prefix, replicas });
  const feedWatch = new FeedWatch(database);
  const webhooks = createWebhooks(base);
  const relay = new Relay({ ...base, stream, feedWatch, consumer: webhooks.consumer });
  return { stream, feedWatch, webhooks, relay, subscribers: subscriberConsumers({ nats, prefix, names }) };
}

/** Webhooks: the consumer that fills the endpoint queues, the sender, and the signing secrets. */
function createWebhooks(base: Base) {
  const { config, database, clock, notifications } = base;
  const { webhookAllowLoopback: allowLoopback, webhookAuthorities: extraAuthorities } = config;
  const seal = new Seal(base.keys('webhook secrets'));
  const keysOf = signingKeys(seal);
  const sender = new WebhookSender({ clock, allowLoopback, extraAuthorities });
  const tester = new WebhookTester(sender, keysOf, base.clock, base.ids);
  const dispatcher = new Dispatcher({ ...base, sender, keysOf });
  const consumer = webhookConsumer(database, clock, base.log, (partnerIds) => {
    const others = dispatcher.wake(partnerIds);
    if (others.length > 0) notifications.publish('webhooks', others.join(','));
  });
  return { seal, sender, tester, dispatcher, consumer };
}

/** The simulator's controls, in a sandbox. They speak TLS as the broker does if both are one. */
function simulatorControls({ environment, simulatorAddress, brokerAddress }: Config, { broker }: Links) {
  if (environment !== 'sandbox' || simulatorAddress === undefined) return undefined;
  const { options, credentials } = channelTls(simulatorAddress === brokerAddress ? broker.current.tls : undefined);
  return createGrpcClient(Controls, simulatorAddress, options, credentials);
}

/** Subscribes to other processes' notifications, and makes the functions that notify them of a change made here. */
function createNotifications(
  { environment, notifications }: Base,
  { authenticator }: Callers,
  { relay, feedWatch, webhooks: { dispatcher } }: Events,
  { contexts, reconciliation }: BrokerWork,
) {
  notifications.subscribe('relay', () => relay.wake());
  notifications.subscribe('feed', () => feedWatch.wake());
  notifications.subscribe('webhooks', (partnerIds) => dispatcher.wake(partnerIds.split(',')));
  notifications.subscribe('environment-changed', () => environment.wakeup.wake());
  const forgetContext = notifications.everywhere('account-unlinked', (text) => {
    const [partnerId = '', account = ''] = text.split(' ');
    contexts.forget(partnerId, account);
  });
  return {
    environmentChanged: () => notifications.publish('environment-changed'),
    endpointsChanged: notifications.everywhere('webhooks-changed', () => dispatcher.changed()),
    keyEnded: notifications.everywhere('key-revoked', (keyId) => authenticator.forget(keyId)),
    partnerChanged: notifications.everywhere('partner-changed', (partnerId) => authenticator.forgetPartner(partnerId)),
    dayWanted: notifications.everywhere('reconciliation', () => reconciliation.wake()),
    accountUnlinked: (partnerId: string, account: string) => forgetContext(`${partnerId} ${account}`),
  };
}

/** The maintenance jobs: they verify ledgers, remove old rows and expire proposals. */
function maintenanceWorkers(base: Base, { allKinds, kinds, recorder, clocks, gate }: BrokerWork): Worker[] {
  const { log, database, clock, holder, metrics, walletSeals: seals } = base;
  const timeOf = removalTime({ database, clock, log, gate, brokerClocks: clocks });
  const checked = (faulty: readonly string[]) => {
    metrics.faultyLedgers.reset();
    for (const partner of faulty.slice(0, maxPartnersNamed)) metrics.faultyLedgers.set({ partner }, 1);
  };
  return [
    ledgerCheck({ database, seals, log, holder, checked }),
    auditSealer({
      database,
      clock,
      seals: base.auditSeals,
      log,
      holder,
      checked: (faulty) => metrics.faultyAudit.set(faulty),
    }),
    feedRetention(database, timeOf, holder),
    webhookRetention(database, timeOf, holder, (partnerId, count) => {
      metrics.webhookExpired.inc({ partner: metrics.partner(partnerId) }, count);
    }),
    ...allKinds.all.map((keys) => keyRetention(database, timeOf, holder, keys)),
    unclaimedRetention(database, timeOf, holder, clock),
    bulkCancelRetention(database, timeOf, holder),
    proposalExpiry(database, timeOf, holder, log),
    releaseExpiry({ database, clock, log, recorder, kind: kinds.withdrawal }, timeOf, holder),
  ];
}
