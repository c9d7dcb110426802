import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { isDaysOf, isInstrumentList } from '../../../../src/gateway/trading/broker/market.ts';
import { isPrice } from '../../../../src/gateway/trading/broker/rules.ts';
import { InstrumentKind } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  Board,
  ListedInstrumentSchema,
  MarketDayKind,
  MarketDaySchema,
  TradingStatus,
} from '../../../../src/gen/marina/broker/v1/reference_pb.ts';

const listed = {
  ...{ symbol: 'GTCO', name: 'A stock', kind: InstrumentKind.EQUITY, board: Board.MAIN, lotSize: 1n },
  ...{ tradingStatus: TradingStatus.TRADING, lowerPriceKobo: 900n, upperPriceKobo: 1_100n, lastPriceKobo: 1_000n },
  tickSizes: [{ fromPriceKobo: 0n, tickSizeKobo: 1n }],
};
const isListed = (changes: object) => isInstrumentList([create(ListedInstrumentSchema, { ...listed, ...changes })]);
const tick = (fromPriceKobo: bigint, tickSizeKobo = 1n) => ({ fromPriceKobo, tickSizeKobo });

describe("the broker's list of instruments", () => {
  it('instruments have prices from 1 kobo to 100 million naira', () => {
    for (const [kobo, isRight] of [
      [0n, false],
      [1n, true],
      [10_000_000_000n, true],
      [10_000_000_001n, false],
    ] as const) {
      assert.equal(isPrice(kobo), isRight, `${kobo}`);
    }
  });

  it('instruments have a lot, a band and ticks that can be', () => {
    for (const [changes, isRight] of [
      [{}, true],
      [{ lotSize: 0n }, false],
      [{ lowerPriceKobo: 1n }, true],
      [{ lowerPriceKobo: 0n }, false],
      [{ lowerPriceKobo: 1_100n }, true],
      [{ lowerPriceKobo: 1_101n }, false],
      [{ tickSizes: [] }, false],
      [{ tickSizes: [tick(900n)] }, true],
      [{ tickSizes: [tick(901n)] }, false],
      [{ tickSizes: [tick(-1n)] }, false],
      [{ tickSizes: [tick(0n, 0n)] }, false],
      [{ tickSizes: [tick(0n), tick(1_100n)] }, true],
      [{ tickSizes: [tick(0n), tick(1_101n)] }, false],
      [{ tickSizes: [tick(0n), tick(0n)] }, false],
      [{ tickSizes: Array.from({ length: 20 }, (_, at) => tick(BigInt(at))) }, true],
      [{ tickSizes: Array.from({ length: 21 }, (_, at) => tick(BigInt(at))) }, false],
    ] as const) {
      const shown = JSON.stringify(changes, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
      assert.equal(isListed(changes), isRight, shown);
    }
  });

  it('a broker has 1 to 2,000 instruments, each symbol once and sorted', () => {
    const symbol = (at: number) => `S${String(at).padStart(4, '0')}`;
    const list = (count: number) =>
      Array.from({ length: count }, (_, at) => create(ListedInstrumentSchema, { ...listed, symbol: symbol(at) }));
    for (const [count, isRight] of [
      [0, false],
      [1, true],
      [2_000, true],
      [2_001, false],
    ] as const) {
      assert.equal(isInstrumentList(list(count)), isRight, `${count}`);
    }
    const [one, other] = list(2);
    assert.ok(one && other);
    assert.equal(isInstrumentList([one, one]), false);
    assert.equal(isInstrumentList([other, one]), false);
  });
});

describe("the broker's calendar", () => {
  const opensAt = Date.parse('2026-03-02T10:00:00+01:00');
  const dayOf = (date: string, changes: object = {}) =>
    create(MarketDaySchema, {
      ...{ date, kind: MarketDayKind.TRADING_DAY, settlementDate: date },
      ...{ opensAt: timestampFromMs(opensAt), closesAt: timestampFromMs(opensAt + 1) },
      ...changes,
    });

  it("a broker's calendar has the days from the first on, without a gap, and none after the last", () => {
    for (const [dates, isRight] of [
      [['2026-02-28', '2026-03-01'], true],
      [['2026-02-28', '2026-03-01', '2026-03-02'], true],
      [['2026-02-28', '2026-03-01', '2026-03-02', '2026-03-03'], false],
      [['2026-02-28', '2026-03-02'], false],
      [['2026-02-27', '2026-02-28'], false],
      [['2026-03-01'], false],
      [['2026-02-28', '2026-02-28'], false],
    ] as const) {
      const days = dates.map((date) => dayOf(date, { settlementDate: '2026-03-05' }));
      assert.equal(isDaysOf(days, '2026-02-28', '2026-03-02'), isRight, `${dates}`);
    }
  });

  it("a broker's calendar has days that close after they open, and settle on the day itself or later", () => {
    const date = '2026-03-02';
    for (const [changes, isRight] of [
      [{}, true],
      [{ closesAt: timestampFromMs(opensAt) }, false],
      [{ closesAt: timestampFromMs(Date.UTC(10_000, 0, 1) - 1) }, true],
      [{ closesAt: timestampFromMs(Date.UTC(10_000, 0, 1)) }, false],
      [{ opensAt: timestampFromMs(Date.parse('0001-01-01T00:00:00Z')) }, true],
      [{ opensAt: timestampFromMs(Date.parse('0001-01-01T00:00:00Z') - 1) }, false],
      [{ settlementDate: '2026-03-03' }, true],
      [{ settlementDate: '2026-03-01' }, false],
    ] as const) {
      assert.equal(isDaysOf([dayOf(date, changes)], date, date), isRight, Object.keys(changes).join());
    }
  });
});
