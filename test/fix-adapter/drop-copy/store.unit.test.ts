/** The comparisons of the drop copy's record, over a database that the test scripts. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { DropCopyStore } from '../../../src/fix-adapter/drop-copy/store.ts';
import {
  type DropCopyNumbers,
  type DropCopyTrade,
  dropCopyNumbers,
  dropCopyTrades,
} from '../../../src/fix-adapter/drop-copy/table.ts';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import { parseDays } from '../../../src/fix-adapter/session/schedule.ts';
import { LeaseLost } from '../../../src/fix-adapter/store/store.ts';
import {
  type FixReport,
  type FixTradeChange,
  fixOrders,
  fixReports,
  fixTradeChanges,
} from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import { fixOrder } from '../../support/fix-order.ts';
import { storedRow } from '../../support/stored-row.ts';

const lastReport = 40n;
const now = 1_000_000;

const copy = (more: Partial<DropCopyTrade>): DropCopyTrade => ({
  ...{ id: 1n, named: '', exchangeOrderId: '', execId: 'e1', quantity: 100n, priceKobo: 250n, at: 0, compared: true },
  ...{ kind: 'trade', execRefId: '', reportId: '', symbol: '', side: '', tradedAt: null },
  ...more,
});
/** The order of the reports. */
const ours = fixOrder({ id: 'ord_a', exchangeOrderId: 'X1', symbol: 'MTNN', side: 'buy', receivedAt: now });
/** Another one, which the exchange may name alike in its trades. */
const other = fixOrder({ ...ours, id: 'ord_b', clOrdId: 'ord_b', exchangeOrderId: 'X2' });
const booked = (more: Partial<FixReport>): FixReport => ({
  ...{ number: 11n, orderId: 'ord_a', exchangeOrderId: '', kind: 'trade', at: 0, quantity: 100n, priceKobo: 250n },
  ...{ rejectReason: null, execId: 'e1', counted: 100n, ...saidNothing },
  ...more,
});

describe('the record of the drop copy', () => {
  let numbers: DropCopyNumbers;
  let copies: DropCopyTrade[];
  let reports: FixReport[];
  let changes: FixTradeChange[];
  let written: Statement[];
  let store: DropCopyStore;
  /** A process that has compared nothing yet. */
  let restart: () => void;
  /** How many transactions locked the row of numbers. */
  let locks: number;
  /** All reads. */
  let seen: Statement[];
  /** Called when reports are read. */
  let whileReading: () => void;

  const rowsOf = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.includes('WHERE id = 0')) return [];
    if (sql.includes('FROM fix_drop_copy_numbers')) return [storedRow(dropCopyNumbers, numbers)];
    if (sql.includes('FROM fix_numbers')) return [{ last_report: String(lastReport) }];
    if (sql.includes('FROM fix_orders')) return [ours, other].map((row) => storedRow(fixOrders, row));
    if (sql.includes('FROM fix_reports')) {
      whileReading();
      return reports.map((row) => storedRow(fixReports, row));
    }
    if (sql.includes('FROM fix_trade_changes')) {
      return changes.map((row, at) => storedRow(fixTradeChanges, { ...row, id: BigInt(at + 1) }));
    }
    if (/ WHERE .*exec_ref_id/s.test(sql)) {
      const named = values.map(String);
      return copies.filter(({ execRefId }) => named.includes(execRefId)).map((row) => storedRow(dropCopyTrades, row));
    }
    return sql.includes('FROM fix_drop_copy') ? copies.map((row) => storedRow(dropCopyTrades, row)) : [];
  };

  beforeEach(() => {
    numbers = {
      id: 1n,
      fence: 3n,
      nextOut: 1n,
      nextIn: 1n,
      startedAt: 5,
      bookedTo: 10n,
      changedTo: 0n,
      passedOverTo: 0n,
    };
    [copies, reports, changes, written, seen, whileReading] = [[], [], [], [], [], () => {}];
    locks = 0;
    const database: Partial<Database> = {
      transaction: async (reads, decide) => {
        if (reads.some(({ sql }) => sql.includes('FOR UPDATE'))) locks += 1;
        seen.push(...reads);
        const { writes, result } = decide(reads.map(rowsOf));
        written.push(...writes);
        return result;
      },
    };
    const schedule = { days: parseDays('mon-fri'), start: '08:30', end: '16:00', calendar: new Map() };
    const exchange = { symbolOf: (symbol: string) => `${symbol}.LG`, schedule };
    restart = () => {
      store = new DropCopyStore(database as Database, { name: 'fix-session', fence: 3n }, exchange);
    };
    restart();
  });

  /** The new values of the row of numbers, by column. */
  const changed = (): Record<string, bigint> => {
    const update = written.find(({ sql }) => sql.startsWith('UPDATE fix_drop_copy_numbers'));
    const columns = [...(update?.sql.split(' WHERE ')[0] ?? '').matchAll(/(\w+) = \?/g)].map(([, name = '']) => name);
    return Object.fromEntries(columns.map((name, at) => [name, BigInt(Number(update?.values[at]))]));
  };
  /** The new value of `booked_to`; undefined: it stays. */
  const bookedTo = () => changed().booked_to;
  /** The findings about what was booked. It compares each time. */
  const findings = () => {
    restart();
    return store.compareBooked(20n, now);
  };
  const faults = async () => (await findings()).map(({ orderId, execId }) => `${orderId} ${execId}`);
  const details = async () => (await findings()).map(({ detail }) => detail);

  it('finds each trade without a copy that was booked before messages were passed over, and says that it is not confirmed', async () => {
    await store.received([], now, 2, true);
    assert.equal(bookedTo(), undefined);
    numbers = { ...numbers, passedOverTo: lastReport };
    reports = [booked({})];
    const [detail = ''] = await details();
    assert.match(detail, /lacks a trade .*passed over messages, so the trade is not confirmed$/);
  });

  it('goes on comparing what was booked before a new numbering', async () => {
    await store.startDay(now);
    assert.equal(bookedTo(), undefined);
  });

  it('compares nothing that was booked before the first numbering, because there was no drop copy', async () => {
    numbers = { ...numbers, startedAt: 0 };
    await store.startDay(now);
    assert.equal(bookedTo(), lastReport);
  });

  it('goes on comparing what was booked while no message is passed over', async () => {
    await store.received([], now, 2, false);
    assert.equal(bookedTo(), undefined);
  });

  it('finds a booked trade by the name of its order, or by the OrderID of the exchange', async () => {
    reports = [booked({ exchangeOrderId: 'X1' })];
    for (const found of [copy({ named: 'ord_a' }), copy({ exchangeOrderId: 'X1' })]) {
      copies = [found];
      assert.deepEqual(await faults(), []);
    }
  });

  it('a booked trade is not confirmed by a trade of another of our orders with the same ExecID', async () => {
    reports = [booked({ exchangeOrderId: 'X1' })];
    for (const others of [copy({ named: 'ord_b' }), copy({ exchangeOrderId: 'X2' })]) {
      copies = [others];
      assert.deepEqual(await faults(), ['ord_a e1']);
      copies = [others, copy({ id: 2n, named: 'ord_a' })];
      assert.deepEqual(await faults(), []);
    }
  });

  it('confirms no booked trade by one with its OrderID and another symbol, side or day', async () => {
    reports = [booked({ exchangeOrderId: 'X1' })];
    const same = { exchangeOrderId: 'X1', symbol: 'MTNN.LG', side: '1', tradedAt: now };
    for (const [more, expected] of [
      [{}, []],
      [{ symbol: 'MTNN' }, ['ord_a e1']],
      [{ side: '2' }, ['ord_a e1']],
      [{ tradedAt: now + 86_400_000 }, ['ord_a e1']],
    ] as const) {
      copies = [copy({ ...same, ...more })];
      numbers = { ...numbers, bookedTo: 10n };
      assert.deepEqual(await faults(), expected, JSON.stringify(more));
      numbers = { ...numbers, bookedTo: 9n };
      await store.received([], now, 2, false);
    }
  });

  it('takes no trade of another order for a booked one, though neither has an OrderID', async () => {
    reports = [booked({})];
    copies = [copy({ named: 'ord_b' }), copy({ named: 'ord_a', execId: 'e2' })];
    assert.deepEqual(await faults(), ['ord_a e1']);
  });

  for (const [name, execRefId, execId, lacks] of [
    ['by its own ExecID', 'e1', 'd2', 0],
    ['by the ExecID of its first correction', 'c1', 'd2', 0],
    ['by that of its last one', 'c2', 'd2', 0],
    ['by that of another trade', 'e9', 'd2', 1],
  ] as const) {
    it(`a trade that was corrected twice may be named on the drop copy ${name}: ${lacks} corrections are missing`, async () => {
      const corrected = { orderId: 'ord_a', kind: 'corrected', counted: 0n, at: 0, priceKobo: 250n } as const;
      changes = [
        { ...corrected, execId: 'c1', execRefId: 'e1', quantity: 40n },
        { ...corrected, execId: 'c2', execRefId: 'c1', quantity: 30n },
      ];
      reports = [booked({})];
      const onCopy = { kind: 'corrected', symbol: 'MTNN.LG', side: '1', tradedAt: now } as const;
      copies = [
        copy({ ...onCopy, named: 'ord_a', id: 1n, execId: 'd1', execRefId: 'e1', quantity: 40n }),
        copy({ ...onCopy, named: 'ord_a', id: 2n, execId, execRefId, quantity: 30n }),
      ];
      const found = await store.compareChanged(2n, now);
      assert.equal(found.length, lacks, found.map(({ detail }) => detail).join());
      assert.equal(changed().changed_to, 2n);
      assert.deepEqual(await store.compareChanged(2n, now), [], 'once each');
    });
  }

  it('does not go back if more was compared meanwhile', async () => {
    reports = [booked({})];
    copies = [copy({ named: 'ord_a' })];
    whileReading = () => {
      numbers = { ...numbers, bookedTo: lastReport };
    };
    await store.compareBooked(20n, now);
    assert.equal(bookedTo(), undefined);
  });

  it('locks nothing to find out that everything up to a mark was compared', async () => {
    await store.compareBooked(20n, now);
    await store.compareChanged(30n, now);
    numbers = { ...numbers, bookedTo: 20n, changedTo: 30n };
    await store.received([], now, 2, false);
    locks = 0;
    assert.deepEqual([await store.compareBooked(20n, now), await store.compareChanged(30n, now)], [[], []]);
    assert.equal(locks, 0);
    reports = [booked({ number: 21n })];
    assert.equal((await store.compareBooked(21n, now)).length, 1, 'a higher mark is compared');
    assert.ok(locks > 0);
  });

  it('compares each report once, and never goes back behind those that it need not compare any more', async () => {
    await store.compareBooked(20n, now);
    assert.equal(bookedTo(), 20n);
    written = [];
    numbers = { ...numbers, bookedTo: lastReport };
    assert.deepEqual(await store.compareBooked(20n, now), []);
    assert.deepEqual(written, []);
  });

  it('each trade that came by a time is compared once: ours is marked, one of another firm is removed, and both are counted', async () => {
    const trade = { compared: false, exchangeOrderId: 'X1', tradedAt: now } as const;
    copies = [
      copy({ ...trade, id: 1n }),
      copy({ ...trade, id: 2n, execId: 'e2' }),
      copy({ ...trade, id: 3n, execId: 'e3' }),
      copy({ ...trade, id: 4n, execId: 'e4', exchangeOrderId: 'X9' }),
      copy({ ...trade, id: 5n, execId: 'e5', named: 'ord_of_another_firm', exchangeOrderId: '' }),
    ];
    reports = [booked({}), booked({ execId: 'e2', quantity: 99n }), booked({ orderId: 'ord_b', execId: 'e3' })];
    const { findings, others } = await store.compareCopied(now - 60_000, now);
    assert.deepEqual(
      findings.map(({ orderId, execId, at, what }) => [orderId, execId, at, what]),
      ['e2', 'e3'].map((execId) => ['ord_a', execId, now, 'drop_copy_differs']),
    );
    assert.equal(others, 2);
    const idsOf = (start: string) =>
      written
        .filter(({ sql }) => sql.startsWith(start))
        .flatMap(({ values }) => values.flat())
        .filter((value) => typeof value === 'bigint');
    assert.deepEqual(idsOf('UPDATE fix_drop_copy SET compared'), [1n, 2n, 3n]);
    assert.deepEqual(idsOf('DELETE FROM fix_drop_copy'), [4n, 5n]);
    assert.equal(written.filter(({ sql }) => sql.startsWith('INSERT INTO fix_findings')).length, 1);
    const [due] = seen.filter(({ sql }) => sql.includes('compared = 0 AND at <= ?'));
    assert.deepEqual(due?.values.map(Number), [now - 60_000]);
    [copies, written] = [[], []];
    assert.deepEqual(await store.compareCopied(now, now), { findings: [], others: 0 });
    assert.deepEqual(written, []);
  });

  it('what is to be compared is compared 500 numbers at a time, and none is left out', async () => {
    for (const [to, ends] of [
      [509n, [509n]],
      [510n, [510n]],
      [511n, [510n, 511n]],
      [1_011n, [510n, 1_010n, 1_011n]],
    ] as const) {
      for (const [table, compare, field] of [
        ['fix_reports', 'compareBooked', 'bookedTo'],
        ['fix_trade_changes', 'compareChanged', 'changedTo'],
      ] as const) {
        numbers = { ...numbers, bookedTo: 10n, changedTo: 10n };
        restart();
        seen.length = 0;
        for (const end of ends) {
          await store[compare](to, now);
          numbers = { ...numbers, [field]: end };
        }
        const ranges = seen.filter(({ sql }) => sql.includes(`FROM ${table}`) && sql.includes('<= ?'));
        const expected = ends.map((end, at) => [ends[at - 1] ?? 10n, end]);
        assert.deepEqual(
          ranges.map(({ values }) => values),
          expected,
          `${compare} to ${to}`,
        );
      }
    }
  });

  it('the drop copy keeps its numbers: those of a message that is sent, and none lower than it has of the other side', async () => {
    numbers = { ...numbers, nextIn: 9n };
    for (const [nextIn, stored] of [
      [8, {}],
      [9, {}],
      [10, { next_in: 10n }],
    ] as const) {
      written = [];
      await store.sending(5, nextIn);
      assert.deepEqual(changed(), { next_out: 5n, ...stored });
    }
  });

  it('a process writes nothing of the drop copy once a later holder of the lease has taken it', async () => {
    numbers = { ...numbers, fence: 4n };
    for (const write of [
      () => store.take(),
      () => store.numbers(),
      () => store.sending(2, 2),
      () => store.startDay(now),
    ]) {
      await assert.rejects(write(), LeaseLost);
    }
    assert.deepEqual(written, []);
  });

  /** The last moment of a day in Lagos, an hour ahead of UTC. */
  const lastOfDay = Date.UTC(2026, 6, 6, 22, 59, 59, 999);
  const known = copy({ exchangeOrderId: 'X1', symbol: 'MTNN.LG', side: '1', at: lastOfDay });
  /** How many of these trades are stored if they come at a time. */
  async function stores(at: number, ...trades: readonly Partial<DropCopyTrade>[]): Promise<number> {
    written = [];
    const came = trades.map((more) => {
      const { id: _id, at: _at, compared: _compared, ...trade } = { ...known, ...more };
      return { ...trade, reportRefId: '' };
    });
    await store.received(came, at, 2, false);
    const inserts = written.filter(({ sql }) => sql.startsWith('INSERT INTO fix_drop_copy '));
    return inserts.flatMap(({ values }) => values.flat(1)).filter(Array.isArray).length;
  }

  it('the drop copy has a trade once, whether it comes again at once, with others or later on the day', async () => {
    assert.equal(await stores(lastOfDay, {}), 1);
    assert.equal(await stores(lastOfDay, {}, {}, {}), 1);
    copies = [known];
    assert.equal(await stores(lastOfDay, {}), 0);
    assert.equal(await stores(lastOfDay - 80_000_000, {}), 0, 'earlier on the same day');
    assert.equal(await stores(lastOfDay, {}, { execId: 'e2' }), 1, 'with a new one');
  });

  it('the drop copy takes a trade that differs in any way for another one, and so one of another day with the same ids', async () => {
    copies = [known];
    for (const more of [
      ...[{ named: 'ord_a' }, { exchangeOrderId: 'X2' }, { execId: 'e2' }, { symbol: 'GTCO.LG' }, { side: '2' }],
      ...[{ quantity: 99n }, { priceKobo: 251n }, { kind: 'cancelled', execRefId: 'e1' } as const],
    ]) {
      assert.equal(await stores(lastOfDay, more), 1, JSON.stringify(Object.keys(more)));
    }
    assert.equal(await stores(lastOfDay + 1, {}), 1, 'the next day begins');
    assert.equal(await stores(lastOfDay + 86_400_000, {}), 1);
    assert.equal(await stores(lastOfDay - 86_400_000, {}), 1, 'the day before');
  });

  it('the drop copy tells days by when a trade was made if that is stated, and by when it came otherwise', async () => {
    const [today, tomorrow] = [lastOfDay, lastOfDay + 1];
    for (const [storedTrade, storedAt, tradedAt, at, expected] of [
      [today, tomorrow, today, tomorrow, 0],
      [today, today, today, tomorrow, 0],
      [today, today, tomorrow, tomorrow, 1],
      [tomorrow, tomorrow, today, tomorrow, 1],
      [null, today, today, tomorrow, 0],
      [null, today, tomorrow, tomorrow, 1],
      [today, tomorrow, null, today, 0],
      [null, today, null, tomorrow, 1],
    ] as const) {
      copies = [{ ...known, tradedAt: storedTrade, at: storedAt }];
      assert.equal(await stores(at, { tradedAt }), expected, JSON.stringify([storedTrade, storedAt, tradedAt, at]));
    }
  });
});
