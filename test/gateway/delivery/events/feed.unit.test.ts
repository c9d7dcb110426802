import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it, type TestContext } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { FeedReader, FeedWatch, type FeedWatcher } from '../../../../src/gateway/delivery/events/feed.ts';
import { eventHandlers } from '../../../../src/gateway/delivery/events/handlers.ts';
import type { Call } from '../../../../src/gateway/edge/call.ts';
import { materialize } from '../../../../src/gateway/edge/json/stored.ts';
import { Cursors } from '../../../../src/gateway/edge/paging.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import {
  ListObjectEventsResponseSchema,
  ListOrderEventsRequestSchema,
  WatchEventsRequestSchema,
} from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import type { Wakeup } from '../../../../src/kit/worker.ts';
import { startWorker } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';

/** The feed of one partner: its versions, what was removed, and the gaps that restores left. */
class StoredFeed {
  readonly versions = new Set<number>();
  purged: number | undefined;
  gaps: [from: number, to: number][] = [];
  readonly counts = { pages: 0, gaps: 0, watches: 0 };
  isAway = false;
  readonly database = {
    read: async ({ sql, values }: Statement): Promise<SqlRow[]> => {
      if (this.isAway) throw new Error('away');
      if (sql.includes('FROM orders')) return [{}];
      if (sql.includes('object_id =')) return this.#from(Number(values[2]), Number(values[3]));
      this.counts.pages += 1;
      // Of each page its partner and the version before it; of those that only fill a read, none.
      const pages = values.flatMap((partnerId, at) => (at % 2 === 0 ? [[partnerId, values[at + 1]] as const] : []));
      const most = Number(/LIMIT (\d+)/.exec(sql)?.[1]);
      return pages.flatMap(([partnerId, after], page) =>
        partnerId === '' ? [] : this.#from(Number(after) + 1, most).map((row) => ({ ...row, page })),
      );
    },
    readAll: async ([first]: readonly Statement[]): Promise<SqlRow[][]> => {
      if (this.isAway) throw new Error('away');
      if (first?.sql.includes('feed_purges')) {
        this.counts.gaps += 1;
        const gaps = this.gaps.map(([from_version, to_version]) => ({ partner_id: 'par_1', from_version, to_version }));
        return [this.purged === undefined ? [] : [{ purged_version: this.purged }], gaps];
      }
      this.counts.watches += 1;
      const asked = ((first?.values[0] ?? []) as string[]).filter((id) => id === 'par_1' && this.versions.size > 0);
      return [asked.map((partner_id) => ({ partner_id, version: Math.max(...this.versions) }))];
    },
  } as unknown as Database;

  add(...versions: readonly number[]): this {
    for (const version of versions) this.versions.add(version);
    return this;
  }

  #from(first: number, most: number): SqlRow[] {
    const found = [...this.versions].filter((version) => version >= first).sort((one, other) => one - other);
    return found.slice(0, most).map((version) => ({ version, body: Buffer.from(`{"version":${version}}`) }));
  }
}

describe('a page of the feed', () => {
  const cases: readonly {
    what: string;
    held?: number[];
    purged?: number;
    gaps?: [number, number][];
    after?: number;
    page: number[];
    hasMore?: boolean;
    purgedVersion?: number;
  }[] = [
    { what: 'is empty for a partner without events', page: [] },
    { what: 'begins at the oldest', held: [1, 2], page: [1, 2] },
    { what: 'is full, and there are no more', held: [1, 2, 3], page: [1, 2, 3] },
    { what: 'is full, and there is one more', held: [1, 2, 3, 4], page: [1, 2, 3], hasMore: true },
    { what: 'begins after a version', held: [1, 2, 3], after: 2, page: [3] },
    { what: 'is empty after the newest', held: [1, 2], after: 2, page: [] },
    { what: 'stops before an event on its way', held: [1, 3], page: [1] },
    { what: 'begins with no event before one on its way', held: [2], page: [] },
    { what: 'begins after what was removed', held: [5, 6], purged: 4, page: [5, 6], purgedVersion: 4 },
    {
      what: 'is refused if events after the version were removed',
      held: [5],
      purged: 4,
      after: 3,
      page: [],
      purgedVersion: 4,
    },
    { what: 'goes on right after what was removed', held: [5], purged: 4, after: 4, page: [5] },
    { what: 'is empty if all was removed', purged: 4, page: [], purgedVersion: 4 },
    { what: 'is refused if all was removed after the version', purged: 4, after: 3, page: [], purgedVersion: 4 },
    { what: 'goes on behind a gap', held: [1, 2, 9], gaps: [[2, 8]], page: [1, 2, 9] },
    { what: 'goes on behind a gap from its beginning', held: [9], gaps: [[2, 8]], after: 2, page: [9] },
    { what: 'goes on behind a gap from within it', held: [9], gaps: [[2, 8]], after: 5, page: [9] },
    { what: 'stops behind a gap whose next event is on its way', held: [1, 2, 10], gaps: [[2, 8]], page: [1, 2] },
    {
      what: 'goes on behind gaps that meet',
      held: [1, 15],
      gaps: [
        [1, 8],
        [8, 14],
      ],
      page: [1, 15],
    },
    {
      what: 'goes on behind gaps that do not meet',
      held: [1, 9, 15],
      gaps: [
        [1, 8],
        [9, 14],
      ],
      page: [1, 9, 15],
    },
    {
      what: 'goes on behind a gap at what was removed',
      held: [9],
      purged: 2,
      gaps: [[2, 8]],
      page: [9],
      purgedVersion: 2,
    },
  ];
  for (const { what, held = [], purged, gaps = [], after, page, hasMore = false, purgedVersion = 0 } of cases) {
    it(`a page of the feed ${what}`, async () => {
      const feed = new StoredFeed().add(...held);
      feed.purged = purged;
      feed.gaps = gaps;
      const found = await new FeedReader(feed.database).read(
        'par_1',
        after === undefined ? undefined : BigInt(after),
        3,
      );
      assert.deepEqual(
        {
          page: found.events.map(({ version }) => Number(version)),
          hasMore: found.hasMore,
          purged: found.purgedVersion,
        },
        { page, hasMore, purged: BigInt(purgedVersion) },
      );
    });
  }
});

describe('readers who watch the feed', () => {
  function startWatch(t: TestContext) {
    const feed = new StoredFeed();
    const watch = new FeedWatch(feed.database);
    t.after(startWorker(watch.worker));
    const reader = (partnerId: string, seen: number) => {
      const counted = { wakes: 0 };
      const wakeup = { wake: () => (counted.wakes += 1) } as unknown as Wakeup;
      const watcher: { -readonly [Name in keyof FeedWatcher]: FeedWatcher[Name] } = {
        partnerId,
        seen: BigInt(seen),
        wakeup,
      };
      return { counted, watcher, leave: watch.watch(watcher) };
    };
    /** Waits for so many further looks at the feed. */
    const looks = async (count: number) => {
      const before = feed.counts.watches;
      watch.wake();
      await eventually(() => {
        watch.wake();
        assert.ok(feed.counts.watches >= before + count);
      });
    };
    return { feed, watch, reader, looks };
  }

  it('a reader is woken while the feed has more for it, each time, and others are not', async (t) => {
    const { feed, reader, looks } = startWatch(t);
    feed.add(1, 2, 3);
    const [behind, upToDate, elsewhere] = [reader('par_1', 2), reader('par_1', 3), reader('par_2', 0)];
    await looks(2);
    const wakes = () => [behind, upToDate, elsewhere].map(({ counted }) => counted.wakes > 0);
    assert.deepEqual(wakes(), [true, false, false]);
    behind.watcher.seen = 3n;
    await looks(1);
    const before = behind.counted.wakes;
    await looks(2);
    assert.equal(behind.counted.wakes, before, 'it has seen all');
    feed.add(4);
    await looks(2);
    assert.deepEqual(wakes(), [true, true, false]);
  });

  it('a reader that left is woken no more, and others of its partner are', async (t) => {
    const { feed, reader, looks } = startWatch(t);
    feed.add(1);
    const [first, second] = [reader('par_1', 0), reader('par_1', 0)];
    await looks(1);
    first.leave();
    await looks(1);
    const before = first.counted.wakes;
    await looks(2);
    assert.equal(first.counted.wakes, before);
    assert.ok(second.counted.wakes >= 3, 'the other one is still woken');
  });
});

describe('the event stream', { timeout: 20_000 }, () => {
  const caller = { caller: { partnerId: 'par_1' } } as unknown as Call;

  function startStream({ mock }: TestContext) {
    const clock = { ms: 100_000 };
    mock.method(performance, 'now', () => clock.ms);
    const feed = new StoredFeed();
    const cursors = new Cursors(onlyKey(randomBytes(32)));
    const watchers = new Set<FeedWatcher>();
    const feedWatch = {
      watch(watcher: FeedWatcher) {
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
    };
    const tables = Object.fromEntries(
      ['order', 'application', 'allocation', 'withdrawal'].map((kind) => {
        return [kind, { name: `${kind}s`, find: () => ({ sql: 'SELECT 1 FROM orders', values: [] }) }];
      }),
    );
    const handlers = eventHandlers(feed.database, cursors, feedWatch as unknown as FeedWatch, tables as never);
    const stop = new AbortController();
    const open = (cursor?: string) => {
      const stream = handlers.watchEvents(create(WatchEventsRequestSchema, { cursor }), caller, stop.signal);
      return stream[Symbol.asyncIterator]();
    };
    const position = (cursor: string) => cursors.read(['events', 'par_1'], cursor);
    return { feed, clock, watchers, open, position, stop, handlers, cursors };
  }

  it('a stream says where its reader stands at once, at each event, and every ten seconds', async (t) => {
    const { feed, clock, watchers, open, position } = startStream(t);
    const stream = open();
    const next = async () => {
      const { value } = await stream.next();
      return [value.events.length, position(value.nextCursor)];
    };
    const wake = () => {
      for (const { wakeup } of watchers) wakeup.wake();
    };
    assert.deepEqual(await next(), [0, '0']);
    for (const version of [1, 2]) {
      feed.add(version);
      wake();
      assert.deepEqual(await next(), [1, String(version)]);
      assert.deepEqual(
        [...watchers].map(({ seen }) => seen),
        [BigInt(version)],
        'it waits for the next one',
      );
      let isSilent = true;
      const beat = next().finally(() => {
        isSilent = false;
      });
      await new Promise(setImmediate);
      const before = feed.counts.pages;
      clock.ms += 9_999;
      wake();
      while (feed.counts.pages < before + 2) await new Promise(setImmediate);
      assert.ok(isSilent, 'nothing is said before ten seconds are over');
      clock.ms += 1;
      assert.deepEqual(await beat, [0, String(version)]);
    }
    await stream.return?.();
  });

  it('a stream leaves the watch however it ends', async (t) => {
    for (const end of ['the reader leaves', 'the process stops', 'the database fails', 'the cursor is too old']) {
      const { feed, watchers, open, stop, cursors } = startStream(t);
      feed.add(1, 2);
      const stream = open(end === 'the cursor is too old' ? cursors.issue(['events', 'par_1'], '0') : undefined);
      if (end === 'the cursor is too old') {
        feed.versions.delete(1);
        feed.purged = 1;
        await assert.rejects(stream.next(), { code: 'invalid_request' });
      } else {
        await stream.next();
        assert.equal(watchers.size, 1, end);
        if (end === 'the reader leaves') await stream.return?.();
        if (end === 'the process stops') {
          const last = stream.next();
          stop.abort();
          assert.equal((await last).done, true);
        }
        if (end === 'the database fails') {
          feed.isAway = true;
          for (const { wakeup } of watchers) wakeup.wake();
          await assert.rejects(stream.next(), /away/);
        }
      }
      assert.equal(watchers.size, 0, end);
    }
  });

  it('a stream brings many events in messages of a hundred, without a wait between them', async (t) => {
    const { feed, open, position } = startStream(t);
    feed.add(...Array.from({ length: 250 }, (_, at) => at + 1));
    const stream = open();
    const found: string[] = [];
    for (const count of [1, 2, 3]) {
      void stream.next().then(({ value }) => found.push(position(value.nextCursor)));
      for (let turns = 0; turns < 20 && found.length < count; turns += 1) await new Promise(setImmediate);
    }
    assert.deepEqual(found, ['100', '200', '250']);
    await stream.return?.();
  });

  it('the events of one object are paged by the first of the next page, which shows what was removed', async (t) => {
    const { feed, handlers } = startStream(t);
    feed.add(3, 5, 8);
    const list = async (cursor?: string) => {
      const request = create(ListOrderEventsRequestSchema, { id: 'ord_1', limit: 2, cursor });
      const found = await handlers.listOrderEvents(request, caller);
      materialize(ListObjectEventsResponseSchema, found);
      return { versions: found.data.map(({ version }) => Number(version)), ...found };
    };
    const first = await list();
    assert.deepEqual([first.versions, first.hasMore], [[3, 5], true]);
    const second = await list(first.nextCursor);
    assert.deepEqual([second.versions, second.hasMore, second.nextCursor], [[8], false, undefined]);
    feed.versions.delete(8);
    await assert.rejects(list(first.nextCursor), { code: 'invalid_request', message: /None is held any more/ });
    feed.add(11);
    await assert.rejects(list(first.nextCursor), { code: 'invalid_request', message: /oldest version held is 11/ });
    assert.deepEqual((await list()).versions, [3, 5]);
  });
});
