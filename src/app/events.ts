import { FeedWatch, feedConsumer } from '../events/feed.ts';
import { Relay } from '../events/relay.ts';
import { EventStream } from '../events/stream.ts';
import type { Base } from './base.ts';
import { createWebhooks } from './webhooks.ts';

export type Events = ReturnType<typeof createEvents>;

/** The way of events: from the outbox, through NATS, to the feed and to the webhooks. */
export function createEvents(base: Base) {
  const { config, log, database, clock, holder, metrics, nats, notifications } = base;
  const stream = new EventStream(nats, config.natsPrefix);
  const feedWatch = new FeedWatch(database);
  const feed = feedConsumer(database, (consumed) => {
    const now = clock.realNow();
    for (const { publishAt } of consumed) metrics.feedArrivals.observe(Math.max(0, now - publishAt) / 1_000);
    feedWatch.wake();
    notifications.publish('feed');
  });
  const webhooks = createWebhooks(base);
  const relay = new Relay({ database, stream, notifications, log, holder, consumers: [feed, webhooks.consumer] });
  return { stream, feedWatch, feed, webhooks, relay };
}
