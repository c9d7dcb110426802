import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { TransactionType } from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus, OrderType, Side, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalDestination } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import type { DealTerms } from '../../../src/simulator/clearing/deals.ts';
import { ClearingRecords } from '../../../src/simulator/clearing/records.ts';
import { dayMs, orderRequest, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const startCashKobo = 1_000_000n;
/** The starts of the Lagos days of 1 and 2 July 2026. A trade of the 1st settles on the 2nd. */
const dayStart = Date.UTC(2026, 5, 30, 23);
const nextDayStart = dayStart + dayMs;

class Accounts {
  readonly records: ClearingRecords;

  constructor(readonly broker: SimulatedBroker) {
    this.records = new ClearingRecords(broker.database.asDatabase, broker.world);
  }

  static async start(): Promise<Accounts> {
    const accounts = new Accounts(await SimulatedBroker.start({ startCashKobo, sharesElsewhere: 0n }));
    await accounts.broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
    return accounts;
  }

  /** Books a trade: 10 shares of UBA at 1,000 kobo, bought by A1 now. */
  async trade(changes: Partial<DealTerms> = {}): Promise<bigint> {
    await this.broker.change({}, (unit) =>
      unit.clearing.book({
        ...{ account: 'A1', clientOrderId: 'ord_1', symbol: 'UBA', name: 'UBA Plc', side: Side.BUY, quantity: 10 },
        ...{ priceKobo: 1_000, executedAtMs: this.broker.nowMs, ...changes },
      }),
    );
    return BigInt(this.broker.database.rows('deals').at(-1)?.consideration_kobo as number);
  }

  setCash(kobo: number, account = 'A1'): Promise<void> {
    return this.broker.change({}, (unit) => unit.backOffice.setCash(account, kobo));
  }

  trades(changes: object = {}) {
    return this.records.trades({
      account: 'A1',
      from: '2026-07-01',
      to: '2026-07-01',
      after: undefined,
      limit: 100,
      ...changes,
    });
  }

  notes(changes: object = {}) {
    return this.records.contractNotes({
      account: 'A1',
      from: '2026-07-01',
      to: '2026-07-01',
      after: undefined,
      limit: 100,
      ...changes,
    });
  }

  transactions(changes: object = {}) {
    const range = { account: 'A1', from: '2026-07-01', to: '2026-07-01', after: undefined, limit: 100 };
    return this.records.transactions({ ...range, type: TransactionType.UNSPECIFIED, ...changes });
  }
}

describe('the balance of an account', () => {
  it('a buy is a pending debit and a sale unsettled until their settlement date begins in Lagos', async () => {
    const accounts = await Accounts.start();
    const bought = await accounts.trade();
    const sold = await accounts.trade({ side: Side.SELL, quantity: 4 });
    await accounts.trade({ account: 'A2', quantity: 7 });
    accounts.broker.nowMs = nextDayStart - 1;
    const { asOf: _, ...before } = await accounts.records.balance('A1');
    assert.deepEqual(before, {
      ...{ account: 'A1', openingKobo: startCashKobo, pendingDebitsKobo: bought, settledKobo: startCashKobo },
      ...{ availableKobo: startCashKobo - bought, unsettledKobo: sold - bought },
      withdrawableKobo: startCashKobo - bought,
    });
    accounts.broker.nowMs = nextDayStart;
    const { asOf: __, ...after } = await accounts.records.balance('A1');
    const settledKobo = startCashKobo + sold - bought;
    assert.deepEqual(after, {
      ...{ account: 'A1', openingKobo: settledKobo, pendingDebitsKobo: 0n, settledKobo },
      ...{ availableKobo: settledKobo, unsettledKobo: 0n, withdrawableKobo: settledKobo },
    });
  });

  it('the opening balance is what the last booking before the day left', async () => {
    const accounts = await Accounts.start();
    accounts.broker.nowMs = dayStart - 2;
    await accounts.setCash(1_000_100);
    accounts.broker.nowMs = dayStart - 1;
    await accounts.setCash(1_000_300);
    await accounts.setCash(1_000_200);
    await accounts.setCash(5, 'A2');
    accounts.broker.nowMs = dayStart;
    await accounts.setCash(1_000_700);
    const { openingKobo, settledKobo } = await accounts.records.balance('A1');
    assert.deepEqual([openingKobo, settledKobo], [1_000_200n, 1_000_700n]);
  });

  it('an account with no movement has the money that it began with, at the time that the broker shows', async () => {
    const accounts = await Accounts.start();
    accounts.broker.world.clock.errorMs = 5_000;
    assert.deepEqual(await accounts.records.balance('A1'), {
      ...{ account: 'A1', openingKobo: startCashKobo, pendingDebitsKobo: 0n, availableKobo: startCashKobo },
      ...{ settledKobo: startCashKobo, unsettledKobo: 0n, withdrawableKobo: startCashKobo },
      asOf: timestampFromMs(wednesday + 5_000),
    });
  });

  it('an account in debt can withdraw nothing, and says what it owes', async () => {
    const accounts = await Accounts.start();
    await accounts.setCash(-1);
    const { availableKobo, withdrawableKobo } = await accounts.records.balance('A1');
    assert.deepEqual([availableKobo, withdrawableKobo], [-1n, 0n]);
  });

  it('what waiting orders may cost is a pending debit', async () => {
    const accounts = await Accounts.start();
    accounts.broker.world.funds.setAside('A1', 300n);
    accounts.broker.world.funds.setAside('A2', 900n);
    const { pendingDebitsKobo, availableKobo, settledKobo } = await accounts.records.balance('A1');
    assert.deepEqual([pendingDebitsKobo, availableKobo, settledKobo], [300n, startCashKobo - 300n, startCashKobo]);
  });

  it('proceeds that will go to the customer’s bank are settled and cannot be withdrawn', async () => {
    const accounts = await Accounts.start();
    await accounts.broker.change({}, (unit) => unit.clearing.directSales.setOn(true));
    const sold = await accounts.trade({ side: Side.SELL });
    accounts.broker.nowMs = nextDayStart;
    const { availableKobo, withdrawableKobo } = await accounts.records.balance('A1');
    assert.deepEqual([availableKobo, withdrawableKobo], [startCashKobo + sold, startCashKobo]);
  });
});

describe('the positions of an account', () => {
  it('positions are the stocks that an account holds, by symbol, each on one page', async () => {
    const accounts = await Accounts.start();
    for (const [symbol, side, account] of [
      ['ZENITHBANK', Side.BUY, 'A1'],
      ['GTCO', Side.BUY, 'A1'],
      ['UBA', Side.BUY, 'A1'],
      ['DANGCEM', Side.BUY, 'A1'],
      ['DANGCEM', Side.SELL, 'A1'],
      ['MTNN', Side.SELL, 'A1'],
      ['ACCESSCORP', Side.BUY, 'A2'],
    ] as const) {
      await accounts.trade({ symbol, side, account });
    }
    for (const limit of [1, 2, 3, 4]) {
      const symbols: string[] = [];
      for (let after = '', isMore = true; isMore; ) {
        const { account, positions = [], hasMore = false } = await accounts.records.positions('A1', after, limit);
        assert.equal(account, 'A1');
        symbols.push(...positions.map(({ symbol }) => symbol ?? ''));
        after = symbols.at(-1) ?? '';
        isMore = hasMore;
      }
      assert.deepEqual(symbols, ['GTCO', 'UBA', 'ZENITHBANK'], `pages of ${limit}`);
    }
  });

  it('a position tells what settled, what is free, what it cost and what it is worth', async () => {
    const accounts = await Accounts.start();
    await accounts.broker.change({}, (unit) =>
      unit.setInstrument({
        ...{ symbol: 'OWN', name: 'Own Plc', kind: 1, lowerKobo: 900, upperKobo: 2_100, quoteKobo: 1_900 },
        ...{ lastKobo: 2_000, halted: false, pinned: true, position: 500 },
      }),
    );
    await accounts.trade({ symbol: 'OWN', quantity: 30, executedAtMs: wednesday - 5 * dayMs });
    await accounts.trade({ symbol: 'OWN', quantity: 10, priceKobo: 2_000 });
    await accounts.trade({ symbol: 'OWN', quantity: 8, side: Side.SELL });
    await accounts.trade({ symbol: 'OWN', quantity: 500, account: 'A2' });
    const waiting = {
      ...orderRequest({
        symbol: 'OWN',
        side: Side.SELL,
        quantity: 5,
        type: OrderType.LIMIT,
        timeInForce: TimeInForce.GTC,
      }),
      ...{ sequence: 1, exchangeOrderId: 'X', filled: 0, endedBy: 0, expiresAtMs: null, plan: [], planAtMs: null },
      ...{ inBook: true, tradedOn: null, tradedKobo: 0n },
    };
    accounts.broker.world.funds.follow(waiting, 2_100, '2026-07-01');
    const { positions = [] } = await accounts.records.positions('A1', '', 10);
    // 30 at 1,000 and 10 at 2,000 cost 50,000, and a fifth of that was sold.
    assert.deepEqual(positions, [
      {
        ...{ symbol: 'OWN', name: 'Own Plc', quantity: 32n, averageCostKoboDecimal: '1250.0', priceKobo: 2_000n },
        ...{ marketValueKobo: 64_000n, settledQuantity: 30n, availableQuantity: 17n },
      },
    ]);
    accounts.broker.nowMs = nextDayStart - 1;
    const [late] = (await accounts.records.positions('A1', '', 10)).positions ?? [];
    assert.deepEqual([late?.settledQuantity, late?.availableQuantity], [30n, 17n]);
    accounts.broker.nowMs = nextDayStart;
    const [settled] = (await accounts.records.positions('A1', '', 10)).positions ?? [];
    assert.deepEqual([settled?.settledQuantity, settled?.availableQuantity], [32n, 27n]);
  });

  it('no position says that fewer than no shares are settled or free', async () => {
    const accounts = await Accounts.start();
    await accounts.trade({ quantity: 10 });
    await accounts.trade({ quantity: 9, side: Side.SELL, executedAtMs: wednesday - 5 * dayMs });
    const [position] = (await accounts.records.positions('A1', '', 10)).positions ?? [];
    assert.deepEqual([position?.quantity, position?.settledQuantity, position?.availableQuantity], [1n, 0n, 0n]);
  });
});

describe('the trades and contract notes of an account', () => {
  it('trades are those of the days of the range, newest first, each on one page', async () => {
    const accounts = await Accounts.start();
    const times = [dayStart - 1, dayStart, wednesday, wednesday, wednesday - 1, nextDayStart - 1, nextDayStart];
    for (const executedAtMs of times) await accounts.trade({ executedAtMs });
    await accounts.trade({ account: 'A2' });
    const expected = [6, 4, 3, 5, 2].map((number) => `TRD00000000000${number}`);
    for (const limit of [1, 2, 3, 4, 5, 6]) {
      const ids: string[] = [];
      let after: { atMs: number; number: number } | undefined;
      for (let isMore = true; isMore; ) {
        const page = await accounts.trades({ limit, after });
        assert.equal(page.inRange, 5);
        const { trades = [] } = page;
        ids.push(...trades.map(({ id }) => id ?? ''));
        isMore = page.hasMore ?? false;
        const number = Number(ids.at(-1)?.slice(3));
        after = { number, atMs: times[number - 1] ?? 0 };
      }
      assert.deepEqual(ids, expected, `pages of ${limit}`);
    }
    const wide = await accounts.trades({ from: '2026-06-30', to: '2026-07-02' });
    assert.deepEqual([wide.trades?.length, wide.inRange], [7, 7]);
  });

  it('a trade has its terms, and is settled from its settlement date', async () => {
    const accounts = await Accounts.start();
    await accounts.trade({ side: Side.SELL, quantity: 12, priceKobo: 500 });
    accounts.broker.nowMs = nextDayStart - 1;
    const trade = (await accounts.trades()).trades?.[0];
    assert.deepEqual(trade, {
      ...{ id: 'TRD000000000001', clientOrderId: 'ord_1', symbol: 'UBA', side: Side.SELL, quantity: 12n },
      ...{ priceKobo: 500n, amountKobo: 6_000n, executedAt: timestampFromMs(wednesday) },
      ...{ settlementDate: '2026-07-02', settled: false },
    });
    accounts.broker.nowMs = nextDayStart;
    assert.equal((await accounts.trades()).trades?.[0]?.settled, true);
  });

  it('a contract note is there from the settlement date of its trade, with its charges', async () => {
    const accounts = await Accounts.start();
    await accounts.trade();
    accounts.broker.nowMs = nextDayStart - 1;
    assert.deepEqual(await accounts.notes(), { account: 'A1', notes: [], hasMore: false, inRange: 0 });
    accounts.broker.nowMs = nextDayStart;
    const [deal] = accounts.broker.database.rows('deals');
    const kobo = (name: string) => BigInt(deal?.[name] as number);
    assert.deepEqual((await accounts.notes()).notes, [
      {
        ...{
          ticket: 'CN000000000001',
          name: 'UBA Plc',
          symbol: 'UBA',
          side: Side.BUY,
          quantity: 10n,
          priceKobo: 1_000n,
        },
        ...{ amountKobo: 10_000n, commissionKobo: kobo('commission_kobo'), statutoryFeesKobo: kobo('statutory_kobo') },
        ...{ otherFeesKobo: kobo('other_kobo'), considerationKobo: kobo('consideration_kobo') },
        ...{ tradeDate: '2026-07-01', transactionDate: '2026-07-02' },
      },
    ]);
    assert.notEqual(kobo('commission_kobo'), kobo('statutory_kobo'));
  });

  it('contract notes are by trade date and number, newest first, each on one page', async () => {
    const accounts = await Accounts.start();
    const days = [wednesday - dayMs, wednesday, wednesday - dayMs, wednesday + 5 * dayMs, wednesday];
    for (const executedAtMs of days) await accounts.trade({ executedAtMs });
    await accounts.trade({ account: 'A2' });
    accounts.broker.nowMs = nextDayStart;
    for (const limit of [1, 2, 3, 4, 5]) {
      const tickets: number[] = [];
      let after: { tradeDate: string; number: number } | undefined;
      for (let isMore = true; isMore; ) {
        const page = await accounts.notes({ from: '2026-06-30', to: '2026-07-08', limit, after });
        assert.equal(page.inRange, 4);
        for (const { ticket = '', tradeDate = '' } of page.notes ?? []) {
          tickets.push(Number(ticket.slice(2)));
          after = { tradeDate, number: tickets.at(-1) ?? 0 };
        }
        isMore = page.hasMore ?? false;
      }
      assert.deepEqual(tickets, [5, 2, 3, 1], `pages of ${limit}`);
    }
  });

  it('a count of what is in a range stops at 1,001', async () => {
    const accounts = await Accounts.start();
    const terms = {
      account: 'A1',
      clientOrderId: '',
      symbol: 'UBA',
      name: 'UBA',
      side: Side.BUY,
      executedAtMs: wednesday,
    };
    const add = (count: number) =>
      accounts.broker.change({}, (unit) => {
        for (let at = 0; at < count; at += 1) unit.clearing.book({ ...terms, quantity: 1, priceKobo: 1_000 });
      });
    await add(1_000);
    assert.equal((await accounts.trades({ limit: 1 })).inRange, 1_000);
    await add(2);
    assert.equal((await accounts.trades({ limit: 1 })).inRange, 1_001);
    assert.equal((await accounts.transactions({ limit: 1 })).inRange, 1_001);
  });
});

describe('the transactions of an account', () => {
  it('a trade is its amount and its charges, with the shares that moved and the note when it is settled', async () => {
    const accounts = await Accounts.start();
    const bought = await accounts.trade();
    const sold = await accounts.trade({ side: Side.SELL, quantity: 4, clientOrderId: 'ord_2' });
    const { transactions = [], inRange, hasMore, account } = await accounts.transactions();
    assert.deepEqual([account, inRange, hasMore], ['A1', 4, false]);
    const [, saleRow, , buyRow] = transactions;
    const none = { clientAllocationId: '', clientWithdrawalId: '', reverses: '', contractNote: '' };
    const common = { ...none, symbol: 'UBA', settlementDate: '2026-07-02', bookedAt: timestampFromMs(wednesday) };
    assert.deepEqual(buyRow, {
      ...{ ...common, id: 'TXN000000000001', type: TransactionType.BUY, amountKobo: -10_000n, quantity: 10n },
      ...{ balanceKobo: startCashKobo - 10_000n, clientOrderId: 'ord_1', trade: 'TRD000000000001' },
    });
    assert.deepEqual(saleRow, {
      ...{ ...common, id: 'TXN000000000003', type: TransactionType.SALE, amountKobo: 4_000n, quantity: -4n },
      ...{ balanceKobo: startCashKobo - bought + 4_000n, clientOrderId: 'ord_2', trade: 'TRD000000000002' },
    });
    assert.deepEqual(
      transactions
        .filter(({ type }) => type === TransactionType.CHARGE)
        .map((one) => [one.quantity, one.amountKobo, one.trade]),
      [
        [undefined, sold - 4_000n, 'TRD000000000002'],
        [undefined, 10_000n - bought, 'TRD000000000001'],
      ],
    );
    accounts.broker.nowMs = nextDayStart;
    const notes = (await accounts.transactions()).transactions?.map(({ contractNote }) => contractNote);
    assert.deepEqual(notes, ['CN000000000002', 'CN000000000002', 'CN000000000001', 'CN000000000001']);
  });

  it('money that is no trade’s names its allocation or withdrawal, and belongs to the Lagos day of its booking', async () => {
    const accounts = await Accounts.start();
    accounts.broker.nowMs = dayStart;
    await accounts.broker.change({}, (unit) => {
      unit.backOffice.addAllocation({ clientAllocationId: 'alc_1', account: 'A1', amountKobo: 700 }, 1);
      const withdrawal = {
        clientWithdrawalId: 'wdr_1',
        account: 'A1',
        amountKobo: 300,
        destination: WithdrawalDestination.WALLET,
      };
      const rest = { sequence: 1, brokerReference: '', course: 0, state: 0, rejectReason: 0, dutyKobo: 0 };
      unit.backOffice.bookWithdrawal({ ...withdrawal, ...rest, decideAtMs: null, returnAtMs: null }, 'taken');
      unit.transactions.book('A1', { type: TransactionType.REVERSAL, amountKobo: -1n, reverses: 1 });
    });
    const { transactions = [] } = await accounts.transactions();
    assert.deepEqual(
      transactions.map((one) => [one.clientAllocationId, one.clientWithdrawalId, one.reverses, one.amountKobo]),
      [
        ['', '', 'TXN000000000001', -1n],
        ['', 'wdr_1', '', -300n],
        ['alc_1', '', '', 700n],
      ],
    );
    for (const { symbol, quantity, clientOrderId, trade, contractNote, settlementDate } of transactions) {
      const given = [symbol, quantity, clientOrderId, trade, contractNote, settlementDate];
      assert.deepEqual(given, ['', undefined, '', '', '', '2026-07-01']);
    }
  });

  it('transactions are those of the range and of the type, newest first, each on one page', async () => {
    const accounts = await Accounts.start();
    const times = [dayStart - 1, dayStart, wednesday, wednesday, nextDayStart - 1, nextDayStart];
    for (const [at, nowMs] of times.entries()) {
      accounts.broker.nowMs = nowMs;
      await accounts.setCash(at + 1);
    }
    await accounts.setCash(1, 'A2');
    for (const limit of [1, 2, 3, 4, 5]) {
      const numbers: number[] = [];
      let after: { atMs: number; number: number } | undefined;
      for (let isMore = true; isMore; ) {
        const page = await accounts.transactions({ limit, after });
        assert.equal(page.inRange, 4);
        numbers.push(...(page.transactions ?? []).map(({ id = '' }) => Number(id.slice(3))));
        const number = numbers.at(-1) ?? 0;
        after = { number, atMs: times[number - 1] ?? 0 };
        isMore = page.hasMore ?? false;
      }
      assert.deepEqual(numbers, [5, 4, 3, 2], `pages of ${limit}`);
    }
    await accounts.trade({ executedAtMs: nextDayStart });
    const charges = await accounts.transactions({ from: '2026-07-02', to: '2026-07-02', type: TransactionType.CHARGE });
    assert.deepEqual([charges.transactions?.map(({ type }) => type), charges.inRange], [[TransactionType.CHARGE], 1]);
  });
});
