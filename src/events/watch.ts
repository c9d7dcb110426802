import { create } from '@bufbuild/protobuf';
import type { StreamHandler } from '../auth/call.ts';
import {
  type Event,
  type WatchEventsRequest,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from '../gen/marina/gateway/v1/events_pb.ts';
import { Wakeup } from '../lib/worker.ts';
import type { FeedWatch } from './feed-watch.ts';
import type { EventPages } from './pages.ts';

const mostAtOnce = 100;
/** How long nothing is said while nothing happens. */
const heartbeatMs = 10_000;

/**
 * Makes the operation that streams the feed. A stream reads the feed as ListEvents does, a page whenever its reader has
 * taken the last one, so it holds one page at most and the order is the feed's own; it only waits by itself.
 */
export function watchEvents(
  pages: EventPages,
  feedWatch: FeedWatch,
): StreamHandler<WatchEventsRequest, WatchEventsResponse> {
  return async function* watch({ cursor }, { caller }, signal) {
    const { partnerId } = caller;
    const wakeup = new Wakeup();
    let after = pages.readCursor(partnerId, cursor);
    const saying = (events: Event[], seen: bigint) =>
      create(WatchEventsResponseSchema, { events, nextCursor: pages.cursorAfter(partnerId, seen) });
    const watcher = { partnerId, wakeup, seen: after ?? 0n };
    const leave = feedWatch.watch(watcher);
    try {
      // The first message comes whatever there is to say: its reader knows where it stands.
      let saidAtMs = Number.NEGATIVE_INFINITY;
      while (!signal.aborted) {
        const { events, hasMore, last } = await pages.read(partnerId, after, mostAtOnce);
        after = last;
        watcher.seen = last;
        const silentMs = performance.now() - saidAtMs;
        if (events.length > 0 || silentMs >= heartbeatMs) {
          yield saying(events, last);
          saidAtMs = performance.now();
        }
        if (!hasMore) await wakeup.wait(Math.max(0, saidAtMs + heartbeatMs - performance.now()), signal);
      }
    } finally {
      leave();
    }
  };
}
