import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Side } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { makerPrice, OrderFlow, type Quoted, type SyntheticOrder } from '../../../src/simulator/market/order-flow.ts';

const quoted: Quoted = { symbol: 'OWN', quoteKobo: 10_000, lowerKobo: 9_000, upperKobo: 11_000 };
const beats = Array.from({ length: 200 }, (_, at) => at);

function prices(orders: readonly SyntheticOrder[], side: Side): number[] {
  return [...new Set(orders.filter((order) => order.side === side).map(({ limitKobo }) => limitKobo))];
}

describe('the synthetic order flow', () => {
  it('the maker sells from the quoted price up and buys from one step below it, within the band', () => {
    for (const [quote, lower, upper, side, level, expected] of [
      [10_000, 9_000, 11_000, Side.SELL, 0, 10_000],
      [10_000, 9_000, 11_000, Side.SELL, 2, 10_020],
      [10_000, 9_000, 11_000, Side.BUY, 0, 9_990],
      [10_000, 9_000, 11_000, Side.BUY, 1, 9_980],
      [10_000, 9_000, 10_010, Side.SELL, 1, 10_010],
      [10_000, 9_000, 10_009, Side.SELL, 1, undefined],
      [10_000, 9_990, 11_000, Side.BUY, 0, 9_990],
      [10_000, 9_991, 11_000, Side.BUY, 0, undefined],
      [100, 0, 200, Side.BUY, 0, 99],
      [100_000, 90_000, 110_000, Side.SELL, 1, 100_050],
      [100_000, 90_000, 110_000, Side.BUY, 0, 99_950],
      [1, 0, 200, Side.BUY, 0, undefined],
    ] as const) {
      const price = makerPrice({ symbol: 'OWN', quoteKobo: quote, lowerKobo: lower, upperKobo: upper }, side, level);
      assert.equal(price, expected, `${quote} ${Side[side]} ${level}`);
    }
  });

  it('the maker quotes five prices on each side, best first, with one to three orders at each', () => {
    for (const beat of beats) {
      const orders = new OrderFlow(7, quoted, beat).maker(0, 0);
      assert.deepEqual(prices(orders, Side.SELL), [10_000, 10_010, 10_020, 10_030, 10_040]);
      assert.deepEqual(prices(orders, Side.BUY), [9_990, 9_980, 9_970, 9_960, 9_950]);
      for (const side of [Side.BUY, Side.SELL]) {
        for (const price of prices(orders, side)) {
          const count = orders.filter(({ limitKobo }) => limitKobo === price).length;
          assert.ok(count >= 1 && count <= 3, String(count));
        }
      }
    }
  });

  it('the maker leaves out the prices that lie outside the band', () => {
    const orders = new OrderFlow(7, { ...quoted, lowerKobo: 9_980, upperKobo: 10_010 }, 1).maker(0, 0);
    assert.deepEqual(prices(orders, Side.SELL), [10_000, 10_010]);
    assert.deepEqual(prices(orders, Side.BUY), [9_990, 9_980]);
  });

  it('an order is worth ₦50,000 to ₦3,000,000, and never less than one share', () => {
    const worth = beats
      .flatMap((beat) => new OrderFlow(7, quoted, beat).maker(0, 0))
      .map((order) => order.quantity * order.limitKobo);
    assert.ok(Math.min(...worth) > 5_000_000 - 10_040 && Math.min(...worth) < 6_000_000, String(Math.min(...worth)));
    assert.ok(Math.max(...worth) <= 300_000_000 && Math.max(...worth) > 250_000_000, String(Math.max(...worth)));
    const dear = { ...quoted, quoteKobo: 10 ** 9, lowerKobo: 10 ** 8, upperKobo: 10 ** 10 };
    const quantities = beats
      .flatMap((beat) => new OrderFlow(7, dear, beat).maker(0, 0))
      .map(({ quantity }) => quantity);
    assert.deepEqual([...new Set(quantities)], [1]);
  });

  it('a waiting order of a side draws orders of the other side, each at least a tenth of it', () => {
    const drawn = 10_000_000;
    for (const [bySellers, byBuyers, drawnSide] of [
      [drawn, 0, Side.BUY],
      [0, drawn, Side.SELL],
    ] as const) {
      for (const { side, quantity } of new OrderFlow(7, quoted, 1).maker(bySellers, byBuyers)) {
        assert.equal(quantity >= drawn / 10, side === drawnSide, `${Side[side]} ${quantity}`);
      }
      const visitors = beats.flatMap((beat) => new OrderFlow(7, quoted, beat).visitor(bySellers, byBuyers) ?? []);
      for (const { side, quantity } of visitors) assert.equal(quantity >= drawn / 10, side === drawnSide);
    }
  });

  it('a visitor comes in about half of the beats, trades within two steps of the quoted price, and stays in the band', () => {
    const visitors = beats.flatMap((beat) => new OrderFlow(7, quoted, beat).visitor(0, 0) ?? []);
    assert.ok(visitors.length > 70 && visitors.length < 130, String(visitors.length));
    const reach = (side: Side) => prices(visitors, side).sort((one, other) => one - other);
    assert.deepEqual(reach(Side.BUY), [10_010, 10_020]);
    assert.deepEqual(reach(Side.SELL), [9_980, 9_990]);
    const narrow = { ...quoted, lowerKobo: 9_990, upperKobo: 10_010 };
    const within = beats.flatMap((beat) => new OrderFlow(7, narrow, beat).visitor(0, 0) ?? []);
    assert.deepEqual(prices(within, Side.BUY), [10_010]);
    assert.deepEqual(prices(within, Side.SELL), [9_990]);
  });

  it('a beat is the same for the same seed and stock, and another for others', () => {
    const flow = (seed: number, symbol: string, beat: number) =>
      new OrderFlow(seed, { ...quoted, symbol }, beat).maker(0, 0);
    assert.deepEqual(flow(7, 'OWN', 3), flow(7, 'OWN', 3));
    for (const other of [flow(8, 'OWN', 3), flow(7, 'UBA', 3), flow(7, 'OWN', 4)])
      assert.notDeepEqual(other, flow(7, 'OWN', 3));
  });
});
