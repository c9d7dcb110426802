import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isDaysOf, isInstrumentList } from '../../src/gateway/trading/broker/market.ts';
import { MarketSession } from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import { InstrumentKind } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Board, MarketDayKind, TradingStatus } from '../../src/gen/marina/broker/v1/reference_pb.ts';
import { daysAfter } from '../../src/kit/clock.ts';
import { MarketCalendar, readHolidays, usualHolidays } from '../../src/simulator/market/calendar.ts';
import { exchangeHours } from '../../src/simulator/market/hours.ts';
import { listedInstruments } from '../../src/simulator/market/listed-instruments.ts';
import { marketDays } from '../../src/simulator/market/market-days.ts';
import { dailyBand, isOnTick, tickKobo, ticksWithin } from '../../src/simulator/market/prices.ts';
import { World } from '../../src/simulator/world.ts';
import { temporaryFolder } from '../support/folders.ts';

const at = (lagosTime: string) => Date.parse(`${lagosTime}:00+01:00`);

function calendarOf(lines: string): MarketCalendar {
  const folder = temporaryFolder();
  try {
    const file = join(folder, 'holidays.txt');
    writeFileSync(file, lines);
    return new MarketCalendar(readHolidays(file));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('a half day', () => {
  const calendar = calendarOf('2026-12-24 12:30 Christmas Eve\n2026-12-25 Christmas Day\n');

  it('is a trading day that closes at the time in the file', () => {
    assert.equal(calendar.isTradingDay('2026-12-24'), true);
    const [eve, day] = marketDays(calendar, '2026-12-24', '2026-12-25');
    assert.deepEqual([eve?.kind, eve?.name], [MarketDayKind.HALF_DAY, 'Christmas Eve']);
    assert.equal(Number(eve?.closesAt?.seconds) * 1_000, at('2026-12-24T12:30'));
    assert.deepEqual([day?.kind, day?.name, day?.closesAt], [MarketDayKind.HOLIDAY, 'Christmas Day', undefined]);
  });

  it('ends the exchange’s day at that time, and its prices stand still afterwards', () => {
    const open = exchangeHours(calendar, at('2026-12-24T12:29'));
    assert.deepEqual([open.phase, open.dayEndsAtMs], ['continuous', at('2026-12-24T12:30')]);
    const closed = exchangeHours(calendar, at('2026-12-24T12:30'));
    assert.deepEqual([closed.phase, closed.nextCloseAtMs], ['closed', at('2026-12-28T14:30')]);
    assert.equal(closed.time, exchangeHours(calendar, at('2026-12-28T10:00')).time);
  });

  it('is refused in the file if it closes outside the hours', () => {
    for (const time of ['09:59', '14:30', '23:00']) {
      assert.throws(
        () => calendarOf(`2026-12-24 ${time} Eve\n`),
        /^Error: Line 1 of the holidays' file closes outside/,
      );
    }
  });
});

describe('the simulated market’s days', () => {
  it('make sense to a gateway, whatever is asked for', () => {
    const calendar = new MarketCalendar(readHolidays(usualHolidays));
    for (const from of ['1970-01-01', '2025-11-20', '2026-12-20', '2199-12-01']) {
      const to = daysAfter(from, 99);
      const days = marketDays(calendar, from, to);
      assert.ok(days.length > 0 && isDaysOf(days, from, to), from);
    }
  });
});

describe('the simulated market’s instruments', () => {
  function listed(session: MarketSession) {
    const world = new World(1);
    const stock = (symbol: string, priceKobo: number, halted = false, kind = InstrumentKind.EQUITY) => {
      const price = { quoteKobo: priceKobo, lastKobo: priceKobo, pinned: true, position: 0, ...dailyBand(priceKobo) };
      world.instruments.set(symbol, { symbol, name: `${symbol} Plc`, kind, halted, ...price });
    };
    stock('MTNN', 25_900);
    stock('HALTED', 499, true);
    stock('FUND', 10_000, false, InstrumentKind.ETF);
    stock('SIM-FILL', 1_000);
    stock('no name', 1_000);
    world.venue.forced = session;
    return listedInstruments(world, at('2026-11-25T12:00'));
  }

  it('are by symbol, with their boards, and make sense to a gateway', () => {
    const found = listed(MarketSession.OPEN);
    assert.ok(isInstrumentList(found));
    assert.deepEqual(
      found.map(({ symbol, board }) => [symbol, board]),
      [
        ['FUND', Board.ETF],
        ['HALTED', Board.MAIN],
        ['MTNN', Board.PREMIUM],
        ['SIM-FILL', Board.MAIN],
      ],
    );
  });

  it('trade as the session says, and magic symbols in any', () => {
    const { TRADING, INSTRUMENT_HALTED, MARKET_CLOSED, MARKET_PAUSED, MARKET_HALTED } = TradingStatus;
    for (const [session, halted, other] of [
      [MarketSession.OPEN, INSTRUMENT_HALTED, TRADING],
      [MarketSession.CLOSED, MARKET_CLOSED, MARKET_CLOSED],
      [MarketSession.PAUSED, MARKET_PAUSED, MARKET_PAUSED],
      [MarketSession.HALTED, MARKET_HALTED, MARKET_HALTED],
    ] as const) {
      const statuses = listed(session).map(({ tradingStatus }) => tradingStatus);
      assert.deepEqual(statuses, [other, halted, other, TRADING], MarketSession[session]);
    }
  });

  it('have a tick for every price of the band, the one by which an order is checked', () => {
    for (const close of [2, 5, 300, 480, 499, 520, 5_000, 9_500, 10_400, 4_090_000]) {
      const { lowerKobo, upperKobo } = dailyBand(close);
      const ticks = ticksWithin(lowerKobo, upperKobo);
      for (let price = lowerKobo; price <= Math.min(upperKobo, lowerKobo + 3_000); price += 1) {
        const tick = ticks.findLast(({ fromKobo }) => fromKobo <= price)?.tickKobo ?? 0;
        assert.deepEqual([tick, price % tick === 0], [tickKobo(price), isOnTick(price)], `${price}`);
      }
    }
  });
});
