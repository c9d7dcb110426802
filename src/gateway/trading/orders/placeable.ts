import type { Instrument } from '../../../gen/marina/broker/v1/orders_pb.ts';
import type { Instrument as ListedInstrument } from '../../../gen/marina/gateway/v1/reference_pb.ts';
import type { rejectSentences } from './rules.ts';

interface Wanted {
  /** Null for a market order. */
  readonly priceKobo: bigint | null;
  readonly quantity: bigint;
}

/** Why the exchange would certainly reject an order because of its price: it is outside the day's band. */
export function reasonByBand(
  { priceKobo }: Wanted,
  { lowerPriceKobo, upperPriceKobo }: Pick<Instrument, 'lowerPriceKobo' | 'upperPriceKobo'>,
): keyof typeof rejectSentences | undefined {
  // A broker that states no lower price states no band.
  const isBand = lowerPriceKobo >= 1n && lowerPriceKobo <= upperPriceKobo;
  if (priceKobo === null || !isBand) return undefined;
  return priceKobo < lowerPriceKobo || priceKobo > upperPriceKobo ? 'price_outside_band' : undefined;
}

/** Why the exchange would certainly reject an order because of the list of instruments: its tick or its lot. */
export function reasonByList(
  { priceKobo, quantity }: Wanted,
  { tickSizes, lotSize }: Pick<ListedInstrument, 'tickSizes' | 'lotSize'>,
): keyof typeof rejectSentences | undefined {
  // The ticks are sorted by price. The last one that begins at the price or below holds.
  const tick = priceKobo === null ? undefined : tickSizes.findLast(({ fromPriceKobo }) => fromPriceKobo <= priceKobo);
  if (priceKobo !== null && tick !== undefined && priceKobo % tick.tickSizeKobo !== 0n) return 'price_off_tick';
  return quantity % lotSize === 0n ? undefined : 'quantity_off_lot';
}
