/** Lists and the event feed of the client for TypeScript, over pages that the test makes up. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ErrorAnswer, NoAnswerError } from '@marina/client';
import { EventFeed, type EventPage, type FeedOptions, Pages } from '../../clients/typescript/src/pages.ts';

const ids = [1, 2, 3, 4, 5, 6];
interface Item {
  readonly id: number;
}

/** Events in pages, by the number of the event before them as the cursor. */
function page(cursor: string | undefined, limit = 2): EventPage<Item> {
  const after = Number(cursor ?? 0);
  const next = Math.min(after + limit, ids.length);
  return { has_more: next < ids.length, next_cursor: String(next), data: ids.slice(after, next).map((id) => ({ id })) };
}

const feedOf = (
  read: (cursor: string | undefined, limit: number) => Promise<EventPage<Item>>,
  options: FeedOptions = {},
) => new EventFeed<Item>(read, { limit: 2, pollMs: 1, ...options });
const fromPages = async (cursor: string | undefined, limit: number) => page(cursor, limit);

/** Follows a feed until an event, and returns what was handled and which cursors were stored meanwhile. */
async function follow(feed: EventFeed<Item>, until: number) {
  const [seen, stored]: [number[], (string | undefined)[]] = [[], []];
  for await (const { id } of feed) {
    seen.push(id);
    stored.push(feed.cursor);
    if (id === until) break;
  }
  return { seen, stored };
}

describe('the event feed of the client for TypeScript', () => {
  it('the event feed of the client for TypeScript passes over no event, wherever the program leaves it and whichever cursor it stored', async () => {
    for (const until of ids) {
      const feed = feedOf(fromPages);
      const { seen, stored } = await follow(feed, until);
      assert.deepEqual(seen, ids.slice(0, until));
      assert.equal(feed.cursor, stored.at(-1), 'a page that was left in its middle is not over');
      for (const [handled, cursor] of stored.entries()) {
        assert.ok(Number(cursor ?? 0) <= handled, 'what was stored while an event was handled lies before it');
        const again = await follow(feedOf(fromPages, { cursor }), 6);
        assert.deepEqual([...new Set([...seen.slice(0, handled), ...again.seen])], ids);
        assert.ok(again.seen.length <= ids.length - handled + 2, 'a page comes twice at most');
      }
    }
  });

  it('the event feed of the client for TypeScript moves its cursor from page to page, and reads so many events as it is told', async () => {
    assert.deepEqual((await follow(feedOf(fromPages), 6)).stored, [undefined, undefined, '2', '2', '4', '4']);
    assert.deepEqual((await follow(feedOf(fromPages, { limit: 4 }), 6)).stored.at(-1), '4');
    let asked = 0;
    const usual = new EventFeed<Item>(async (cursor, limit) => {
      asked = limit;
      return page(cursor, limit);
    }, {});
    await follow(usual, 1);
    assert.equal(asked, 100);
  });

  it('the event feed of the client for TypeScript goes past all events there are, and on from there', async () => {
    const limits: number[] = [];
    const feed = feedOf(async (cursor, limit) => {
      limits.push(limit);
      return page(cursor, 2);
    });
    assert.equal(await feed.skipToEnd(), '6');
    assert.deepEqual([feed.cursor, limits], ['6', [100, 100, 100]]);
  });

  it('the event feed of the client for TypeScript asks again at once while there is more, and after a time when there is not', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    let reads = 0;
    const stopping = new AbortController();
    const feed = feedOf(
      async (cursor, limit) => {
        reads += 1;
        return page(cursor, limit);
      },
      { pollMs: 1_000, signal: stopping.signal },
    );
    const following = follow(feed, 99).catch(() => {});
    await settled();
    assert.equal(reads, 3);
    for (const expected of [4, 5]) {
      context.mock.timers.tick(999);
      await settled();
      assert.equal(reads, expected - 1);
      context.mock.timers.tick(1);
      await settled();
      assert.equal(reads, expected);
    }
    stopping.abort();
    await following;
  });
});

async function settled(): Promise<void> {
  for (let turns = 0; turns < 10; turns += 1) await turn();
}

/** The waits of a feed whose reads fail with these errors in turn, and what ended it. */
async function waitsOf(context: TestContext, errors: readonly (Error | 'page')[]) {
  context.mock.method(Math, 'random', () => 1);
  const waits: number[] = [];
  context.mock.method(globalThis, 'setTimeout', (done: () => void, ms = 0) => {
    waits.push(ms);
    setImmediate(done);
    return undefined;
  });
  const left = [...errors];
  const told: number[] = [];
  const feed = feedOf(
    async () => {
      const error = left.shift() ?? new RangeError('it is over');
      if (error === 'page') return { has_more: true, next_cursor: 'c', data: [] };
      throw error;
    },
    { onTrouble: (_, waitMs) => told.push(waitMs) },
  );
  const ended = await follow(feed, 1).then(
    () => assert.fail(),
    (error: Error) => error,
  );
  return { waits, told, ended, left };
}

const lost = () => Object.assign(Object.create(NoAnswerError.prototype) as Error, { message: 'lost' });
const answer = (status: number, code?: string, retryAfterSeconds?: number) =>
  Object.assign(Object.create(ErrorAnswer.prototype) as Error, { status, code, retryAfterSeconds });

describe('an outage, for the event feed of the client for TypeScript', () => {
  it('an outage, for the event feed of the client for TypeScript, is waited for longer each time, up to ten seconds, and after a page from the beginning', async (context) => {
    const { waits, told, ended } = await waitsOf(context, [...Array(6).fill(0).map(lost), 'page', lost(), lost()]);
    assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 10_000, 500, 1_000]);
    assert.deepEqual(told, waits);
    assert.ok(ended instanceof RangeError);
  });

  it('an outage, for the event feed of the client for TypeScript, is waited for as long as the gateway asks, and half a minute at most', async (context) => {
    const { waits, told } = await waitsOf(context, [
      answer(429, 'rate_limited', 8),
      answer(503, 'unavailable', 24),
      answer(503, 'unavailable', 25),
      answer(503, undefined, 3_600),
    ]);
    assert.deepEqual(waits, [10_000, 30_000, 30_000, 30_000]);
    assert.deepEqual(told, waits);
  });

  it('an outage, for the event feed of the client for TypeScript, is none if the gateway refuses for good, or if something else is wrong', async (context) => {
    for (const error of [answer(401, 'invalid_key'), answer(403, 'forbidden'), new TypeError('a mistake')]) {
      const { waits, ended, left } = await waitsOf(context, [error, 'page']);
      assert.deepEqual([waits, ended, left], [[], error, ['page']]);
    }
  });

  it('an outage, for the event feed of the client for TypeScript, ends at once when the program stops, whatever the error is', async () => {
    const stopping = new AbortController();
    const error = lost();
    const feed = feedOf(
      async () => {
        stopping.abort();
        throw error;
      },
      { signal: stopping.signal, onTrouble: () => assert.fail('it is told of no trouble') },
    );
    await assert.rejects(follow(feed, 1), (thrown) => thrown === error);
  });
});

describe('a list of the client for TypeScript', () => {
  const list = () => {
    const reads: (string | undefined)[] = [];
    const pages = new Pages<object, Item>(async (cursor) => {
      reads.push(cursor);
      return page(cursor);
    });
    return { pages, reads };
  };

  it('a list of the client for TypeScript is read page after page, each when it is needed', async () => {
    const { pages, reads } = list();
    assert.deepEqual((await pages.page()).data, [{ id: 1 }, { id: 2 }]);
    assert.deepEqual(reads.splice(0), [undefined]);
    for await (const { id } of pages) {
      assert.equal(reads.length, Math.ceil(id / 2));
      if (id === 4) break;
    }
    assert.deepEqual(reads, [undefined, '2']);
  });

  it('a list of the client for TypeScript has all items, or so many as were asked for, and no bound that is none', async () => {
    for (const [most, count] of [
      [undefined, 6],
      [0, 0],
      [1, 1],
      [4, 4],
      [6, 6],
      [7, 6],
    ] as const) {
      assert.deepEqual(
        (await list().pages.toArray(most)).map(({ id }) => id),
        ids.slice(0, count),
      );
    }
    for (const most of [-1, Number.NaN, '5', null])
      await assert.rejects(list().pages.toArray(most as never), TypeError);
  });

  it('a list of the client for TypeScript ends with a page that has no cursor, although it says that there is more', async () => {
    let reads = 0;
    const pages = new Pages<object, Item>(async () => {
      reads += 1;
      return { has_more: true, next_cursor: null, data: [{ id: 1 }] };
    });
    assert.equal((await pages.toArray()).length, 1);
    assert.equal(reads, 1);
  });
});
