import { create } from '@bufbuild/protobuf';
import type { HandlersOf } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import {
  type Event,
  EventSchema,
  type Events,
  ListEventsResponseSchema,
  WatchEventsResponseSchema,
} from '../gen/marina/gateway/v1/events_pb.ts';
import { storedMessage } from '../json/stored.ts';
import { ApiError } from '../lib/errors.ts';
import type { Cursors } from '../lib/paging.ts';
import { Wakeup } from '../lib/worker.ts';
import { FeedReader, type FeedWatch } from './feed.ts';

interface EventHandlerParts {
  readonly database: Database;
  readonly cursors: Cursors;
  readonly feedWatch: FeedWatch;
}

interface EventPage {
  readonly events: Event[];
  readonly hasMore: boolean;
  /** The next page begins after this version. */
  readonly last: bigint;
  readonly nextCursor: string;
}

const mostPerMessage = 100;
/** The longest time between two messages of a stream. */
const heartbeatMs = 10_000;

/** The operations of the event feed. */
export function eventHandlers({ database, cursors, feedWatch }: EventHandlerParts): HandlersOf<typeof Events> {
  const feed = new FeedReader(database);

  /** The version of a cursor; undefined, without one, for the oldest held. */
  function readCursor(partnerId: string, cursor: string | undefined): bigint | undefined {
    return cursor === undefined ? undefined : BigInt(cursors.read(['events', partnerId], cursor));
  }

  /** Reads the events after a version. Throws `invalid_request` if later events were removed. */
  async function readPage(partnerId: string, after: bigint | undefined, most: number): Promise<EventPage> {
    const { events, hasMore, purgedVersion } = await feed.read(partnerId, after, most);
    if (after !== undefined && after < purgedVersion) {
      throw new ApiError('invalid_request', {
        param: 'cursor',
        message:
          'Events after this cursor are older than 30 days and were removed. ' +
          `The oldest version held is ${purgedVersion + 1n}; start again without a cursor.`,
      });
    }
    const last = events.at(-1)?.version ?? after ?? purgedVersion;
    const nextCursor = cursors.issue(['events', partnerId], last.toString());
    return { events: events.map(({ body }) => storedMessage(EventSchema, body)), hasMore, last, nextCursor };
  }

  return {
    async listEvents({ cursor, limit = 25 }, { caller }) {
      const { partnerId } = caller;
      const { events, hasMore, nextCursor } = await readPage(partnerId, readCursor(partnerId, cursor), limit);
      return create(ListEventsResponseSchema, { hasMore, nextCursor, data: events });
    },

    /** A stream reads a page after its reader has consumed the last one, so it holds at most one and keeps the order. */
    async *watchEvents({ cursor }, { caller: { partnerId } }, signal) {
      let after = readCursor(partnerId, cursor);
      const watcher = { partnerId, wakeup: new Wakeup(), seen: after ?? 0n };
      const leave = feedWatch.watch(watcher);
      try {
        // The first message comes even without events, so that the reader has a cursor.
        let sentAtMs = Number.NEGATIVE_INFINITY;
        while (!signal.aborted) {
          const { events, hasMore, last, nextCursor } = await readPage(partnerId, after, mostPerMessage);
          after = last;
          watcher.seen = last;
          if (events.length > 0 || performance.now() - sentAtMs >= heartbeatMs) {
            yield create(WatchEventsResponseSchema, { events, nextCursor });
            sentAtMs = performance.now();
          }
          if (!hasMore) await watcher.wakeup.wait(Math.max(0, sentAtMs + heartbeatMs - performance.now()), signal);
        }
      } finally {
        leave();
      }
    },
  };
}
