/** The stream of partners' events for operators, over feeds that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { FeedWatch } from '../../../../../src/gateway/delivery/events/feed.ts';
import { Cursors } from '../../../../../src/gateway/edge/paging.ts';
import { watchCalls } from '../../../../../src/gateway/operators/calls/diagnostics/watch.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import type { Wakeup } from '../../../../../src/kit/worker.ts';
import { fc } from '../../../../support/properties.ts';

interface Feed {
  /** The version of the first event that is held, and of the last. */
  first: number;
  last: number;
}

class Feeds {
  readonly feeds = new Map<string, Feed>();
  /** The partners whose changes the streams hear of now. */
  readonly watched: string[] = [];

  constructor(feeds: Readonly<Record<string, readonly [first: number, last: number]>> = {}) {
    for (const [id, [first, last]] of Object.entries(feeds)) this.feeds.set(`par_${id}`, { first, last });
  }

  #answer({ sql, values }: Statement): SqlRow[] {
    const all = [...this.feeds];
    const isNamed = (id: string) => !sql.includes('IN (?)') || [values[0]].flat().includes(id);
    if (sql.includes('AS partner_id, version FROM partners')) {
      const rows = all.filter(([id]) => isNamed(id)).map(([id, { last }]) => ({ partner_id: id, version: last }));
      return rows.slice(0, Number(/LIMIT (\d+)/.exec(sql)?.[1]));
    }
    if (sql.includes('purged_version AS version FROM feed_purges')) {
      return all.map(([id, { first }]) => ({ partner_id: id, version: first - 1 }));
    }
    if (sql.includes('MIN(version) - 1')) {
      const since = (values[0] as Date).getTime();
      const from = ({ first, last }: Feed) => [Math.max(first, since), last] as const;
      return all.flatMap(([id, feed]) => {
        const [first, last] = from(feed);
        return first > last ? [] : [{ partner_id: id, version: first - 1 }];
      });
    }
    if (sql.includes('FROM feed_purges'))
      return [{ purged_version: (this.feeds.get(String(values[0]))?.first ?? 1) - 1 }];
    if (sql.includes('FROM feed_skips')) return [];
    if (sql.includes('AS page, version, body FROM feed_events')) {
      const most = Number(/LIMIT (\d+)/.exec(sql)?.[1]);
      return Array.from({ length: values.length / 2 }, (_, page) => {
        const { first, last } = this.feeds.get(String(values[page * 2])) ?? { first: 1, last: 0 };
        const from = Math.max(first, Number(values[page * 2 + 1]) + 1);
        return Array.from({ length: Math.max(0, Math.min(most, last - from + 1)) }, (_, at) => {
          return { page, version: from + at, body: Buffer.from(JSON.stringify({ id: `evt_${from + at}` })) };
        });
      }).flat();
    }
    return all.filter(([id]) => isNamed(id)).map(([id, { last }]) => ({ partner_id: id, version: last }));
  }

  readonly database = {
    readAll: async (queries: readonly Statement[]) => queries.map((query) => this.#answer(query)),
    read: async (query: Statement) => this.#answer(query),
  };

  /** A stream of messages, which the test reads one by one, as `partner version`. */
  async *stream(request: object, cursors = theCursors) {
    let wake = () => {};
    const feedWatch = {
      watch: ({ partnerId, wakeup }: { partnerId: string; wakeup: Wakeup }) => {
        wake = () => wakeup.wake();
        this.watched.push(partnerId);
        return () => void this.watched.splice(this.watched.indexOf(partnerId), 1);
      },
    };
    const { watchEvents } = watchCalls(this.database as never, feedWatch as unknown as FeedWatch, cursors);
    const asked = { cursor: '', since: undefined, partnerIds: [], ...request };
    for await (const { events, nextCursor } of watchEvents(asked as never, undefined, new AbortController().signal)) {
      for (const { version, id, body } of events) assert.deepEqual([id, JSON.parse(body)], [`evt_${version}`, { id }]);
      yield { events: events.map(({ partnerId, version }) => `${partnerId.slice(4)} ${version}`), nextCursor };
      wake();
    }
  }

  /** Reads a stream until it has so many events. */
  async read(request: object, count: number) {
    const seen: string[] = [];
    const cursors: string[] = [];
    for await (const { events, nextCursor } of this.stream(request)) {
      assert.ok(events.length <= 100);
      seen.push(...events);
      cursors.push(nextCursor);
      if (seen.length >= count) break;
    }
    return { seen, cursors };
  }
}

const key = { id: 'k', key: Buffer.alloc(32, 1) };
const theCursors = new Cursors({ all: [key] } as never);
const fromStart = { since: timestampFromMs(0) };

describe('the stream of events for operators', () => {
  it("the stream of events for operators shows each partner's events once and in their order, also if it goes on after any message", async () => {
    const feed = fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 0, max: 120 }));
    await fc.assert(
      fc.asyncProperty(fc.array(feed, { minLength: 1, maxLength: 4 }), fc.nat({ max: 3 }), async (sizes, place) => {
        const all = sizes.map(([first, count], at) => [`${at}`, [first, first + count - 1]] as const);
        const feeds = new Feeds(Object.fromEntries(all));
        const wanted = all.flatMap(([id, [first, last]]) =>
          Array.from({ length: last - first + 1 }, (_, at) => `${id} ${first + at}`),
        );
        const { seen, cursors } = await feeds.read(fromStart, wanted.length);
        const sorted = (events: readonly string[]) =>
          all.map(([id]) => events.filter((one) => one.startsWith(`${id} `)));
        assert.deepEqual(sorted(seen), sorted(wanted));
        assert.deepEqual(feeds.watched, []);
        const at = Math.min(place, cursors.length - 1);
        const before: string[] = [];
        let messages = 0;
        for await (const { events } of feeds.stream(fromStart)) {
          before.push(...events);
          if (messages++ === at) break;
        }
        const rest = await feeds.read({ cursor: cursors[at] }, wanted.length - before.length);
        assert.deepEqual(sorted([...before, ...rest.seen]), sorted(wanted));
      }),
      { numRuns: 20 },
    );
  });

  it('the stream of events for operators begins with what is new, or with the first event of an instant, and shows the named partners alone', async () => {
    const feeds = new Feeds({ a: [1, 9], b: [5, 8] });
    const since = (ms: number) => ({ since: timestampFromMs(ms) });
    assert.deepEqual((await feeds.read({}, 0)).seen, []);
    assert.deepEqual((await feeds.read(since(7), 5)).seen, ['a 7', 'a 8', 'a 9', 'b 7', 'b 8']);
    assert.deepEqual((await feeds.read({ ...since(8), partnerIds: ['par_b', 'par_b'] }, 1)).seen, ['b 8']);
    assert.deepEqual((await feeds.read(since(10), 0)).seen, []);
    const growing = feeds.stream({});
    await growing.next();
    feeds.feeds.set('par_b', { first: 5, last: 10 });
    const { value } = await growing.next();
    assert.deepEqual(value?.events, ['b 9', 'b 10']);
    assert.deepEqual(feeds.watched, ['par_a', 'par_b']);
    await growing.return(undefined as never);
    assert.deepEqual(feeds.watched, [], 'nobody hears of changes for a stream that ended');
  });

  it('the stream of events for operators lets partners with many events take turns', async () => {
    const feeds = new Feeds({ a: [1, 500], b: [1, 3], c: [1, 3] });
    const { seen } = await feeds.read(fromStart, 1);
    assert.deepEqual(
      ['a', 'b', 'c'].map((id) => seen.filter((one) => one.startsWith(id)).length),
      [34, 3, 3],
    );
  });

  it('the stream of events for operators ends if it would pass over removed events, and begins after them where it has shown none', async () => {
    const feeds = new Feeds({ a: [1, 9], b: [1, 2] });
    const { cursors } = await feeds.read(fromStart, 11);
    const cursor = cursors.at(-1);
    feeds.feeds.set('par_a', { first: 10, last: 12 });
    feeds.feeds.set('par_c', { first: 4, last: 5 });
    const resumed = await feeds.read({ cursor }, 5);
    assert.deepEqual(resumed.seen, ['a 10', 'a 11', 'a 12', 'c 4', 'c 5'], 'it has shown all that is removed');
    feeds.feeds.set('par_a', { first: 11, last: 12 });
    await assert.rejects(feeds.read({ cursor }, 5), /stands before events of par_a that are no longer held/);
  });

  it('the stream of events for operators is asked for with a cursor of the same partners, or an instant, and not with both', async () => {
    const feeds = new Feeds({ a: [1, 2], b: [1, 2] });
    const { cursors } = await feeds.read(fromStart, 4);
    const [cursor] = cursors;
    await assert.rejects(feeds.read({ ...fromStart, cursor }, 1), /must not be given together/);
    await assert.rejects(feeds.read({ cursor, partnerIds: ['par_a'] }, 1), /was not issued for this list/);
    await assert.rejects(feeds.read({ partnerIds: ['par_a', 'par_x'] }, 1), /no such partner/);
  });

  it('the stream of events for operators is of at most 500 partners', async () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [String(at).padStart(3, '0'), [1, 0] as const]));
    assert.deepEqual((await new Feeds(many(500)).read({}, 0)).seen, []);
    await assert.rejects(new Feeds(many(501)).read({}, 0), /more than 500 partners: name some/);
    const named = { partnerIds: ['par_001'] };
    assert.deepEqual((await new Feeds(many(501)).read(named, 0)).seen, []);
  });

  it('the stream of events for operators takes up a new partner within seconds, from its first event on, unless it is of named ones', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    for (const [request, isSeen] of [
      [{}, true],
      [{ partnerIds: ['par_a'] }, false],
    ] as const) {
      const feeds = new Feeds({ a: [1, 9] });
      const stream = feeds.stream(request);
      await stream.next();
      feeds.feeds.set('par_b', { first: 1, last: 2 });
      feeds.feeds.set('par_a', { first: 1, last: 10 });
      now += 2_001;
      assert.deepEqual((await stream.next()).value?.events, ['a 10', ...(isSeen ? ['b 1', 'b 2'] : [])]);
      await stream.return(undefined as never);
    }
  });

  it('the stream of events for operators sends a message every ten seconds, also without an event', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const feeds = new Feeds({ a: [1, 9] });
    const stream = feeds.stream({});
    await stream.next();
    let isThere = false;
    const second = stream.next().finally(() => {
      isThere = true;
    });
    for (now of [0, 9_999]) {
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      assert.equal(isThere, false, `${now}`);
      t.mock.timers.tick(2_000);
    }
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    assert.equal(isThere, false, 'not yet');
    now = 10_000;
    t.mock.timers.tick(2_000);
    assert.deepEqual((await second).value?.events, []);
    await stream.return(undefined as never);
  });
});
