import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Copied } from '../../../src/fix-adapter/drop-copy/identity.ts';
import { readOrders, unique } from '../../../src/fix-adapter/drop-copy/orders.ts';
import { parseDays, type Schedule } from '../../../src/fix-adapter/session/schedule.ts';
import {
  type FixOrder,
  type FixReport,
  fixOrders,
  fixReports,
  fixTradeChanges,
} from '../../../src/fix-adapter/store/table.ts';
import type { RowOf } from '../../../src/gateway/store/table.ts';
import { RowsDatabase } from '../../support/rows-database.ts';
import { anyRow } from '../../support/stored-row.ts';

const schedule: Schedule = { days: parseDays('mon-fri'), start: '08:30', end: '16:00', calendar: new Map() };
const names = { symbolOf: (symbol: string) => `${symbol}.LG`, schedule };
/** An instant by its day of November 2026, a Tuesday the 24th, at ten in Lagos. */
const on = (day: number) => Date.parse(`2026-11-${day}T10:00:00+01:00`);

const order = (more: Partial<FixOrder> = {}): Partial<FixOrder> => ({
  ...{ id: 'ord_a', exchangeOrderId: 'X1', symbol: 'MTNN', side: 'buy', timeInForce: 'gtc' },
  ...{ receivedAt: on(24), state: 'open' },
  ...more,
});
const copy = (more: Partial<Copied> = {}): Copied => ({
  ...{ named: '', exchangeOrderId: 'X1', kind: 'trade', execRefId: '', symbol: 'MTNN.LG', side: '1' },
  ...{ tradedAt: on(24), at: on(24) },
  ...more,
});
/** A trade of the first day is taken back on a later day, by a message without the trade's day. */
const bust = (execRefId: string, more: Partial<Copied> = {}) =>
  copy({ kind: 'cancelled', execRefId, tradedAt: null, at: on(26), ...more });

interface Stored {
  readonly orders?: readonly Partial<FixOrder>[];
  readonly reports?: readonly Partial<FixReport>[];
  readonly changes?: readonly Partial<RowOf<typeof fixTradeChanges>>[];
}

/** The orders that rows of the drop copy are of, by what the adapter has stored, and the statements that were read for it. */
async function found({ orders = [order()], reports = [], changes = [] }: Stored, ...copies: readonly Copied[]) {
  const last = (ids: readonly unknown[]) => {
    return ids.flat().flatMap((id) => {
      const times = reports.flatMap((report) => (report.orderId === id && report.at ? [report.at] : []));
      const has = reports.some((report) => report.orderId === id);
      return has ? [{ order_id: id, at: times.length === 0 ? null : new Date(Math.max(...times)) }] : [];
    });
  };
  const database = new RowsDatabase(
    {
      fix_orders: orders.map((each) => anyRow(fixOrders, each)),
      fix_reports: reports.map((each) => anyRow(fixReports, { kind: 'trade', ...each })),
      fix_trade_changes: changes.map((each) => anyRow(fixTradeChanges, each)),
    },
    ({ sql, values }) => (sql.includes('MAX(at)') ? last(values) : undefined),
  );
  const orderOf = await readOrders((reads) => database.readAll(reads), copies, names);
  return { ids: copies.map(orderOf), asked: database.asked.map(({ sql }) => sql) };
}

describe('the order of a row of the drop copy', () => {
  it('the order of a row of the drop copy is the one that it names, or the one with its OrderID on its day', async () => {
    const others = [
      order({ id: 'ord_b', exchangeOrderId: 'X2', symbol: 'GTCO', side: 'sell' }),
      order({ id: 'ord_old', timeInForce: 'day', receivedAt: on(19) }),
    ];
    const { ids } = await found(
      { orders: [order({ timeInForce: 'day' }), ...others] },
      copy(),
      copy({ named: 'ord_b' }),
      copy({ exchangeOrderId: 'X2', symbol: 'GTCO.LG', side: '2' }),
      copy({ tradedAt: on(19) }),
      copy({ exchangeOrderId: 'X3' }),
      copy({ exchangeOrderId: '' }),
      copy({ symbol: 'MTNN' }),
    );
    assert.deepEqual(ids, ['ord_a', 'ord_b', 'ord_b', 'ord_old', undefined, undefined, undefined]);
  });

  it('an order that a row names is read although no row has its OrderID, and one with an OrderID although none is named', async () => {
    assert.deepEqual((await found({}, copy({ named: 'ord_a', exchangeOrderId: '' }))).ids, ['ord_a']);
    assert.deepEqual((await found({}, copy())).ids, ['ord_a']);
    const { ids, asked } = await found({}, copy({ exchangeOrderId: '' }), copy({ exchangeOrderId: '' }));
    assert.deepEqual([ids, asked], [[undefined, undefined], []], 'nothing is read for rows without both');
  });

  it('an order that is good till cancelled and has ended trades up to the day of its last report', async () => {
    const ended = [order({ state: 'final' })];
    const reports = [on(24), on(25)].map(
      (at, nth): Partial<FixReport> => ({ number: BigInt(nth), orderId: 'ord_a', at }),
    );
    const rows = [24, 25, 26].map((day) => copy({ tradedAt: on(day) }));
    assert.deepEqual((await found({ orders: ended, reports }, ...rows)).ids, ['ord_a', 'ord_a', undefined]);
    assert.deepEqual((await found({ orders: [order()], reports }, ...rows)).ids, ['ord_a', 'ord_a', 'ord_a']);
    // Without the time of a report nobody knows when it ended.
    const untimed = [{ orderId: 'ord_a', at: null }];
    assert.deepEqual((await found({ orders: ended, reports: untimed }, ...rows)).ids, ['ord_a', 'ord_a', 'ord_a']);
    // The last report of another order says nothing about it.
    const ofBoth = [...reports, { number: 9n, orderId: 'ord_b', at: on(27) }];
    const both = [...ended, order({ id: 'ord_b', exchangeOrderId: 'X2', state: 'final' })];
    const late = copy({ tradedAt: on(27), exchangeOrderId: 'X2' });
    assert.deepEqual((await found({ orders: both, reports: ofBoth }, ...rows, late)).ids, [
      'ord_a',
      'ord_a',
      undefined,
      'ord_b',
    ]);
  });

  it('an order whose end does not matter is not looked for in the reports', async () => {
    for (const one of [order({ state: 'open' }), order({ state: 'final', timeInForce: 'day' })]) {
      const { asked } = await found({ orders: [one] }, copy());
      assert.deepEqual(
        asked.filter((sql) => !sql.includes('FROM fix_orders')),
        [],
      );
    }
  });

  it('a trade that is taken back on a later day is of the order whose session brought the trade, or its correction', async () => {
    const orders = [order({ timeInForce: 'day' }), order({ id: 'ord_b', timeInForce: 'day', receivedAt: on(23) })];
    const reports = [
      { number: 1n, orderId: 'ord_a', execId: 'e1' },
      { number: 2n, orderId: 'ord_b', execId: 'e2' },
      { number: 3n, orderId: 'ord_a', execId: 'e3', kind: 'accepted' as const },
      { number: 4n, orderId: 'ord_a', execId: null },
    ];
    const changes = [
      { orderId: 'ord_b', execId: 'c1', execRefId: 'e2' },
      { orderId: 'ord_a', execId: null, execRefId: 'e1' },
    ];
    const stored = { orders, reports, changes };
    const { ids } = await found(stored, bust('e1'), bust('e2'), bust('c1'), bust('e3'), bust('e9'), bust(''));
    assert.deepEqual(ids, ['ord_a', 'ord_b', 'ord_b', undefined, undefined, undefined]);
    assert.deepEqual((await found(stored, bust('e1', { kind: 'corrected' }))).ids, ['ord_a']);
  });

  it('the ExecID that a trade refers to is not looked for', async () => {
    const { asked } = await found({}, copy({ execRefId: 'e1' }));
    assert.deepEqual(
      asked.filter((sql) => !sql.includes('FROM fix_orders')),
      [],
    );
  });

  it('each id is read once, and an empty one never', () => {
    assert.deepEqual(unique(['b', '', 'a', 'b', '']), ['b', 'a']);
  });
});
