import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { findMessages, type MessageFilter } from '../../../src/fix-adapter/messages/find.ts';
import { MessageLog, type MessageLogOptions } from '../../../src/fix-adapter/messages/log.ts';
import { Masking } from '../../../src/fix-adapter/messages/masking.ts';
import { removeBatch } from '../../../src/fix-adapter/messages/retention.ts';
import type { TappedMessage } from '../../../src/fix-adapter/messages/tap.ts';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { openFixDatabase } from '../../support/fix/adapter.ts';

const day = 86_400_000;
const began = Date.UTC(2026, 10, 23, 8);
const masking = new Masking({ moreTags: [], secrets: () => [] });

function message(number: number, more: Partial<TappedMessage> = {}): TappedMessage {
  return { direction: 'out', outcome: 'written', number, type: 'D', fields: [[35, 'D']], ...more };
}

describe('the message log of FIX', () => {
  let opened: Awaited<ReturnType<typeof openFixDatabase>>;
  let made: typeof opened.made;
  let database: Database;
  let fence = 0n;
  const logged: string[] = [];
  const log = createLogger({
    name: 'fix',
    level: 'info',
    destination: { write: (line: string) => void logged.push(line) },
  });

  before(async () => {
    opened = await openFixDatabase(4);
    ({ made, database } = opened);
  });
  after(() => opened.close());

  /** A log of a holder of the lease of its own, which works until `stop`. */
  function start(more: Partial<MessageLogOptions> = {}) {
    fence += 1n;
    let dropped = 0;
    const messages = new MessageLog({
      ...{ database, fence, masking, logsHeartbeats: false, now: () => began, log },
      onDropped: (count) => {
        dropped += count;
      },
      ...more,
    });
    const stopping = new AbortController();
    const running = messages.worker.run(stopping.signal);
    return {
      messages,
      add: (one: TappedMessage, startedAt = began) => messages.tap(startedAt).note(one),
      dropped: () => dropped,
      stop: async () => {
        stopping.abort();
        await running;
      },
    };
  }

  const find = async (filter: MessageFilter, limit = 100) => (await findMessages(database, filter, limit)).messages;
  const numbersOf = async (filter: MessageFilter) => (await find(filter)).map(({ number }) => Number(number));
  const clear = async () => {
    const owner = await createConnection({ uri: made.ownerUrl });
    await owner.query('DELETE FROM fix_messages');
    await owner.end();
  };

  it('keeps every message with its order, number, type, time and outcome, newest first', async () => {
    await clear();
    const { messages, add, stop } = start();
    add(
      message(7, {
        fields: [
          [35, 'D'],
          [34, '7'],
          [11, 'ord_a'],
          [554, 'secret'],
        ],
      }),
      began - 5,
    );
    add(
      message(3, {
        direction: 'in',
        outcome: 'gap',
        type: '8',
        fields: [
          [35, '8'],
          [11, 'ord_a.c1'],
          [41, 'ord_a'],
        ],
      }),
      began - 5,
    );
    await messages.written(5_000);
    const rows = (await find({ orderId: 'ord_a' })).map(({ id: _, position: __, ...row }) => row);
    assert.deepEqual(rows, [
      {
        ...{
          session: 'order',
          at: began,
          startedAt: began - 5,
          direction: 'in',
          number: 3n,
          type: '8',
          orderId: 'ord_a',
        },
        ...{ clOrdId: 'ord_a.c1', outcome: 'gap', text: '35=8|11=ord_a.c1|41=ord_a' },
      },
      {
        ...{
          session: 'order',
          at: began,
          startedAt: began - 5,
          direction: 'out',
          number: 7n,
          type: 'D',
          orderId: 'ord_a',
        },
        ...{ clOrdId: 'ord_a', outcome: 'written', text: '35=D|34=7|11=ord_a|554=***' },
      },
    ]);
    await stop();
  });

  it('leaves out Heartbeats and TestRequests unless something is wrong with them or a setting says otherwise', async () => {
    await clear();
    const usual = start();
    for (const type of ['0', '1']) {
      usual.add(message(1, { type }));
      usual.add(message(2, { type, direction: 'in', outcome: 'applied' }));
      usual.add(message(3, { type, direction: 'in', outcome: 'gap' }));
    }
    await usual.stop();
    assert.deepEqual(await numbersOf({}), [3, 3]);
    const all = start({ logsHeartbeats: true });
    all.add(message(4, { type: '0' }));
    await all.stop();
    assert.deepEqual(await numbersOf({}), [4, 3, 3]);
  });

  it('finds messages by order, ClOrdID, number, direction, type and time, and by several of them, page by page', async () => {
    await clear();
    let now = began;
    const { add, stop } = start({ now: () => now });
    for (let number = 1; number <= 40; number += 1) {
      now = began + number * 60_000;
      const id = `ord_${number % 4}`;
      const isIn = number % 2 === 0;
      add(
        message(number, {
          direction: isIn ? 'in' : 'out',
          outcome: isIn ? 'applied' : 'written',
          type: ['D', '8', 'F', '9'][number % 4] ?? '',
          fields:
            number % 3 === 0
              ? [
                  [11, `${id}.c1`],
                  [41, id],
                ]
              : [[11, id]],
        }),
        began,
      );
    }
    await stop();
    const all = Array.from({ length: 40 }, (_, at) => 40 - at);
    const at = (number: number) => began + number * 60_000;
    const cases: readonly [MessageFilter, (number: number) => boolean][] = [
      [{}, () => true],
      [{ orderId: 'ord_1' }, (number) => number % 4 === 1],
      [{ clOrdId: 'ord_1.c1' }, (number) => number % 4 === 1 && number % 3 === 0],
      [{ orderId: 'ord_1', clOrdId: 'ord_1' }, (number) => number % 4 === 1 && number % 3 !== 0],
      [{ numbers: { from: 12n, to: 12n } }, (number) => number === 12],
      [{ numbers: { from: 12n, to: 15n }, direction: 'in' }, (number) => number === 12 || number === 14],
      [{ direction: 'out' }, (number) => number % 2 === 1],
      [{ type: 'F' }, (number) => number % 4 === 2],
      [{ type: '8', direction: 'out' }, (number) => number % 4 === 1],
      [{ type: '8', direction: 'in' }, () => false],
      [{ since: at(10), until: at(20) }, (number) => number >= 10 && number < 20],
      [{ since: at(30), type: '9' }, (number) => number >= 30 && number % 4 === 3],
      [{ until: at(1) }, () => false],
      [{ since: at(41) }, () => false],
      [{ until: began - day }, () => false],
      [{ since: began + day }, () => false],
      [{ orderId: 'ord_9' }, () => false],
    ];
    for (const [filter, expected] of cases) {
      assert.deepEqual(
        await numbersOf(filter),
        all.filter(expected),
        JSON.stringify(filter, (_, v) => `${v}`),
      );
    }
    const pages: number[] = [];
    let beforeId: bigint | undefined;
    for (;;) {
      const { messages: page, hasMore } = await findMessages(database, { direction: 'in', beforeId }, 7);
      pages.push(...page.map(({ number }) => Number(number)));
      beforeId = page.at(-1)?.id;
      if (!hasMore) break;
    }
    assert.deepEqual(
      pages,
      all.filter((number) => number % 2 === 0),
    );
    const [first] = await find({ numbers: { from: 35n, to: 35n } });
    assert.deepEqual(await numbersOf({ afterId: first?.id }), [40, 39, 38, 37, 36]);
  });

  it('takes messages at once and counts those it leaves out while its table is locked, and goes on afterwards', async () => {
    await clear();
    const owner = await createConnection({ uri: made.ownerUrl });
    await owner.query('LOCK TABLES fix_messages WRITE');
    const { messages, add, dropped, stop } = start({ maxWaiting: { messages: 50, characters: 1_000_000 } });
    try {
      const startedAt = performance.now();
      for (let number = 1; number <= 80; number += 1) add(message(number));
      assert.ok(performance.now() - startedAt < 1_000, 'nothing waits for the database');
      assert.equal(dropped(), 30);
    } finally {
      await owner.query('UNLOCK TABLES');
      await owner.end();
    }
    await messages.written(20_000);
    add(message(81));
    await messages.written(5_000);
    const expected = [81, ...Array.from({ length: 50 }, (_, at) => 50 - at)];
    assert.deepEqual(await numbersOf({}), expected);
    await stop();
    const lines = logged.filter((line) => line.includes('left out of the message log'));
    assert.equal(lines.length, 2, 'one line when it begins, and one with the count when it is over');
    assert.match(lines[1] ?? '', /"messages":30/);
  });

  it('writes a batch once, also if the answer of its first write was lost', async () => {
    await clear();
    let losses = 2;
    const losing = new Proxy(database, {
      get: (target, name) => {
        if (name !== 'write') return Reflect.get(target, name).bind(target);
        return async (change: Parameters<Database['write']>[0]) => {
          const count = await target.write(change);
          losses -= 1;
          if (losses >= 0) throw new Error('the answer was lost');
          return count;
        };
      },
    });
    const { messages, add, stop } = start({ database: losing });
    for (let number = 1; number <= 3; number += 1) add(message(number));
    await messages.written(20_000);
    assert.deepEqual(await numbersOf({}), [3, 2, 1]);
    await stop();
  });

  it('removes what is older than it is kept, batch by batch, and by both clocks', async () => {
    await clear();
    const realNow = Date.now();
    let now = realNow - 40 * day;
    const { add, stop } = start({ now: () => now });
    for (let number = 1; number <= 700; number += 1) add(message(number));
    now = realNow - day;
    add(message(701));
    await stop();
    const options = { database, now: () => realNow, keptMs: 35 * day, keptCharacters: 10n ** 12n };
    assert.equal(await removeBatch(options), 500);
    assert.equal(await removeBatch(options), 200);
    assert.equal(await removeBatch(options), 0);
    // This process's clock is a year ahead, and the database's is right.
    assert.equal(await removeBatch({ ...options, now: () => realNow + 365 * day }), 0);
    assert.deepEqual(await numbersOf({}), [701]);
  });

  it('removes the oldest beyond the size that is kept', async () => {
    await clear();
    const first = start({ now: Date.now });
    for (let number = 1; number <= 60; number += 1) first.add(message(number));
    await first.stop();
    // Another process goes on where this one ended.
    const second = start({ now: Date.now });
    for (let number = 61; number <= 100; number += 1) second.add(message(number));
    await second.stop();
    const [newest, next] = await find({}, 2);
    const size = (newest?.position ?? 0n) - (next?.position ?? 0n);
    assert.ok(size > 300n);
    const options = { database, now: Date.now, keptMs: day, keptCharacters: size * 70n };
    assert.equal(await removeBatch(options), 30);
    assert.equal(await removeBatch(options), 0);
    assert.equal((await find({})).length, 70);
  });

  it('reads at most a page of rows of its indexes, however many messages there are', async () => {
    await clear();
    const { messages, add, stop } = start({ now: () => began });
    for (let number = 1; number <= 3_000; number += 1) {
      add(message(number, { type: 'D', fields: [[11, `ord_${number % 1_000}`]] }));
    }
    await messages.written(20_000);
    await stop();
    const readRows = async (filter: MessageFilter) => {
      const single = new Database(await connect({ url: made.url, poolSize: 1 }), 'live', 1);
      try {
        await findMessages(single, filter, 10);
        const before = await handlerReads(single);
        await findMessages(single, filter, 10);
        return (await handlerReads(single)) - before;
      } finally {
        await single.close();
      }
    };
    for (const filter of [
      {},
      { orderId: 'ord_5' },
      { clOrdId: 'ord_5' },
      { numbers: { from: 5n, to: 9n } },
      { type: 'D' },
      { type: 'D', direction: 'in' },
      { since: began - 1, until: began + 1 },
    ] as const) {
      const rows = await readRows(filter);
      assert.ok(rows <= 60, `${JSON.stringify(filter, (_, v) => `${v}`)} reads ${rows} rows`);
    }
  });
});

/** How many rows this connection has read so far. */
async function handlerReads(database: Database): Promise<number> {
  const rows = await database.read(statement("SHOW SESSION STATUS LIKE 'Handler_read%'"));
  return rows.reduce((sum, row) => sum + Number(row.Value), 0);
}
