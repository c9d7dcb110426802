import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MarketSession } from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import { OrderType, ReportKind, Side, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { roundKoboDecimal } from '../../src/kit/money.ts';
import { chargesOn } from '../../src/simulator/clearing/charges.ts';
import { toDeal } from '../../src/simulator/clearing/deals.ts';
import { settlementDate } from '../../src/simulator/clearing/settlement.ts';
import { MarketCalendar, readHolidays, usualHolidays } from '../../src/simulator/market/calendar.ts';
import { alwaysOpen, exchangeHours } from '../../src/simulator/market/hours.ts';
import { listingOf, listings } from '../../src/simulator/market/instruments.ts';
import { type EngineEvents, MatchingEngine } from '../../src/simulator/market/matching-engine.ts';
import { dailyBand, isOnTick } from '../../src/simulator/market/prices.ts';
import { Venue } from '../../src/simulator/market/venue.ts';
import { walkFactor } from '../../src/simulator/market/walk.ts';
import type { Order } from '../../src/simulator/model.ts';
import { temporaryFolder } from '../support/folders.ts';
import { fc } from '../support/properties.ts';

const minuteMs = 60_000;
const calendar = new MarketCalendar(readHolidays(usualHolidays));
const at = (lagos: string) => Date.parse(`${lagos}+01:00`);
const lagos = (ms: number | undefined) =>
  ms === undefined ? '' : new Date(ms + 60 * minuteMs).toISOString().slice(0, 16);

describe('the calendar', () => {
  it('knows Saturdays, Sundays and the holidays of its file as days without trading', () => {
    assert.equal(calendar.isTradingDay('2026-10-01'), false, 'Independence Day');
    assert.equal(calendar.isTradingDay('2026-10-02'), true);
    assert.equal(calendar.isTradingDay('2026-10-03'), false, 'a Saturday');
    assert.equal(calendar.tradingDayAfter('2026-12-24', 1), '2026-12-29');
  });

  it('takes another file, and says which line of it names no date', () => {
    const folder = temporaryFolder();
    try {
      const file = join(folder, 'holidays.txt');
      writeFileSync(file, '# Ours\n2026-09-30 A day off\n\n2026-10-07\n');
      assert.equal(new MarketCalendar(readHolidays(file)).tradingDayAfter('2026-09-29', 1), '2026-10-01');
      writeFileSync(file, '2026-09-30\nIndependence Day\n');
      assert.throws(() => readHolidays(file), /^Error: Line 2 of the holidays' file/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('counts trading days as they pass, one by one', () => {
    let count = calendar.tradingDaysBefore('2025-12-01');
    for (let ms = Date.parse('2025-12-01'); ms < Date.parse('2027-02-01'); ms += 1_440 * minuteMs) {
      const day = new Date(ms).toISOString().slice(0, 10);
      assert.equal(calendar.tradingDaysBefore(day), count, day);
      if (calendar.isTradingDay(day)) count += 1;
    }
  });
});

describe('settlement', () => {
  it('comes a trading day later, over weekends and holidays', () => {
    const settled = (day: string) => settlementDate(calendar, day);
    assert.equal(settled('2026-09-29'), '2026-09-30');
    assert.equal(settled('2026-09-30'), '2026-10-02', 'over Independence Day');
    assert.equal(settled('2026-10-02'), '2026-10-05', 'over a weekend');
    assert.equal(settled('2026-12-24'), '2026-12-29', 'over Christmas, a weekend and Boxing Day');
  });

  it('came after two and three days when that was the rule', () => {
    assert.equal(settlementDate(calendar, '2025-11-28'), '2025-12-02', 'the first day of T+2');
    assert.equal(settlementDate(calendar, '2025-11-27'), '2025-12-02', 'the last day of T+3');
    assert.equal(settlementDate(calendar, '2025-12-24'), '2025-12-30');
  });
});

describe('the hours of the exchange', () => {
  it('are pre-open from 9:30 and trading from 10:00 to 14:30, on trading days', () => {
    const cases = [
      ['2026-09-30T09:29', 'closed', '2026-09-30T10:00', '2026-09-30T14:30'],
      ['2026-09-30T09:30', 'collecting', '2026-09-30T10:00', '2026-09-30T14:30'],
      ['2026-09-30T10:00', 'continuous', '2026-10-02T10:00', '2026-09-30T14:30'],
      ['2026-09-30T14:29', 'continuous', '2026-10-02T10:00', '2026-09-30T14:30'],
      ['2026-09-30T14:30', 'closed', '2026-10-02T10:00', '2026-10-02T14:30'],
      ['2026-10-01T11:00', 'closed', '2026-10-02T10:00', '2026-10-02T14:30'],
      ['2026-10-03T11:00', 'closed', '2026-10-05T10:00', '2026-10-05T14:30'],
    ] as const;
    for (const [time, phase, opens, closes] of cases) {
      const hours = exchangeHours(calendar, at(time));
      assert.deepEqual(
        [time, hours.phase, lagos(hours.nextOpenAtMs), lagos(hours.nextCloseAtMs)],
        [time, phase, opens, closes],
      );
    }
  });

  it('let the time of prices stand still while nothing trades', () => {
    const time = (text: string) => exchangeHours(calendar, at(text)).time;
    assert.equal(time('2026-09-30T14:30'), time('2026-10-02T10:00'), 'over night and a holiday');
    assert.ok(time('2026-09-30T12:00') > time('2026-09-30T11:59'));
    assert.equal(Math.floor(time('2026-09-30T14:29')) + 1, time('2026-09-30T15:00'));
  });
});

describe('a price', () => {
  it('never leaves the band of its day, on its own', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.constantFrom(...listings.map(({ symbol }) => symbol)),
        fc.double({ min: 10_000, max: 30_000, noNaN: true }),
        (seed, symbol, time) => {
          const change = walkFactor(seed, symbol, time) / walkFactor(seed, symbol, Math.floor(time));
          assert.ok(change > 0.9 && change < 1.1, `${change}`);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('is the same for the same seed and moves within the day, on ticks', () => {
    const [one, same, other] = [new Venue(7, calendar), new Venue(7, calendar), new Venue(8, calendar)];
    const listing = listingOf('ZENITHBANK');
    assert.ok(listing);
    const quotes = (venue: Venue) =>
      Array.from({ length: 48 }, (_, index) => venue.price(listing, at('2026-09-30T00:00') + index * 30 * minuteMs));
    assert.deepEqual(quotes(one), quotes(same));
    assert.notDeepEqual(quotes(one), quotes(other));
    assert.ok(new Set(quotes(one).map(({ quoteKobo }) => quoteKobo)).size > 10, 'it lives');
    for (const { quoteKobo, lowerKobo, upperKobo } of quotes(one)) {
      assert.ok(isOnTick(quoteKobo) && quoteKobo >= lowerKobo && quoteKobo <= upperKobo);
    }
  });

  it('has the band of the previous close', () => {
    const venue = new Venue(7, calendar);
    venue.keepsHours = true;
    const listing = listingOf('GTCO');
    assert.ok(listing);
    const close = venue.price(listing, at('2026-09-30T14:30')).quoteKobo;
    const { lowerKobo, upperKobo } = venue.price(listing, at('2026-10-02T11:00'));
    assert.deepEqual({ lowerKobo, upperKobo }, dailyBand(close));
  });
});

describe('the index', () => {
  it('stops the market for half an hour when it moves by 5 %, once a day', () => {
    const venue = new Venue(7, calendar);
    const now = at('2026-09-30T11:00');
    assert.equal(venue.session(now).phase, 'continuous');
    for (const { symbol } of listings) venue.move(symbol, -900, now);
    assert.ok(venue.indexChange(now) < -0.05);
    const halted = venue.session(now);
    assert.deepEqual([halted.phase, halted.haltedUntilMs], ['halted', now + 30 * minuteMs]);
    assert.equal(venue.session(now + 29 * minuteMs).phase, 'halted');
    assert.equal(venue.session(now + 30 * minuteMs).phase, 'continuous');
    assert.equal(venue.session(at('2026-10-01T01:00')).phase, 'continuous', 'the moves end with the day');
    assert.ok(Math.abs(venue.indexChange(at('2026-10-01T01:00'))) < 0.05);
  });
});

interface Traded {
  readonly order: Order;
  readonly quantity: number;
  readonly priceKobo: number;
  readonly atMs: number;
}

/** An engine with what happened on it. */
class TestEngine {
  readonly venue: Venue;
  readonly trades: Traded[] = [];
  readonly expired: { order: Order; atMs: number }[] = [];
  readonly #engine: MatchingEngine;
  #now = 0;
  #made = 0;

  constructor(seed: number, keepsHours: boolean) {
    this.venue = new Venue(seed, calendar);
    this.venue.keepsHours = keepsHours;
    const instrument = (symbol: string, price: 'now' | number, nowMs: number) => {
      const listing = listingOf(symbol);
      if (listing === undefined) return undefined;
      const { venue } = this;
      const prices = price === 'now' ? venue.price(listing, nowMs) : venue.closingPrice(listing, price, nowMs);
      return { ...listing, ...prices, lastKobo: prices.quoteKobo, halted: false, pinned: false, position: 0 };
    };
    this.#engine = new MatchingEngine({
      seed,
      session: (nowMs) => this.venue.session(nowMs),
      instrument: (symbol, nowMs) => instrument(symbol, 'now', nowMs),
      instrumentAtClose: (symbol, day, nowMs) => instrument(symbol, day, nowMs),
    });
  }

  place(fields: Partial<Order>, nowMs: number): Order {
    const order = this.#orderOf(fields, nowMs);
    this.#now = nowMs;
    this.#engine.place(order, nowMs, this.#events);
    return order;
  }

  /** Restores an order that waited before a restart. */
  restore(fields: Partial<Order>, nowMs: number): Order {
    const order = this.#orderOf(fields, nowMs);
    this.#engine.restore(order, nowMs);
    return order;
  }

  #orderOf(fields: Partial<Order>, nowMs: number): Order {
    this.#made += 1;
    const timeInForce = fields.timeInForce ?? TimeInForce.DAY;
    return {
      clientOrderId: `ord_${this.#made}`,
      account: 'ACC1',
      symbol: 'ZENITHBANK',
      side: Side.BUY,
      type: fields.priceKobo == null ? OrderType.MARKET : OrderType.LIMIT,
      timeInForce,
      quantity: 100,
      priceKobo: null,
      sequence: this.#made,
      exchangeOrderId: 'NGX',
      filled: 0,
      endedBy: ReportKind.UNSPECIFIED,
      expiresAtMs: timeInForce === TimeInForce.DAY ? this.venue.session(nowMs).dayEndsAtMs : null,
      plan: [],
      planAtMs: null,
      inBook: false,
      tradedOn: null,
      tradedKobo: 0n,
      ...fields,
    };
  }

  hasRoom(order: Pick<Order, 'symbol' | 'account' | 'partner'>): boolean {
    return this.#engine.hasRoom(order);
  }

  /** Ends an order as a cancel does, which reads it from the table. */
  end(order: Order): void {
    const { partner: _, ...stored } = order;
    this.#engine.follow(stored, false);
  }

  pulse(nowMs: number): void {
    this.#now = nowMs;
    this.#engine.pulse(nowMs, this.#events);
  }

  price(symbol: string, nowMs: number) {
    const listing = listingOf(symbol);
    assert.ok(listing);
    return this.venue.price(listing, nowMs);
  }

  tradesOf(order: Order): Traded[] {
    return this.trades.filter((each) => each.order === order);
  }

  readonly #events: EngineEvents = {
    trade: (order, quantity, priceKobo) => {
      order.filled += quantity;
      this.trades.push({ order, quantity, priceKobo, atMs: this.#now });
      this.#engine.follow(order, order.filled < order.quantity);
    },
    expire: (order) => {
      this.expired.push({ order, atMs: this.#now });
      this.#engine.follow(order, false);
    },
    waits: () => {},
  };
}

describe('the matching engine', () => {
  const eleven = at('2026-09-30T11:00');

  it('lets 2,000 orders of one partner wait, over all its accounts and stocks, and those of others all the same', () => {
    const engine = new TestEngine(1, false);
    const symbols = ['ZENITHBANK', 'GTCO'];
    const waiting = Array.from({ length: 2_000 }, (_, made) => {
      const symbol = symbols[made % 2] ?? '';
      const { lowerKobo: priceKobo } = engine.price(symbol, eleven);
      return engine.place({ symbol, priceKobo, account: `ACC${made % 7}`, partner: 'par_1' }, eleven);
    });
    for (const symbol of [...symbols, 'MTNN']) {
      assert.equal(engine.hasRoom({ symbol, account: 'ACC1', partner: 'par_1' }), false, symbol);
      assert.equal(engine.hasRoom({ symbol, account: 'ACC1', partner: 'par_2' }), true, symbol);
      assert.equal(engine.hasRoom({ symbol, account: 'ACC1' }), true, symbol);
    }
    const [first] = waiting;
    assert.ok(first !== undefined);
    engine.end(first);
    assert.equal(engine.hasRoom({ symbol: 'GTCO', account: 'ACC1', partner: 'par_1' }), true);
  });

  it('fills a market order at once, and a large one in parts until it is full', () => {
    const engine = new TestEngine(1, false);
    const small = engine.place({}, eleven);
    assert.equal(small.filled, 100);
    const large = engine.place({ quantity: 100_000_000 }, eleven);
    assert.ok(large.filled > 0 && large.filled < large.quantity, 'the depth of a moment is not without end');
    for (let beat = 1; beat <= 120 && large.filled < large.quantity; beat += 1) engine.pulse(eleven + beat * 1_000);
    assert.equal(large.filled, large.quantity);
    const parts = engine.tradesOf(large).length;
    assert.ok(parts > 3 && parts < 300, `${parts} parts`);
  });

  it('lets an order at the quoted price trade as others come', () => {
    const engine = new TestEngine(1, false);
    const { quoteKobo } = engine.price('ZENITHBANK', eleven);
    const order = engine.place({ quantity: 500_000, priceKobo: quoteKobo - 5 }, eleven);
    for (let beat = 1; beat <= 600 && order.filled < order.quantity; beat += 1) engine.pulse(eleven + beat * 1_000);
    assert.ok(order.filled > 0, 'the market comes to it');
    assert.ok(engine.tradesOf(order).every(({ priceKobo }) => priceKobo <= quoteKobo - 5));
  });

  it('trades no more of an order that waited before a restart than was left of it', () => {
    const engine = new TestEngine(1, false);
    const { upperKobo } = engine.price('ZENITHBANK', eleven);
    const order = engine.restore({ quantity: 100, filled: 60, priceKobo: upperKobo }, eleven);
    for (let beat = 1; beat <= 60; beat += 1) engine.pulse(eleven + beat * 1_000);
    const traded = engine.tradesOf(order).reduce((sum, { quantity }) => sum + quantity, 0);
    assert.deepEqual([traded, order.filled, order.inBook], [40, 100, false]);
  });

  it('gives the same day for the same seed', () => {
    const day = (seed: number) => {
      const engine = new TestEngine(seed, false);
      for (let beat = 0; beat < 300; beat += 1) {
        const now = eleven + beat * 1_000;
        const { quoteKobo } = engine.price('GTCO', now);
        if (beat % 10 === 0) engine.place({ symbol: 'GTCO', quantity: 40_000 + beat, priceKobo: quoteKobo - 10 }, now);
        engine.pulse(now);
      }
      return engine.trades.map(({ order, quantity, priceKobo, atMs }) => [order.sequence, quantity, priceKobo, atMs]);
    };
    assert.ok(day(3).length > 0);
    assert.deepEqual(day(3), day(3));
    assert.notDeepEqual(day(3), day(4));
  });

  it('collects before ten, trades at one price at the opening, and ends day orders at the close; gtc orders live on', () => {
    const engine = new TestEngine(1, true);
    const early = at('2026-09-30T09:40');
    const { upperKobo, lowerKobo, quoteKobo } = engine.price('ZENITHBANK', early);
    const buyers = [upperKobo, quoteKobo + 50, quoteKobo + 100].map((priceKobo) => engine.place({ priceKobo }, early));
    const seller = engine.place({ side: Side.SELL, priceKobo: lowerKobo, quantity: 150 }, early + 1_000);
    const immediate = engine.place({ timeInForce: TimeInForce.IOC, priceKobo: upperKobo }, early);
    const day = engine.place({ priceKobo: lowerKobo }, early);
    const lasting = engine.place({ priceKobo: lowerKobo, timeInForce: TimeInForce.GTC }, early);
    engine.pulse(at('2026-09-30T09:59'));
    assert.deepEqual(engine.trades, []);
    assert.deepEqual(
      engine.expired.map(({ order }) => order),
      [immediate],
      'what is immediate does not wait',
    );
    engine.pulse(at('2026-09-30T10:00'));
    const auctioned = [...buyers, seller];
    assert.ok(auctioned.every((order) => order.filled === order.quantity));
    assert.equal(new Set(engine.trades.map(({ priceKobo }) => priceKobo)).size, 1, 'one price');
    engine.pulse(at('2026-09-30T14:29'));
    assert.equal(engine.expired.length, 1);
    engine.pulse(at('2026-09-30T14:30'));
    assert.deepEqual(
      engine.expired.slice(1).map(({ order }) => order),
      [day],
    );
    engine.pulse(at('2026-10-02T11:00'));
    assert.equal(engine.expired.length, 2);
    assert.equal(lasting.filled, 0);
  });

  it('trades what waits near the price in the closing auction', () => {
    const engine = new TestEngine(1, true);
    engine.venue.forced = MarketSession.PAUSED;
    const late = at('2026-09-30T14:20');
    const { quoteKobo } = engine.price('ZENITHBANK', late);
    const order = engine.place({ priceKobo: quoteKobo + 200 }, late);
    engine.pulse(late + minuteMs);
    assert.equal(order.filled, 0);
    engine.venue.forced = MarketSession.UNSPECIFIED;
    engine.pulse(at('2026-09-30T14:30'));
    assert.equal(order.filled, 100);
    assert.equal(engine.tradesOf(order)[0]?.priceKobo, engine.price('ZENITHBANK', at('2026-09-30T14:30')).quoteKobo);
  });

  it('trades nothing while the market is halted, and goes on afterwards', () => {
    const engine = new TestEngine(1, false);
    const { lowerKobo, quoteKobo } = engine.price('ZENITHBANK', eleven);
    const order = engine.place({ priceKobo: lowerKobo, timeInForce: TimeInForce.GTC }, eleven);
    engine.venue.forced = MarketSession.HALTED;
    engine.venue.move('ZENITHBANK', -2_000, eleven);
    for (let beat = 1; beat < 30; beat += 1) engine.pulse(eleven + beat * 1_000);
    assert.equal(order.filled, 0);
    engine.venue.forced = MarketSession.OPEN;
    for (let beat = 30; beat < 90; beat += 1) engine.pulse(eleven + beat * 1_000);
    assert.equal(order.filled, 100, `at ${lowerKobo} after ${quoteKobo}`);
  });

  it('keeps limits, bands and quantities over days of any orders', () => {
    const anyOrders = fc.array(
      fc.record({
        side: fc.constantFrom(Side.BUY, Side.SELL),
        timeInForce: fc.constantFrom(TimeInForce.DAY, TimeInForce.GTC, TimeInForce.IOC, TimeInForce.FOK),
        quantity: fc.integer({ min: 1, max: 200_000 }),
        away: fc.option(fc.integer({ min: -8, max: 8 }), { nil: null }),
        waitMinutes: fc.integer({ min: 0, max: 400 }),
      }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(anyOrders, fc.boolean(), fc.integer(), (orders, keepsHours, seed) => {
        const engine = new TestEngine(seed, keepsHours);
        let now = eleven;
        const placed = orders.map(({ away, waitMinutes, ...fields }) => {
          now += waitMinutes * minuteMs;
          for (let beat = 1; beat <= 3; beat += 1) engine.pulse(now + beat * 1_000);
          const { quoteKobo, lowerKobo, upperKobo } = engine.price('ZENITHBANK', now);
          const limit = Math.min(upperKobo, Math.max(lowerKobo, quoteKobo + (away ?? 0) * 5));
          return engine.place({ ...fields, priceKobo: away === null ? null : limit }, now);
        });
        for (const { order, quantity, priceKobo, atMs } of engine.trades) {
          const { lowerKobo, upperKobo } = engine.price('ZENITHBANK', atMs);
          assert.ok(quantity > 0);
          // An auction at a close belongs to the day that ends, which the next look finds to be over.
          if (!keepsHours) assert.ok(priceKobo >= lowerKobo && priceKobo <= upperKobo, `${priceKobo}`);
          if (order.priceKobo === null) continue;
          assert.ok(order.side === Side.BUY ? priceKobo <= order.priceKobo : priceKobo >= order.priceKobo);
        }
        for (const order of placed) {
          const traded = engine.tradesOf(order).reduce((sum, { quantity }) => sum + quantity, 0);
          assert.equal(traded, order.filled);
          assert.ok(order.filled <= order.quantity);
          const ended = engine.expired.filter((each) => each.order === order).length;
          const immediate = order.timeInForce === TimeInForce.IOC || order.timeInForce === TimeInForce.FOK;
          if (immediate) assert.equal(ended, order.filled === order.quantity ? 0 : 1, 'never waits');
          if (order.timeInForce === TimeInForce.FOK) assert.ok([0, order.quantity].includes(order.filled));
          if (order.timeInForce === TimeInForce.GTC) assert.equal(ended, 0);
        }
        for (const { order, atMs } of engine.expired) {
          if (order.timeInForce === TimeInForce.DAY) assert.ok(atMs >= (order.expiresAtMs ?? 0));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('the charges of an order', () => {
  it('are in its contract notes what its estimate said, to the kobo, in however many parts it trades', () => {
    const part = fc.record({ quantity: fc.integer({ min: 1, max: 100_000 }) });
    const orders = fc.record({
      side: fc.constantFrom(Side.BUY, Side.SELL),
      priceKobo: fc.integer({ min: 500, max: 10_000_000 }),
      parts: fc.array(part, { minLength: 1, maxLength: 8 }),
    });
    fc.assert(
      fc.property(orders, ({ side, priceKobo, parts }) => {
        const execution = { account: 'A', clientOrderId: 'o', symbol: 'UBA', name: 'UBA', side, priceKobo };
        let earlier = 0n;
        const notes = parts.map(({ quantity }, index) => {
          const deal = toDeal(
            index,
            { ...execution, quantity, executedAtMs: at('2026-09-30T11:00') },
            calendar,
            earlier,
          );
          earlier += deal.amountKobo;
          return deal;
        });
        const { total } = chargesOn(earlier, side, '2026-09-30');
        const estimated = roundKoboDecimal(total, side === Side.BUY ? 'up' : 'down');
        assert.equal(
          notes.reduce((sum, each) => sum + each.considerationKobo, 0n),
          estimated,
        );
        for (const note of notes) {
          const charged = note.commissionKobo + note.statutoryKobo + note.otherKobo;
          assert.ok(note.commissionKobo >= 0n && note.statutoryKobo >= 0n && note.otherKobo >= 0n);
          assert.equal(
            note.considerationKobo,
            side === Side.BUY ? note.amountKobo + charged : note.amountKobo - charged,
          );
        }
      }),
    );
  });

  it('charges on ₦100,000 are ₦1,857.75 in the note of a buy and ₦2,180.25 in that of a sale', () => {
    const note = (side: Side) =>
      toDeal(
        1,
        {
          account: 'A',
          clientOrderId: '',
          symbol: 'UBA',
          name: 'UBA',
          side,
          quantity: 2_500,
          priceKobo: 4_000,
          executedAtMs: at('2026-09-30T11:00'),
        },
        calendar,
      );
    const [bought, sold] = [note(Side.BUY), note(Side.SELL)];
    assert.deepEqual([bought.commissionKobo, bought.statutoryKobo, bought.otherKobo], [135_000n, 50_375n, 400n]);
    assert.equal(bought.considerationKobo - bought.amountKobo, 185_775n);
    assert.deepEqual([sold.commissionKobo, sold.statutoryKobo, sold.otherKobo], [135_000n, 82_625n, 400n]);
    assert.equal(sold.amountKobo - sold.considerationKobo, 218_025n);
  });
});

describe('an exchange that is always open', () => {
  it('begins its day at midnight in Lagos', () => {
    const before = alwaysOpen(at('2026-10-03T23:59'));
    const after = alwaysOpen(at('2026-10-04T00:00'));
    assert.deepEqual([before.phase, before.nextOpenAtMs, before.nextCloseAtMs], ['continuous', undefined, undefined]);
    assert.equal(lagos(before.dayEndsAtMs), '2026-10-04T00:00');
    assert.equal(Math.floor(before.time) + 1, after.time);
  });
});
