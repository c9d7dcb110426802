import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { auctionPrice } from '../../../src/simulator/market/auction.ts';

type Depths = readonly (readonly [priceKobo: number | null, shares: number])[];

function priceOf(buys: Depths, sells: Depths, referenceKobo: number): number | undefined {
  const depths = (all: Depths) => all.map(([priceKobo, shares]) => ({ priceKobo, shares }));
  return auctionPrice(depths(buys), depths(sells), referenceKobo);
}

describe('the price of an auction', () => {
  it('nothing trades where no buyer pays what a seller takes', () => {
    for (const [buys, sells] of [
      [[], []],
      [[[100, 5]], []],
      [[], [[100, 5]]],
      [[[100, 5]], [[101, 5]]],
      [[[null, 5]], []],
    ] as readonly (readonly [Depths, Depths])[]) {
      assert.equal(priceOf(buys, sells, 100), undefined);
    }
    assert.equal(priceOf([[100, 5]], [[100, 5]], 90), 100);
  });

  it('the price is the one at which most shares trade', () => {
    // At 103: 10 trade. At 102: 25. At 101: 20.
    const buys: Depths = [
      [103, 10],
      [102, 15],
      [101, 20],
    ];
    const sells: Depths = [
      [101, 20],
      [102, 10],
      [103, 10],
    ];
    assert.equal(priceOf(buys, sells, 90), 102);
  });

  it('the price with the fewest shares left is taken of those at which as much trades', () => {
    const sells: Depths = [
      [100, 10],
      [104, 30],
    ];
    // At 104 there are 40 sellers for 10 buyers; at 100 as many as buyers.
    assert.equal(priceOf([[104, 10]], sells, 104), 100);
    const buys: Depths = [
      [104, 10],
      [100, 30],
    ];
    assert.equal(priceOf(buys, [[100, 10]], 100), 104);
  });

  it('the nearest to the reference is taken of equal prices, and the lower of two as near', () => {
    for (const [referenceKobo, expected] of [
      [90, 100],
      [101, 101],
      [100, 100],
      [110, 104],
      [102, 102],
    ] as const) {
      assert.equal(priceOf([[104, 10]], [[100, 10]], referenceKobo), expected, String(referenceKobo));
    }
    const buys: Depths = [
      [105, 10],
      [95, 10],
    ];
    const sells: Depths = [
      [95, 10],
      [105, 10],
    ];
    // At the reference only 10 of each side trade, with none left, as between the two.
    assert.equal(priceOf(buys, sells, 100), 100);
    assert.equal(
      priceOf(
        [
          [104, 10],
          [96, 5],
        ],
        [
          [96, 10],
          [104, 5],
        ],
        100,
      ),
      100,
    );
  });

  it('an order without a price trades at any', () => {
    assert.equal(priceOf([[null, 10]], [[120, 10]], 100), 120);
    assert.equal(priceOf([[80, 10]], [[null, 10]], 100), 80);
    assert.equal(priceOf([[null, 10]], [[null, 10]], 100), 100);
    assert.equal(
      priceOf(
        [
          [null, 10],
          [99, 5],
        ],
        [[null, 12]],
        100,
      ),
      99,
    );
  });

  it('two prices as near to the reference with as much traded give the lower one', () => {
    // 101 and 99 both trade 10 and leave 5; at 100 nothing more trades.
    assert.equal(
      priceOf(
        [
          [101, 10],
          [99, 5],
        ],
        [
          [99, 10],
          [101, 5],
        ],
        100,
      ),
      100,
    );
    assert.equal(priceOf([[101, 10]], [[null, 10]], 110), 101);
  });
});
