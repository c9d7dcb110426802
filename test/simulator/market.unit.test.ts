import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InstrumentKind, OrderType, Side, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { chargesOn } from '../../src/simulator/clearing/charges.ts';
import { plannedByBehaviour } from '../../src/simulator/exchange/planning.ts';
import { magicOf, magicReferenceKobo, magicSymbols } from '../../src/simulator/magic.ts';
import { listings } from '../../src/simulator/market/instruments.ts';
import { dailyBand, isOnTick, tickKobo } from '../../src/simulator/market/prices.ts';
import type { OrderRequest, PlannedStep } from '../../src/simulator/model.ts';
import { fc } from '../support/properties.ts';

describe('prices of the simulated exchange', () => {
  it('move in ticks of 1, 5 and 10 kobo', () => {
    assert.deepEqual([499, 500, 9_999, 10_000].map(tickKobo), [1, 5, 5, 10]);
  });

  it('stay within 10 % of the previous close, on a tick', () => {
    assert.deepEqual(dailyBand(magicReferenceKobo), { lowerKobo: 900, upperKobo: 1_100 });
    fc.assert(
      fc.property(fc.integer({ min: 10, max: 10_000_000 }), (close) => {
        const { lowerKobo, upperKobo } = dailyBand(close);
        assert.ok(isOnTick(lowerKobo) && isOnTick(upperKobo));
        assert.ok(lowerKobo * 10 >= close * 9 && upperKobo * 10 <= close * 11 && lowerKobo <= upperKobo);
      }),
    );
  });
});

describe('the listings', () => {
  it('are at least 40 equities and 10 funds, each once and at a price on its tick', () => {
    assert.ok(listings.filter((each) => each.kind === InstrumentKind.EQUITY).length >= 40);
    assert.ok(listings.filter((each) => each.kind === InstrumentKind.ETF).length >= 10);
    assert.equal(new Set(listings.map((each) => each.symbol)).size, listings.length);
    for (const each of listings) assert.ok(isOnTick(each.previousCloseKobo), each.symbol);
  });

  it('leave the magic symbols apart', () => {
    assert.equal(magicSymbols.length, 21);
    for (const { symbol, does } of magicSymbols) {
      assert.match(symbol, /^SIM-[A-Z]+$/);
      assert.match(does, /\.$/);
      assert.ok(!listings.some((each) => each.symbol === symbol));
      assert.equal(magicOf(symbol)?.symbol, symbol);
    }
  });
});

describe('charges', () => {
  it('charges on ₦100,000 are ₦1,857.75 for a buy and ₦2,180.25 for a sale', () => {
    const bought = chargesOn(10_000_000n, Side.BUY, '2026-01-02');
    assert.equal(bought.commission, '135000.0');
    assert.equal(bought.statutory, '50375.0'); // 300 + 80 + 123.75 naira.
    assert.equal(bought.other, '400.0');
    assert.equal(bought.total, '10185775.0');
    const sold = chargesOn(10_000_000n, Side.SELL, '2026-01-02');
    assert.equal(sold.statutory, '82625.0'); // 300 + 300 + 80 + 146.25 naira.
    assert.equal(sold.total, '9781975.0');
    assert.deepEqual(
      sold.fees.map((fee) => fee.name),
      ['Commission', 'NGX fee', 'CSCS fee', 'Stamp duty', 'Trade alert', 'VAT'],
    );
  });

  it('are exact for the smallest and the largest amounts', () => {
    assert.equal(chargesOn(1n, Side.BUY, '2026-01-02').total, '401.0185375');
    assert.equal(chargesOn(9_007_199_254_740_991n, Side.BUY, '2026-01-02').total, '9174170210926152.1206625');
  });
});

const anyOrder = fc.record<OrderRequest>({
  clientOrderId: fc.constant('ord'),
  account: fc.constant('A'),
  symbol: fc.constant('UBA'),
  side: fc.constantFrom(Side.BUY, Side.SELL),
  type: fc.constant(OrderType.LIMIT),
  timeInForce: fc.constantFrom(TimeInForce.DAY, TimeInForce.GTC, TimeInForce.IOC, TimeInForce.FOK),
  quantity: fc.integer({ min: 1, max: 1_000_000 }),
  priceKobo: fc.option(
    fc.integer({ min: 698, max: 852 }).map((ticks) => ticks * 5),
    { nil: null },
  ),
});

describe('a set fill', () => {
  it('comes in parts that add up, however small the order', () => {
    fc.assert(
      fc.property(anyOrder, fc.integer({ min: 1, max: 100 }), (order, parts) => {
        const steps = plannedByBehaviour(order, { outcome: Outcome.FILL, parts }, 1_000, () => 1);
        assert.equal(filled(steps), order.quantity);
        assert.equal(steps.length, Math.min(parts, order.quantity));
        assert.ok(fillsOf(steps).every((step) => step.quantity > 0));
      }),
    );
  });
});

function fillsOf(steps: readonly PlannedStep[]) {
  return steps.flatMap((step) => (step.kind === 'fill' ? [step] : []));
}

function filled(steps: readonly PlannedStep[]): number {
  return fillsOf(steps).reduce((sum, step) => sum + step.quantity, 0);
}
