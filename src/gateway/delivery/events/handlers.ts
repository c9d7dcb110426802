import { create } from '@bufbuild/protobuf';
import {
  type Event,
  EventSchema,
  type Events,
  ListEventsResponseSchema,
  ListObjectEventsResponseSchema,
  WatchEventsResponseSchema,
} from '../../../gen/marina/gateway/v1/events_pb.ts';
import { Wakeup } from '../../../kit/worker.ts';
import type { Call, HandlersOf } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import { storedMessage } from '../../edge/json/stored.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { Database } from '../../store/database.ts';
import { type Statement, toBigInt } from '../../store/statement.ts';
import { FeedReader, type FeedWatch, objectEvents } from './feed.ts';

type ObjectKind = NonNullable<Event['data']['case']>;

/** The table of a kind of objects, for events about one of them. */
interface ObjectTable {
  readonly name: string;
  find(wanted: { partnerId: string; id: string }): Statement;
}

interface ObjectEventsRequest {
  readonly id?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

interface EventPage {
  readonly events: Event[];
  readonly hasMore: boolean;
  /** The next page begins after this version. */
  readonly last: bigint;
  readonly nextCursor: string;
}

const maxPerMessage = 100;
/** The longest time between two messages of a stream. */
const heartbeatMs = 10_000;

/** The operations of the event feed. */
export function eventHandlers(
  database: Database,
  cursors: Cursors,
  feedWatch: FeedWatch,
  tables: Readonly<Record<ObjectKind, ObjectTable>>,
): HandlersOf<typeof Events> {
  const feed = new FeedReader(database);

  /** The version of a cursor; undefined, without one, for the oldest held. */
  function readCursor(partnerId: string, cursor: string | undefined): bigint | undefined {
    return cursor === undefined ? undefined : BigInt(cursors.read(['events', partnerId], cursor));
  }

  /** Reads the events after a version. Throws `invalid_request` if later events were removed. */
  async function readPage(partnerId: string, after: bigint | undefined, most: number): Promise<EventPage> {
    const { events, hasMore, purgedVersion } = await feed.read(partnerId, after, most);
    if (after !== undefined && after < purgedVersion) {
      throw removedEvents(purgedVersion + 1n);
    }
    const last = events.at(-1)?.version ?? after ?? purgedVersion;
    const nextCursor = cursors.issue(['events', partnerId], last.toString());
    return { events: events.map(({ body }) => storedMessage(EventSchema, body)), hasMore, last, nextCursor };
  }

  /** Lists the events of one object of a kind. */
  const eventsOf =
    (kind: ObjectKind) =>
    async ({ id = '', limit = 25, cursor }: ObjectEventsRequest, { caller: { partnerId } }: Call) => {
      const table = tables[kind];
      const issuedFor = [`${table.name}-events`, partnerId, id];
      const from = cursor === undefined ? 0n : BigInt(cursors.read(issuedFor, cursor));
      const [found] = await database.read(table.find({ partnerId, id }));
      if (found === undefined) throw new ApiError(`${kind}_not_found`);
      const rows = await database.read(objectEvents(partnerId, id, from, limit + 1));
      if (cursor !== undefined && toBigInt(rows[0]?.version ?? 0) !== from) throw removedEvents(rows[0]?.version);
      const next = rows[limit];
      return create(ListObjectEventsResponseSchema, {
        data: rows.slice(0, limit).map(({ body }) => storedMessage(EventSchema, body as Buffer)),
        hasMore: next !== undefined,
        // It names the first event of the next page, which shows whether that was removed meanwhile.
        nextCursor: next && cursors.issue(issuedFor, String(next.version)),
      });
    };

  return {
    listOrderEvents: eventsOf('order'),
    listApplicationEvents: eventsOf('application'),
    listAllocationEvents: eventsOf('allocation'),
    listWithdrawalEvents: eventsOf('withdrawal'),

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
          const { events, hasMore, last, nextCursor } = await readPage(partnerId, after, maxPerMessage);
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

/** The refusal of a cursor when events that its holder has not seen were removed. */
function removedEvents(oldestHeld: unknown): ApiError {
  const held = oldestHeld === undefined ? 'None is held any more' : `The oldest version held is ${oldestHeld}`;
  return new ApiError('invalid_request', {
    param: 'cursor',
    message: `Events after this cursor are older than 30 days and were removed. ${held}; start again without a cursor.`,
  });
}
