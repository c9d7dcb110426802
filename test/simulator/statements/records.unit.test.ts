import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AllocationOutcome } from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { AccountStatus, RejectReason, ReportKind, Side } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { StatementOrderState, StatementWithdrawalState } from '../../../src/gen/marina/broker/v1/statements_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { StatementLie, WithdrawalOutcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { decideWithdrawal } from '../../../src/simulator/back-office/withdrawals.ts';
import { end } from '../../../src/simulator/exchange/exchange.ts';
import type { OrderRequest } from '../../../src/simulator/model.ts';
import { Lies } from '../../../src/simulator/statements/lies.ts';
import { type Day, type Page, StatementRecords } from '../../../src/simulator/statements/records.ts';
import { dayMs, orderRequest, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const fromMs = Date.UTC(2026, 5, 30, 23);
const day: Day = { day: '2026-07-01', fromMs, toMs: fromMs + dayMs };
const dayBefore: Day = { day: '2026-06-30', fromMs: fromMs - dayMs, toMs: fromMs };
const dayAfter: Day = { day: '2026-07-02', fromMs: fromMs + dayMs, toMs: fromMs + 2 * dayMs };
const nobodys = 'nobodysent2222222222';

type Wanted<Record> = (after: string, limit: number) => Promise<Page<Record>>;

class Books {
  readonly lies = new Lies();
  readonly records: StatementRecords;

  constructor(readonly broker: SimulatedBroker) {
    this.records = new StatementRecords(broker.database.asDatabase, this.lies);
  }

  static async start(): Promise<Books> {
    const books = new Books(await SimulatedBroker.start());
    await books.broker.change({}, (unit) => {
      for (const account of ['A1', 'A2']) unit.setAccount(account, AccountStatus.ACTIVE);
    });
    return books;
  }

  lie(lie: StatementLie, clientId: string, changes: { day?: string; account?: string; symbol?: string } = {}): void {
    this.lies.add({ lie, clientId, day: day.day, account: '', symbol: '', ...changes });
  }

  /** Accepts an order, and makes each report at its time. */
  async order(
    id: string,
    reports: readonly (readonly [atMs: number, kind: ReportKind, quantity?: number])[],
    changes: Partial<OrderRequest> = {},
  ) {
    await this.broker.change({ orders: [id] }, (unit) => {
      const order = unit.addOrder(orderRequest({ clientOrderId: id, ...changes }), true);
      for (const [atMs, kind, quantity = 0] of reports) {
        this.broker.nowMs = atMs;
        unit.report(order, kind, { quantity });
      }
    });
    this.broker.nowMs = wednesday;
  }

  /** Books a trade of an account. */
  async trade(
    changes: {
      account?: string;
      clientOrderId?: string;
      symbol?: string;
      side?: Side;
      quantity?: number;
      priceKobo?: number;
      atMs?: number;
    } = {},
  ) {
    const { atMs = wednesday, ...terms } = changes;
    await this.broker.change({}, (unit) =>
      unit.clearing.book({
        ...{ account: 'A1', clientOrderId: 'ord_1', symbol: 'UBA', name: 'UBA', side: Side.BUY, quantity: 10 },
        ...{ priceKobo: 1_000, executedAtMs: atMs, ...terms },
      }),
    );
  }

  async allocate(id: string, atMs: number, account = 'A1', outcome = AllocationOutcome.BOOKED): Promise<void> {
    this.broker.nowMs = atMs;
    await this.broker.change({ allocations: [id] }, (unit) =>
      unit.backOffice.addAllocation({ clientAllocationId: id, account, amountKobo: 700 }, outcome),
    );
    this.broker.nowMs = wednesday;
  }

  /** Adds a withdrawal that waits for its decision. */
  async withdraw(id: string, atMs: number): Promise<void> {
    this.broker.nowMs = atMs;
    await this.broker.change({ withdrawals: [id] }, (unit) => {
      const destination = WithdrawalDestination.BANK_ACCOUNT;
      const terms = {
        clientWithdrawalId: id,
        account: 'A1',
        amountKobo: 300,
        destination,
        course: WithdrawalOutcome.HOLD,
      };
      const none = { state: 0, rejectReason: 0, dutyKobo: 0, decideAtMs: null, returnAtMs: null };
      unit.withdrawals.report(unit.withdrawals.add({ ...terms, ...none }, true), WithdrawalReportKind.ACCEPTED);
    });
    this.broker.nowMs = wednesday;
  }

  async decide(id: string, kind: WithdrawalReportKind, atMs: number): Promise<void> {
    this.broker.nowMs = atMs;
    await this.broker.change({ withdrawals: [id] }, (unit) => decideWithdrawal(unit, id, kind));
    this.broker.nowMs = wednesday;
  }

  orders =
    (of = day): Wanted<{ clientOrderId?: string }> =>
    (after, limit) =>
      this.records.orders(of, after, limit);
}

/** Reads all pages of a section, each behind the last record of the one before. */
async function allPages<Record>(read: Wanted<Record>, limit: number): Promise<Record[]> {
  const all: Record[] = [];
  let after = '';
  for (let pages = 0; pages < 20; pages += 1) {
    const { records, hasMore } = await read(after, limit);
    all.push(...records.map(([, record]) => record));
    if (!hasMore) return all;
    const last = records.at(-1)?.[0] ?? '';
    assert.ok(last > after, `${last} behind ${after}`);
    after = last;
  }
  throw new Error('the pages have no end');
}

describe('the orders of a statement', () => {
  const { ACCEPTED, TRADE, CANCELLED, EXPIRED, REJECTED } = ReportKind;

  it('a statement has the orders with a report of its day, from its first millisecond to its last', async () => {
    const books = await Books.start();
    for (const [id, atMs] of [
      ['ord_a', day.fromMs - 1],
      ['ord_b', day.fromMs],
      ['ord_c', day.toMs - 1],
      ['ord_d', day.toMs],
    ] as const) {
      await books.order(id, [[atMs, ACCEPTED]]);
    }
    const idsOf = async (of: Day) => (await books.records.orders(of, '', 10)).records.map(([id]) => id);
    assert.deepEqual(
      [await idsOf(dayBefore), await idsOf(day), await idsOf(dayAfter)],
      [['ord_a'], ['ord_b', 'ord_c'], ['ord_d']],
    );
  });

  it('an order has the state of the end of the day, and all that had traded until then', async () => {
    const books = await Books.start();
    const [morning, last, next] = [day.fromMs, day.toMs - 1, day.toMs];
    await books.order('ord_1', [
      [dayBefore.fromMs, ACCEPTED],
      [dayBefore.fromMs, TRADE, 10],
      [morning, TRADE, 20],
      [last, TRADE, 30],
      [next, TRADE, 40],
    ]);
    const stated = async (of: Day) => {
      const { records } = await books.records.orders(of, '', 10);
      return records.map(([, { state, filledQuantity }]) => [StatementOrderState[state ?? 0], filledQuantity]);
    };
    assert.deepEqual(
      [await stated(dayBefore), await stated(day), await stated(dayAfter)],
      [[['OPEN', 10n]], [['OPEN', 60n]], [['FILLED', 100n]]],
    );
  });

  it('an order ends as its first final report says, and a late fill changes only what is filled', async () => {
    const cases: [readonly [ReportKind, number?][], string, bigint][] = [
      [[[ACCEPTED]], 'OPEN', 0n],
      [[[ACCEPTED], [TRADE, 99]], 'OPEN', 99n],
      [[[ACCEPTED], [TRADE, 60], [TRADE, 40]], 'FILLED', 100n],
      [[[ACCEPTED], [TRADE, 60], [CANCELLED]], 'CANCELLED', 60n],
      [[[ACCEPTED], [CANCELLED], [TRADE, 100]], 'CANCELLED', 100n],
      [[[ACCEPTED], [EXPIRED], [CANCELLED]], 'EXPIRED', 0n],
      [[[REJECTED]], 'REJECTED', 0n],
      [[[ACCEPTED], [TRADE, 1], [REJECTED]], 'CANCELLED', 1n],
    ];
    const books = await Books.start();
    for (const [at, [reports]] of cases.entries()) {
      await books.order(
        `ord_${at}`,
        reports.map(([kind, quantity]) => [wednesday, kind, quantity]),
      );
    }
    const { records } = await books.records.orders(day, '', 100);
    assert.deepEqual(
      records.map(([id, { state, filledQuantity }]) => [id, StatementOrderState[state ?? 0], filledQuantity]),
      cases.map(([, state, filled], at) => [`ord_${at}`, state, filled]),
    );
  });

  it('an order is stated with its terms', async () => {
    const books = await Books.start();
    await books.order('ord_1', [[wednesday, ACCEPTED]], { account: 'A2', symbol: 'UBA', side: Side.SELL, quantity: 9 });
    const { records } = await books.records.orders(day, '', 10);
    assert.deepEqual(records, [
      [
        'ord_1',
        {
          ...{ clientOrderId: 'ord_1', exchangeOrderId: 'NGX000000000001', account: 'A2', symbol: 'UBA' },
          ...{ side: Side.SELL, state: StatementOrderState.OPEN, quantity: 9n, filledQuantity: 0n },
        },
      ],
    ]);
  });

  it('each order is on one page, however many a page has, and with those that nobody sent', async () => {
    const books = await Books.start();
    const ids = ['ord_a', 'ord_b', 'ord_n', 'ord_o', 'ord_z'];
    for (const id of ids)
      await books.order(id, [
        [wednesday, ACCEPTED],
        [wednesday, CANCELLED],
      ]);
    books.lie(StatementLie.ORDER_EXTRA, '', { account: 'A2', symbol: 'GTCO' });
    books.lie(StatementLie.ORDER_EXTRA, '', { day: dayBefore.day });
    const expected = ['ord_a', 'ord_b', 'ord_n', `ord_${nobodys}`, 'ord_o', 'ord_z'];
    for (const limit of [1, 2, 3, 4, 5, 6]) {
      const all = await allPages(books.orders(), limit);
      assert.deepEqual(
        all.map(({ clientOrderId }) => clientOrderId),
        expected,
        `pages of ${limit}`,
      );
    }
    assert.deepEqual(
      [(await books.records.orders(day, '', 5)).hasMore, (await books.records.orders(day, '', 4)).hasMore],
      [false, true],
    );
    const extra = (await books.records.orders(day, 'ord_n', 10)).records[0]?.[1];
    assert.deepEqual([extra?.account, extra?.symbol, extra?.state], ['A2', 'GTCO', StatementOrderState.OPEN]);
  });

  it('a lie about an order changes that order on its day alone', async () => {
    const books = await Books.start();
    for (const id of ['ord_1', 'ord_2', 'ord_3', 'ord_4', 'ord_5']) {
      await books.order(id, [
        [wednesday, ACCEPTED],
        ...(id === 'ord_3' ? ([[wednesday, TRADE, 100]] as const) : []),
        ...(id === 'ord_4' ? ([[wednesday, EXPIRED]] as const) : []),
        [wednesday + dayMs, CANCELLED],
      ]);
    }
    books.lie(StatementLie.ORDER_MISSING, 'ord_1');
    for (const id of ['ord_2', 'ord_4']) books.lie(StatementLie.ORDER_STATE, id);
    for (const id of ['ord_2', 'ord_3']) books.lie(StatementLie.ORDER_FILLED, id);
    const stated = async (of: Day) => {
      const { records } = await books.records.orders(of, '', 100);
      return records.map(([id, { state, filledQuantity }]) => [id, StatementOrderState[state ?? 0], filledQuantity]);
    };
    assert.deepEqual(await stated(day), [
      ['ord_2', 'EXPIRED', 1n],
      ['ord_3', 'FILLED', 99n],
      ['ord_4', 'OPEN', 0n],
      ['ord_5', 'OPEN', 0n],
    ]);
    assert.deepEqual((await stated(dayAfter)).length, 5);
  });
});

describe('the trades of a statement', () => {
  const ids = (page: Page<{ id?: string; account?: string }>) =>
    page.records.map(([, { id, account }]) => `${account} ${id}`);

  it('a statement has the trades of its day by account and number, each on one page', async () => {
    const books = await Books.start();
    for (const [account, atMs] of [
      ['A2', wednesday],
      ['A1', wednesday],
      ['A1', day.fromMs - 1],
      ['A2', wednesday],
      ['A1', day.toMs - 1],
      ['A1', day.toMs],
      ['A3', day.fromMs],
    ] as const) {
      await books.trade({ account, atMs });
    }
    const expected = [
      'A1 TRD000000000002',
      'A1 TRD000000000005',
      'A2 TRD000000000001',
      'A2 TRD000000000004',
      'A3 TRD000000000007',
    ];
    for (const limit of [1, 2, 3, 4, 5, 6]) {
      const all = await allPages((after, most) => books.records.trades(day, after, most), limit);
      assert.deepEqual(
        all.map(({ account, id }) => `${account} ${id}`),
        expected,
        `pages of ${limit}`,
      );
    }
    assert.deepEqual(ids(await books.records.trades(dayBefore, '', 10)), ['A1 TRD000000000003']);
  });

  it('a trade has its terms, and the change of money with its charges', async () => {
    const books = await Books.start();
    await books.trade();
    await books.trade({ side: Side.SELL, symbol: 'GTCO', clientOrderId: 'ord_2', quantity: 20, priceKobo: 2_000 });
    const [buy, sale] = books.broker.database.rows('deals').map((row) => BigInt(row.consideration_kobo as number));
    const { records } = await books.records.trades(day, '', 10);
    assert.deepEqual(
      records.map(([, trade]) => trade),
      [
        {
          ...{ id: 'TRD000000000001', clientOrderId: 'ord_1', account: 'A1', symbol: 'UBA', side: Side.BUY },
          ...{ quantity: 10n, priceKobo: 1_000n, executedAt: timestampFromMs(wednesday), cashChangeKobo: -(buy ?? 0n) },
        },
        {
          ...{ id: 'TRD000000000002', clientOrderId: 'ord_2', account: 'A1', symbol: 'GTCO', side: Side.SELL },
          ...{ quantity: 20n, priceKobo: 2_000n, executedAt: timestampFromMs(wednesday), cashChangeKobo: sale },
        },
      ],
    );
    assert.ok((buy ?? 0n) > 10_000n && (sale ?? 0n) < 40_000n);
  });

  it('the sums of trades, positions and cash agree with each other under each lie about a trade', async () => {
    const { TRADE_MISSING, TRADE_EXTRA, TRADE_PRICE, TRADE_QUANTITY } = StatementLie;
    for (const side of [Side.BUY, Side.SELL]) {
      for (const lie of [undefined, TRADE_MISSING, TRADE_EXTRA, TRADE_PRICE, TRADE_QUANTITY]) {
        const books = await Books.start();
        await books.order('ord_1', [[wednesday, ReportKind.ACCEPTED]]);
        await books.trade({ side });
        await books.trade({ side, quantity: 5 });
        await books.trade({ account: 'A2' });
        if (lie !== undefined) books.lie(lie, 'ord_1');
        const { records: trades } = await books.records.trades(day, '', 10);
        const own = trades.map(([, trade]) => trade).filter(({ account }) => account === 'A1');
        const sign = side === Side.BUY ? 1n : -1n;
        const held = own.reduce((sum, { quantity }) => sum + sign * (quantity ?? 0n), 0n);
        const cash = own.reduce((sum, { cashChangeKobo }) => sum + (cashChangeKobo ?? 0n), 0n);
        for (const of of [day, dayAfter]) {
          const { records: positions } = await books.records.positions(of, '', 10);
          const { records: balances } = await books.records.cash(of, '', 10);
          assert.equal(positions[0]?.[1].quantity, held, `${StatementLie[lie ?? 0]} ${of.day}`);
          assert.equal(balances[0]?.[1].balanceKobo, cash, `${StatementLie[lie ?? 0]} ${of.day}`);
          assert.equal(positions[1]?.[1].quantity, 10n, 'another account');
        }
        const quantities = own.map(({ quantity, priceKobo }) => `${quantity} at ${priceKobo}`);
        const expected = {
          ...{ [TRADE_MISSING]: ['5 at 1000'], [TRADE_EXTRA]: ['10 at 1000', '10 at 1000', '5 at 1000'] },
          ...{ [TRADE_PRICE]: ['10 at 1001', '5 at 1000'], [TRADE_QUANTITY]: ['11 at 1000', '5 at 1000'] },
        }[lie as never] ?? ['10 at 1000', '5 at 1000'];
        assert.deepEqual(quantities, expected);
      }
    }
  });

  it('an extra trade follows the one that it copies, and pages go on behind it', async () => {
    const books = await Books.start();
    await books.order('ord_1', [[wednesday, ReportKind.ACCEPTED]]);
    await books.trade();
    await books.trade();
    books.lie(StatementLie.TRADE_EXTRA, 'ord_1');
    for (const limit of [1, 2, 3]) {
      const all = await allPages((after, most) => books.records.trades(day, after, most), limit);
      assert.deepEqual(
        all.map(({ id }) => id),
        ['TRD000000000001', 'TRD000000000001X', 'TRD000000000002'],
      );
    }
  });

  it('a lie about a trade of an earlier day changes no trade of the day', async () => {
    const books = await Books.start();
    await books.order('ord_1', [[wednesday, ReportKind.ACCEPTED]]);
    await books.trade({ atMs: dayBefore.fromMs });
    await books.trade();
    books.lie(StatementLie.TRADE_MISSING, 'ord_1', { day: dayBefore.day });
    assert.equal((await books.records.trades(day, '', 10)).records.length, 1);
    assert.equal((await books.records.trades(dayBefore, '', 10)).records.length, 0);
    assert.equal((await books.records.positions(day, '', 10)).records[0]?.[1].quantity, 10n);
    books.lie(StatementLie.TRADE_MISSING, 'ord_9');
    assert.equal((await books.records.trades(day, '', 10)).records.length, 1);
  });
});

describe('the allocations and withdrawals of a statement', () => {
  it('a statement has the allocations of its day, each on one page, with those that nobody sent', async () => {
    const books = await Books.start();
    await books.allocate('alc_a', day.fromMs - 1);
    await books.allocate('alc_b', day.fromMs);
    await books.allocate('alc_c', day.toMs - 1, 'A2', AllocationOutcome.REJECTED);
    await books.allocate('alc_o', day.toMs - 1);
    await books.allocate('alc_z', day.toMs);
    books.lie(StatementLie.ALLOCATION_EXTRA, '', { account: 'A2' });
    for (const limit of [1, 2, 3, 4]) {
      const all = await allPages((after, most) => books.records.allocations(day, after, most), limit);
      assert.deepEqual(
        all.map((one) => one.clientAllocationId),
        ['alc_b', 'alc_c', `alc_${nobodys}`, 'alc_o'],
      );
      const [first, second, extra] = all;
      assert.deepEqual(first, {
        ...{ clientAllocationId: 'alc_b', account: 'A1', amountKobo: 700n, outcome: AllocationOutcome.BOOKED },
        ...{ brokerReference: 'BKG000000000002', at: timestampFromMs(day.fromMs) },
      });
      assert.deepEqual([second?.outcome, second?.brokerReference], [AllocationOutcome.REJECTED, '']);
      assert.deepEqual([extra?.account, extra?.amountKobo, extra?.at], ['A2', 100n, timestampFromMs(day.toMs - 1)]);
    }
  });

  it('a lie about an allocation changes the allocation, and the money as if it were true', async () => {
    const { ALLOCATION_MISSING, ALLOCATION_AMOUNT, ALLOCATION_EXTRA } = StatementLie;
    for (const [lie, id, amounts, cash] of [
      [ALLOCATION_MISSING, 'alc_1', [], 0n],
      [ALLOCATION_AMOUNT, 'alc_1', [701n], 701n],
      [ALLOCATION_EXTRA, '', [700n, 100n], 800n],
      [ALLOCATION_MISSING, 'alc_9', [700n], 700n],
    ] as const) {
      const books = await Books.start();
      await books.allocate('alc_1', wednesday);
      books.lie(lie, id, { account: 'A1' });
      const { records } = await books.records.allocations(day, '', 10);
      assert.deepEqual(
        records.map(([, one]) => one.amountKobo),
        amounts,
      );
      for (const of of [day, dayAfter]) {
        assert.equal((await books.records.cash(of, '', 10)).records[0]?.[1].balanceKobo, cash, `${lie} ${of.day}`);
      }
    }
  });

  it('a lie about a rejected allocation changes no money', async () => {
    const books = await Books.start();
    await books.allocate('alc_1', wednesday);
    await books.allocate('alc_2', wednesday, 'A1', AllocationOutcome.REJECTED);
    books.lie(StatementLie.ALLOCATION_MISSING, 'alc_2');
    books.lie(StatementLie.ALLOCATION_AMOUNT, 'alc_2');
    assert.equal((await books.records.cash(day, '', 10)).records[0]?.[1].balanceKobo, 700n);
  });

  it('a withdrawal is on each day with a report, in its state at the end of the day', async () => {
    const books = await Books.start();
    await books.withdraw('wdr_a', dayBefore.toMs - 1);
    await books.withdraw('wdr_b', day.fromMs);
    await books.decide('wdr_a', WithdrawalReportKind.PAID, day.toMs - 1);
    await books.decide('wdr_b', WithdrawalReportKind.REJECTED, day.fromMs + 1);
    await books.withdraw('wdr_o', day.fromMs);
    await books.decide('wdr_a', WithdrawalReportKind.RETURNED, day.toMs);
    const stated = async (of: Day) => {
      const { records } = await books.records.withdrawals(of, '', 10);
      return records.map(([id, one]) => `${id} ${StatementWithdrawalState[one.state ?? 0]}`);
    };
    assert.deepEqual(
      [await stated(dayBefore), await stated(day), await stated(dayAfter)],
      [['wdr_a ACCEPTED'], ['wdr_a PAID', 'wdr_b REJECTED', 'wdr_o ACCEPTED'], ['wdr_a RETURNED']],
    );
    const [first] = (await books.records.withdrawals(day, '', 1)).records;
    assert.deepEqual(first?.[1], {
      ...{ clientWithdrawalId: 'wdr_a', account: 'A1', amountKobo: 300n, brokerReference: 'WDL000000000001' },
      ...{ destination: WithdrawalDestination.BANK_ACCOUNT, state: StatementWithdrawalState.PAID },
      at: timestampFromMs(day.toMs - 1),
    });
    books.lie(StatementLie.WITHDRAWAL_EXTRA, '', { account: 'A2' });
    for (const limit of [1, 2, 3, 4]) {
      const all = await allPages((after, most) => books.records.withdrawals(day, after, most), limit);
      assert.deepEqual(
        all.map((one) => one.clientWithdrawalId),
        ['wdr_a', 'wdr_b', `wdr_${nobodys}`, 'wdr_o'],
      );
    }
  });

  it('a lie about a withdrawal changes that withdrawal on its day', async () => {
    const books = await Books.start();
    for (const id of ['wdr_1', 'wdr_2', 'wdr_3', 'wdr_4']) await books.withdraw(id, wednesday);
    await books.decide('wdr_3', WithdrawalReportKind.REJECTED, wednesday);
    books.lie(StatementLie.WITHDRAWAL_MISSING, 'wdr_1');
    books.lie(StatementLie.WITHDRAWAL_AMOUNT, 'wdr_2');
    for (const id of ['wdr_2', 'wdr_3']) books.lie(StatementLie.WITHDRAWAL_STATE, id);
    const { records } = await books.records.withdrawals(day, '', 10);
    assert.deepEqual(
      records.map(([id, one]) => [id, one.amountKobo, StatementWithdrawalState[one.state ?? 0]]),
      [
        ['wdr_2', 301n, 'REJECTED'],
        ['wdr_3', 300n, 'PAID'],
        ['wdr_4', 300n, 'ACCEPTED'],
      ],
    );
  });
});

describe('the positions and the cash of a statement', () => {
  it('positions add up all trades until the day, by account and stock, each on one page', async () => {
    const books = await Books.start();
    for (const [account, symbol, side, quantity, atMs] of [
      ['A1', 'UBA', Side.BUY, 10, dayBefore.fromMs],
      ['A1', 'UBA', Side.SELL, 4, day.toMs - 1],
      ['A1', 'UBA', Side.BUY, 100, day.toMs],
      ['A1', 'GTCO', Side.BUY, 7, wednesday],
      ['A2', 'AIRTELAFRI', Side.SELL, 3, wednesday],
      ['A2', 'UBA', Side.BUY, 5, wednesday],
    ] as const) {
      await books.trade({ account, symbol, side, quantity, atMs });
    }
    const expected = ['A1 GTCO 7', 'A1 UBA 6', 'A2 AIRTELAFRI -3', 'A2 UBA 5'];
    for (const limit of [1, 2, 3, 4, 5]) {
      const all = await allPages((after, most) => books.records.positions(day, after, most), limit);
      assert.deepEqual(
        all.map(({ account, symbol, quantity }) => `${account} ${symbol} ${quantity}`),
        expected,
      );
    }
    books.lie(StatementLie.POSITION, '', { account: 'A1', symbol: 'UBA' });
    const { records } = await books.records.positions(day, '', 10);
    assert.deepEqual(
      records.map(([, { quantity }]) => quantity),
      [7n, 7n, -3n, 5n],
    );
    const next = await books.records.positions(dayAfter, '', 10);
    assert.equal(next.records[1]?.[1].quantity, 106n);
  });

  it('cash adds up the movements and trades until the day, and tells apart the day’s changes that are no allocation', async () => {
    const books = await Books.start();
    const setCash = async (account: string, kobo: number, atMs: number) => {
      books.broker.nowMs = atMs;
      await books.broker.change({}, (unit) => unit.backOffice.setCash(account, kobo));
      books.broker.nowMs = wednesday;
    };
    await setCash('A1', 1_000, day.fromMs - 1);
    await setCash('A1', 1_300, day.fromMs);
    await books.allocate('alc_1', wednesday);
    await setCash('A1', 2_500, day.toMs - 1);
    await setCash('A1', 9_999, day.toMs);
    await books.trade({ account: 'A2', atMs: dayBefore.fromMs });
    await books.trade({ account: 'A2', side: Side.SELL, quantity: 3 });
    await books.trade({ account: 'A2', atMs: day.toMs });
    const [buy = 0n, sale = 0n] = books.broker.database
      .rows('deals')
      .map((row) => BigInt(row.consideration_kobo as number));
    for (const limit of [1, 2, 3]) {
      const all = await allPages((after, most) => books.records.cash(day, after, most), limit);
      assert.deepEqual(all, [
        { account: 'A1', balanceKobo: 2_500n, otherChangesKobo: 800n },
        { account: 'A2', balanceKobo: sale - buy, otherChangesKobo: 0n },
      ]);
    }
    books.lie(StatementLie.CASH, '', { account: 'A2' });
    const { records } = await books.records.cash(day, '', 10);
    assert.deepEqual(
      records.map(([, { balanceKobo }]) => balanceKobo),
      [2_500n, sale - buy + 1n],
    );
  });

  it('an order’s end and its rejection are in no other section', async () => {
    const books = await Books.start();
    await books.order('ord_1', [[wednesday, ReportKind.ACCEPTED]]);
    await books.broker.change({ orders: ['ord_1'] }, (unit) =>
      end(unit, 'ord_1', ReportKind.REJECTED, RejectReason.MARKET_CLOSED),
    );
    for (const section of ['trades', 'allocations', 'withdrawals', 'positions', 'cash'] as const) {
      assert.deepEqual(await books.records[section](day, '', 10), { records: [], hasMore: false });
    }
  });
});
