/** The figures and the ledgers of reports, over orders, money and ledgers that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstIdAt } from '../../../../../src/gateway/edge/ids.ts';
import { daysOf } from '../../../../../src/gateway/operators/calls/reports/days.ts';
import { ledgerReports } from '../../../../../src/gateway/operators/calls/reports/ledger.ts';
import { figureReports } from '../../../../../src/gateway/operators/calls/reports/partner-figures.ts';
import { ReportsUnderWay } from '../../../../../src/gateway/operators/calls/reports/parts.ts';
import { type Sums, sumEntries, sumObjects } from '../../../../../src/gateway/operators/calls/reports/sums.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { transfers } from '../../../../../src/gateway/trading/wallet/store.ts';
import { ReportPeriod } from '../../../../../src/gen/marina/admin/v1/reports_pb.ts';
import { daysAfter } from '../../../../../src/kit/clock.ts';
import { fc } from '../../../../support/properties.ts';
import { storedRow } from '../../../../support/stored-row.ts';

const firstDay = '2026-02-27';
const dayMs = 86_400_000;
const start = daysOf(firstDay).from;
/** A day by its place: 0 is the first one of the reports. */
const dayAt = (place: number) => daysAfter(firstDay, place);
const call = { operator: 'ada' } as never;
const goesOn = new AbortController().signal;

interface Order {
  /** Its day, and how far its id is from the begin of that day. */
  readonly day: number;
  readonly ms?: number;
  readonly trades: readonly { readonly day: number; readonly quantity: number; readonly kobo: number }[];
}

interface Money {
  readonly day: number;
  readonly ms?: number;
  readonly state: string;
  readonly kobo: number;
}

interface Entry {
  readonly ms: number;
  readonly type: 'credit' | 'reserve';
  readonly kobo: bigint;
}

/** The objects of the partner `par_a`. */
class Partner {
  readonly orders: {
    id: string;
    day: string;
    updatedAt: number;
    trades: { day: string; quantity: number; kobo: number }[];
  }[];
  readonly allocations: { id: string; day: string; state: string; kobo: number }[];
  readonly ledger: SqlRow[] = [];

  constructor({
    orders = [] as readonly Order[],
    allocations = [] as readonly Money[],
    ledger = [] as readonly Entry[],
  }) {
    const idAt = (prefix: 'ord' | 'alc', { day, ms = 3_600_000 }: Pick<Order, 'day' | 'ms'>, at: number) => {
      const number = at
        .toString(32)
        .padStart(4, '0')
        .replace(/[0189]/g, (digit) => ({ 0: 'w', 1: 'x', 8: 'y', 9: 'z' })[digit] ?? '');
      return `${firstIdAt(prefix, start + day * dayMs + ms).slice(0, -4)}${number}`;
    };
    this.orders = orders.map(({ trades, ...order }, at) => ({
      ...{ id: idAt('ord', order, at), day: dayAt(order.day) },
      updatedAt: start + Math.max(order.day, ...trades.map(({ day }) => day)) * dayMs + 7_200_000,
      trades: trades.map((trade) => ({ ...trade, day: dayAt(trade.day) })),
    }));
    this.allocations = allocations.map(({ state, kobo, ...money }, at) => {
      return { id: idAt('alc', money, at), day: dayAt(money.day), state, kobo };
    });
    let [available, reserved] = [0n, 0n];
    const nothing = Object.fromEntries(transfers.fields.map((field) => [field, null]));
    for (const [at, { ms, type, kobo }] of ledger.entries()) {
      available += type === 'credit' ? kobo : -kobo;
      reserved += type === 'credit' ? 0n : kobo;
      const sums = { availableAfterKobo: available, reservedAfterKobo: reserved, postedAfterKobo: 0n };
      const row = { ...nothing, ...sums, partnerId: 'par_a', sequence: BigInt(at + 1), id: `wtr_${at + 1}` };
      this.ledger.push(storedRow(transfers, { ...row, type, amountKobo: kobo, createdAt: start + ms } as never));
    }
  }

  #sum(rows: readonly { readonly day: string; readonly quantity: number; readonly kobo: number }[]): SqlRow[] {
    return [...new Set(rows.map(({ day }) => day))].map((day) => {
      const own = rows.filter((row) => row.day === day);
      const total = (of: (row: (typeof own)[number]) => number) => String(own.reduce((sum, row) => sum + of(row), 0));
      return { day, count: own.length, quantity: total(({ quantity }) => quantity), kobo: total(({ kobo }) => kobo) };
    });
  }

  #answer({ sql, values }: Statement): SqlRow[] {
    const most = Number(/LIMIT (\d+)/.exec(sql)?.[1]);
    if (sql.includes('FROM partners'))
      return [{ id: 'par_a' }].filter(({ id }) => id > String(values[0]) || sql.includes('id = ?'));
    if (sql.includes('MIN(counted_day)')) {
      const days = this.orders.map(({ day }) => day).toSorted();
      return [{ first: days[0] ?? null, last: days.at(-1) ?? null }];
    }
    if (sql.includes('FROM wallets')) return this.#head();
    if (sql.includes('wallet_transfers')) return this.#entries(sql, values, most);
    if (sql.includes('AS is_of_day')) {
      const [day, , from, until] = values.map(String) as [string, string, string, string];
      const rows = sql.includes('FROM allocations')
        ? this.allocations
        : sql.includes('FROM orders')
          ? this.#asMoney()
          : [];
      const page = rows
        .filter(({ id }) => id >= from && id < until)
        .toSorted(byId)
        .slice(0, most);
      const groups = [...new Set(page.map((row) => `${row.state} ${row.day === day}`))];
      return groups.map((group) => {
        const own = page.filter((row) => `${row.state} ${row.day === day}` === group);
        const kobo = String(own.reduce((sum, row) => sum + row.kobo, 0));
        const [state = '', isOfDay] = group.split(' ');
        return { state, is_of_day: isOfDay === 'true' ? 1 : 0, count: own.length, kobo, last: own.at(-1)?.id };
      });
    }
    if (sql.includes('FORCE INDEX (orders_counted_day)')) {
      const [, day, at, , id] = values as [string, string, Date, Date, string];
      const isLater = (order: (typeof this.orders)[number]) =>
        order.updatedAt >= at.getTime() && !(order.updatedAt === at.getTime() && order.id <= id);
      const found = this.orders.filter((order) => order.day === day && isLater(order));
      const inOrder = found.toSorted((one, other) => one.updatedAt - other.updatedAt || byId(one, other));
      return inOrder.slice(0, most).map((order) => ({ id: order.id, updated_at: new Date(order.updatedAt) }));
    }
    if (sql.includes('s.order_id IN (')) {
      const ids = new Set(values.flat().map(String));
      return this.#sum(this.orders.filter(({ id }) => ids.has(id)).flatMap(({ trades }) => trades));
    }
    assert.match(sql, /SELECT id, counted_day FROM orders/);
    const [, from, until] = values.map(String) as [string, string, string];
    const page = this.orders
      .filter(({ id }) => id >= from && id < until)
      .toSorted(byId)
      .slice(0, most);
    if (sql.startsWith('SELECT COUNT(*)')) return [{ count: page.length, last: page.at(-1)?.id ?? null }];
    const day = String(values.at(-1));
    return this.#sum(page.filter((order) => order.day === day).flatMap(({ trades }) => trades));
  }

  #asMoney() {
    return this.orders.map(({ id, day }) => ({ id, day, state: 'pending', kobo: 10 }));
  }

  #head(): SqlRow[] {
    const last = this.ledger.at(-1);
    if (last === undefined) return [];
    const sums = { available_kobo: last.available_after_kobo, reserved_kobo: 0, posted_kobo: 0 };
    return [{ partner_id: 'par_a', last_sequence: last.sequence, last_hash: Buffer.alloc(32), ...sums }];
  }

  #entries(sql: string, values: Statement['values'], most: number): SqlRow[] {
    const after = (from: bigint) =>
      this.ledger.filter(({ sequence }) => BigInt(String(sequence)) >= from).slice(0, most);
    const [, one = '0', end = '0'] = values.map(String);
    if (sql.includes('sequence > ?')) return after(BigInt(one) + 1n);
    if (!sql.includes('sequence >= ?')) return this.ledger.filter(({ sequence }) => String(sequence) === one);
    if (!sql.includes('GROUP BY type')) return after(BigInt(one));
    const page = after(BigInt(one)).filter(({ sequence }) => BigInt(String(sequence)) < BigInt(end));
    return [...new Set(page.map(({ type }) => String(type)))].map((type) => {
      const own = page.filter((row) => row.type === type);
      const kobo = own.reduce((sum, row) => sum + BigInt(String(row.amount_kobo)), 0n);
      return { type, count: own.length, kobo: String(kobo), last: own.at(-1)?.sequence };
    });
  }

  get database() {
    return {
      read: async (query: Statement) => this.#answer(query),
      readAll: async (queries: readonly Statement[]) => queries.map((query) => this.#answer(query)),
      transaction: async (reads: readonly Statement[], decide: (rows: SqlRow[][]) => { result: unknown }) =>
        decide(reads.map((query) => this.#answer(query))).result,
    } as never;
  }

  /** The figures of a report, by its period. */
  async figures(period: ReportPeriod, days: number): Promise<Figures[]> {
    const { exportPartnerFigures } = figureReports(this.database, new ReportsUnderWay());
    const asked = { fromDay: firstDay, toDay: dayAt(days - 1), partnerId: 'par_a', period, format: 0 };
    const found: Figures[] = [];
    for await (const part of exportPartnerFigures(asked as never, call, goesOn)) {
      found.push(...(((part as { figures?: Figures[] }).figures ?? []) as Figures[]));
    }
    return found;
  }

  /** The lines of the report of the ledger, as `kind sequence available`. */
  async lines(from: number, days: number): Promise<string[]> {
    const { exportLedger } = ledgerReports(this.database, new ReportsUnderWay());
    const asked = { fromDay: dayAt(from), toDay: dayAt(from + days - 1), partnerId: '', format: 0 };
    const found: string[] = [];
    for await (const part of exportLedger(asked as never, call, goesOn)) {
      for (const { kind, sequence, availableKobo, availableChangeKobo } of (part as { lines?: Line[] }).lines ?? []) {
        found.push([kind, sequence, availableChangeKobo, availableKobo].filter((one) => one !== undefined).join(' '));
      }
    }
    return found;
  }
}

interface Line {
  readonly kind: string;
  readonly sequence?: bigint;
  readonly availableKobo: bigint;
  readonly availableChangeKobo?: bigint;
}

interface Figures {
  readonly firstDay: string;
  readonly lastDay: string;
  readonly orders: readonly { readonly state: string; readonly count: bigint }[];
  readonly allocations: readonly {
    readonly state: string;
    readonly count: bigint;
    readonly valueKoboDecimal: string;
  }[];
  readonly trades: { readonly count: bigint; readonly quantityDecimal: string; readonly valueKoboDecimal: string };
  readonly wallet?: {
    readonly opening: { readonly availableKobo: bigint; readonly lastSequence: bigint };
    readonly closing: { readonly availableKobo: bigint; readonly lastSequence: bigint };
    readonly entries: readonly { readonly type: string; readonly count: bigint; readonly amountKoboDecimal: string }[];
  };
}

const byId = (one: { readonly id: string }, other: { readonly id: string }) => (one.id < other.id ? -1 : 1);

/** The sums of all figures of a report. */
function sumsOf(figures: readonly Figures[]) {
  const total = (values: readonly (bigint | string)[]) =>
    values.reduce<bigint>((sum, value) => sum + BigInt(value), 0n);
  const states = (of: 'orders' | 'allocations') => figures.flatMap((one) => one[of]).map(({ count }) => count);
  const entries = figures.flatMap(({ wallet }) => wallet?.entries ?? []);
  return {
    orders: total(states('orders')),
    allocations: total(states('allocations')),
    allocated: total(figures.flatMap((one) => one.allocations.map(({ valueKoboDecimal }) => valueKoboDecimal))),
    trades: total(figures.map(({ trades }) => trades.count)),
    quantity: total(figures.map(({ trades }) => trades.quantityDecimal)),
    entries: total(entries.map(({ count }) => count)),
    moved: total(entries.map(({ amountKoboDecimal }) => amountKoboDecimal)),
  };
}

const place = (min: number, max: number) => fc.integer({ min, max });
const trade = fc.record({ day: place(0, 4), quantity: place(1, 9), kobo: place(1, 99) });
const world = fc.record({
  orders: fc.array(
    fc.record({
      day: place(-2, 3),
      ms: fc.constantFrom(0, 1, 3_600_000, dayMs - 1),
      trades: fc.array(trade, { maxLength: 3 }),
    }),
    { maxLength: 6 },
  ),
  allocations: fc.array(
    fc.record({
      day: place(-1, 3),
      ms: fc.constantFrom(-1, 0, dayMs - 1),
      state: fc.constantFrom('booked', 'rejected'),
      kobo: place(1, 99),
    }),
    { maxLength: 6 },
  ),
  ledger: fc.array(
    fc.record({ ms: place(-dayMs, 4 * dayMs), type: fc.constant('credit' as const), kobo: fc.bigInt(1n, 99n) }),
    {
      maxLength: 8,
    },
  ),
});

describe('the figures of a partner', () => {
  it('the figures of a partner count each order, trade, allocation and entry of the days once, and each day begins as the one before ends', async () => {
    await fc.assert(
      fc.asyncProperty(world, async ({ orders, allocations, ledger }) => {
        // No trade is before the day of its order.
        const placed = orders.map((order) => ({
          ...order,
          trades: order.trades.map((one) => ({ ...one, day: Math.max(one.day, order.day) })),
        }));
        const inOrder = ledger.toSorted((one, other) => one.ms - other.ms);
        const partner = new Partner({ orders: placed, allocations, ledger: inOrder });
        const isIn = ({ day }: { readonly day: number }) => day >= 0 && day < 3;
        const traded = placed.flatMap(({ trades }) => trades).filter(isIn);
        const money = allocations.filter(isIn);
        const moved = inOrder.filter(({ ms }) => ms >= 0 && ms < 3 * dayMs);
        const wanted = {
          ...{ orders: BigInt(placed.filter(isIn).length), allocations: BigInt(money.length) },
          ...{ allocated: BigInt(money.reduce((sum, { kobo }) => sum + kobo, 0)), trades: BigInt(traded.length) },
          ...{
            quantity: BigInt(traded.reduce((sum, { quantity }) => sum + quantity, 0)),
            entries: BigInt(moved.length),
          },
          moved: moved.reduce((sum, { kobo }) => sum + kobo, 0n),
        };
        for (const period of [ReportPeriod.DAY, ReportPeriod.MONTH]) {
          const figures = await partner.figures(period, 3);
          assert.deepEqual(sumsOf(figures), wanted, ReportPeriod[period]);
          let before: NonNullable<Figures['wallet']>['closing'] | undefined;
          for (const { wallet } of figures) {
            if (wallet === undefined) continue;
            if (before !== undefined) assert.deepEqual(wallet.opening, before);
            before = wallet.closing;
            const change = wallet.entries.reduce((sum, { amountKoboDecimal }) => sum + BigInt(amountKoboDecimal), 0n);
            assert.equal(wallet.opening.availableKobo + change, wallet.closing.availableKobo);
          }
        }
      }),
      { numRuns: 30 },
    );
  });

  it('add up to those of a month, and leave out a period in which nothing happened, unless there is money', async () => {
    const trades = [{ day: 0, quantity: 1, kobo: 5 }];
    const partner = new Partner({
      orders: [
        { day: 0, trades },
        { day: 1, trades: [] },
        { day: 3, trades: [] },
      ],
    });
    const shown = (figures: readonly Figures[]) =>
      figures.map((one) => `${one.firstDay} ${one.lastDay} ${one.orders[0]?.count}`);
    assert.deepEqual(shown(await partner.figures(ReportPeriod.DAY, 5)), [
      ...['2026-02-27 2026-02-27 1', '2026-02-28 2026-02-28 1', '2026-03-02 2026-03-02 1'],
    ]);
    assert.deepEqual(shown(await partner.figures(ReportPeriod.MONTH, 5)), [
      '2026-02-27 2026-02-28 2',
      '2026-03-01 2026-03-03 1',
    ]);
    const rich = new Partner({ ledger: [{ ms: -5, type: 'credit', kobo: 7n }] });
    assert.equal((await rich.figures(ReportPeriod.DAY, 3)).length, 3);
    assert.equal((await new Partner({}).figures(ReportPeriod.DAY, 3)).length, 0);
  });

  it('the figures of a partner are whole, also if a day has more objects than are read together', async () => {
    const orders = (count: number, day: number, on: number): Order[] =>
      Array.from({ length: count }, () => ({ day, trades: [{ day: on, quantity: 1, kobo: 2 }] }));
    for (const [placed, carried] of [
      [500, 501],
      [501, 1_000],
      [1_000, 1_001],
    ] as const) {
      const partner = new Partner({ orders: [...orders(placed, 0, 0), ...orders(carried, -1, 0)] });
      const { trades } = sumsOf(await partner.figures(ReportPeriod.DAY, 1));
      assert.equal(trades, BigInt(placed + carried), `${placed} of the day, ${carried} of the day before`);
    }
    for (const count of [2_000, 2_001]) {
      const money = Array.from({ length: count }, (_, at) => ({
        day: 0,
        state: at % 2 === 0 ? 'booked' : 'rejected',
        kobo: 3,
      }));
      const partner = new Partner({ allocations: money });
      const found = await sumObjects(partner.database, 'par_a', 'alc', daysOf(firstDay));
      assert.deepEqual(countOf(found), BigInt(count), `${count} allocations`);
    }
  });
});

const countOf = (sums: Sums) => [...sums.values()].reduce((sum, { count }) => sum + count, 0n);

describe('the entries of a ledger', () => {
  const many = (count: number): Entry[] =>
    Array.from({ length: count }, (_, at) => ({ ms: at, type: at % 3 === 2 ? 'reserve' : 'credit', kobo: 3n }));

  it('the entries of a ledger are added up once each, and a report ends if one of them is missing', async () => {
    for (const count of [0, 1, 2_000, 2_001]) {
      const partner = new Partner({ ledger: many(count) });
      const part = { first: 1n, end: BigInt(count) + 1n };
      assert.deepEqual(countOf(await sumEntries(partner.database, 'par_a', part)), BigInt(count), `${count}`);
      if (count === 0) continue;
      for (const gone of new Set([0, count - 1])) {
        const lacking = new Partner({ ledger: many(count) });
        lacking.ledger.splice(gone, 1);
        await assert.rejects(sumEntries(lacking.database, 'par_a', part), /could not be read/, `${gone} of ${count}`);
      }
    }
  });

  it('the entries of a ledger are listed once each between the sums before and after, also if a day has none', async () => {
    const partner = new Partner({
      ledger: [
        ...[{ ms: -1, type: 'credit', kobo: 100n } as const, { ms: 0, type: 'credit', kobo: 10n } as const],
        ...[{ ms: dayMs - 1, type: 'reserve', kobo: 30n } as const, { ms: dayMs, type: 'credit', kobo: 1n } as const],
      ],
    });
    assert.deepEqual(await partner.lines(0, 1), ['opening 100', 'entry 2 10 110', 'entry 3 -30 80', 'closing 80']);
    assert.deepEqual(await partner.lines(0, 2), [
      'opening 100',
      'entry 2 10 110',
      'entry 3 -30 80',
      'entry 4 1 81',
      'closing 81',
    ]);
    assert.deepEqual(await partner.lines(2, 3), ['opening 81', 'closing 81']);
    assert.deepEqual(await partner.lines(-9, 2), ['opening 0', 'closing 0']);
    assert.deepEqual(await new Partner({}).lines(0, 1), []);
    for (const count of [199, 200, 201, 400]) {
      const long = new Partner({ ledger: many(count) });
      assert.equal((await long.lines(0, 1)).length, count + 2, `${count}`);
      long.ledger.splice(Math.floor(count / 2), 1);
      await assert.rejects(long.lines(0, 1), /could not be read/);
    }
  });
});
