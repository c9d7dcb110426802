import type { Database } from '../db/database.ts';
import { type Event, EventSchema } from '../gen/marina/gateway/v1/events_pb.ts';
import { storedMessage } from '../json/stored.ts';
import { ApiError } from '../lib/errors.ts';
import type { Cursors } from '../lib/paging.ts';
import { FeedReader } from './feed.ts';

/** A part of a partner's feed as partners see it. */
export interface EventPage {
  readonly events: Event[];
  readonly hasMore: boolean;
  /** The version after which the next page begins. */
  readonly last: bigint;
}

/** The feed in pages and cursors, the same to those who list and those who watch. */
export class EventPages {
  readonly #feed: FeedReader;

  constructor(
    database: Database,
    private readonly cursors: Cursors,
  ) {
    this.#feed = new FeedReader(database);
  }

  /** The version a cursor stands for; undefined, without one, for the oldest held. */
  readCursor(partnerId: string, cursor: string | undefined): bigint | undefined {
    return cursor === undefined ? undefined : BigInt(this.cursors.read(issuedFor(partnerId), cursor));
  }

  cursorAfter(partnerId: string, version: bigint): string {
    return this.cursors.issue(issuedFor(partnerId), version.toString());
  }

  /** Reads the events after a version. Throws `invalid_request` when events after it were removed. */
  async read(partnerId: string, after: bigint | undefined, most: number): Promise<EventPage> {
    const { events, hasMore, purgedVersion } = await this.#feed.read(partnerId, after, most);
    if (after !== undefined && after < purgedVersion) {
      throw new ApiError('invalid_request', {
        param: 'cursor',
        message:
          'Events after this cursor are older than 30 days and were removed. ' +
          `The oldest version held is ${purgedVersion + 1n}; start again without a cursor.`,
      });
    }
    const last = events.at(-1)?.version ?? after ?? purgedVersion;
    return { events: events.map(({ body }) => storedMessage(EventSchema, body)), hasMore, last };
  }
}

function issuedFor(partnerId: string): string[] {
  return ['events', partnerId];
}
