/** A statement compared with the gateway's objects, page by page, by runs that are interrupted and go on. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  compareHoldings,
  compareOurs,
  compareStatement,
} from '../../../../src/gateway/operators/reconciliation/compare.ts';
import { type Compared, clockMarginMs } from '../../../../src/gateway/operators/reconciliation/ours.ts';
import type { RunProgress } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import type { Difference } from '../../../../src/gateway/operators/reconciliation/rules.ts';
import {
  newItem,
  type RunNote,
  reconciliationItems,
  type StoredItem,
} from '../../../../src/gateway/operators/reconciliation/table.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { allocations } from '../../../../src/gateway/trading/allocations/table.ts';
import { orders } from '../../../../src/gateway/trading/orders/table.ts';
import { withdrawals } from '../../../../src/gateway/trading/withdrawals/table.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { storedRow } from '../../../support/stored-row.ts';

const day = '2026-03-03';
const period = { from: Date.UTC(2026, 2, 2, 23), to: Date.UTC(2026, 2, 3, 23) };
const at = period.from + 3_600_000;

/** An object of the gateway that the tests give: a final one, with a report of the broker in the period unless it has none. */
interface Ours {
  readonly kind: 'orders' | 'allocations' | 'withdrawals';
  readonly id: string;
  readonly partnerId: string;
  readonly state?: string;
  readonly updatedAt?: number;
  readonly createdAt?: number;
  readonly reportedAt?: number | null;
  readonly exchangeOrderId?: string | null;
}

const tables = { orders, allocations, withdrawals } as const;
const finalStates = { orders: 'cancelled', allocations: 'booked', withdrawals: 'completed' } as const;

function rowOf({
  kind,
  id,
  partnerId,
  state = finalStates[kind],
  updatedAt = at,
  createdAt = at,
  exchangeOrderId = null,
}: Ours): SqlRow {
  const money = { amountKobo: 500n, account: 'A1', destination: 'wallet', brokerReference: null };
  const row = { ...plainOrder, ...money, id, partnerId, state, createdAt, updatedAt, exchangeOrderId };
  return storedRow(tables[kind] as typeof orders, row as never);
}

class Days {
  notes: RunNote[] = ['withdrawals_read'];
  position = '';
  objects = 0n;
  readonly found: Difference[] = [];
  readonly noted: string[] = [];
  saves = 0;

  constructor(
    private readonly items: readonly StoredItem[],
    private readonly ours: readonly Ours[] = [],
    private readonly isShared = false,
  ) {}

  #page(columns: readonly (keyof StoredItem)[], { sql, values }: Statement): SqlRow[] {
    const after = values.slice(-columns.length).map(String);
    const place = (item: StoredItem) => columns.map((column) => String(item[column]));
    const compared = (one: readonly string[], other: readonly string[]) => {
      const differing = one.findIndex((text, index) => text !== other[index]);
      return differing < 0 ? 0 : (one[differing] ?? '') < (other[differing] ?? '') ? -1 : 1;
    };
    return this.items
      .filter((item) => compared(place(item), after) > 0)
      .toSorted((one, other) => compared(place(one), place(other)))
      .slice(0, Number(/LIMIT (\d+)/.exec(sql)?.[1]))
      .map((item) => storedRow(reconciliationItems, item));
  }

  #answer(query: Statement): SqlRow[] {
    const { sql, values } = query;
    if (sql.includes("section = 'note'")) return this.notes.map((name) => ({ item_id: name }));
    if (sql.startsWith('SELECT MIN(id)')) {
      const later = this.ours.map(({ partnerId }) => partnerId).filter((id) => id > String(values[0]));
      return [{ id: later.toSorted()[0] ?? null }];
    }
    if (sql.includes('FORCE INDEX (reconciliation_items_account)')) {
      return this.#page(['account', 'symbol', 'objectId', 'section', 'itemId'], query);
    }
    if (sql.startsWith('(SELECT object_id FROM reconciliation_items')) {
      return this.items
        .filter(({ objectId }) => values.includes(objectId))
        .map((item) => ({ object_id: item.objectId }));
    }
    if (sql.includes('FROM reconciliation_items')) return this.#page(['objectId', 'section', 'itemId'], query);
    if (sql.includes('_steps ')) {
      return this.ours.flatMap(({ kind, id, state = finalStates[kind], reportedAt = at }) => {
        if (reportedAt === null || ![values[1]].flat().includes(id)) return [];
        const step = { order_id: id, object_id: id, sequence: 1, kind: 'report', at: new Date(reportedAt), state };
        const nothing = { quantity: null, price_kobo: null, trade_sequence: null, filled_change: null };
        return [{ ...step, ...nothing, value_change_kobo: null, report_number: 1, upstream_at: new Date(reportedAt) }];
      });
    }
    const kind = (['orders', 'allocations', 'withdrawals'] as const).find((name) => sql.includes(`FROM ${name} `));
    const own = this.ours.filter((one) => one.kind === kind);
    if (sql.includes('id IN (?)')) return own.filter(({ id }) => [values[0]].flat().includes(id)).map(rowOf);
    const [partnerId, since, afterId] = [String(values[0]), (values[1] as Date).getTime(), String(values[2])];
    const isLater = ({ updatedAt = at, id }: Ours) => updatedAt > since || (updatedAt === since && id > afterId);
    return own
      .filter((one) => one.partnerId === partnerId && isLater(one))
      .toSorted((one, other) => (one.updatedAt ?? at) - (other.updatedAt ?? at) || (one.id < other.id ? -1 : 1))
      .slice(0, Number(/LIMIT (\d+)/.exec(sql)?.[1]))
      .map(rowOf);
  }

  /** Goes on with a comparison, which is interrupted when it has advanced so many times. */
  compare(
    by: (progress: RunProgress, compared: Compared) => Promise<boolean>,
    saves = Number.POSITIVE_INFINITY,
  ): Promise<boolean> {
    this.saves = 0;
    const days = this;
    const progress = {
      run: { day, position: this.position, objects: this.objects },
      get isInterrupted() {
        return days.saves >= saves;
      },
      async save(changes: { position?: string; objects?: bigint }, writes: readonly Statement[] = []) {
        days.noted.push(...writes.map(({ values }) => String(values.flat(2)[2])));
        if (changes.position !== undefined && changes.position !== progress.run.position) days.saves += 1;
        Object.assign(progress.run, changes);
        days.position = progress.run.position;
        days.objects = progress.run.objects;
      },
      async saveFound(changes: { position?: string }, found: readonly Difference[]) {
        days.found.push(...found);
        await progress.save(changes);
      },
    };
    const database = {
      read: async (query: Statement) => days.#answer(query),
      readAll: async (queries: readonly Statement[]) => queries.map((query) => days.#answer(query)),
    };
    const compared = { day, period, isShared: this.isShared, database } as unknown as Compared;
    return by(progress as unknown as RunProgress, compared);
  }

  /** The differences that were found, by object or account and kind. */
  get kinds(): string[] {
    return this.found.map(({ objectId, account, symbol, kind }) => `${objectId || `${account} ${symbol}`} ${kind}`);
  }
}

const item = (more: Partial<StoredItem> & Pick<StoredItem, 'section'>): StoredItem => ({
  ...{ ...newItem({ day }), account: 'A1', symbol: 'SIM' },
  ...more,
});
const numbered = (count: number) => Array.from({ length: count }, (_, index) => String(index).padStart(4, '0'));

describe('a statement', () => {
  const trades = (objectId: string, count: number) =>
    numbered(count).map((number) =>
      item({ section: 'trade', objectId, itemId: `A1 ${number}`, quantity: 1n, otherKobo: 10n, at }),
    );
  const order = (objectId: string) => item({ section: 'order', objectId, side: 'buy', state: 'filled', quantity: 9n });
  const money = (section: 'allocation' | 'withdrawal', objectId: string, kobo: bigint, state: string) =>
    item({ section, objectId, amountKobo: kobo, state, itemId: section === 'withdrawal' ? 'wallet' : '', symbol: '' });
  const items = [
    ...trades('ord_a', 2),
    ...[order('ord_b'), ...trades('ord_b', 620)],
    ...[order('ord_c'), ...trades('ord_d', 1)],
    ...[money('allocation', 'alc_a', 500n, 'booked'), money('allocation', 'alc_b', 500n, 'rejected')],
    ...[money('allocation', 'alc_c', 501n, 'booked'), money('allocation', 'alc_x', 5n, 'booked')],
    ...[money('withdrawal', 'wdr_a', 500n, 'paid'), money('withdrawal', 'wdr_b', 499n, 'paid')],
    ...[money('withdrawal', 'wdr_x', 5n, 'paid'), item({ section: 'cash', objectId: '', itemId: 'A1' })],
  ];
  const own = (kind: Ours['kind'], id: string, more: Partial<Ours> = {}): Ours => ({
    kind,
    id,
    partnerId: 'p',
    ...more,
  });
  const ours = [
    own('orders', 'ord_d'),
    ...['alc_a', 'alc_b', 'alc_c'].map((id) => own('allocations', id)),
    ...['wdr_a', 'wdr_b'].map((id) => own('withdrawals', id)),
  ];
  const wanted = [
    ...['alc_b allocation_state', 'alc_c allocation_terms', 'alc_x allocation_extra'],
    ...['ord_a trade_extra', 'ord_b order_extra', 'ord_b trade_extra', 'ord_c order_extra'],
    ...['ord_d order_missing', 'ord_d trade_extra'],
    ...['wdr_b withdrawal_terms', 'wdr_x withdrawal_extra'],
  ];

  it('a statement shows each difference once, however often the run is interrupted', async () => {
    for (const saves of [Number.POSITIVE_INFINITY, 1, 2]) {
      const days = new Days(items, ours);
      for (let turns = 0; !(await days.compare(compareStatement, saves)); turns += 1) assert.ok(turns < 20);
      assert.deepEqual([...new Set(days.kinds)], wanted, `${saves} saves`);
      assert.equal(days.kinds.filter((kind) => kind === 'ord_b trade_extra').length, 620);
      assert.deepEqual([days.kinds.length, days.position], [wanted.length + 620, 'wdr_x'], `${saves} saves`);
    }
  });

  it('a statement is compared as far as it got, and not beyond the last object that it has all records of', async () => {
    const days = new Days(items, ours);
    assert.equal(await days.compare(compareStatement, 1), false);
    assert.equal(days.position, 'ord_a');
  });

  it('a statement shows nothing of objects that the gateway does not have, if others use the broker too', async () => {
    const days = new Days(items, [...ours, own('orders', 'ord_c')], true);
    await days.compare(compareStatement);
    assert.deepEqual(
      [...new Set(days.kinds)],
      [
        ...['alc_b allocation_state', 'alc_c allocation_terms'],
        ...[
          'ord_c order_state',
          'ord_c order_terms',
          'ord_d order_missing',
          'ord_d trade_extra',
          'wdr_b withdrawal_terms',
        ],
      ],
    );
  });

  it('a statement compares the filled quantity of an order, and its exchange id if both sides have one', async () => {
    const stated = (reference: string) => [
      item({ ...order('ord_a'), symbol: 'SIM-REST', quantity: 100n, state: 'cancelled', reference, otherKobo: 0n }),
    ];
    for (const [exchangeOrderId, reference, kinds] of [
      ['X-1', 'X-1', []],
      ['X-1', 'X-2', ['ord_a order_terms']],
      ['X-1', '', []],
      [null, 'X-1', []],
    ] as const) {
      const days = new Days(stated(reference), [own('orders', 'ord_a', { exchangeOrderId })]);
      await days.compare(compareStatement);
      assert.deepEqual(days.kinds, kinds, `${exchangeOrderId} and ${reference}`);
    }
    const filled = new Days(
      stated('').map((one) => ({ ...one, otherKobo: 5n })),
      [own('orders', 'ord_a')],
    );
    await filled.compare(compareStatement);
    assert.deepEqual(filled.kinds, ['ord_a order_filled']);
  });
});

describe("the gateway's objects", () => {
  const objects = (kind: Ours['kind'], partnerId: string, count: number): Ours[] =>
    numbered(count).map((number, index) => ({
      kind,
      partnerId,
      id: `${kind}_${partnerId}_${number}`,
      updatedAt: at + (index % 3),
    }));
  const ours = [
    ...[...objects('orders', 'par_a', 230), ...objects('allocations', 'par_a', 120)],
    ...[...objects('withdrawals', 'par_a', 3), ...objects('withdrawals', 'par_b', 101)],
  ];
  /** Every other one is in the statement. */
  const isStated = (_: Ours, index: number) => index % 2 === 0;
  const items = ours.filter(isStated).map(({ id }) => item({ section: 'order', objectId: id }));
  const missing = ours.filter((one, index) => !isStated(one, index)).map(({ id }) => id);

  it("the gateway's objects are found once each if the statement lacks them, of all partners and kinds, however often the run is interrupted", async () => {
    for (const saves of [Number.POSITIVE_INFINITY, 1, 2]) {
      const days = new Days(items, ours);
      for (let turns = 0; !(await days.compare(compareOurs, saves)); turns += 1) assert.ok(turns < 20);
      assert.deepEqual(days.found.map(({ objectId }) => objectId).toSorted(), missing.toSorted(), `${saves} saves`);
      assert.ok(days.found.every(({ kind }) => kind.endsWith('_missing')));
      assert.equal(days.objects, BigInt(ours.length));
    }
  });

  it("the gateway's objects are compared with the statement if the broker reported them in the period, and were there by its end", async () => {
    const one = { kind: 'withdrawals', partnerId: 'par_a' } as const;
    const some: Ours[] = [
      { ...one, id: 'in', reportedAt: period.from },
      { ...one, id: 'before', reportedAt: period.from - 1 },
      { ...one, id: 'last', reportedAt: period.to - 1 },
      { ...one, id: 'after', reportedAt: period.to },
      { ...one, id: 'never', reportedAt: null },
      { ...one, id: 'open', state: 'uncertain' },
      { ...one, id: 'late', createdAt: period.to + clockMarginMs },
      { ...one, id: 'near', createdAt: period.to + clockMarginMs - 1 },
      { ...one, id: 'older', updatedAt: period.from - clockMarginMs - 1 },
      { ...one, id: 'as early', updatedAt: period.from - clockMarginMs },
    ];
    const days = new Days([], some);
    await days.compare(compareOurs);
    assert.deepEqual(days.found.map(({ objectId }) => objectId).toSorted(), ['as early', 'in', 'last', 'near']);
  });

  it('withdrawals are left out, and the run says so once, if the statement has none because the broker takes none', async () => {
    for (const noted of [false, true]) {
      const days = new Days(items, ours);
      days.notes = noted ? ['withdrawals_left_out'] : [];
      await days.compare(compareOurs);
      assert.ok(days.found.every(({ kind }) => kind !== 'withdrawal_missing'));
      assert.ok(days.found.some(({ kind }) => kind === 'allocation_missing'));
      assert.equal(days.objects, 350n);
      assert.equal(days.noted.length, noted ? 0 : 1);
    }
    const none = new Days([], objects('orders', 'par_a', 2));
    none.notes = [];
    await none.compare(compareOurs);
    assert.deepEqual(none.noted, [], 'there is none to leave out');
  });
});

describe('positions and money', () => {
  const account = (name: string, isRight: boolean, trades: number): StoredItem[] => [
    item({ section: 'cash_before', account: name, symbol: '', itemId: `${name} before`, amountKobo: 1_000n }),
    item({
      section: 'cash',
      account: name,
      symbol: '',
      itemId: name,
      otherKobo: 0n,
      amountKobo: isRight ? 1_000n - BigInt(trades) : 7n,
    }),
    item({ section: 'position_before', account: name, itemId: `${name} SIM before`, quantity: 5n }),
    item({
      section: 'position',
      account: name,
      itemId: `${name} SIM`,
      quantity: 5n + BigInt(trades) + (isRight ? 0n : 1n),
    }),
    ...numbered(trades).map((number) =>
      item({
        ...{ section: 'trade', account: name, objectId: 'ord_a', itemId: `${name} ${number}`, side: 'buy' },
        ...{ quantity: 1n, amountKobo: -1n },
      }),
    ),
  ];
  const items = [
    ...[...account('A1', true, 3), ...account('A2', false, 700), ...account('A3', true, 10)],
    ...[...account('A4', true, 300), ...account('A5', false, 0)],
  ];

  it('positions and money are found once if they do not follow from the day before, however often the run is interrupted', async () => {
    for (const saves of [Number.POSITIVE_INFINITY, 1, 2]) {
      const days = new Days(items);
      for (let turns = 0; !(await days.compare(compareHoldings, saves)); turns += 1) assert.ok(turns < 20);
      assert.deepEqual(days.kinds, ['A2 SIM position', 'A2  cash', 'A5 SIM position', 'A5  cash']);
    }
  });

  it('positions and money are saved up to the last account that was read to its end', async () => {
    const days = new Days(items);
    assert.equal(await days.compare(compareHoldings, 1), false);
    assert.deepEqual([days.position, days.kinds], ['A1', []]);
  });
});
