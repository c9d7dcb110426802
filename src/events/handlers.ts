import { create } from '@bufbuild/protobuf';
import type { Handler } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import {
  EventSchema,
  type ListEventsRequest,
  type ListEventsResponse,
  ListEventsResponseSchema,
} from '../gen/marina/gateway/v1/events_pb.ts';
import { storedMessage } from '../json/stored.ts';
import { ApiError } from '../lib/errors.ts';
import type { Cursors } from '../lib/paging.ts';
import { readFeed } from './feed.ts';

export interface EventHandlerParts {
  readonly database: Database;
  readonly cursors: Cursors;
}

/** The operations of the event feed. */
export function eventHandlers({ database, cursors }: EventHandlerParts) {
  const listEvents: Handler<ListEventsRequest, ListEventsResponse> = async ({ cursor, limit = 25 }, { caller }) => {
    const issuedFor = ['events', caller.partnerId];
    const after = cursor === undefined ? undefined : BigInt(cursors.read(issuedFor, cursor));
    const page = await readFeed(database, caller.partnerId, after, limit);
    if (after !== undefined && after < page.purgedVersion) {
      throw new ApiError('invalid_request', {
        param: 'cursor',
        message:
          'Events after this cursor are older than 30 days and were removed. ' +
          `The oldest version held is ${page.purgedVersion + 1n}; start again without a cursor.`,
      });
    }
    const last = page.events.at(-1)?.version ?? after ?? page.purgedVersion;
    return create(ListEventsResponseSchema, {
      hasMore: page.hasMore,
      nextCursor: cursors.issue(issuedFor, last.toString()),
      data: page.events.map(({ body }) => storedMessage(EventSchema, body)),
    });
  };
  return { listEvents };
}
