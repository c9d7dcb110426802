import { timestampMs } from '@bufbuild/protobuf/wkt';
import { InstrumentKind } from '../../../gen/marina/broker/v1/orders_pb.ts';
import {
  Board,
  type ListedInstrument,
  type MarketDay,
  MarketDayKind,
  TradingStatus,
} from '../../../gen/marina/broker/v1/reference_pb.ts';
import { daysAfter, isDate } from '../../../kit/clock.ts';
import { forms, isPrice } from './rules.ts';

/** The instants that JSON can write: of the years 1 to 9999. */
const instants = { least: Date.parse('0001-01-01T00:00:00Z'), most: Date.parse('9999-12-31T23:59:59.999Z') };

/** The most days that one call asks for. */
export const maxMarketDays = 100;

const maxInstruments = 2_000;
const maxTickSizes = 20;

/** Whether an answer is a list of instruments, each symbol once and in its place. */
export function isInstrumentList(instruments: readonly ListedInstrument[]): boolean {
  return (
    instruments.length > 0 &&
    instruments.length <= maxInstruments &&
    instruments.every((each, at) => each.symbol > (instruments[at - 1]?.symbol ?? '') && isInstrument(each))
  );
}

/** Whether an answer is days of a calendar from one day on, without a gap and not beyond another. */
export function isDaysOf(days: readonly MarketDay[], from: string, to: string): boolean {
  return days.every((day, at) => day.date === daysAfter(from, at) && day.date <= to && isMarketDay(day));
}

/** Whether the exchange trades on a day. A kind of a later version of the broker trades if it has hours. */
export function isTradingDay({ kind, opensAt }: MarketDay): boolean {
  return kind !== MarketDayKind.WEEKEND && kind !== MarketDayKind.HOLIDAY && opensAt !== undefined;
}

function isInstrument(instrument: ListedInstrument): boolean {
  const { lowerPriceKobo: lower, upperPriceKobo: upper, lastPriceKobo: last } = instrument;
  return (
    forms.symbol.test(instrument.symbol) &&
    forms.name.test(instrument.name) &&
    // Later versions of the broker may have more kinds, boards and statuses.
    instrument.kind !== InstrumentKind.UNSPECIFIED &&
    instrument.board !== Board.UNSPECIFIED &&
    instrument.tradingStatus !== TradingStatus.UNSPECIFIED &&
    instrument.lotSize >= 1n &&
    lower >= 1n &&
    lower <= upper &&
    isPrice(upper) &&
    isPrice(last) &&
    areTickSizes(instrument)
  );
}

/** Whether every price of the band has one tick. */
function areTickSizes({ tickSizes, lowerPriceKobo, upperPriceKobo }: ListedInstrument): boolean {
  const [first] = tickSizes;
  return (
    first !== undefined &&
    first.fromPriceKobo <= lowerPriceKobo &&
    tickSizes.length <= maxTickSizes &&
    tickSizes.every(
      ({ fromPriceKobo, tickSizeKobo }, at) =>
        tickSizeKobo >= 1n &&
        fromPriceKobo >= 0n &&
        fromPriceKobo <= upperPriceKobo &&
        fromPriceKobo > (tickSizes[at - 1]?.fromPriceKobo ?? -1n),
    )
  );
}

function isMarketDay(day: MarketDay): boolean {
  if (day.kind === MarketDayKind.UNSPECIFIED || (day.name !== '' && !forms.name.test(day.name))) return false;
  const { opensAt, closesAt, settlementDate } = day;
  if (opensAt === undefined || closesAt === undefined) {
    const hasHours = day.kind === MarketDayKind.TRADING_DAY || day.kind === MarketDayKind.HALF_DAY;
    return !hasHours && opensAt === closesAt && settlementDate === '';
  }
  return (
    isTradingDay(day) &&
    timestampMs(opensAt) >= instants.least &&
    timestampMs(opensAt) < timestampMs(closesAt) &&
    timestampMs(closesAt) <= instants.most &&
    isDate(settlementDate) &&
    settlementDate >= day.date
  );
}
