import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OrderType, ReportKind, Side, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { AccountFunds } from '../../src/simulator/clearing/funds.ts';
import type { Order } from '../../src/simulator/model.ts';

const today = '2026-03-02';
const highestKobo = 1_100;

function waiting(side: Side, quantity: number): Order {
  return {
    ...{ clientOrderId: `ord_${side}`, account: 'A1', symbol: 'STILL', side, type: OrderType.LIMIT, quantity },
    ...{ timeInForce: TimeInForce.GTC, priceKobo: 1_000, sequence: 1, exchangeOrderId: 'X1', filled: 0 },
    ...{ endedBy: ReportKind.UNSPECIFIED, expiresAtMs: null, plan: [], planAtMs: null, inBook: true },
    ...{ tradedOn: null, tradedKobo: 0n },
  };
}

describe('what waiting orders may cost or sell', () => {
  it('what orders may cost is counted again, once, when all funds are read anew', () => {
    const funds = new AccountFunds({ startCashKobo: 1_000_000n, sharesElsewhere: 500n }, () => 0);
    const orders = [waiting(Side.BUY, 100), waiting(Side.SELL, 300)];
    const follow = () => {
      for (const order of orders) funds.follow(order, highestKobo, today);
    };
    follow();
    const promised = () => [funds.promisedKobo('A1'), funds.promisedShares('A1', 'STILL')];
    const [kobo = 0n, shares] = promised();
    assert.ok(kobo >= 100_000n, String(kobo));
    assert.equal(shares, 300n);
    for (let times = 0; times < 2; times += 1) {
      funds.clear();
      follow();
      assert.deepEqual(promised(), [kobo, shares]);
    }
  });

  it('what an order may cost is nothing any more once it has left the book', () => {
    const funds = new AccountFunds({ startCashKobo: 1_000_000n, sharesElsewhere: 500n }, () => 0);
    for (const side of [Side.BUY, Side.SELL]) {
      funds.follow(waiting(side, 100), highestKobo, today);
      funds.follow({ ...waiting(side, 100), filled: 40 }, highestKobo, today);
      funds.follow({ ...waiting(side, 100), inBook: false }, highestKobo, today);
    }
    assert.deepEqual([funds.promisedKobo('A1'), funds.promisedShares('A1', 'STILL')], [0n, 0n]);
  });
});

describe('settlements of an account that are brought forward', () => {
  it('settlements of an account that are brought forward twice on a day add up, and those of another account stay', () => {
    const funds = new AccountFunds({ startCashKobo: 1_000n, sharesElsewhere: 0n }, () => 0);
    const free = (account: string) => funds.withdrawableKobo(account, today);
    for (const [buysKobo, left] of [
      [300n, 700n],
      [200n, 500n],
      [100n, 400n],
    ] as const) {
      for (const account of ['A1', 'A2']) funds.addSettlement(account, '2026-03-04', Side.BUY, buysKobo);
      funds.settle('A1', today);
      assert.equal(free('A1'), left);
    }
    funds.addSettlement('A1', '2026-03-04', Side.SELL, 50n);
    assert.equal(free('A1'), 400n, 'before its proceeds settle');
    funds.settle('A1', today);
    assert.equal(free('A1'), 450n);
    funds.addSettlement('A2', '2026-03-04', Side.SELL, 50n);
    assert.equal(free('A2'), 400n, 'its purchases are owed, and its sale has not settled');
    funds.settle('', today);
    assert.equal(free('A2'), 450n);
  });
});
