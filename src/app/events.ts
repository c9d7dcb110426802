import { Carrier } from '../events/carrier.ts';
import { FeedTaker } from '../events/feed.ts';
import { FeedWatch } from '../events/feed-watch.ts';
import { Relay } from '../events/relay.ts';
import type { Base } from './base.ts';
import { createWebhooks } from './webhooks.ts';

export type Events = ReturnType<typeof createEvents>;

/** The way of events: carried from the outbox to the feed and to the webhooks. */
export function createEvents(base: Base) {
  const { config, log, database, clock, holder, metrics } = base;
  const carrier = new Carrier({ url: config.natsUrl, prefix: config.natsPrefix, log });
  const feedWatch = new FeedWatch(database);
  const feed = new FeedTaker(database, carrier, (taken) => {
    const now = clock.realNow();
    for (const { committedAt } of taken) metrics.feedArrivals.observe(Math.max(0, now - committedAt) / 1_000);
    feedWatch.wake();
    carrier.say('feed');
  });
  const webhooks = createWebhooks(base, carrier);
  const relay = new Relay({ database, carrier, log, holder, takers: [feed, webhooks.consumer] });
  return { carrier, feedWatch, feed, webhooks, relay };
}
