/** The memory of a FIX session's record between writes, over a database that the test scripts. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { type Changes, FixStore, type Known } from '../../../src/fix-adapter/store/store.ts';
import { type FixNumbers, fixNumbers, fixOrders } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import { fixOrder } from '../../support/fix-order.ts';
import { storedRow } from '../../support/stored-row.ts';

const none: Changes = { orders: [], cancels: [], reports: [], tradeChanges: [], findings: [], passedOver: false };
const lease = { name: 'fix-session', fence: 3n };
const about = { orderIds: ['ord_a'], numbers: [] };

describe('the record of a FIX session', () => {
  let numbers: FixNumbers;
  /** The orders that the database has. */
  let rows: SqlRow[];
  let written: Statement[];
  /** How often the rows of orders were read by the server that writes. */
  let reads: number;
  let store: FixStore;
  let database: Database;
  /** Called with the reads by the server that writes. */
  let whenRead: (some: readonly Statement[]) => void;
  let whenFailed: () => void;
  /** The errors of the next writes; undefined: a write is committed. */
  let failures: (Error | undefined)[];

  const rowsOf = ({ sql }: Statement): SqlRow[] => {
    if (sql.includes('FROM fix_numbers WHERE id = 0')) return [];
    if (sql.includes('FROM fix_numbers')) return [storedRow(fixNumbers, numbers)];
    return sql.includes('FROM fix_orders') ? rows : [];
  };

  beforeEach(() => {
    numbers = {
      ...{ id: 1n, fence: 3n, version: 1n, startedAt: 7, nextOut: 1n, nextIn: 1n, lastReport: 10n },
      ...{ lastSubmission: 20n, backOfficeSubmission: 5n, restored: false },
    };
    [rows, written, reads, failures] = [[], [], 0, []];
    [whenRead, whenFailed] = [() => {}, () => {}];
    const script: Partial<Database> = {
      read: async (read) => rowsOf(read),
      transaction: async (some, decide) => {
        reads += 1;
        whenRead(some);
        return decide(some.map(rowsOf)).result;
      },
      writeAll: async (writes) => {
        const failure = failures.shift();
        if (failure !== undefined) {
          whenFailed();
          throw failure;
        }
        written.push(...writes);
      },
    };
    database = script as Database;
    store = new FixStore(database, lease);
  });

  const known = async (passedOver = false, changes: Partial<Changes> = {}): Promise<Known> => {
    let given: Known | undefined;
    await store.received(2, passedOver, about, (one) => {
      given = one;
      return { changes: { ...none, ...changes }, result: undefined };
    });
    assert.ok(given);
    return given;
  };
  const inserted = (table: string) =>
    written.filter(({ sql }) => sql.startsWith(`INSERT INTO ${table} `)).flatMap(({ values }) => values);

  it('decides about an order that it stored without reading it', async () => {
    await store.sending([{ number: 1, kept: { kind: 'order', row: fixOrder() } }], 2, 1);
    assert.deepEqual(
      (await known()).orders.map(({ id, number }) => [id, number]),
      [['ord_a', 1n]],
    );
    assert.equal(reads, 0);
  });

  it('marks the orders in doubt that a report may be about which names none of them', async () => {
    const marks = async (unmatched: Changes['unmatched']) => {
      written.length = 0;
      await known(false, { unmatched });
      return written.filter(({ sql }) => sql.startsWith('UPDATE fix_orders SET passed_over')).map(({ sql }) => sql);
    };
    const all = 'UPDATE fix_orders SET passed_over = ? WHERE state = ? AND passed_over = ?';
    const some = [{ account: 'ACC1', side: 'buy' }, { side: 'sell' }] as const;
    assert.deepEqual(await marks([]), []);
    assert.deepEqual(await marks(some), [`${all} AND account = ? AND side = ?`, `${all} AND side = ?`]);
    assert.deepEqual(await marks([...some, {}]), [all]);
    assert.deepEqual(await marks(Array(51).fill(some[0])), [all]);
    await store.sending([{ number: 1, kept: { kind: 'order', row: fixOrder() } }], 2, 1);
    reads = 0;
    await marks(some);
    assert.equal(reads, 0);
    await known();
    assert.equal(reads, 1, 'a mark is not in what this process remembers');
  });

  it('forgets only orders in doubt when a report names none of its orders', async () => {
    const [live, doubted] = [fixOrder(), fixOrder({ id: 'ord_b', number: 13n, clOrdId: 'ord_b' })];
    const messages = [live, doubted].map((row, at) => ({ number: at + 1, kept: { kind: 'order', row } as const }));
    await store.sending(messages, 3, 1);
    const after = { ...live, startedAt: 7, number: 1n, state: 'open' } as const;
    await known(false, { orders: [{ before: live, after }], unmatched: [{ side: 'buy' }] });
    reads = 0;
    assert.deepEqual(
      (await known()).orders.map(({ id, state }) => [id, state]),
      [['ord_a', 'open']],
    );
    assert.equal(reads, 0, 'an open order has no mark');
    await store.received(2, false, { orderIds: ['ord_b'], numbers: [] }, () => ({ changes: none, result: undefined }));
    assert.equal(reads, 1, 'an order in doubt may have one');
  });

  for (const [what, pass] of [
    ['the session passed messages over', () => known(true)],
    ['a message could not be read', () => known(false, { passedOver: true })],
    ['a new numbering began', () => store.startDay(8)],
  ] as const) {
    it(`reads the orders again after ${what}, because each has a mark that it must be asked about`, async () => {
      await store.sending([{ number: 1, kept: { kind: 'order', row: fixOrder() } }], 2, 1);
      await pass();
      assert.ok(written.some(({ sql }) => sql.startsWith('UPDATE fix_orders SET must_ask = 1, passed_over = 1')));
      rows = [storedRow(fixOrders, fixOrder({ number: 1n, passedOver: true, mustAsk: true }))];
      assert.deepEqual(
        (await known()).orders.map(({ passedOver, mustAsk }) => [passedOver, mustAsk]),
        [[true, true]],
      );
    });
  }

  it('has the orders asked about that a report may mean which names another one, and reads them again', async () => {
    rows = [storedRow(fixOrders, fixOrder({ number: 1n }))];
    await known();
    written.length = 0;
    await known(false, { misnamed: [{ account: 'NG-1', side: 'sell' }] });
    const mark = written.find(({ sql }) => sql.includes('SET must_ask = ?')) ?? assert.fail('no order is marked');
    assert.match(mark.sql, /WHERE state IN \(\?, \?\) AND must_ask = \? AND account = \? AND side = \?$/);
    rows = [storedRow(fixOrders, fixOrder({ number: 1n, mustAsk: true }))];
    assert.deepEqual(
      (await known()).orders.map(({ mustAsk }) => mustAsk),
      [true],
    );
  });

  it('reads an order again that an operator or a proof may have changed', async () => {
    for (const change of [() => store.unsent(['ord_a'], []), () => store.absent('ord_a')]) {
      rows = [storedRow(fixOrders, fixOrder())];
      await store.sending([{ number: 1, kept: { kind: 'order', row: fixOrder() } }], 2, 1);
      await change();
      const before = reads;
      await known();
      assert.equal(reads, before + 1);
    }
  });

  it('lists an order that revives once: when it was given a number, or when it revives if it had none', async () => {
    for (const [number, listed] of [
      [0n, 1],
      [12n, 0],
    ] as const) {
      written = [];
      const before = fixOrder({ state: 'unsent', number });
      rows = [storedRow(fixOrders, before)];
      await known(false, { orders: [{ before, after: { ...before, state: 'open' } }] });
      assert.equal(inserted('fix_submissions').length, listed, `the order has the number ${number}`);
    }
  });

  it('proves in the write itself that nothing has become known of an order that is absent', async () => {
    rows = [storedRow(fixOrders, fixOrder())];
    assert.equal(await store.absent('ord_a'), true);
    const update = written.find(({ sql }) => sql.startsWith('UPDATE fix_orders'));
    for (const condition of ['state', 'acknowledged', 'passed_over']) {
      assert.match(update?.sql.split(' WHERE ')[1] ?? '', new RegExp(`\\b${condition} = \\?`), condition);
    }
    assert.ok(written.some(({ sql }) => sql.includes('guards') && sql.includes('ROW_COUNT() = 1')));
  });

  it('takes no proof of absence for an order of which something is known', async () => {
    for (const more of [{ state: 'open' }, { acknowledged: true }, { passedOver: true }] as const) {
      rows = [storedRow(fixOrders, fixOrder(more))];
      written = [];
      assert.equal(await store.absent('ord_a'), false);
      assert.deepEqual(written, []);
    }
  });

  it('takes submissions of the back office only behind the last that it took, whichever call is late', async () => {
    const theirs = [{ number: 6n, clientId: 'alc_a', note: Buffer.alloc(0) }];
    for (const [after, taken] of [
      [4n, 0],
      [6n, 0],
      [5n, 1],
    ] as const) {
      await store.takeSubmissions(after, theirs);
      assert.equal(inserted('fix_submissions').length, taken, `behind ${after}`);
    }
  });

  const away = new Error('the database is away');
  const guardFalse = Object.assign(new Error("CONSTRAINT 'marina_guard' failed"), { errno: 4025 });
  const send = (id = 'ord_a') => store.sending([{ number: 1, kept: { kind: 'order', row: fixOrder({ id }) } }], 2, 1);

  it('decides again by the numbers that there are, at most three times, if another write came before its own', async () => {
    for (const [count, number] of [
      [1, 31n],
      [2, 51n],
      [3, undefined],
    ] as const) {
      [written, failures] = [[], Array(count).fill(guardFalse)];
      whenFailed = () => {
        numbers = { ...numbers, version: numbers.version + 1n, lastSubmission: numbers.lastSubmission + 10n };
      };
      const sending = send();
      if (number === undefined) await assert.rejects(sending, guardFalse);
      else await sending;
      assert.deepEqual(failures, []);
      assert.deepEqual(
        inserted('fix_submissions')
          .flat(2)
          .filter((value) => typeof value === 'bigint'),
        number === undefined ? [] : [number],
      );
    }
  });

  it('a write that failed is not tried again by itself, holds up no later one, and is forgotten as if it had not been', async () => {
    await send();
    for (const failure of [away, away]) {
      failures = [failure];
      await assert.rejects(
        known(false, { orders: [{ before: fixOrder(), after: fixOrder({ state: 'open' }) }] }),
        away,
      );
      // Its answer was lost.
      numbers = { ...numbers, version: numbers.version + 1n, nextOut: 9n };
      rows = [storedRow(fixOrders, fixOrder({ state: 'final' }))];
      assert.deepEqual(
        (await known()).orders.map(({ state }) => state),
        ['final'],
      );
    }
    assert.ok(reads >= 2, 'the rows were read again');
  });

  it('stores the next number of the exchange alone, and writes nothing if nothing has changed', async () => {
    await store.received(5, false, { orderIds: [], numbers: [] }, () => ({ changes: none, result: undefined }));
    assert.equal(written.filter(({ sql }) => /^UPDATE fix_numbers SET .*next_in = \?/.test(sql)).length, 1);
    written = [];
    await store.received(5, false, { orderIds: [], numbers: [] }, () => ({ changes: none, result: undefined }));
    assert.deepEqual(written, []);
  });

  it('numbers what comes together without a gap, behind what there is', async () => {
    const three = ['ord_a', 'ord_b', 'ord_c'].map((id, at) => ({
      number: at + 1,
      kept: { kind: 'order', row: fixOrder({ id }) } as const,
    }));
    await store.sending(three, 4, 1);
    await send('ord_d');
    const listed = inserted('fix_submissions')
      .flat(2)
      .filter((value) => typeof value === 'bigint');
    assert.deepEqual(listed, [21n, 22n, 23n, 24n]);
  });

  it('decides about rejected messages by the rows with their numbers in the present numbering', async () => {
    rows = [storedRow(fixOrders, fixOrder({ number: 4n }))];
    const seen: Statement[] = [];
    whenRead = (some) => seen.push(...some);
    await store.received(2, false, { orderIds: [], numbers: [4n, 5n] }, ({ orders }) => {
      assert.deepEqual(
        orders.map(({ id }) => id),
        ['ord_a'],
      );
      return { changes: none, result: undefined };
    });
    for (const table of ['fix_orders', 'fix_cancels']) {
      const read = seen.find(({ sql }) => sql.includes(`FROM ${table} `)) ?? assert.fail(table);
      assert.match(read.sql, /WHERE started_at = \? AND number IN \(\?, \?\)/);
      assert.deepEqual(read.values.map(Number), [7, 4, 5]);
    }
  });
});
