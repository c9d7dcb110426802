import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OrderType, RejectReason, Side, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { AccountFunds } from '../../../src/simulator/clearing/funds.ts';
import { loadFunds } from '../../../src/simulator/clearing/load-funds.ts';
import type { OrderRequest } from '../../../src/simulator/model.ts';
import { MemoryDatabase } from '../../support/memory-database.ts';

const [yesterday, today, tomorrow] = ['2026-03-02', '2026-03-03', '2026-03-04'];
const settings = { startCashKobo: 1_000n, sharesElsewhere: 100n };

/** The funds of accounts after a restart, by the rows that the simulator stored before. */
async function loaded(rows: readonly string[], withSettings = true): Promise<AccountFunds> {
  const database = new MemoryDatabase();
  database.run(rows);
  const funds = new AccountFunds(withSettings ? settings : undefined, () => 0);
  await loadFunds(await database.openWriter(), funds, today);
  return funds;
}

const deal = (number: number, side: Side, quantity: number, kobo: number, settles: string) =>
  `INSERT INTO deals (number, account, symbol, side, quantity, consideration_kobo, settlement_date)
   VALUES (${number}, 'A1', 'GTCO', ${side}, ${quantity}, ${kobo}, '${settles}')`;
const holding = (quantity: number) =>
  `INSERT INTO holdings (account, symbol, quantity) VALUES ('A1', 'GTCO', ${quantity})`;

/** Why a sale of so many shares cannot be made. */
const saleOf = (funds: AccountFunds, quantity: number) => {
  const order = {
    ...{ clientOrderId: 'ord_a', account: 'A1', symbol: 'GTCO', side: Side.SELL, quantity },
    ...{ type: OrderType.MARKET, timeInForce: TimeInForce.DAY, priceKobo: null },
  } as OrderRequest;
  return funds.shortfall(order, 10, today);
};

describe('the funds of accounts after a restart', () => {
  for (const [name, rows, most, arriving] of [
    ['that never traded are those it has elsewhere', [], 100, 0],
    ['with a settled purchase are more by it', [holding(30), deal(1, Side.BUY, 30, 0, yesterday)], 130, 0],
    ['with a purchase that settles today are more by it', [holding(30), deal(1, Side.BUY, 30, 0, today)], 130, 0],
    ['with a purchase that settles tomorrow come then', [holding(30), deal(1, Side.BUY, 30, 0, tomorrow)], 100, 30],
    ['that sold some it has elsewhere are fewer by them', [holding(-40), deal(1, Side.SELL, 40, 0, yesterday)], 60, 0],
    ['with others elsewhere are its own', ["INSERT INTO shares_elsewhere (account, shares) VALUES ('A1', 7)"], 7, 0],
  ] as const) {
    it(`the shares of an account ${name}`, async () => {
      const funds = await loaded(rows);
      assert.equal(saleOf(funds, most), undefined);
      const beyond = arriving > 0 ? RejectReason.SETTLEMENT_LOCKOUT : RejectReason.INSUFFICIENT_FUNDS;
      assert.equal(saleOf(funds, most + 1), beyond);
      assert.equal(saleOf(funds, most + arriving + 1), RejectReason.INSUFFICIENT_FUNDS);
    });
  }

  it('the money of an account is what it began with, with what has settled, and without what it will pay', async () => {
    const trades = [
      deal(1, Side.BUY, 1, 100, yesterday),
      deal(2, Side.SELL, 1, 30, yesterday),
      deal(3, Side.SELL, 1, 5, today),
      deal(4, Side.BUY, 1, 200, tomorrow),
      deal(5, Side.SELL, 1, 900, tomorrow),
    ];
    assert.equal((await loaded(trades)).withdrawableKobo('A1', today), 1_000n - 100n + 30n + 5n - 200n);
    assert.equal((await loaded(trades)).withdrawableKobo('A2', today), 1_000n);
    const uncounted = await loaded(trades, false);
    assert.equal(uncounted.withdrawableKobo('A1', today), undefined, 'unless money is not counted');
  });
});
