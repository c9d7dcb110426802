import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reasonByBand, reasonByList } from '../../../../src/gateway/trading/orders/placeable.ts';
import { rejectSentences, shownRejectReason } from '../../../../src/gateway/trading/orders/rules.ts';

const order = (priceKobo: bigint | null, quantity = 100n) => ({ priceKobo, quantity });

describe('what the instrument makes certain of an order', () => {
  const band = { lowerPriceKobo: 900n, upperPriceKobo: 1_100n };
  it('is a rejection for a price outside the band, of which both ends are inside', () => {
    for (const price of [900n, 1_000n, 1_100n]) assert.equal(reasonByBand(order(price), band), undefined);
    for (const price of [1n, 899n, 1_101n]) assert.equal(reasonByBand(order(price), band), 'price_outside_band');
    assert.equal(reasonByBand(order(null), band), undefined);
  });

  it('an order can be placed in a band of one price, and in one that begins at 1 kobo', () => {
    const [one, least] = [
      { lowerPriceKobo: 900n, upperPriceKobo: 900n },
      { ...band, lowerPriceKobo: 1n },
    ];
    assert.equal(reasonByBand(order(900n), one), undefined);
    for (const price of [899n, 901n]) assert.equal(reasonByBand(order(price), one), 'price_outside_band');
    assert.equal(reasonByBand(order(1n), least), undefined);
    assert.equal(reasonByBand(order(1_101n), least), 'price_outside_band');
  });

  it('is nothing if the broker states no band, or one that cannot be', () => {
    for (const lowerPriceKobo of [0n, -1n, 1_101n]) {
      assert.equal(reasonByBand(order(1n), { ...band, lowerPriceKobo }), undefined);
    }
  });

  const tickSizes = [
    { fromPriceKobo: 0n, tickSizeKobo: 1n },
    { fromPriceKobo: 500n, tickSizeKobo: 5n },
    { fromPriceKobo: 10_000n, tickSizeKobo: 10n },
  ] as never;
  it('is a rejection for a price off the tick that holds at it', () => {
    const listed = { tickSizes, lotSize: 1n };
    for (const price of [499n, 500n, 505n, 9_995n, 10_010n])
      assert.equal(reasonByList(order(price), listed), undefined);
    for (const price of [501n, 9_999n, 10_001n, 10_005n])
      assert.equal(reasonByList(order(price), listed), 'price_off_tick');
    assert.equal(reasonByList(order(null), listed), undefined);
  });

  it("an order's tick is the one that begins at the price itself", () => {
    const steps = [
      { fromPriceKobo: 0n, tickSizeKobo: 1n },
      { fromPriceKobo: 503n, tickSizeKobo: 5n },
    ] as never;
    for (const [price, reason] of [
      [502n, undefined],
      [503n, 'price_off_tick'],
      [504n, 'price_off_tick'],
      [505n, undefined],
    ] as const) {
      assert.equal(reasonByList(order(price), { tickSizes: steps, lotSize: 1n }), reason, `${price}`);
    }
  });

  it('is a rejection for a quantity off the lot, of a market order too', () => {
    const listed = { tickSizes, lotSize: 100n };
    assert.equal(reasonByList(order(null, 200n), listed), undefined);
    for (const quantity of [1n, 99n, 150n]) {
      assert.equal(reasonByList(order(null, quantity), listed), 'quantity_off_lot');
      assert.equal(reasonByList(order(500n, quantity), listed), 'quantity_off_lot');
    }
  });
});

describe('a reject reason', () => {
  it('a reason that release 0.2.0 stored as the general one is shown by its sentence', () => {
    for (const name of ['price_off_tick', 'price_outside_band', 'quantity_off_lot'] as const) {
      const row = { rejectReason: 'rejected_by_exchange', reason: rejectSentences[name] };
      assert.equal(shownRejectReason(row), name);
    }
    for (const name of ['market_closed', 'price_off_tick', 'rejected_by_exchange'] as const) {
      assert.equal(shownRejectReason({ rejectReason: name, reason: rejectSentences[name] }), name);
    }
    assert.equal(shownRejectReason({ rejectReason: null, reason: null }), null);
    assert.equal(new Set(Object.values(rejectSentences)).size, Object.keys(rejectSentences).length);
  });
});
