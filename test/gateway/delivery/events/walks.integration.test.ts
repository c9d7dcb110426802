import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FeedWatch } from '../../../../src/gateway/delivery/events/feed.ts';
import { eventHandlers } from '../../../../src/gateway/delivery/events/handlers.ts';
import { feedPurges, feedSkips } from '../../../../src/gateway/delivery/events/table.ts';
import { materialize } from '../../../../src/gateway/edge/json/stored.ts';
import { Cursors } from '../../../../src/gateway/edge/paging.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { type Event, EventSchema } from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import { startWorker, withDatabase } from '../../../support/database.ts';
import { insertRows } from '../../../support/insert-rows.ts';

/** A feed: the last version that was removed, the versions that it has, the gaps that restores left, and the next version. */
type Feed = readonly [removed: number, held: readonly number[], gaps: readonly [number, number][], next: number];

const feeds: Readonly<Record<string, Feed>> = {
  'has no event yet': [0, [], [], 1],
  'has all its events': [0, [1, 2, 3], [], 4],
  'has lost its oldest events by age': [2, [3, 4], [], 5],
  'has lost all its events by age': [3, [], [], 4],
  'has a gap between two events': [0, [1, 2, 8, 9], [[2, 7]], 10],
  'has a gap behind its last event': [0, [1, 2], [[2, 7]], 8],
  'begins with a gap': [0, [6], [[0, 5]], 7],
  'has two gaps, one behind the other': [
    0,
    [1, 13],
    [
      [1, 7],
      [7, 12],
    ],
    14,
  ],
  'has a gap behind events that were all lost by age': [3, [], [[3, 7]], 8],
  'has lost a gap and what was before it by age': [8, [9], [[3, 7]], 10],
};

describe('a walk through the feed', () => {
  const cursors = new Cursors(onlyKey(Buffer.alloc(32, 1)));
  let database: Database;
  let watch: FeedWatch;
  withDatabase((opened) => {
    database = opened;
    watch = new FeedWatch(database);
  });

  async function append(partnerId: string, versions: readonly number[]): Promise<void> {
    const rows = versions.map((version) => {
      return [partnerId, version, `msg_${partnerId}${version}`, JSON.stringify({ version }), new Date(0)];
    });
    await database.write(insertRows('feed_events', ['partner_id', 'version', 'id', 'body', 'occurred_at'], rows));
  }

  function versionsOf(events: readonly Event[] = []): number[] {
    for (const event of events) materialize(EventSchema, event);
    return events.map(({ version }) => Number(version));
  }

  for (const [at, [what, [removed, held, gaps, next]]] of Object.entries(feeds).entries()) {
    it(`brings each event once from any cursor, unless events behind the cursor were removed, if the feed ${what}`, async () => {
      const partnerId = `par_${at}`;
      if (held.length > 0) await append(partnerId, held);
      if (removed > 0) await database.write(feedPurges.insert({ partnerId, purgedVersion: BigInt(removed) }));
      for (const [from, to] of gaps) {
        await database.write(feedSkips.insert({ partnerId, fromVersion: BigInt(from), toVersion: BigInt(to) }));
      }
      const partner = ['id', 'name', 'state', 'version', 'created_at', 'features'];
      await database.write(insertRows('partners', partner, [[partnerId, 'P', 'active', next - 1, new Date(0), '']]));
      const handlers = eventHandlers(database, cursors, watch, {} as never);
      const call = { caller: { partnerId } } as never;
      /** Lists all that there is behind a cursor. Returns the versions and the last cursor. */
      const list = async (cursor: string | undefined, limit: number) => {
        const versions: number[] = [];
        for (let after = cursor; ; ) {
          const page = await handlers.listEvents({ cursor: after, limit } as never, call);
          versions.push(...versionsOf(page.data as Event[]));
          after = page.nextCursor;
          if (!page.hasMore) return { versions, cursor: after };
        }
      };

      // A partner has a cursor from before a restore, too: of a version that was lost.
      const known = Array.from({ length: next - removed }, (_, index) => removed + index);
      const starts = [undefined, ...known];
      const ends: (string | undefined)[] = [];
      const stopWatch = startWorker(watch.worker);
      const streams: AsyncIterator<{ readonly events: Event[] }>[] = [];
      try {
        for (const start of starts) {
          const cursor = start === undefined ? undefined : cursors.issue(['events', partnerId], String(start));
          const expected = held.filter((version) => version > (start ?? 0));
          for (const limit of [1, 2, 100]) {
            const walk = await list(cursor, limit);
            assert.deepEqual(walk.versions, expected, `from ${start}, pages of ${limit}`);
            ends.push(walk.cursor);
          }
          const stream = handlers.watchEvents({ cursor } as never, call, new AbortController().signal as never);
          streams.push((stream as AsyncIterable<{ events: Event[] }>)[Symbol.asyncIterator]());
          const first = await streams.at(-1)?.next();
          assert.deepEqual(versionsOf(first?.value.events), expected, `watched from ${start}`);
        }
        await append(partnerId, [next]);
        for (const end of ends) assert.deepEqual((await list(end, 2)).versions, [next]);
        const seconds = await Promise.all(streams.map((stream) => stream.next()));
        for (const { value } of seconds) assert.deepEqual(versionsOf(value.events), [next]);
        for (let before = 0; before < removed; before += 1) {
          const cursor = cursors.issue(['events', partnerId], String(before));
          await assert.rejects(list(cursor, 2), { code: 'invalid_request' }, `after ${before}, events were removed`);
        }
      } finally {
        await Promise.all(streams.map((stream) => stream.return?.()));
        await stopWatch();
      }
    });
  }
});
