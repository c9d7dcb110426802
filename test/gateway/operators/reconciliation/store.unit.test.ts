/** The statements of the reconciliation, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  anyItem,
  type BreakFilter,
  beforeAccounts,
  beforeObjects,
  breaksById,
  breaksOfDay,
  countOpenBreaks,
  daysWithRuns,
  firstPartner,
  itemsByAccount,
  itemsByObject,
  lastCompleteDay,
  lastOffer,
  listBreaks,
  listRuns,
  newestRun,
  nextRun,
  note,
  notesOf,
  ownersOf,
  partnerAfter,
  readOpenBreaks,
  removeItems,
  statedAmong,
} from '../../../../src/gateway/operators/reconciliation/store.ts';
import {
  reconciliationBreaks,
  reconciliationItems,
  reconciliationRuns,
} from '../../../../src/gateway/operators/reconciliation/table.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { RowsDatabase, selectedRows } from '../../../support/rows-database.ts';

const [before, day, after] = ['2026-03-02', '2026-03-03', '2026-03-04'] as const;

/** All pages of a list, each of so many rows; `next` asks for the page after a row. */
function allPages(rows: readonly SqlRow[], most: number, next: (last: SqlRow | undefined) => Statement): SqlRow[] {
  const seen: SqlRow[] = [];
  for (let last: SqlRow | undefined; seen.length <= rows.length; last = seen.at(-1)) {
    const page = selectedRows(next(last), rows);
    assert.ok(page.length <= most);
    seen.push(...page);
    if (page.length < most) return seen;
  }
  return assert.fail('rows are shown again');
}

/** That a statement's index is one of the table. */
function assertIndexed({ sql }: Statement, indexes: object): void {
  const [, index = ''] = /FORCE INDEX \((\w+)\)/.exec(sql) ?? [];
  assert.ok(index === 'PRIMARY' || index in indexes, index);
}

describe('runs of the reconciliation', () => {
  const run = (of: string, number: number, more: SqlRow = {}) => ({
    day: of,
    number,
    next_at: null,
    state: 'complete',
    ...more,
  });

  it('the newest run of a day is that with the highest number, and a transaction locks it', () => {
    const runs = [run(day, 9), run(day, 10), run(day, 2), run(before, 11), run(after, 12)];
    for (const lock of [false, true]) {
      const statement = newestRun({ day }, lock);
      assert.deepEqual(selectedRows(statement, runs), [runs[1]]);
      assert.equal(/ FOR UPDATE$/.test(statement.sql), lock);
    }
    assert.deepEqual(selectedRows(newestRun({ day: '2026-01-01' }), runs), []);
    assert.ok(!newestRun({ day }).sql.includes('FOR UPDATE'), 'a read locks nothing');
  });

  it('the worker goes on with the run that is due the longest, from its instant on', () => {
    const now = 1_000_000;
    const due = (of: string, number: number, at: number | null) => run(of, number, { next_at: at && new Date(at) });
    for (const [runs, wanted] of [
      [[due(day, 1, now + 1), due(day, 2, null)], undefined],
      [[due(day, 1, now)], 0],
      [[due(day, 1, now - 1), due(day, 2, now - 2)], 1],
      [[due(after, 1, now - 1), due(day, 2, now - 1)], 1],
      [[due(day, 3, now - 1), due(day, 2, now - 1)], 1],
    ] as const) {
      const found = selectedRows(nextRun(now), runs as readonly SqlRow[]);
      assert.deepEqual(found, wanted === undefined ? [] : [runs[wanted]]);
    }
    assertIndexed(nextRun(now), reconciliationRuns.indexes);
  });

  it('a day is done once a run of it is complete or the broker offers no statement', () => {
    const statement = daysWithRuns([before, day]);
    const runs = [run(before, 1), run(day, 1), run(after, 1)];
    assert.deepEqual(
      selectedRows(statement, runs).map((row) => row.day),
      [before, day],
    );
    assert.match(statement.sql, /MAX\(state IN \('complete', 'not_offered'\)\) AS is_done/);
    assert.match(statement.sql, /GROUP BY day/);
  });

  it('pages of runs show each run once, the newest day first, and those of one day alone', () => {
    const runs = [before, day, after].flatMap((of) => [1, 2, 9, 10].map((number) => run(of, number)));
    const names = (rows: readonly SqlRow[]) => rows.map(({ day: of, number }) => `${of} ${number}`);
    const position = (last: SqlRow | undefined) => last && ([String(last.day), Number(last.number)] as const);
    const inOrder = [after, day, before].flatMap((of) => [10, 9, 2, 1].map((number) => `${of} ${number}`));
    for (const most of [1, 2, 3, 5, 12, 13]) {
      const all = allPages(runs, most, (last) => listRuns('', position(last), most));
      assert.deepEqual(names(all), inOrder, `${most}`);
      const ofDay = allPages(runs, most, (last) => listRuns(day, position(last), most));
      assert.deepEqual(names(ofDay), inOrder.slice(4, 8), `${most}`);
    }
  });

  it('the last day that was compared is the last with a complete run', () => {
    const runs = [
      run(before, 1),
      run(day, 1),
      run(after, 1, { state: 'failed' }),
      run(after, 2, { state: 'not_offered' }),
    ];
    assert.deepEqual(selectedRows(lastCompleteDay(), runs), [{ day }]);
    const [complete = [], refused = []] = lastOffer().map((statement) => selectedRows(statement, runs));
    assert.deepEqual([complete, refused], [[runs[1]], [runs[3]]]);
    for (const statement of [lastCompleteDay(), ...lastOffer()]) assertIndexed(statement, reconciliationRuns.indexes);
    const sameDay = [run(day, 2), run(day, 10), run(before, 30)];
    assert.deepEqual(selectedRows(lastOffer()[0] as Statement, sameDay), [sameDay[1]]);
  });

  it('the first partner after another one is found, and when the first of all was made', () => {
    const partners = ['par_b', 'par_a', 'par_c'].map((id, at) => ({ id, created_at: at }));
    for (const [id, next] of [
      ['', 'par_a'],
      ['par_a', 'par_b'],
      ['par_c', null],
    ] as const) {
      assert.deepEqual(selectedRows(partnerAfter(id), partners), [{ id: next }]);
    }
    assert.deepEqual(selectedRows(firstPartner(), partners), [partners[1]]);
  });
});

describe('records of a day', () => {
  const item = (of: string, objectId: string, section: string, itemId: string, account = '', symbol = '') => {
    return { day: of, object_id: objectId, section, item_id: itemId, account, symbol };
  };
  const ofDay = (of: string) => [
    item(of, '', 'note', 'withdrawals_read'),
    item(of, '', 'note', 'transactions_read'),
    item(of, '', 'position', 'A1 SIM', 'A1', 'SIM'),
    item(of, '', 'position', 'A1 TIM', 'A1', 'TIM'),
    item(of, '', 'balance', 'A2', 'A2'),
    item(of, 'ord_a', 'order', '', 'A1', 'SIM'),
    item(of, 'ord_a', 'trade', '1', 'A1', 'SIM'),
    item(of, 'ord_a', 'trade', '2', 'A1', 'SIM'),
    item(of, 'ord_b', 'order', '', 'A1', 'SIM'),
    item(of, 'alc_a', 'allocation', '', 'A2'),
    item(of, 'ord_c', 'note', 'x'),
  ];
  const items = [...ofDay(day), ...ofDay(before), ...ofDay(after)];

  for (const [name, page, columns, from] of [
    ["by the gateway's objects", itemsByObject, ['object_id', 'section', 'item_id'], ['', '', '']],
    ['by account', itemsByAccount, ['account', 'symbol', 'object_id', 'section', 'item_id'], beforeAccounts],
  ] as const) {
    it(`pages of a day's records ${name} show each once, and none of another day`, () => {
      const key = (row: SqlRow) => columns.map((column) => String(row[column]));
      // Only a record with an empty key would be at the first position itself.
      const inOrder = ofDay(day).toSorted((one, other) => (key(one).join('\0') < key(other).join('\0') ? -1 : 1));
      for (const most of [1, 2, 3, 4, 11, 12]) {
        const seen = allPages(items, most, (last) => page({ day }, last === undefined ? from : key(last), most));
        assert.deepEqual(seen, inOrder, `${most}`);
        assertIndexed(page({ day }, from, most), reconciliationItems.indexes);
      }
    });
  }

  it("the records of the gateway's objects come after all that have none", () => {
    const found = selectedRows(itemsByObject({ day }, beforeObjects, 20), items);
    assert.deepEqual(
      found.map((row) => row.object_id),
      ['alc_a', 'ord_a', 'ord_a', 'ord_a', 'ord_b', 'ord_c'],
    );
  });

  it('records are removed of their own day alone, so many at a time', () => {
    assert.deepEqual(
      selectedRows(removeItems({ day }, 4), items).map((row) => row.day),
      [day, day, day, day],
    );
    assert.equal(selectedRows(removeItems({ day }, 100), items).length, ofDay(day).length);
    assert.equal(selectedRows(anyItem({ day }), items).length, 1);
    assert.equal(selectedRows(anyItem({ day: '2026-01-01' }), items).length, 0);
  });

  it('the notes of a run are those of its day, and a note is written as one', async () => {
    const database = new RowsDatabase({
      reconciliation_items: [...items, item(before, '', 'note', 'withdrawals_left_out')],
    });
    const notes = await notesOf(database as never, { day });
    assert.deepEqual([...notes], ['withdrawals_read', 'transactions_read']);
    const { values } = note({ day }, 'withdrawals_left_out');
    const [row = []] = values[0] as unknown[][];
    const written = Object.fromEntries(reconciliationItems.fields.map((field, at) => [field, row[at]]));
    assert.deepEqual(
      [written.day, written.objectId, written.section, written.itemId],
      [day, '', 'note', 'withdrawals_left_out'],
    );
  });

  it('the objects that a statement has are found among those asked for, each once and of the day', () => {
    const found = selectedRows(statedAmong({ day }, ['ord_a', 'ord_x', 'ord_b']), [
      ...items,
      item(before, 'ord_x', 'order', ''),
    ]);
    assert.deepEqual(
      found.map((row) => row.object_id),
      ['ord_a', 'ord_b'],
    );
  });

  it('the partner of each account is found', () => {
    const accounts = [
      ['A1', 'par_a'],
      ['A2', 'par_b'],
      ['A3', 'par_b'],
    ].map(([account, partnerId]) => ({ account, partner_id: partnerId }));
    assert.deepEqual(selectedRows(ownersOf(['A3', 'A9', 'A1']), accounts), [accounts[2], accounts[0]]);
  });
});

describe('breaks of the reconciliation', () => {
  const broken = (id: string, of: string, partnerId: string | null, isOpen: number) => {
    return { id, day: of, partner_id: partnerId, is_open: isOpen, kind: isOpen === 1 ? 'cash' : 'trade' };
  };
  const breaks = [before, day, after].flatMap((of) =>
    ['a', 'b', 'c', 'd', 'e'].map((name, at) => {
      return broken(`rcb_${of}${name}`, of, at % 3 === 0 ? null : at % 3 === 1 ? 'par_a' : 'par_b', at % 2);
    }),
  );

  it('pages of breaks show each that passes the filter once, the newest day first', () => {
    const position = (last: SqlRow | undefined) => last && ([String(last.day), String(last.id)] as const);
    for (const of of ['', day]) {
      for (const partnerId of ['', 'par_a']) {
        for (const openOnly of [false, true]) {
          const filter: BreakFilter = { day: of, partnerId, openOnly };
          const wanted = breaks
            .filter((row) => (of === '' || row.day === of) && (partnerId === '' || row.partner_id === partnerId))
            .filter((row) => !openOnly || row.is_open === 1)
            .toReversed();
          for (const most of [1, 2, 3, 15, 16]) {
            const seen = allPages(breaks, most, (last) => listBreaks(filter, position(last), most));
            assert.deepEqual(seen, wanted, JSON.stringify({ ...filter, most }));
          }
          assertIndexed(listBreaks(filter, undefined, 1), reconciliationBreaks.indexes);
        }
      }
    }
  });

  it("a day's breaks are read in the order of their ids, after one of them", () => {
    const seen = allPages(breaks, 2, (last) => breaksOfDay({ day }, String(last?.id ?? ''), 2));
    assert.deepEqual(seen, breaks.slice(5, 10));
  });

  it('breaks are locked by their ids', () => {
    const [first, , third] = breaks;
    const statement = breaksById([String(third?.id), String(first?.id)]);
    assert.deepEqual(selectedRows(statement, breaks), [first, third]);
    assert.match(statement.sql, / FOR UPDATE$/);
  });

  it('only open breaks are counted, by kind and up to a bound', () => {
    const { sql } = countOpenBreaks();
    const [, inner = ''] = /FROM \((.*)\) AS counted GROUP BY kind$/s.exec(sql) ?? [];
    assert.deepEqual(
      selectedRows({ sql: inner, values: [] }, breaks),
      breaks.filter((row) => row.is_open === 1),
    );
    assert.match(inner, /LIMIT 10000$/);
    assert.deepEqual(readOpenBreaks([{ kind: 'cash', count: '3' }]), [['cash', 3]]);
  });
});
