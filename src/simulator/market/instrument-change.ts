import { InstrumentKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { SetInstrumentRequest } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { InstrumentState } from '../model.ts';
import { check, positive, whole } from '../validation.ts';
import type { World } from '../world.ts';
import { dailyBand } from './prices.ts';

/**
 * Applies a control's change. Absent fields stay. A price becomes the quoted and the last price, and moves the band
 * unless a band is given too. A listed stock keeps a given price until a control lets it move again.
 */
export function changedInstrument(world: World, { instrument, halted, moves }: SetInstrumentRequest): InstrumentState {
  check(instrument !== undefined, 'instrument');
  check(instrument.name.length <= 200, 'instrument.name');
  check(instrument.kind in InstrumentKind, 'instrument.kind');
  const present = world.instrument(instrument.symbol);
  const price = whole(instrument.lastPriceKobo, 'instrument.last_price_kobo');
  check(present !== undefined || price > 0, 'instrument.last_price_kobo');
  const band = bandOf(price, present);
  const lowerKobo = instrument.lowerPriceKobo
    ? positive(instrument.lowerPriceKobo, 'instrument.lower_price_kobo')
    : band.lowerKobo;
  const upperKobo = instrument.upperPriceKobo
    ? positive(instrument.upperPriceKobo, 'instrument.upper_price_kobo')
    : band.upperKobo;
  check(lowerKobo <= upperKobo, 'instrument.upper_price_kobo');
  const given = price + Number(instrument.lowerPriceKobo) + Number(instrument.upperPriceKobo) > 0;
  return {
    symbol: instrument.symbol,
    name: instrument.name || present?.name || instrument.symbol,
    kind: instrument.kind || present?.kind || InstrumentKind.EQUITY,
    lowerKobo,
    upperKobo,
    quoteKobo: price || (present?.quoteKobo ?? 0),
    lastKobo: price || (present?.lastKobo ?? 0),
    halted,
    pinned: !moves && (given || (present?.pinned ?? false)),
    position: present?.position ?? world.instruments.size,
  };
}

function bandOf(price: number, present: InstrumentState | undefined): { lowerKobo: number; upperKobo: number } {
  return price > 0 || present === undefined ? dailyBand(price) : present;
}
