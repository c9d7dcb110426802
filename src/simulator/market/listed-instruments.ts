import { create } from '@bufbuild/protobuf';
import { InstrumentKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import {
  Board,
  type ListedInstrument,
  ListedInstrumentSchema,
  TradingStatus,
} from '../../gen/marina/broker/v1/reference_pb.ts';
import { magicOf } from '../magic.ts';
import type { InstrumentState } from '../model.ts';
import type { World } from '../world.ts';
import { listingOf } from './instruments.ts';
import { ticksWithin } from './prices.ts';
import type { Phase } from './venue.ts';

/** A symbol that orders and lists can name. A control can add others, which only tests use. */
const listable = /^[A-Z0-9.-]{1,20}$/;
const maxListed = 2_000;

const statuses: Readonly<Record<Phase, TradingStatus>> = {
  continuous: TradingStatus.TRADING,
  collecting: TradingStatus.MARKET_PAUSED,
  halted: TradingStatus.MARKET_HALTED,
  closed: TradingStatus.MARKET_CLOSED,
};

/** Everything that the exchange lists, by symbol, as it trades now. */
export function listedInstruments(world: World, nowMs: number): ListedInstrument[] {
  const { phase } = world.venue.session(nowMs);
  return [...world.instruments.keys()]
    .filter((symbol) => listable.test(symbol))
    .sort()
    .slice(0, maxListed)
    .flatMap((symbol) => {
      const instrument = world.instrument(symbol, nowMs);
      return instrument === undefined ? [] : [toListed(instrument, phase)];
    });
}

function toListed(instrument: InstrumentState, phase: Phase): ListedInstrument {
  const { symbol, kind, lowerKobo, upperKobo, lastKobo } = instrument;
  return create(ListedInstrumentSchema, {
    symbol,
    name: instrument.name,
    kind,
    board: listingOf(symbol)?.board ?? (kind === InstrumentKind.ETF ? Board.ETF : Board.MAIN),
    lotSize: 1n,
    tickSizes: ticksWithin(lowerKobo, upperKobo).map(({ fromKobo, tickKobo }) => ({
      fromPriceKobo: BigInt(fromKobo),
      tickSizeKobo: BigInt(tickKobo),
    })),
    lowerPriceKobo: BigInt(lowerKobo),
    upperPriceKobo: BigInt(upperKobo),
    lastPriceKobo: BigInt(lastKobo),
    tradingStatus: statusOf(instrument, phase),
  });
}

/** Magic symbols trade in any phase. */
function statusOf({ symbol, halted }: InstrumentState, phase: Phase): TradingStatus {
  const status = statuses[magicOf(symbol) === undefined ? phase : 'continuous'];
  return status === TradingStatus.TRADING && halted ? TradingStatus.INSTRUMENT_HALTED : status;
}
