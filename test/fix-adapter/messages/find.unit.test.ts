import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findMessages, newestId } from '../../../src/fix-adapter/messages/find.ts';
import { fixMessages, type StoredMessage } from '../../../src/fix-adapter/messages/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import { storedRow } from '../../support/stored-row.ts';

const message = (id: number, direction: StoredMessage['direction']): StoredMessage => ({
  ...{ id: BigInt(id), session: 'order', at: id, startedAt: 0, direction, number: BigInt(id), type: '8' },
  ...{ orderId: '', clOrdId: '', outcome: 'applied', position: BigInt(id), text: '' },
});

/** A log with messages in both directions by turns; `edges` are the ids that bound the times. */
function begin(count: number, edges: readonly (number | undefined)[] = []) {
  const rows = Array.from({ length: count }, (_, at) => message(at + 1, at % 2 === 0 ? 'in' : 'out'));
  const pages: Statement[] = [];
  const bounds: Statement[] = [];
  const read = (statement: Statement): SqlRow[] => {
    if (statement.sql.startsWith('SELECT id FROM')) {
      const id = edges[bounds.length];
      bounds.push(statement);
      return id === undefined ? [] : [{ id: String(id) }];
    }
    pages.push(statement);
    const limit = Number(/ LIMIT (\d+)$/.exec(statement.sql)?.[1]);
    const direction = statement.values.find((value) => value === 'in' || value === 'out');
    const own = rows.filter((row) => direction === undefined || row.direction === direction);
    return own
      .toReversed()
      .slice(0, limit)
      .map((row) => storedRow(fixMessages, row));
  };
  const database: Partial<Database> = { readAll: async (statements) => statements.map(read) };
  return { database: database as Database, pages, bounds };
}

describe('a page of the message log', () => {
  it('a page of one type has messages of both directions in their order, as many as asked for, and says whether there are more', async () => {
    for (const [count, limit, expected, hasMore] of [
      [5, 3, [5n, 4n, 3n], true],
      [4, 3, [4n, 3n, 2n], true],
      [3, 3, [3n, 2n, 1n], false],
      [2, 3, [2n, 1n], false],
      [0, 3, [], false],
    ] as const) {
      for (const filter of [{}, { type: '8' }]) {
        const { database, pages } = begin(count);
        const found = await findMessages(database, filter, limit);
        assert.deepEqual([found.messages.map(({ id }) => id), found.hasMore], [expected, hasMore], `${count}`);
        assert.equal(pages.length, 'type' in filter ? 2 : 1);
      }
    }
    const { database, pages } = begin(5);
    const { messages } = await findMessages(database, { type: '8', direction: 'out' }, 9);
    assert.deepEqual([messages.map(({ id }) => id), pages.length], [[4n, 2n], 1]);
  });

  it('a page has 1,000 messages at most, whatever is asked for', async () => {
    const { database, pages } = begin(1_200);
    const { messages, hasMore } = await findMessages(database, {}, 5_000);
    assert.deepEqual([messages.length, hasMore], [1_000, true]);
    assert.match(pages[0]?.sql ?? '', / LIMIT 1001$/);
  });

  it('messages of a time are looked for from five minutes before it to five minutes after it, by the ids of those', async () => {
    const [since, until] = [1_000_000, 2_000_000];
    const { database, pages, bounds } = begin(3, [2, 3]);
    await findMessages(database, { since, until, beforeId: 9n, afterId: 1n }, 10);
    assert.deepEqual(
      bounds.map(({ values }) => Number(values[0])),
      [since - 300_000, until + 300_000],
    );
    const [{ sql = '', values = [] } = {}] = pages;
    assert.match(sql, /WHERE id < \? AND id > \? AND at >= \? AND at < \? AND id >= \? AND id <= \? ORDER BY id DESC/);
    assert.deepEqual(values.map(Number), [9, 1, since, until, 2, 3]);
  });

  it('nothing is read for a time of which there is no message, before it or after it', async () => {
    for (const edges of [
      [undefined, 3],
      [2, undefined],
    ]) {
      const { database, pages } = begin(3, edges);
      const found = await findMessages(database, { since: 1, until: 2 }, 10);
      assert.deepEqual([found, pages], [{ messages: [], hasMore: false }, []]);
    }
  });

  it('the newest message of a log is the last one, and none of an empty log', async () => {
    for (const [rows, expected] of [
      [[{ id: '7' }], 7n],
      [[], 0n],
    ] as const) {
      const database: Partial<Database> = { read: async () => [...rows] };
      assert.equal(await newestId(database as Database), expected);
    }
  });
});
