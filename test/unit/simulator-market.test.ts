import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { InstrumentKind, OrderType, Side, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { chargesOn } from '../../src/simulator/charges.ts';
import { listings } from '../../src/simulator/instruments.ts';
import { magicOf, magicReferenceKobo, magicSymbols } from '../../src/simulator/magic.ts';
import type { InstrumentState, PlannedStep, Submission } from '../../src/simulator/model.ts';
import { plannedByBehaviour, plannedByMarket } from '../../src/simulator/planning.ts';
import { dailyBand, isOnTick, seededQuote, tickKobo } from '../../src/simulator/prices.ts';
import { seededRandom } from '../../src/simulator/random.ts';

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

  it('are quoted near the reference, inside the band, the same for the same seed', () => {
    for (const { symbol, previousCloseKobo } of listings) {
      const quote = seededQuote(7, symbol, previousCloseKobo);
      const { lowerKobo, upperKobo } = dailyBand(previousCloseKobo);
      assert.ok(quote >= lowerKobo && quote <= upperKobo && isOnTick(quote), symbol);
      assert.equal(quote, seededQuote(7, symbol, previousCloseKobo));
    }
    const quotesOf = (seed: number) => listings.map((each) => seededQuote(seed, each.symbol, each.previousCloseKobo));
    assert.notDeepEqual(quotesOf(1), quotesOf(2));
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
    assert.equal(magicSymbols.length, 20);
    for (const { symbol, does } of magicSymbols) {
      assert.match(symbol, /^SIM-[A-Z]+$/);
      assert.match(does, /\.$/);
      assert.ok(!listings.some((each) => each.symbol === symbol));
      assert.equal(magicOf(symbol)?.symbol, symbol);
    }
  });
});

describe('charges', () => {
  it('on ₦100,000 are ₦1,857.75 for a buy and ₦2,180.25 for a sale', () => {
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

const instrument: InstrumentState = {
  symbol: 'UBA',
  name: 'United Bank for Africa Plc',
  kind: InstrumentKind.EQUITY,
  lowerKobo: 3_490,
  upperKobo: 4_260,
  quoteKobo: 3_875,
  lastKobo: 3_875,
  halted: false,
  position: 0,
};

const anyOrder = fc.record<Submission>({
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

describe('what the market does to an order', () => {
  it('never trades more than was ordered, nor through its limit, nor outside the band', () => {
    fc.assert(
      fc.property(anyOrder, fc.integer(), (order, seed) => {
        const steps = plannedByMarket(order, instrument, seededRandom(seed), () => 5);
        const fills = fillsOf(steps);
        assert.ok(filled(steps) <= order.quantity);
        assert.ok(fills.length <= 4);
        for (const { priceKobo, quantity } of fills) {
          assert.ok(quantity > 0 && isOnTick(priceKobo));
          assert.ok(priceKobo >= instrument.lowerKobo && priceKobo <= instrument.upperKobo);
          if (order.priceKobo === null) continue;
          assert.ok(order.side === Side.BUY ? priceKobo <= order.priceKobo : priceKobo >= order.priceKobo);
        }
      }),
    );
  });

  it('leaves nothing of an immediate order to wait, and trades all of a fill-or-kill or nothing', () => {
    fc.assert(
      fc.property(anyOrder, fc.integer(), (order, seed) => {
        const steps = plannedByMarket(order, instrument, seededRandom(seed), () => 5);
        const immediate = order.timeInForce === TimeInForce.IOC || order.timeInForce === TimeInForce.FOK;
        if (!immediate) return assert.ok(steps.every((step) => step.kind === 'fill'));
        assert.ok(steps.every((step) => step.afterMs === 0));
        assert.equal(steps.at(-1)?.kind === 'expire', filled(steps) < order.quantity);
        if (order.timeInForce === TimeInForce.FOK) assert.ok([0, order.quantity].includes(filled(steps)));
      }),
    );
  });

  it('fills what crosses the quoted price and lets the rest wait', () => {
    const order = { ...fc.sample(anyOrder, 1)[0], side: Side.BUY, timeInForce: TimeInForce.DAY } as Submission;
    const plan = (priceKobo: number | null) =>
      filled(plannedByMarket({ ...order, priceKobo }, instrument, seededRandom(1), () => 5));
    assert.equal(plan(3_870), 0);
    assert.equal(plan(3_875), order.quantity);
    assert.equal(plan(null), order.quantity);
  });

  it('is the same for the same seed', () => {
    fc.assert(
      fc.property(anyOrder, fc.integer(), (order, seed) => {
        const plan = () => plannedByMarket(order, instrument, seededRandom(seed, 'order', 1), () => 5);
        assert.deepEqual(plan(), plan());
      }),
    );
  });

  it('splits a set fill into parts that add up, however small the order', () => {
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
