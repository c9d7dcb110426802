import { FeedWatch, feedConsumer } from '../events/feed.ts';
import { Relay } from '../events/relay.ts';
import { EventStream } from '../events/stream.ts';
import { Seal } from '../lib/seal.ts';
import { webhookConsumer } from '../webhooks/consumer.ts';
import { Dispatcher } from '../webhooks/dispatcher.ts';
import { Sender } from '../webhooks/sender.ts';
import { signingKeys } from '../webhooks/signature.ts';
import type { Base } from './base.ts';

export type Events = ReturnType<typeof createEvents>;

/** The way of events: from the outbox, through NATS, to the feed and to the webhooks. */
export function createEvents(base: Base) {
  const { config, database, clock, metrics, nats, notifications } = base;
  const stream = new EventStream(nats, config.natsPrefix);
  const feedWatch = new FeedWatch(database);
  const feed = feedConsumer(database, (consumed) => {
    const now = clock.realNow();
    for (const { publishAt } of consumed) metrics.feedArrivals.observe(Math.max(0, now - publishAt) / 1_000);
    feedWatch.wake();
    notifications.publish('feed');
  });
  const webhooks = createWebhooks(base);
  const relay = new Relay({ ...base, stream, consumers: [feed, webhooks.consumer] });
  return { stream, feedWatch, feed, webhooks, relay };
}

/** Webhooks: what consumes events into the queues of endpoints, what sends them, and the secrets they are signed with. */
function createWebhooks(base: Base) {
  const { config, database, clock, notifications } = base;
  const { webhookAllowLoopback: allowLoopback, webhookAuthorities: extraAuthorities } = config;
  const seal = new Seal(base.key('webhook secrets'));
  const keysOf = signingKeys(seal);
  const sender = new Sender({ clock, allowLoopback, extraAuthorities });
  const dispatcher = new Dispatcher({ ...base, sender, keysOf });
  const consumer = webhookConsumer(database, clock, (partnerIds) => {
    const others = dispatcher.wake(partnerIds);
    if (others.length > 0) notifications.publish('webhooks', others.join(','));
  });
  return { seal, keysOf, sender, dispatcher, consumer };
}
