import { create } from '@bufbuild/protobuf';
import type { Handler } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import {
  type ListEventsRequest,
  type ListEventsResponse,
  ListEventsResponseSchema,
} from '../gen/marina/gateway/v1/events_pb.ts';
import type { Cursors } from '../lib/paging.ts';
import type { FeedWatch } from './feed-watch.ts';
import { EventPages } from './pages.ts';
import { watchEvents } from './watch.ts';

export interface EventHandlerParts {
  readonly database: Database;
  readonly cursors: Cursors;
  readonly feedWatch: FeedWatch;
}

/** The operations of the event feed. */
export function eventHandlers({ database, cursors, feedWatch }: EventHandlerParts) {
  const pages = new EventPages(database, cursors);
  const listEvents: Handler<ListEventsRequest, ListEventsResponse> = async ({ cursor, limit = 25 }, { caller }) => {
    const { partnerId } = caller;
    const { events, hasMore, last } = await pages.read(partnerId, pages.readCursor(partnerId, cursor), limit);
    return create(ListEventsResponseSchema, {
      hasMore,
      nextCursor: pages.cursorAfter(partnerId, last),
      data: events,
    });
  };
  return { listEvents, watchEvents: watchEvents(pages, feedWatch) };
}
